"""Signed decisions: `decisions.yaml` in the suite's folder, written by people or by `sign`.

    - item: quality minilm:wordllama     # or shadow_and_rollback, approvals, accept ITEM
      decision: approve                  # or refuse
      by: Ada
      when: 2026-11-30T21:55:00+00:00
      evaluation: 20261130T215500Z-1a2b3c4d
      data_version: <sha-256 of the content and vectors that were decided on>
      signatures: {minilm: <contract signature>, wordllama: <contract signature>}
      why: the gains in Chinese outweigh the losses in paraphrases

A decision holds for the data and signatures it names and for no others: whoever decides has seen
those. The file is read strictly, and a faulty one is refused as a whole: a decision that cannot be
read must not look like one that was not made, and a refusal must not get lost in a typing error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from rag_assets import clock
from rag_assets.decisions.chained_log import locked, one_line
from rag_assets.decisions.items import ITEMS, SIGNED_ITEMS
from rag_assets.decisions.release import ReleaseFacts
from rag_assets.errors import InputError, Problem, UsageError
from rag_assets.sources.faults import Faults
from rag_assets.sources.strict_json import WHOLE_FILE, excerpt, read_limited
from rag_assets.whole_files import replace_text

FILE = "decisions.yaml"
APPROVE, REFUSE = "approve", "refuse"
_LARGEST_FILE = 2**20
_TEXTS = ("item", "decision", "by", "when", "evaluation", "data_version", "why")
_KEYS = (*_TEXTS, "signatures")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PAIR = re.compile(r"quality ([^\s:]+):([^\s:]+)")
_ITEM_REMEDY = (
    f"an item is `quality OLD:NEW`, {', '.join(SIGNED_ITEMS)} or `accept ITEM` "
    f"with ITEM one of {', '.join(ITEMS)}"
)


@dataclass(frozen=True, slots=True)
class Signed:
    """One signed decision. `when` is UTC in ISO 8601, `signatures` maps the spaces that it is about
    to their contract signatures.
    """

    item: str
    decision: str
    by: str
    when: str
    evaluation: str
    data_version: str
    signatures: Mapping[str, str]
    why: str


@dataclass(frozen=True, slots=True)
class Judged:
    """A decision beside a release: `expired` says why it no longer holds, None while it does."""

    signed: Signed
    expired: str | None


def quality_of(old: str, new: str) -> str:
    return f"quality {old}:{new}"


def acceptance_of(item: str) -> str:
    return f"accept {item}"


def read_signed(folder: Path) -> list[Signed]:
    """Every decision, as in the file; none if there is no file. InputError with every fault."""
    path = folder / FILE
    return _parsed(_text(path)) if path.exists() else []


def judged(signed: Sequence[Signed], release: ReleaseFacts) -> list[Judged]:
    """Each decision, valid or expired for a release, in order."""
    return [Judged(one, _expiry(one, release)) for one in signed]


def standing(decisions: Sequence[Judged], item: str) -> Signed | None:
    """The valid decision about an item that stands last in the file, None if there is none."""
    valid = [one.signed for one in decisions if one.signed.item == item and one.expired is None]
    return valid[-1] if valid else None


def last_expired(decisions: Sequence[Judged], item: str) -> Judged | None:
    expired = [one for one in decisions if one.signed.item == item and one.expired is not None]
    return expired[-1] if expired else None


def sign(
    folder: Path, item: str, decision: str, release: ReleaseFacts, *, by: str, why: str
) -> Signed:
    """Append a decision about a release to the suite's file; what is there stays, comments too.

    UsageError for an item that does not exist, without saying who and why, or where the file's
    layout allows no appending; InputError for a faulty file. The release states its evaluation and
    data version.
    """
    pair = _PAIR.fullmatch(item)
    about = pair.groups() if pair else tuple(release.signatures)
    assert release.evaluation is not None and release.data_version is not None
    made = Signed(
        item=item,
        decision=decision,
        by=one_line("by", by),
        when=clock.utc_now().isoformat(timespec="seconds"),
        evaluation=release.evaluation,
        data_version=release.data_version,
        signatures={space_id: release.signatures[space_id] for space_id in about},
        why=one_line("why", why),
    )
    entry = yaml.safe_dump([asdict(made)], sort_keys=False, allow_unicode=True, width=10_000)
    with locked(folder):
        path = folder / FILE
        before = _text(path) if path.exists() else ""
        earlier = _parsed(before)
        after = before + ("" if not before or before.endswith("\n") else "\n") + entry
        try:
            appended = _parsed(after) == [*earlier, made]
        except InputError:
            appended = False
        if not appended:
            raise UsageError(
                f"{FILE}: its layout allows no appending; write it as a list of '- item: ...' "
                "entries that start in the first column"
            )
        replace_text(path, after)
    return made


def check_item(item: str) -> None:
    """UsageError for what is no item of a decision."""
    if not _is_item(item):
        raise UsageError(f"unknown item {item!r}; {_ITEM_REMEDY}")


def _is_item(item: str) -> bool:
    accepted = item.removeprefix("accept ")
    return (
        item in SIGNED_ITEMS
        or _PAIR.fullmatch(item) is not None
        or (accepted != item and accepted in ITEMS)
    )


def _expiry(signed: Signed, release: ReleaseFacts) -> str | None:
    if release.data_version is None:
        return "the release does not state its data version; run the suite"
    if signed.data_version != release.data_version:
        return f"the data changed since evaluation {signed.evaluation}"
    for space_id, signature in signed.signatures.items():
        if space_id not in release.signatures:
            return f"space {space_id} is no longer in the suite"
        if release.signatures[space_id] != signature:
            return f"the contract signature of space {space_id} changed"
    if not _PAIR.fullmatch(signed.item):
        for space_id in release.signatures:
            if space_id not in signed.signatures:
                return f"space {space_id} was not part of it"
    return None


def _text(path: Path) -> str:
    try:
        return read_limited(path, _LARGEST_FILE).decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"the byte 0x{error.object[error.start]:02x}"
        raise _refused("not_utf8", WHOLE_FILE, found, "save the file as UTF-8") from None


def _refused(code: str, place: str, found: str, remedy: str) -> InputError:
    return InputError([Problem(code, FILE, place, found, remedy)])


def _parsed(text: str) -> list[Signed]:
    try:
        # Nodes, not values: a digest that looks like a number stays text, a repeated key is seen.
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark else WHOLE_FILE
        found = getattr(error, "problem", None) or " ".join(str(error).split())
        raise _refused("syntax_error", place, found, "write plain YAML") from None
    if root is None:
        return []
    if not isinstance(root, yaml.SequenceNode):
        raise _refused("wrong_type", WHOLE_FILE, "no list", "the file is a list of decisions")
    faults = Faults()
    read = [_entry(node, faults) for node in root.value]
    faults.raise_if_any()
    return [Signed(**fields) for fields in read]


def _entry(node: yaml.Node, faults: Faults) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    remedy = f"a decision has exactly the keys {', '.join(_KEYS)}"
    for key, value in _pairs(node, "decision", faults):
        place = f"line {value.start_mark.line + 1}, {key}"
        if key not in _KEYS:
            faults.add("unknown_key", FILE, place, excerpt(key), remedy)
        elif key in fields:
            faults.add("duplicate_key", FILE, place, f"the key {excerpt(key)} again", "keep one")
        elif key == "signatures":
            fields[key] = _signatures(value, faults)
        elif not isinstance(value, yaml.ScalarNode) or not value.value.strip():
            fields[key] = None
            faults.add("wrong_type", FILE, place, "no text", f"{key} is a text")
        else:
            fields[key] = value.value
            if (wrong := _wrong(key, value.value)) is not None:
                faults.add("wrong_value", FILE, place, excerpt(value.value), wrong)
    line = f"line {node.start_mark.line + 1}"
    if missing := [key for key in _KEYS if key not in fields]:
        faults.add("missing_key", FILE, line, f"no {', '.join(missing)}", remedy)
    _check_pair(fields, line, faults)
    return fields


def _check_pair(fields: Mapping[str, Any], line: str, faults: Faults) -> None:
    """A decision on a migration names the signatures of exactly its two spaces."""
    pair = _PAIR.fullmatch(fields.get("item") or "")
    named = fields.get("signatures")
    if pair and named is not None and set(named) != set(pair.groups()):
        found = f"signatures of {', '.join(named) or 'no space'}"
        remedy = f"name those of {' and '.join(pair.groups())}"
        faults.add("wrong_spaces", FILE, f"{line}, signatures", found, remedy)


def _signatures(node: yaml.Node, faults: Faults) -> dict[str, str]:
    named: dict[str, str] = {}
    for space_id, value in _pairs(node, "signatures", faults):
        place = f"line {value.start_mark.line + 1}, signatures.{space_id}"
        if space_id in named:
            found = f"the space {excerpt(space_id)} again"
            faults.add("duplicate_key", FILE, place, found, "keep one")
        text = value.value if isinstance(value, yaml.ScalarNode) else ""
        if not _SHA256.fullmatch(text):
            remedy = "the space's contract_signature, 64 hexadecimal digits (table spaces)"
            faults.add("wrong_value", FILE, place, excerpt(text), remedy)
        named[space_id] = text
    if not named:
        place = f"line {node.start_mark.line + 1}, signatures"
        remedy = "name each space that the decision is about with its contract_signature"
        faults.add("wrong_value", FILE, place, "no space", remedy)
    return named


def _pairs(node: yaml.Node, what: str, faults: Faults) -> list[tuple[str, yaml.Node]]:
    if isinstance(node, yaml.MappingNode) and all(
        isinstance(key, yaml.ScalarNode) for key, _ in node.value
    ):
        return [(key.value, value) for key, value in node.value]
    place = f"line {node.start_mark.line + 1}"
    faults.add("wrong_type", FILE, place, "no mapping", f"{what} maps texts to values")
    return []


def _wrong(key: str, value: str) -> str | None:
    """What is allowed instead, None where the value is sound."""
    if key == "item" and not _is_item(value):
        return _ITEM_REMEDY
    if key == "decision" and value not in (APPROVE, REFUSE):
        return f"{APPROVE} or {REFUSE}"
    if key == "data_version" and not _SHA256.fullmatch(value):
        return "the release's data_version, 64 hexadecimal digits (table manifest)"
    if key == "when" and not _is_utc(value):
        return "a UTC time such as 2026-11-30T21:55:00+00:00"
    return None


def _is_utc(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).utcoffset() == timedelta(0)
    except ValueError:
        return False
