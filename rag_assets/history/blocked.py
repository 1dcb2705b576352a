"""Checks that stopped a run before it had tables to show them in."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from rag_assets import clock
from rag_assets.errors import InputError
from rag_assets.quality.report import CheckReport, ExpectationOutcome
from rag_assets.whole_files import replace_text

KEPT = 1000
SOURCE_READING = "source_reading"


def log_blocked(folder: Path, run_id: str, asset: str, report: CheckReport) -> None:
    """Keep a report that stops the chain; any number of runs may do so at once."""
    home = folder / "blocked"
    home.mkdir(parents=True, exist_ok=True)
    record = {"dagster_run_id": run_id, "asset": asset, "report": json.loads(report.to_json())}
    moment = f"{report.evaluated_at:%Y%m%dT%H%M%S.%fZ}"
    replace_text(home / f"{moment}-{uuid.uuid4().hex[:8]}.json", json.dumps(record) + "\n")
    for stale in sorted(home.glob("[!.]*.json"))[:-KEPT]:
        stale.unlink(missing_ok=True)


def blocked_rows(folder: Path, schema: pa.Schema) -> pa.Table:
    """Every kept report as rows of base.history_checks, without an evaluation, oldest first."""
    rows = []
    for file in sorted((folder / "blocked").glob("[!.]*.json")):
        record = json.loads(file.read_text("utf-8"))
        report = CheckReport.from_json(json.dumps(record["report"]))
        rows.append(
            {
                "evaluation_id": None,
                "dagster_run_id": record["dagster_run_id"],
                "asset": record["asset"],
                "check_name": report.check_name,
                "passed": report.passed,
                "severity": report.severity,
                "evaluated_at": report.evaluated_at.replace(tzinfo=None),
                "details": report.to_json(),
            }
        )
    return pa.Table.from_pylist(rows, schema=schema)


def refused_source(error: InputError) -> CheckReport:
    """A source that its strict loader refused, as a report: one outcome for each problem."""
    outcomes = tuple(_outcomes(error))
    return CheckReport(
        check_name=SOURCE_READING,
        passed=False,
        severity="error",
        evaluated_at=clock.utc_now(),
        rows=0,
        outcomes=outcomes,
        numbers={"problems": float(len(outcomes))},
    )


def _outcomes(error: InputError) -> Iterable[ExpectationOutcome]:
    for problem in error.problems:
        yield ExpectationOutcome(
            expectation=problem.code,
            column=problem.place,
            expected=problem.remedy,
            observed=problem.found,
            status="failed",
            failing_count=None,
            sample=(),
            meaning=problem.remedy,
            table=problem.file,
            severity="error",
        )
