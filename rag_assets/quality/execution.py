"""The report on what was not executed: a warning that says so, in place of the real check."""

from __future__ import annotations

import pandas as pd

from rag_assets.quality.report import CheckReport
from rag_assets.quality.rules import in_set, row_count
from rag_assets.quality.validation import Frame, validate


def check_execution(check_name: str, name: str, reason: str) -> CheckReport:
    """There is nothing to check: `name` was not executed. Warns, and never blocks."""
    data = pd.DataFrame({"status": ["not_executed"], "reason": [reason]})
    rules = (
        row_count("One space is looked at.", min_value=1, max_value=1),
        in_set(
            "status",
            ["evaluated"],
            "The space was executed; provide what the reason names and materialize it again.",
            severity="warn",
            evidence=("reason",),
        ),
    )
    frame = Frame("space", data, lambda row: name, rules)
    return validate(check_name, (frame,), {"not_executed": 1.0})
