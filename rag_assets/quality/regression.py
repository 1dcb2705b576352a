"""The regression gates as a check on the table regression_gates."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pyarrow as pa

from rag_assets.quality.report import CheckReport
from rag_assets.quality.validation import Frame, in_set, not_null, validate
from rag_assets.regression.rows import FAIL, INCONCLUSIVE, NOT_EXECUTED, PASS, REGRESSION_GATES
from rag_assets.regression.wording import gates_sentence, worse_sentence


def check_regression_gates(gates: pa.Table) -> CheckReport:
    """Check `regression_gates` of the rows GATES: an error where a gate failed, a warning where one
    is inconclusive or was not executed. Its note names the gates, and the queries that got worse.
    """
    rows = gates.to_pylist()
    counts = {
        status: float(sum(row["status"] == status for row in rows))
        for status in (PASS, FAIL, INCONCLUSIVE, NOT_EXECUTED)
    }
    data = pd.DataFrame(
        {
            "status": pd.Series([row["status"] for row in rows], dtype=object),
            "sentence": pd.Series([row["sentence"] for row in rows], dtype=object),
            "queries": pd.Series(
                [worse_sentence(row["worse_queries"]) for row in rows], dtype=object
            ),
        }
    )
    names = [f"{row['space_id']}, {row['index_name']}: {row['rule']}" for row in rows]
    rules = (
        not_null("status", "Every gate says what it found; materialize the tables again."),
        in_set(
            "status",
            [PASS, INCONCLUSIVE, NOT_EXECUTED],
            "No measure is below its floor, and none fell by more than is allowed and by more than"
            " chance. Look at the queries that got worse; mend the cause, or accept it as a person:"
            " change the bound in defs.yaml, or pin this evaluation as the new baseline.",
            evidence=("sentence", "queries"),
        ),
        in_set(
            "status",
            [PASS, FAIL, INCONCLUSIVE],
            "Every gate was examined; do what the sentence says. What was not executed has neither"
            " passed nor failed.",
            severity="warn",
            evidence=("sentence",),
        ),
        in_set(
            "status",
            [PASS, FAIL, NOT_EXECUTED],
            "No measure fell by more than is allowed, be it by chance; look at the queries, and"
            " judge more of them if drops of this size matter.",
            severity="warn",
            evidence=("sentence",),
        ),
    )
    frame = Frame(REGRESSION_GATES, data, lambda row: names[row], rules)
    report = validate(REGRESSION_GATES, (frame,), {"gates": float(len(rows)), **counts})
    return replace(report, note=gates_sentence(rows))
