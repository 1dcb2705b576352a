"""The regression gates as a check on the table regression_gates."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pyarrow as pa

from rag_assets.quality.report import CheckReport
from rag_assets.quality.rules import rules
from rag_assets.quality.validation import Frame, validate
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
    frame = Frame(REGRESSION_GATES, data, lambda row: names[row], rules(REGRESSION_GATES))
    report = validate(REGRESSION_GATES, (frame,), {"gates": float(len(rows)), **counts})
    return replace(report, note=gates_sentence(rows))
