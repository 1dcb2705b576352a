"""What differs from the evaluation before: warnings that somebody should know, never blocking."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.quality.report import CheckReport
from rag_assets.quality.rules import rules
from rag_assets.quality.validation import Frame, validate


def check_content_changes(changes: pa.Table) -> CheckReport:
    """`content_changes`: rows of the table of that name, other than changed rights."""
    content = changes.filter(pc.not_equal(changes["change"], "access"))
    return _changes(
        "content_changes",
        content,
        [f"{kind} {name}" for kind, name in _columns(content, "kind", "id")],
        "Items, cases and judgements are those of the evaluation before. Where the change was "
        "meant, there is nothing to do: everything was evaluated anew. Otherwise correct the "
        "source and materialize again.",
    )


def check_access_changes(changes: pa.Table) -> CheckReport:
    """`access_changes`: who may read what, from rows of the table content_changes."""
    access = changes.filter(pc.equal(changes["change"], "access"))
    return _changes(
        "access_changes",
        access,
        [name for (name,) in _columns(access, "id")],
        "Every item may be read by the same groups as in the evaluation before. Confirm with the "
        "owner that the change was meant; results already follow it.",
    )


def check_contract_changes(changes: pa.Table) -> CheckReport:
    """`contract_changes`: rows of the table of that name."""
    return _changes(
        "contract_changes",
        changes,
        [name for (name,) in _columns(changes, "space_id")],
        "Every space has the contract that it had in the evaluation before. After a change: "
        "calibrate its no-answer threshold again, and decide anew; earlier decisions have expired.",
    )


def _changes(name: str, rows: pa.Table, labels: list[str], meaning: str) -> CheckReport:
    what = [
        f"{change}: {old} -> {new}" if old is not None and new is not None else change
        for change, old, new in _columns(rows, *_value_columns(rows))
    ]
    data = pd.DataFrame({"change": pd.Series(rows["change"].to_pylist(), dtype=object)})
    data["what"] = pd.Series(what, dtype=object)
    frame = Frame(name, data, lambda row: labels[row], rules("changes", meaning=meaning))
    return validate(name, (frame,), {"changes": float(len(rows))})


def _value_columns(rows: pa.Table) -> tuple[str, str, str]:
    if "old_revision" in rows.column_names:
        return "change", "old_revision", "new_revision"
    return "change", "old_value", "new_value"


def _columns(rows: pa.Table, *names: str) -> list[tuple[str, ...]]:
    return list(zip(*(rows[name].to_pylist() for name in names), strict=True))
