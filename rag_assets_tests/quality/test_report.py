from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from rag_assets.quality.report import CheckReport, ExpectationOutcome

OUTCOME = ExpectationOutcome(
    expectation="expect_column_values_to_be_unique",
    column="item_id",
    expected="a | b",
    observed="line one\nline <two>",
    status="failed",
    failing_count=2,
    sample=("d1", "d|2"),
    meaning="An id names one item.",
    table="items",
    severity="error",
)
REPORT = CheckReport(
    check_name="contract_validation",
    passed=False,
    severity="error",
    evaluated_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    rows=7,
    outcomes=(OUTCOME, replace(OUTCOME, status="passed", failing_count=None, column=None)),
    numbers={"rows": 7.0, "leaked_pairs": 0.0},
)


def test_json_round_trip_is_deterministic() -> None:
    assert CheckReport.from_json(REPORT.to_json()) == REPORT
    elsewhere = REPORT.evaluated_at.astimezone(timezone(timedelta(hours=2)))
    shuffled = replace(REPORT, evaluated_at=elsewhere, numbers={"leaked_pairs": 0, "rows": 7})
    assert shuffled.to_json() == REPORT.to_json()


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        replace(REPORT, evaluated_at=datetime(2026, 1, 2))


def test_markdown_escapes_what_would_break_the_table() -> None:
    assert REPORT.markdown().splitlines() == [
        "| result | expectation | column | expected | observed | failing | sample |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| **failed** | expect_column_values_to_be_unique | items.item_id | a \\| b |"
        " line one line &lt;two> | 2 | d1, d\\|2 |",
        "| passed | expect_column_values_to_be_unique | items | a \\| b |"
        " line one line &lt;two> |  | d1, d\\|2 |",
        "",
        "- **items.item_id**: An id names one item.",
    ]


def test_markdown_cells_are_cut() -> None:
    wide = replace(REPORT, outcomes=(replace(OUTCOME, observed="x" * 500),))
    assert "x" * 89 + "… |" in wide.markdown()
    assert "x" * 90 not in wide.markdown()


def test_warnings_do_not_block_and_crashes_do() -> None:
    assert not replace(OUTCOME, severity="warn").blocks
    assert replace(OUTCOME, severity="warn", status="crashed").blocks
