"""Small inputs of the SQL models, written by id and numbered here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from rag_assets.canonical.text import content_sha256
from rag_assets.project import models_folder
from rag_assets.warehouse.base import BASE
from rag_assets.warehouse.build import build
from rag_assets.warehouse.models import load_models

MODELS = load_models(models_folder())


@dataclass(frozen=True)
class Held:
    """An item as one space holds it."""

    role: str = "document"
    acl: tuple[str, ...] = ("staff",)
    text: str = "a text"
    revision: str = "r1"
    norm: float = 1.0


@dataclass(frozen=True)
class Case:
    """A query case; `relevance` maps documents to grades."""

    relevance: Mapping[str, int]
    groups: tuple[str, ...] = ("staff",)
    subgroups: tuple[str, ...] = ()


DOCUMENTS = {name: Held() for name in ("a", "b", "c", "d")}
QUERY = {"q": Held(role="query")}


@dataclass(frozen=True)
class Example:
    """`spaces[space_id][item_id]`; `results[(scope, space_id, case_id)]` is a list of ids."""

    spaces: Mapping[str, Mapping[str, Held]]
    cases: Mapping[str, Case]
    results: Mapping[tuple[int, str, str], Sequence[str]]
    ks: Sequence[int] = (3,)
    pairs: Sequence[tuple[str, str]] = ()
    not_executed: Mapping[str, str] = field(default_factory=dict)
    contract: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def base_tables(example: Example) -> dict[str, pa.Table]:
    space_no = {space_id: number for number, space_id in enumerate(example.spaces)}
    case_no = {case_id: number for number, case_id in enumerate(example.cases)}
    ids = sorted({item_id for held in example.spaces.values() for item_id in held})
    item_no = {item_id: number for number, item_id in enumerate(ids)}
    canonical = {
        item_id: next(held[item_id] for held in example.spaces.values() if item_id in held)
        for item_id in ids
    }
    rows: dict[str, list[dict[str, Any]]] = {
        "spaces": [
            {
                "space_no": number,
                "space_id": space_id,
                "provider": "hand",
                "model": "hand",
                "revision": "v1",
                "dimension": 4,
                "metric": "cosine",
                "normalized": False,
                "query_role": "query",
                "document_role": "document",
                "dtype": "float32",
                "contract_signature": "one signature",
                "status": "not_executed" if space_id in example.not_executed else "evaluated",
                "status_reason": example.not_executed.get(space_id),
                **example.contract.get(space_id, {}),
            }
            for space_id, number in space_no.items()
        ],
        "items": [
            {"item_no": item_no[item_id], "item_id": item_id, "text": held.text, **_record(held)}
            for item_id, held in canonical.items()
        ],
        "space_items": [
            {
                "space_no": space_no[space_id],
                "item_no": item_no[item_id],
                "l2_norm": held.norm,
                **_record(held),
            }
            for space_id, items in example.spaces.items()
            for item_id, held in items.items()
        ],
        "cases": [
            {
                "case_no": case_no[case_id],
                "case_id": case_id,
                "query_item_no": item_no["q"],
                "query_item_id": "q",
                "subject_groups": case.groups,
                "subgroups": case.subgroups,
                "split": None,
            }
            for case_id, case in example.cases.items()
        ],
        "qrels": [
            {"case_no": case_no[case_id], "item_no": item_no[item_id], "grade": grade}
            for case_id, case in example.cases.items()
            for item_id, grade in case.relevance.items()
        ],
        "results": [
            {
                "scope": scope,
                "space_no": space_no[space_id],
                "index_name": "exact",
                "case_no": case_no[case_id],
                "rank": rank,
                "item_no": item_no[item_id],
                "score": 1.0 - rank / 100,
                "exact_score": 1.0 - rank / 100,
            }
            for (scope, space_id, case_id), ranked in example.results.items()
            for rank, item_id in enumerate(ranked, 1)
        ],
        "searches": [],
        "index_builds": [],
        "evaluated_k": [{"k": k} for k in example.ks],
        "audited_pairs": [
            {"pair_no": number, "old_space_no": space_no[old], "new_space_no": space_no[new]}
            for number, (old, new) in enumerate(example.pairs, 1)
        ],
        "indexes": [
            {"space_no": number, "index_name": "exact"}
            for space_id, number in space_no.items()
            if space_id not in example.not_executed
        ],
        "checks": [],
        "manifest": [],
    }
    return {name: pa.Table.from_pylist(rows.get(name, []), schema=BASE[name]) for name in BASE}


def built(example: Example) -> duckdb.DuckDBPyConnection:
    """All models over an example, in memory."""
    con = duckdb.connect()
    build(con, base_tables(example), MODELS)
    return con


def rows(con: duckdb.DuckDBPyConnection, sql: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = con.sql(sql).to_arrow_table().to_pylist()
    return found


def row(con: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    found = rows(con, sql)
    assert len(found) == 1, found
    return found[0]


def _record(held: Held) -> dict[str, Any]:
    return {
        "role": held.role,
        "acl": held.acl,
        "source_revision": held.revision,
        "content_sha256": content_sha256(held.text),
    }
