"""The rules of a fixture: the fields of its records, and what its records say of one another.

A rule looks only at what is sound. One broken contract is one problem, not one for each of its
items; an item without a readable id could be any item, so none is called missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from rag_assets.canonical.contracts import DTYPES, METRICS
from rag_assets.canonical.corpus import SPACE_ITEMS
from rag_assets.sources import fixture_fields as fields
from rag_assets.sources.fixture_fields import Check, Reading, Spot
from rag_assets.sources.strict_json import excerpt

Sound = dict[str, Any]

MAX_SPACES = int(np.iinfo(SPACE_ITEMS.field("space_no").type.to_pandas_dtype()).max)

_group = fields.token_of("group")
_item_id = fields.token_of("item_id")
_role = fields.token_of("role")

TOP: dict[str, Check] = {
    "contracts": fields.check_list,
    "items": fields.check_list,
    "queries": fields.check_list,
}
CONTRACT: dict[str, Check] = {
    "space_id": fields.token_of("space_id"),
    "provider": fields.token_of("provider"),
    "model": fields.token_of("model"),
    "revision": fields.token_of("revision"),
    "dimension": fields.check_dimension,
    "metric": fields.choice_of("unknown_metric", METRICS),
    "normalized": fields.check_boolean,
    "query_role": _role,
    "document_role": _role,
    "dtype": fields.choice_of("unknown_dtype", DTYPES),
}
ITEM: dict[str, Check] = {
    "item_id": _item_id,
    "space_id": CONTRACT["space_id"],
    "role": _role,
    "text": fields.check_text,
    "vector": fields.check_components,
    "acl": fields.tokens_of(_group, "duplicate_group", "empty_groups"),
    "source_revision": fields.token_of("source_revision", "blank_source_revision"),
}
QUERY: dict[str, Check] = {
    "case_id": fields.token_of("case_id"),
    "query_item_id": _item_id,
    "subject_groups": fields.tokens_of(_group, "duplicate_group", "empty_groups"),
    "relevance": fields.relevance_of(_item_id),
    "subgroups": fields.tokens_of(fields.token_of("subgroup"), "duplicate_subgroup", None),
}
_ITEM_NAME = (("item", "item_id"), ("in space", "space_id"))


@dataclass(slots=True)
class Fixture:
    """The sound parts of a fixture; complete when its reading found no problem.

    `held[space_id][item_id]` is an item as that space declares it, `vector` an array in the
    contract's dtype. `adrift` are ids of items whose space is not readable or not declared;
    `nameless` says that some item has no readable id, `spaces_known` that every contract has one.
    """

    spaces: dict[str, Sound] = field(default_factory=dict)
    space_spots: dict[str, Spot] = field(default_factory=dict)
    held: dict[str, dict[str, Sound]] = field(default_factory=dict)
    cases: list[tuple[Spot, Sound]] = field(default_factory=list)
    spaces_known: bool = True
    nameless: bool = False
    adrift: set[str] = field(default_factory=set)


def check_fixture(tree: object, reading: Reading) -> Fixture:
    """Everything sound in a parsed fixture; what is not is in `reading`."""
    fixture = Fixture()
    top = fields.check_record(tree, Spot(reading, (0, 0), ()), TOP)
    _read_contracts(top, reading, fixture)
    _read_items(top, reading, fixture)
    _read_cases(top, reading, fixture)
    if "items" in top and not reading.full:
        _check_roles_present(fixture)
        _check_references(fixture)
    return fixture


def _records(
    top: Sound,
    section: str,
    reading: Reading,
    checks: Mapping[str, Check],
    name_parts: tuple[tuple[str, str], ...],
) -> Iterable[tuple[Spot, Sound]]:
    """Spot and sound fields of each record of a section, until the reading is full."""
    for index, value in enumerate(top.get(section, ())):
        if reading.full:
            return
        order = (1 + list(TOP).index(section), index)
        spot = Spot(reading, order, (section, index), value, name_parts)
        yield spot, fields.check_record(value, spot, checks)


def _read_contracts(top: Sound, reading: Reading, fixture: Fixture) -> None:
    fixture.spaces_known = "contracts" in top
    if top.get("contracts") == []:
        fixture.spaces_known = False
        spot = Spot(reading, (1, 0), ("contracts",))
        spot.refuse("no_contracts", "an empty list", "declare at least one space")
    for spot, contract in _records(top, "contracts", reading, CONTRACT, (("space", "space_id"),)):
        _check_contract_roles(contract, spot)
        space_id = contract.get("space_id")
        if space_id is None:
            fixture.spaces_known = False
        elif space_id in fixture.spaces:
            found = f"{excerpt(space_id)}, declared at {fixture.space_spots[space_id].path}"
            spot.below("space_id").refuse("duplicate_space", found, "declare each space once")
            _keep_common(fixture.spaces[space_id], contract)
        else:
            fixture.spaces[space_id], fixture.space_spots[space_id] = contract, spot
            fixture.held[space_id] = {}
        if len(fixture.spaces) > MAX_SPACES:
            remedy = f"at most {MAX_SPACES} spaces are allowed in one file"
            spot.refuse("too_many_spaces", f"space number {MAX_SPACES + 1}", remedy)
            fixture.spaces_known = False
            return


def _check_contract_roles(contract: Sound, spot: Spot) -> None:
    query_role, document_role = contract.get("query_role"), contract.get("document_role")
    if query_role is not None and query_role == document_role:
        remedy = "query_role and document_role must differ"
        spot.below("document_role").refuse("same_roles", excerpt(document_role), remedy)
        del contract["query_role"], contract["document_role"]


def _read_items(top: Sound, reading: Reading, fixture: Fixture) -> None:
    for spot, item in _records(top, "items", reading, ITEM, _ITEM_NAME):
        item_id, space_id = item.get("item_id"), item.get("space_id")
        if space_id is not None and space_id not in fixture.spaces:
            if fixture.spaces_known:
                remedy = f"declared spaces: {_listed(fixture.spaces)}"
                spot.below("space_id").refuse("unknown_space", excerpt(space_id), remedy)
            space_id = None
        contract = fixture.spaces.get(space_id, {}) if space_id is not None else {}
        _check_role(item, spot, contract)
        if "vector" in item:
            item["vector"] = fields.check_vector(item["vector"], spot.below("vector"), contract)
        if item_id is None:
            fixture.nameless = True
        elif space_id is None:
            fixture.adrift.add(item_id)
        elif item_id in (held := fixture.held[space_id]):
            found = f"{excerpt(item_id)}, which the space already holds"
            spot.below("item_id").refuse("duplicate_item", found, "an item is once in a space")
            _keep_common(held[item_id], item)
        else:
            held[item_id] = item


def _check_role(item: Sound, spot: Spot, contract: Sound) -> None:
    roles = [contract[name] for name in ("query_role", "document_role") if name in contract]
    if len(roles) == 2 and "role" in item and item["role"] not in roles:
        remedy = f"the contract's roles are {_listed(roles)}"
        spot.below("role").refuse("unknown_role", excerpt(item["role"]), remedy)
    if len(roles) < 2 or item.get("role") not in roles:
        item.pop("role", None)


def _read_cases(top: Sound, reading: Reading, fixture: Fixture) -> None:
    if top.get("queries") == []:
        spot = Spot(reading, (3, 0), ("queries",))
        spot.refuse("no_queries", "an empty list", "declare at least one query case")
    first: dict[str, Spot] = {}
    for spot, case in _records(top, "queries", reading, QUERY, (("case", "case_id"),)):
        case_id = case.get("case_id")
        if case_id in first:
            found = f"{excerpt(case_id)}, as at {first[case_id].path}"
            spot.below("case_id").refuse("duplicate_case", found, "name each case once")
        elif case_id is not None:
            first[case_id] = spot
        fixture.cases.append((spot, case))


def _check_roles_present(fixture: Fixture) -> None:
    """Each space needs a document and a query item."""
    if fixture.nameless or fixture.adrift:
        return
    for space_id, contract in fixture.spaces.items():
        roles = {item.get("role") for item in fixture.held[space_id].values()}
        if None in roles:
            continue
        for name in ("document_role", "query_role"):
            if name in contract and contract[name] not in roles:
                found = f"no item of role {excerpt(contract[name])}"
                remedy = "a space needs at least one document and one query item"
                fixture.space_spots[space_id].refuse("space_without_role", found, remedy)


@dataclass(frozen=True, slots=True)
class _Holding:
    """Where one item id stands: spaces that lack it, that hold it in a role, its ACLs."""

    lacking: list[str]
    in_role: dict[str, list[str]]  # "query_role", "document_role" -> space ids
    acls: dict[frozenset[str], str]  # ACL -> first space that states it


def _holdings(fixture: Fixture) -> Callable[[str], _Holding]:
    @cache
    def holding(item_id: str) -> _Holding:
        # What is not readable elsewhere might be this item: then nothing is known to be missing.
        certain = not fixture.nameless and item_id not in fixture.adrift
        stands = _Holding([], {"query_role": [], "document_role": []}, {})
        for space_id, contract in fixture.spaces.items():
            held = fixture.held[space_id]
            item = held.get(item_id)
            if item is None:
                if certain and held:  # an empty space is one problem, named elsewhere
                    stands.lacking.append(space_id)
                continue
            for name, spaces in stands.in_role.items():
                if "role" in item and contract.get(name) == item["role"]:
                    spaces.append(space_id)
            if "acl" in item:
                stands.acls.setdefault(frozenset(item["acl"]), space_id)
        return stands

    return holding


def _check_references(fixture: Fixture) -> None:
    """Queries are queries, gold documents are documents that the subject may read, everywhere."""
    holding = _holdings(fixture)
    for spot, case in fixture.cases:
        if spot.reading.full:
            return
        if (query_id := case.get("query_item_id")) is not None:
            at, item = spot.below("query_item_id"), holding(query_id)
            if item.lacking:
                _refuse_in(at, "query_item_missing", query_id, "missing", item.lacking)
            if strays := item.in_role["document_role"]:
                _refuse_in(at, "query_item_role", query_id, "not a query", strays)
        groups = case.get("subject_groups")
        for gold_id in case.get("relevance", ()):
            at, item = spot.below("relevance").below(gold_id), holding(gold_id)
            if item.lacking:
                _refuse_in(at, "gold_missing", gold_id, "missing", item.lacking)
            if strays := item.in_role["query_role"]:
                _refuse_in(at, "gold_not_document", gold_id, "not a document", strays)
            elif groups is not None:
                _check_readable(at, gold_id, groups, item)


def _refuse_in(spot: Spot, code: str, item_id: str, fault: str, spaces: list[str]) -> None:
    found = f"{excerpt(item_id)}, {fault} in {_listed(spaces)}"
    kind = "query item" if code.startswith("query") else "document"
    spot.refuse(code, found, f"every space must hold it as a {kind}")


def _check_readable(spot: Spot, gold_id: str, groups: list[str], item: _Holding) -> None:
    closed = [space for acl, space in item.acls.items() if acl.isdisjoint(groups)]
    if closed:
        acl = next(acl for acl, space in item.acls.items() if space == closed[0])
        found = f"{excerpt(gold_id)}, which {_listed(closed)} opens to {_listed(sorted(acl))} only"
        remedy = f"a gold document must be open to one of the case's groups {_listed(groups)}"
        spot.refuse("gold_unreadable", found, remedy)


def _keep_common(first: Sound, second: Sound) -> None:
    """After a double declaration only what both say alike may be relied on."""
    for name in list(first):
        same = name in second and np.array_equal(first[name], second[name])
        if not same:
            del first[name]


def _listed(names: Iterable[str]) -> str:
    quoted = [excerpt(name) for name in names]
    more = f" and {len(quoted) - 5} more" if len(quoted) > 5 else ""
    return ", ".join(quoted[:5]) + more
