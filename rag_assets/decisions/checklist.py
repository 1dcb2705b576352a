"""The release checklist of a suite: what was examined, beside what people signed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from rag_assets.decisions.content import (
    examine_content,
    examine_roles,
    examine_spaces,
    examine_splits,
)
from rag_assets.decisions.items import (
    FAIL,
    HOW_TO_GET,
    ITEMS,
    NEEDS_DECISION,
    NOT_EXECUTED,
    PASS,
    SIGNED_ITEMS,
    Finding,
)
from rag_assets.decisions.service import (
    examine_access,
    examine_budgets,
    examine_notice,
    examine_report,
    examine_thresholds,
)
from rag_assets.decisions.signed import (
    APPROVE,
    Judged,
    acceptance_of,
    last_expired,
    standing,
)


@dataclass(frozen=True, slots=True)
class Row:
    """One item of the checklist. `decided_by` signed it, or accepted that it was not executed."""

    item_no: int
    item: str
    status: str
    evidence: str
    how_to_get_it: str
    decided_by: str | None
    decided_at: str | None

    @property
    def met(self) -> bool:
        """Whether it lets a space be activated."""
        return self.status == PASS or (self.status == NOT_EXECUTED and self.decided_by is not None)


def examine(
    con: duckdb.DuckDBPyConnection,
    *,
    vectors_given: bool,
    calibrated_on: Mapping[str, Collection[str]],
) -> list[Finding]:
    """What the built tables show of every item that they can show something of.

    `vectors_given`: vectors come from a fixture or a random generator. `calibrated_on`: the cases
    that each space's threshold was chosen on.
    """
    return [
        examine_splits(con, calibrated_on),
        examine_content(con),
        examine_spaces(con),
        examine_roles(con, vectors_given=vectors_given),
        examine_report(con),
        examine_thresholds(con),
        examine_budgets(con),
        examine_access(con),
        examine_notice(con, vectors_given=vectors_given),
    ]


def checklist(
    suite: str, findings: Sequence[Finding], decisions: Sequence[Judged], fault: str | None = None
) -> list[Row]:
    """Every item in order. `fault`: why no signed decision can be read, where that is so."""
    by_item = {finding.item: finding for finding in findings}
    rows = []
    for number, item in enumerate(ITEMS, 1):
        finding = by_item.get(item) or Finding(item, NEEDS_DECISION, "nobody signed it")
        by, at = None, None
        if item in SIGNED_ITEMS:
            finding, by, at = _signed(item, decisions, fault)
        elif finding.status == NOT_EXECUTED:
            accepted = standing(decisions, acceptance_of(item))
            if accepted is not None and accepted.decision == APPROVE:
                by, at = accepted.by, accepted.when
        how = HOW_TO_GET[item].replace("SUITE", suite)
        if finding.status == NOT_EXECUTED:
            how += f"; or accept that it was not executed: rag-assets sign {suite} accept {item} "
            how += "--by NAME --why TEXT"
        rows.append(Row(number, item, finding.status, finding.evidence, how, by, at))
    return rows


def _signed(
    item: str, decisions: Sequence[Judged], fault: str | None
) -> tuple[Finding, str | None, str | None]:
    if fault is not None:
        return Finding(item, FAIL, fault), None, None
    last = standing(decisions, item)
    if last is None:
        expired = last_expired(decisions, item)
        said = (
            f"what {expired.signed.by} signed expired: {expired.expired}"
            if expired
            else "nobody signed it"
        )
        return Finding(item, NEEDS_DECISION, said), None, None
    said = f"{last.decision}d by {last.by} for evaluation {last.evaluation}: {last.why}"
    return Finding(item, PASS if last.decision == APPROVE else FAIL, said), last.by, last.when


def findings_in(con: duckdb.DuckDBPyConnection) -> list[Finding]:
    """What a release's table release_checklist holds of the items that nobody can sign."""
    rows: list[dict[str, Any]] = (
        con.sql("SELECT item, status, evidence FROM release_checklist ORDER BY item_no")
        .to_arrow_table()
        .to_pylist()
    )
    return [Finding(**row) for row in rows if row["item"] not in SIGNED_ITEMS]
