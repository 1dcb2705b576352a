"""What the report says of regression gates, the checklist, decisions and the history."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from rag_assets.report.page import report_of
from rag_assets_tests.report import gated as given
from rag_assets_tests.report.gated import ASKED, GATES, evaluation, gated
from rag_assets_tests.report.test_page import MOVED, assert_self_contained, parsed
from rag_assets_tests.warehouse.examples import Held, built


def told(**rows: given.Rows) -> str:
    """The text of the page; `rows` take the place of those of `gated`."""
    html = report_of(gated(**rows), "examples", "r1", redact=False).html
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


# --- what else follows ----------------------------------------------------------------------------


def test_with_nothing_open_it_says_so_and_an_accepted_item_is_met() -> None:
    items = given.checklist(budgets_met="not_executed")
    items[6] |= {"decided_by": "Ada", "decided_at": "2030-01-03T07:00:00+00:00"}
    text = told(checklist=items, regression_gates=[], checks=[], decisions=[], space_switches=[])
    assert (
        "No space is active yet. A person may decide on old → new; gates, checks and checklist "
        "keep no space from being activated."
    ) in text
    accepted = after(text, "7. Budgets met").partition("8. No unauthorized")[0]
    assert "Accepted as it is by Ada, 2030-01-03 07:00 UTC." in accepted
    assert "To get it" not in accepted
    assert "Nobody has signed a decision" in text
    assert "No space was ever activated" in text


def test_another_contract_a_refusal_and_failed_gates_are_told() -> None:
    switch = given.switch(1, "old", "activate", contract_signature="an older one")
    text = told(space_switches=[switch], decisions=[given.decision(0, "quality old:new", "refuse")])
    assert "by Grace), and its contract has changed since. Ada refused old → new;" in text
    assert "✗ refused Refused by Ada, 2030-01-03 07:00 UTC: reason 0" in text
    new = {**ASKED.spaces["new"], "b": Held(acl=("board",))}
    differing = gated(replace(ASKED, spaces={**ASKED.spaces, "new": new}), decisions=[])
    html = report_of(differing, "examples", "r1", redact=False).html
    assert "Nobody may decide on old → new;" in parsed(html).text


def test_an_expired_decision_leaves_it_to_a_person_again() -> None:
    text = told(decisions=[given.decision(0, "quality old:new", "approve", "expired")])
    assert "A person may decide on old → new;" in text
    assert "– expired Approved by Ada" in text
    assert "(no longer valid: the data changed since evaluation e3)" in text


def test_an_active_space_without_an_audit_cannot_be_left() -> None:
    text = told(space_switches=[given.switch(1, "new", "activate")])
    assert "No migration from new is audited, so none may be decided on;" in text


def test_without_a_baseline_it_says_how_to_pin_one() -> None:
    gates = [given.gate(1, "fail", "mean nDCG@3 is 0.815, below the floor of 0.9")]
    text = after(told(regression_gates=gates, baseline=[]), "Each gate holds")
    assert "No baseline is pinned, so no drop could be examined." in text
    assert "rag-assets pin-baseline examples --by NAME --why TEXT" in text
    assert "Worse: unknown, there is no baseline to compare with." in text


def test_texts_of_the_gates_queries_are_counted() -> None:
    # Without an audit no query is shown but those of the gates.
    html = report_of(gated(replace(ASKED, pairs=())), "examples", "r1", redact=False).html
    assert "With texts: the beginnings of 1 query and 0 documents" in parsed(html).text


# --- the picture and what changed -----------------------------------------------------------------


def drawn(**rows: given.Rows) -> str:
    """The picture of the means over the evaluations."""
    report = report_of(gated(**rows), "examples", "r1", redact=False)
    [picture] = report.pictures["metric_history"].values()
    assert picture in report.html
    return picture


def lines_in(picture: str) -> int:
    """How many lines join two points or more."""
    paths = re.findall(r'<path d="(M[^"]*)"[^>]*stroke: var\(--series\)', picture)
    return sum(" L " in " ".join(path.split()) and "C" not in path for path in paths)


def test_means_are_drawn_per_space_with_the_baseline() -> None:
    text = parsed(drawn()).text
    assert re.findall(r"(\w+): (nDCG|recall)@3", text) == [
        ("old", "nDCG"),
        ("old", "recall"),
        ("new", "nDCG"),
        ("new", "recall"),
    ]
    assert text.count("baseline") == 4
    assert text.count("0.8155") == 1


def test_a_line_breaks_where_nothing_may_be_joined() -> None:
    # For each measure: one of `old`. `new` has no mean on day 2, and another contract on day 1.
    assert lines_in(drawn()) == 2
    defined = [given.means(day, "new", 0.5, 0.5) for day in (1, 2)]
    assert lines_in(drawn(history_metrics=defined)) == 2  # days 2 and 3 of `new`
    same = [evaluation(day, is_latest=day == 3) for day in (1, 2, 3)]
    assert lines_in(drawn(history_metrics=defined, evaluations=same)) == 2
    assert lines_in(drawn(history_metrics=defined[:1], evaluations=same)) == 0


def test_a_mean_of_0_is_drawn() -> None:
    zero = [given.means(day, "old", 0.0, 0.0) for day in (1, 2)]
    assert lines_in(drawn(history_metrics=zero)) == 2


def test_a_baseline_that_is_no_longer_kept_is_named_and_not_drawn() -> None:
    pinned = [{**given.BASELINE, "evaluation_id": "long ago"}]
    assert "The pinned baseline, evaluation long ago, is none of them." in told(baseline=pinned)
    assert "baseline" not in parsed(drawn(baseline=pinned)).text


def test_what_changed_is_told_by_kind_and_contract() -> None:
    item = {"role": "document", "acl": ["board"], "source_revision": "r1", "content_sha256": "x"}
    space = {"provider": "hand", "model": "hand", "revision": "v0", "contract_signature": "older"}
    text = after(
        told(
            previous_items=[item | {"item_id": f"gone{n:02}"} for n in range(21)],
            previous_spaces=[
                space | {"space_id": "old"},
                space | {"space_id": "new", "contract_signature": given.SIGNATURE},
            ],
        ),
        "What changed in this evaluation",
    )
    assert "21 items were deleted gone00" in text
    assert "gone19 20 of 21 are listed" in text
    assert "5 items were added a b c d q" in text
    assert "3 query cases were added c none same" in text
    assert "1 contract differs old was changed : revision v0 → v1 , signature older → one" in text


def test_an_access_list_is_shown_before_and_after() -> None:
    [sha] = gated().sql("SELECT content_sha256 FROM base.items WHERE item_id = 'a'").fetchall()
    item = {"item_id": "a", "role": "document", "acl": ["board"], "source_revision": "r1"}
    text = told(previous_items=[item | {"content_sha256": sha[0]}])
    assert "1 item has another access list a [board] → [staff]" in text


def test_what_is_not_kept_is_not_said_to_be_unchanged() -> None:
    assert "What changed in the content is not known: the snapshot" in told()


def test_only_the_newest_checks_are_listed_and_the_others_counted() -> None:
    many = [given.check(day, f"check{day:02}") for day in range(1, 26)]
    text = after(told(history_checks=many, checks=[]), "Checks that fired")
    assert "check25" in text and "check06" in text and "check05" not in text
    assert "The newest 20 of 25" in text


@pytest.mark.parametrize(
    ("tables", "gone"),
    [
        (["regression_gates"], "regression"),
        (["release_checklist", "decisions", "active_space", "active_space_log"], "checklist"),
        (
            [
                *("evaluations", "heartbeats", "metric_history", "check_history"),
                *("content_changes", "contract_changes", "evaluation_comparison"),
            ],
            "history",
        ),
    ],
)
def test_a_release_from_before_those_tables_has_no_such_section(
    tables: list[str], gone: str
) -> None:
    con = gated()
    for table in tables:
        con.execute(f"DROP TABLE {table}")
    page = parsed(report_of(con, "examples", "r1", redact=False).html)
    anchors = {v for tag, name, v in page.attributes if (tag, name) == ("section", "id")}
    assert {"regression", "checklist", "history"} - anchors == {gone}
    assert ("The active space is" in page.text) == (gone != "checklist")
