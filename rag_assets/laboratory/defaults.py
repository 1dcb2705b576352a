"""Which index serves each space: a chain of recorded decisions in `<suite>/default_index.json`.

Every space starts with "exact". A decision says who, when, why and on what evidence, and carries
the digest of the decision before it and its own; `head` is the digest of the last. Whoever edits,
removes or reorders a decision breaks the chain, and the file is refused as a whole: the chain is no
proof against forgery, it shows that something was done beside `set_default_index`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rag_assets import clock
from rag_assets.canonical.contracts import canonical_json
from rag_assets.canonical.corpus import digest
from rag_assets.errors import InputError, Problem, UsageError
from rag_assets.sources.strict_json import parse_json, read_limited
from rag_assets.whole_files import locked_folder, replace_text

EXACT = "exact"
FILE = "default_index.json"
_FORMAT = 1
_LARGEST_FILE = 5 * 2**20
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Decision:
    """`when` is UTC in ISO 8601; `evidence` the SHA-256 of what the gate saw, None for a return to
    "exact"; `previous` the digest of the decision before, None for the first.
    """

    space_id: str
    index_name: str
    by: str
    when: str
    why: str
    evidence: str | None
    previous: str | None

    @property
    def digest(self) -> str:
        return digest(canonical_json(asdict(self)))


def default_index(folder: Path, space_ids: Sequence[str]) -> dict[str, str]:
    """The index of each space. Raises InputError for a file that was edited by hand."""
    chosen = {decision.space_id: decision.index_name for decision in default_decisions(folder)}
    return {space_id: chosen.get(space_id, EXACT) for space_id in space_ids}


def set_default_index(
    folder: Path,
    space_id: str,
    index_name: str,
    *,
    by: str,
    why: str,
    evidence_digest: str | None,
    eligible: bool,
) -> Decision:
    """Record a decision and return it.

    Raises UsageError for an index that is not eligible (going back to "exact" always is), without
    evidence, or without saying who and why; InputError for a file that was edited by hand.
    """
    for name, text in (("space", space_id), ("index", index_name), ("by", by), ("why", why)):
        if not text.strip() or not text.isprintable():
            raise UsageError(f"{name} is {text!r}; it must be a line of text that says something")
    if index_name != EXACT:
        if not eligible:
            raise UsageError(
                f"index {index_name!r} is not eligible as the default of space {space_id!r}; "
                "see the rows of index_promotion, every condition has to pass"
            )
        if evidence_digest is None or not _SHA256.fullmatch(evidence_digest):
            raise UsageError(
                f"evidence is {evidence_digest!r}; it must be the SHA-256 (hex) of the evidence"
            )
    if not folder.is_dir():
        raise UsageError(f"no folder {folder.name!r} to record the decision in")
    with locked_folder(folder):
        decisions = default_decisions(folder)
        decision = Decision(
            space_id=space_id,
            index_name=index_name,
            by=by.strip(),
            when=clock.utc_now().isoformat(timespec="seconds"),
            why=why.strip(),
            evidence=evidence_digest,
            previous=decisions[-1].digest if decisions else None,
        )
        _write(folder / FILE, [*decisions, decision])
    return decision


def default_decisions(folder: Path) -> list[Decision]:
    """Every decision, oldest first; none if there is no file."""
    path = folder / FILE
    if not path.exists():
        return []
    tree = parse_json(read_limited(path, _LARGEST_FILE), path.name)
    if not isinstance(tree, dict) or set(tree) != {"format", "head", "decisions"}:
        raise _edited("whole file", "other keys than format, head and decisions")
    if tree["format"] != _FORMAT or not isinstance(tree["decisions"], list):
        raise _edited("format", f"not format {_FORMAT} with a list of decisions")
    decisions: list[Decision] = []
    previous = None
    for number, record in enumerate(tree["decisions"]):
        place = f"decisions[{number}]"
        decision = _decision(record, place)
        if decision.previous != previous:
            raise _edited(place, "a decision that does not follow the one before it")
        if record["digest"] != decision.digest:
            raise _edited(place, "a decision that its digest does not match")
        previous = decision.digest
        decisions.append(decision)
    if tree["head"] != previous:
        raise _edited("head", "a digest that is not the last decision's")
    return decisions


def _decision(record: Any, place: str) -> Decision:
    names = list(Decision.__dataclass_fields__)
    if not isinstance(record, dict) or set(record) != {*names, "digest"}:
        raise _edited(place, f"other keys than {', '.join([*names, 'digest'])}")
    optional = ("evidence", "previous")
    for name in [*names, "digest"]:
        if not isinstance(record[name], str) and not (name in optional and record[name] is None):
            raise _edited(f"{place}.{name}", "a value that is not text")
    return Decision(**{name: record[name] for name in names})


def _edited(place: str, found: str) -> InputError:
    remedy = (
        "defaults change through `rag-assets default-index` only: restore the file from version "
        "control, or remove it to go back to exact everywhere"
    )
    return InputError([Problem("edited_default", FILE, place, found, remedy)])


def _write(path: Path, decisions: Sequence[Decision]) -> None:
    tree = {
        "format": _FORMAT,
        "head": decisions[-1].digest,
        "decisions": [{**asdict(one), "digest": one.digest} for one in decisions],
    }
    replace_text(path, json.dumps(tree, indent=1, ensure_ascii=False) + "\n")
