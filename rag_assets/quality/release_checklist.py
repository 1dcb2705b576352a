"""The check on the release checklist: an error where an item fails, a warning where one is open."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

from rag_assets.quality.report import CheckReport
from rag_assets.quality.rules import rules
from rag_assets.quality.validation import Frame, validate

_STATUSES = ("pass", "fail", "not_executed", "needs_decision")


def check_release_checklist(checklist: pa.Table, item_count: int) -> CheckReport:
    """Check `release_checklist` of the table of that name, which has `item_count` items.

    What was not executed, or needs a decision, warns with how to get it, unless a person accepted
    that it was not executed.
    """
    rows = checklist.to_pylist()
    accepted = [row["status"] == "not_executed" and row["decided_by"] is not None for row in rows]
    data = pd.DataFrame(
        {
            **{
                name: pa.array([row[name] for row in rows], pa.string()).to_pandas()
                for name in ("item", "status", "evidence", "how_to_get_it")
            },
            "standing": pa.array(
                [
                    "accepted" if taken else row["status"]
                    for row, taken in zip(rows, accepted, strict=True)
                ],
                pa.string(),
            ).to_pandas(),
        }
    )
    demanded = rules("release_checklist", item_count=item_count)
    counts = {status: float(sum(row["status"] == status for row in rows)) for status in _STATUSES}
    return validate(
        "release_checklist",
        (Frame("release_checklist", data, lambda row: str(rows[row]["item"]), demanded),),
        {**counts, "accepted": float(sum(accepted))},
    )
