"""The check on the regression gates."""

from __future__ import annotations

from rag_assets.quality.regression import check_regression_gates
from rag_assets.quality.report import CheckReport, summary
from rag_assets.regression.judging import judge_gates
from rag_assets.regression.looking import Today
from rag_assets_tests.quality.examples import bad, only
from rag_assets_tests.regression.measured import baseline, gate, measured, regression


def checked(*gates: object, today: list[float], then: list[float] | None = None) -> CheckReport:
    pinned = None if then is None else baseline(measured(then))
    found = regression(*gates)  # type: ignore[arg-type]
    return check_regression_gates(judge_gates(found, Today(measured(today), {}), pinned))


def test_no_gates_pass_and_say_so() -> None:
    report = checked(today=[0.5])
    assert report.passed
    assert summary(report) == "no regression gates are declared"
    assert report.numbers["gates"] == 0


def test_gates_that_pass_pass() -> None:
    report = checked(gate(floor=0.5, max_drop=0.1), today=[0.5], then=[0.5])
    assert report.passed
    assert (report.check_name, report.numbers["pass"]) == ("regression_gates", 2)
    assert summary(report) == "2 of 2 gates pass"


def test_a_failing_gate_blocks_and_its_queries_are_named() -> None:
    report = checked(gate(floor=0.5), gate(max_drop=0.1), today=[0.4] * 21, then=[0.9] * 21)
    assert (report.passed, report.severity, report.blocks) == (False, "error", True)
    outcome = only(report)
    assert outcome.failing_count == 2
    assert outcome.sample == ("one, exact: floor", "one, exact: max_drop")
    assert "mean nDCG@10 is 0.400 over 21 queries, below the floor of 0.5" in outcome.observed
    assert "worse: q00, q01, q02, q03, q04 and 16 more" in outcome.observed
    assert summary(report).startswith("0 of 2 gates pass, 2 fail. one, exact: mean nDCG@10 is")
    # What a release stores tells the same.
    assert CheckReport.from_json(report.to_json()) == report


def test_an_inconclusive_gate_and_one_that_was_not_executed_warn() -> None:
    unclear = checked(gate(max_drop=0.1), today=[0.1], then=[0.9])
    assert (unclear.passed, unclear.severity, unclear.blocks) == (False, "warn", False)
    assert unclear.numbers["inconclusive"] == 1
    missing = checked(gate(max_drop=0.1), today=[0.1])
    assert (missing.passed, missing.severity, missing.blocks) == (False, "warn", False)
    [outcome] = bad(missing).values()
    assert "no baseline is pinned" in outcome.observed
