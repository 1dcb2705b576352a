"""What the report says about chance, and its pictures with and without an interval."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import replace
from xml.etree import ElementTree

import duckdb
import pytest
from markupsafe import Markup

from rag_assets.report.canvas import data_uri
from rag_assets.report.page import report_of
from rag_assets.statistics import evidence
from rag_assets_tests.report.releases import ann_release
from rag_assets_tests.report.test_page import MOVED, assert_self_contained, parsed
from rag_assets_tests.statistics.test_evidence import MANY, judged
from rag_assets_tests.warehouse.examples import Example, built


def page_of(example: Example) -> str:
    return report_of(judged(built(example)), "examples", "r1", redact=False).html


def pictures_of(con: duckdb.DuckDBPyConnection) -> Mapping[str, Mapping[str, Markup]]:
    return report_of(con, "examples", "r1", redact=False).pictures


def picture(html: str, after: str) -> str:
    """The text of the first picture behind a heading."""
    begins = html.index("<svg", html.index(after))
    return parsed(html[begins : html.index("</svg>", begins) + 6]).text


def test_a_loss_is_told_with_its_interval_its_test_and_its_subgroup() -> None:
    html = page_of(MANY)
    assert_self_contained(html)
    text = parsed(html).text
    # 12 of 24 queries fall from 1 to 1 / log2(3) = 0.6309: the mean falls by 0.1845. All 12 fell:
    # p = 2 / 2^12, times at most 10 questions.
    assert "changes by −0.1845 (95% interval −0.26" in text
    assert "over 24 queries: 0 better, 12 worse, 12 unchanged." in text
    assert "▼ worse More than chance in subgroups: most −0.1933." in text
    statistics = text[text.index("Differences are new minus old, query by query") :]
    assert "▼ worse 12 of 24 queries changed; mean nDCG@3 fell by 0.185, 95% interval −0.26" in (
        statistics
    )
    # 11 of 21 fall: 11 * 0.3691 / 21. The subgroup of one unjudged query has nothing to draw.
    drawn = picture(html, "Change or chance</h2>")
    assert re.search(r"−0\.1933 \(−0\.2\d+ to −0\.1\d+\), 21 queries", drawn)
    assert "nDCG@3 by subgroup most" in drawn
    assert "worse, more than chance" in drawn
    assert "lonely" not in drawn


def test_the_subgroups_table_says_what_may_be_chance() -> None:
    changed = {
        key: ["d", "a"] if key[1] == "old" or key[2] > "c03" else ranked
        for key, ranked in MANY.results.items()
    }
    text = parsed(page_of(replace(MANY, results=changed))).text
    # Only c01 and c03 fall; c03 is in the subgroup: 0.3691 / 21. Two changes make no test.
    assert "· may be chance No subgroup's change of nDCG@3 is more than chance." in text
    assert re.search(
        r"most 1\.0000 0\.9824 −0\.0176 −0\.0\d+ to 0\.0000 · may be chance 21 21 1 0", text
    )
    assert "No difference is more than chance. That does not show that the two are equal" in text


def test_large_query_sets_have_subgroups_without_a_word_on_chance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(evidence, "MOST_QUERIES_BY_SUBGROUP", 24)
    text = parsed(page_of(MANY)).text
    assert "▼ worse No subgroup was tested." in text
    assert re.search(r"most 1\.0000 0\.8067 −0\.1933 – 21 21 11 0", text)


def test_too_few_queries_conclude_nothing_and_have_no_interval() -> None:
    text = parsed(page_of(MOVED)).text
    assert "Nothing can be concluded: 2 queries are defined, at least 20 are needed." in text
    assert "stands without an interval: nothing can be concluded from so few" in text
    assert "worse | better" in text, "a column of intervals would be empty"


def test_without_judgements_nothing_is_said_to_be_chance() -> None:
    html = report_of(judged(ann_release()), "synthetic", "r1", redact=False).html
    text = parsed(html).text
    assert "exact → ivf on s – nothing to conclude Nothing can be concluded: no query has" in text


def test_a_mean_stands_above_its_interval() -> None:
    html = page_of(MANY)
    # All 24 at rank 1 in the old space; the new one as in the test of the intervals.
    assert '1.0000<small class="interval">1.000 to 1.000</small>' in html
    assert re.search(r'0\.7500<small class="interval">0\.6\d\d to 0\.8\d\d</small>', html)
    drawn = picture(html, "Measures</h2>")
    assert all(name in drawn for name in ("nDCG@3", "RR@3", "recall@3", "P@3", "old", "new"))


def test_a_release_without_statistics_has_no_section_about_chance() -> None:
    html = report_of(built(MANY), "examples", "r1", redact=False).html
    assert "Change or chance" not in html
    assert "95% interval" not in parsed(html).text


def measured_release() -> duckdb.DuckDBPyConnection:
    """The release with an index, as if its recall were known from many queries."""
    con = judged(ann_release())
    con.execute(
        "UPDATE metric_intervals SET interval_low = 0.4, interval_high = 0.6 "
        "WHERE measure = 'ann_recall_at_k'"
    )
    return con


def test_index_costs_are_drawn_with_recall_latency_and_size() -> None:
    html = report_of(measured_release(), "synthetic", "r1", redact=False).html
    drawn = picture(html, "By selectivity")
    for words in ("s, exact", "s, ivf", "ANN recall@2", "p50, p95 (dot), p99", "size"):
        assert words in drawn


# --- pictures of their own ------------------------------------------------------------------------


def test_a_table_has_the_pictures_of_its_numbers() -> None:
    drawn = pictures_of(judged(built(MANY)))
    assert {table: list(titled) for table, titled in drawn.items()} == {
        "metric_by_space": ["means at k = 3"],
        "metric_by_subgroup": ["nDCG@3 by subgroup"],
        "migration_audit": ["old → new with exact"],
        "comparison_statistics": ["old → new with exact"],
        "metric_history": [],
        "index_benchmark": [],
    }
    few = pictures_of(judged(built(MOVED)))
    assert not any(few.values()), "nothing can be concluded, so nothing is drawn"
    assert pictures_of(judged(ann_release()))["index_benchmark"] == {}
    assert list(pictures_of(measured_release())["index_benchmark"]) == ["recall, latency and size"]


@pytest.mark.parametrize("name", ["<script>&\"'#010101", "ü 中"])
def test_a_picture_alone_is_one_well_formed_svg_with_its_colours(name: str) -> None:
    cases = {
        case_id: replace(case, subgroups=(name,)) if case.subgroups else case
        for case_id, case in MANY.cases.items()
    }
    drawn = pictures_of(judged(built(replace(MANY, cases=cases))))
    kind, _, data = data_uri(drawn["metric_by_subgroup"]["nDCG@3 by subgroup"]).partition(",")
    assert kind == "data:image/svg+xml;base64"
    svg = ElementTree.fromstring(base64.b64decode(data))
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    assert name in [element.text for element in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert not list(svg.iter("{http://www.w3.org/2000/svg}script"))
    [style] = [e.text or "" for e in svg.iter("{http://www.w3.org/2000/svg}style")]
    # Every colour that is used is said for light and for dark.
    used = set(re.findall(r"var\((--[a-z-]+)\)", base64.b64decode(data).decode()))
    light, dark = style.split("@media (prefers-color-scheme: dark)")
    assert {name for name in used - {"--sans"} if f"{name}:" not in light} == set()
    assert {name for name in used - {"--sans"} if f"{name}:" not in dark} == set()
