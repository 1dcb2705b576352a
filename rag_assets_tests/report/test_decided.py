"""What the report says of regression gates, the checklist, decisions and the history."""

from __future__ import annotations

from rag_assets.report.page import report_of
from rag_assets_tests.report.gated import GATES, evaluation, gated
from rag_assets_tests.report.test_page import MOVED, assert_self_contained, parsed
from rag_assets_tests.warehouse.examples import built


def told(**given: object) -> str:
    """The text of the page; `given` rows take the place of those of `gated`."""
    html = report_of(gated(**given), "examples", "r1", redact=False).html  # type: ignore[arg-type]
    assert_self_contained(html)
    return parsed(html).text


def after(text: str, heading: str) -> str:
    """The text from the last place at which a heading stands."""
    return text[text.rindex(heading) :]


def test_the_verdict_says_which_space_serves_and_what_is_open() -> None:
    report = report_of(gated(), "examples", "r1", redact=False)
    assert not report.passed
    text = parsed(report.html).text
    assert (
        "The active space is old (since 2030-01-03 08:00 UTC, by Grace). Ada approved old → new; "
        "before a space may be activated, this is open: 1 failed regression gate and 4 of 11 items "
        "of the checklist (1 failed, 1 not executed, 2 undecided)."
    ) in text


def test_without_a_switch_no_space_is_active() -> None:
    assert "No space is active yet." in told(space_switches=[])


def test_a_failed_gate_comes_first_and_names_who_lost_most() -> None:
    text = after(told(), "Each gate holds a mean")
    failed = text.index("Mean nDCG@3 fell by 0.185, more than the 0.02 allowed")
    inconclusive = text.index("Mean RR@3 fell by 0.100; this may be chance")
    unexamined = text.index("was not examined: nobody is in it")
    passed = text.index("Mean nDCG@3 is 0.815, at least 0.5 as required")
    assert failed < inconclusive < unexamined < passed
    # Five of seven are named; the text of a query that is there stands beside its id.
    assert "c where is d? gone q3 q4 q5 and 2 more" in text
    assert "The baseline is evaluation e1 , pinned by Ada" in text


def test_a_suite_without_gates_has_no_section_about_them() -> None:
    assert "Each gate holds a mean" not in told(regression_gates=[])
    assert "Each gate holds a mean" in told(regression_gates=GATES[:1])


def test_the_checklist_tells_of_each_item_its_state_and_of_open_ones_how_to_get_them() -> None:
    text = after(told(), "A space may be activated when")
    assert "✓ passed 1. Splits kept apart : evidence 1 ✗ failed 2. Content reconciled" in text
    assert "– not executed 7. Budgets met : evidence 7 To get it: do 7" in text
    assert "? undecided 10. Approvals : evidence 10 To get it: do 10" in text
    assert "To get it: do 1 " not in text  # it passed


def test_decisions_are_listed_refused_approved_and_expired_with_reasons() -> None:
    html = report_of(gated(), "examples", "r1", redact=False).html
    text = after(parsed(html).text, "about decision by at why")
    assert "quality old:new ✗ refused Ada 2030-01-03 07:00 UTC reason 0 <script>" in text
    assert "quality old:new ✓ approved Ada" in text
    assert "Expired: the data changed since evaluation e3." in text
    assert "reason 0 &lt;script&gt;" in html and "<script" not in html
    assert "back to old active Grace switch 3 Forced: another contract." in text


def test_the_history_says_when_in_what_and_how_often() -> None:
    text = after(told(), "3 evaluations are kept")
    assert "the first made at 2030-01-01 05:00 UTC. Runs that found everything as it was: 2" in text
    assert "3, this one 2030-01-03 05:00 UTC code 2 times, last 2030-01-05 05:00 UTC e3" in text
    assert "2 2030-01-02 05:00 UTC content or vectors; contract of new never e2" in text
    assert "old nDCG@3 0.7500 1.0000 +0.2500" in text
    assert "new nDCG@3 – 0.8155 –" in text  # undefined the day before, and no 0


def test_checks_that_fired_tell_which_stopped_a_run() -> None:
    text = after(told(), "Checks that fired")
    assert "reading examples/items ✗ stopped the run 1" in text
    assert "warning examples/items ! warned 1" in text
    assert "passing" not in text.partition("Checks check asset result")[0]


def test_one_evaluation_is_no_line_and_says_so() -> None:
    only = [evaluation(3, is_latest=True)]
    report = report_of(
        gated(evaluations=only, history_metrics=[], history_checks=[], heartbeats=[]),
        "examples",
        "r1",
        redact=False,
    )
    assert report.pictures["metric_history"] == {}
    assert (
        "There is one evaluation, made at 2030-01-03 05:00 UTC, so no measure"
        in parsed(report.html).text
    )
    several = report_of(gated(), "examples", "r1", redact=False)
    assert list(several.pictures["metric_history"]) == ["means at k = 3 over the evaluations"]


def test_a_redacted_report_quotes_neither_queries_nor_what_checks_found() -> None:
    whole, redacted = (
        report_of(gated(), "examples", "r1", redact=redact).html for redact in (False, True)
    )
    for words in ("QUOTED", "where is d?"):
        assert words in whole
        assert words not in redacted


def test_a_release_without_a_history_still_has_a_report() -> None:
    text = parsed(report_of(built(MOVED), "examples", "r1", redact=False).html).text
    assert "Checks that fired" not in text
    assert "What may be decided" in text
