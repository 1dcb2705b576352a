"""What a suite states and decides as rows of base tables, and the checklist with its check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from rag_assets.decisions.active_space import switches
from rag_assets.decisions.checklist import checklist, examine
from rag_assets.decisions.items import ITEMS
from rag_assets.decisions.release import facts_of
from rag_assets.decisions.signed import Judged, judged, read_signed
from rag_assets.errors import InputError
from rag_assets.laboratory.records import rows_of
from rag_assets.quality.report import CheckReport
from rag_assets.sources.text_lines import TextFile
from rag_assets.thresholds.choice import calibrated_cases

DECISION_MODELS = (
    "active_space",
    "active_space_log",
    "decisions",
    "release_budgets",
    "release_checklist",
    "tombstones",
)


@dataclass(frozen=True, slots=True)
class Budget:
    """A bound on one measure of serving; `estimate` only where nothing can be measured."""

    measure: str
    budget_limit: float
    estimate: float | None = None
    source: str | None = None


def stated_tables(
    folder: Path, root: Path, budgets: Sequence[Budget], tombstones: str | None
) -> dict[str, pa.Table]:
    """Rows of base.budgets, base.tombstones and base.space_switches, from what the suite states.

    `tombstones` is the path of a file of item ids, relative to `root`. InputError for a file that
    cannot be read, and for a log of switches that was edited by hand.
    """
    batches = TextFile(root / tombstones, tombstones).batches() if tombstones else ()
    ids = sorted({item_id for lines in batches for item_id in lines.text.to_pylist()})
    rows = [
        {
            **asdict(switch),
            "switch_no": number,
            "switched_by": switch.by,
            "switched_at": switch.when,
            "evaluation_id": switch.evaluation,
        }
        for number, switch in enumerate(switches(folder), 1)
    ]
    return {
        "budgets": rows_of("budgets", [asdict(budget) for budget in budgets]),
        "tombstones": rows_of("tombstones", [{"item_id": item_id} for item_id in ids]),
        "space_switches": rows_of("space_switches", rows),
    }


def decided_tables(
    con: duckdb.DuckDBPyConnection,
    suite: str,
    folder: Path,
    *,
    vectors_given: bool,
) -> tuple[dict[str, pa.Table], CheckReport]:
    """Rows of base.checklist and base.decisions for the built tables, and the check on them.

    A faulty decisions.yaml does not stop the evaluation, which is evidence whatever was decided on
    it: nothing counts as decided then, and the items that are signed fail with what is wrong.
    """
    from rag_assets.quality.suites import check_release_checklist

    facts = facts_of(con)
    decisions: list[Judged] = []
    fault = None
    try:
        decisions = judged(read_signed(folder), facts)
    except InputError as error:
        fault = "; ".join(error.lines())
    findings = examine(
        con,
        vectors_given=vectors_given,
        calibrated_on=calibrated_cases(folder, list(facts.signatures)),
    )
    items = [asdict(row) for row in checklist(suite, findings, decisions, fault)]
    rows = rows_of("checklist", items)
    tables = {"checklist": rows, "decisions": _decision_rows(decisions)}
    return tables, check_release_checklist(rows, len(ITEMS))


def _decision_rows(decisions: Sequence[Judged]) -> pa.Table:
    rows = [
        {
            "decision_no": number,
            "item": one.signed.item,
            "decision": one.signed.decision,
            "decided_by": one.signed.by,
            "decided_at": one.signed.when,
            "evaluation_id": one.signed.evaluation,
            "why": one.signed.why,
            "status": "expired" if one.expired else "valid",
            "reason": one.expired,
        }
        for number, one in enumerate(decisions)
    ]
    return rows_of("decisions", rows)
