"""Check results and the manifest of a release."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from rag_assets.report.reading import Row, rows_of
from rag_assets.report.verdicts import FAILED, PASSED

WARNED = "warned"
SHOWN_SAMPLE = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """An expectation that did not pass. `observed` is None where texts are left out."""

    place: str
    state: str
    expected: str
    observed: str | None
    failing_count: int | None
    sample: Sequence[str]
    meaning: str


@dataclass(frozen=True, slots=True)
class Check:
    """`state` is PASSED, WARNED or FAILED; `evaluated_at` is UTC, to the second."""

    name: str
    asset: str
    state: str
    evaluated_at: str
    expectations: int
    findings: Sequence[Finding]


def checks(con: duckdb.DuckDBPyConnection, *, redact: bool) -> list[Check]:
    """Every check of a release; what failed or warned first."""
    rows = rows_of(
        con,
        "SELECT * FROM check_results "
        "ORDER BY passed, severity = 'warn', asset, check_name, evaluated_at",
    )
    return [_check(row, redact=redact) for row in rows]


def _check(row: Row, *, redact: bool) -> Check:
    outcomes = _outcomes(row)
    return Check(
        name=row["check_name"],
        asset=row["asset"],
        state=check_state(row),
        evaluated_at=f"{row['evaluated_at']:%Y-%m-%d %H:%M:%S} UTC",
        expectations=len(outcomes),
        findings=findings_in(row, redact=redact),
    )


def check_state(row: Row) -> str:
    return PASSED if row["passed"] else WARNED if row["severity"] == "warn" else FAILED


def findings_in(row: Row, *, redact: bool) -> list[Finding]:
    """What did not pass in one check: a row of check_results or check_history."""
    return [
        _finding(outcome, redact=redact)
        for outcome in _outcomes(row)
        if outcome["status"] != "passed"
    ]


def _outcomes(row: Row) -> list[dict[str, Any]]:
    outcomes: list[dict[str, Any]] = json.loads(row["details"] or "{}").get("outcomes", [])
    return outcomes


def _finding(outcome: dict[str, Any], *, redact: bool) -> Finding:
    column = outcome["column"]
    return Finding(
        place=f"{outcome['table']}.{column}" if column else outcome["table"],
        state=WARNED if outcome["severity"] == "warn" and outcome["status"] == FAILED else FAILED,
        expected=outcome["expected"],
        # What was observed may quote the data.
        observed=None if redact else outcome["observed"],
        failing_count=outcome["failing_count"],
        sample=outcome["sample"][:SHOWN_SAMPLE],
        meaning=outcome["meaning"],
    )


def manifest(con: duckdb.DuckDBPyConnection) -> dict[str, str | None]:
    """What is known about how the release was made, in order of key."""
    rows = rows_of(con, "SELECT key, value FROM manifest ORDER BY key")
    return {row["key"]: row["value"] for row in rows}
