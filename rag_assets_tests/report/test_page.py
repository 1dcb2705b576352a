"""The report as a file: what is in it, what must not be, and that nothing outside is needed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rag_assets.fixture_evaluation import evaluate_fixture
from rag_assets.report.page import FIRST_LINE, report_of
from rag_assets_tests.conftest import Tree, item_in
from rag_assets_tests.report.releases import ann_release
from rag_assets_tests.warehouse.examples import DOCUMENTS, QUERY, Case, Example, Held, built

VOID = {"meta", "br", "use", "path"}


@dataclass
class Parsed(HTMLParser):
    """What a browser would see: tags, attributes and text."""

    tags: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def parsed(html: str) -> Parsed:
    page = Parsed()
    page.feed(html)
    page.close()
    assert page.open == []
    return page


def page_of(example: Example, *, redact: bool = False) -> str:
    return report_of(built(example), "examples", "r1", redact=redact).html


def page_of_fixture(folder: Path, tree: Tree, *, redact: bool = False, k: int = 3) -> str:
    file = folder / "fixture.json"
    file.write_text(json.dumps(tree), "utf-8")
    _, connection = evaluate_fixture(file, ks=[k], audits=None, max_bytes=10**6)
    return report_of(connection, "toy", "r1", redact=redact).html


SPACES = {"old": {**DOCUMENTS, **QUERY}, "new": {**DOCUMENTS, **QUERY}}
# nDCG@3 in the old space: d at rank 1 of 1 relevant = 1; in the new one it stands at rank 2:
# 1 / log2(3) = 0.6309. The change is -0.3691. {d, a} and {a, d} overlap fully.
MOVED = Example(
    spaces=SPACES,
    cases={"c": Case({"d": 1}, subgroups=("moved",)), "same": Case({"a": 2}), "none": Case({})},
    results={
        (0, "old", "c"): ["d", "a"],
        (0, "new", "c"): ["a", "d"],
        **{(0, space, case): ["a"] for space in SPACES for case in ("same", "none")},
    },
    pairs=[("old", "new")],
)


# --- safe and self-contained ----------------------------------------------------------------------

HOSTILE = '</p><script>alert("x")</script><img src="https://example.org/x.png">'


def test_texts_and_names_are_never_markup(tmp_path: Path, toy: Tree) -> None:
    """Both the query's and a document's text, a subgroup, an id, a space and a group."""
    for item in toy["items"]:
        item["text"] = HOSTILE + item["item_id"]
    for query in toy["queries"]:
        query["subgroups"] = ["<script>subgroup"]
    for record in (*toy["contracts"], *toy["items"]):
        record["space_id"] = f"<script>{record['space_id']}"
    html = page_of_fixture(tmp_path, toy)
    page = parsed(html)
    assert HOSTILE + "doc-orleans-office" in page.text
    assert "<script>subgroup" in page.text
    assert "<script>toy-v1" in page.text
    assert not {"script", "img", "iframe", "object", "link"} & set(page.tags)
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]


def test_hostile_names_do_not_leave_a_picture() -> None:
    from rag_assets.report.pictures import tradeoff

    run = {"status": "ok", "best_p95_ms": 1.0, "mean_ann_recall": 0.5, "recall_low": None}
    value = {
        "value": "</text><script>1",
        "mean_best_p95_ms": 1.0,
        "mean_ann_recall": 0.5,
        "on_pareto_front": True,
    }
    need = {"need": "#010101 $x^2$ <script>", "need_p95_ms": 2.0, "need_min_recall": 0.9}
    verdict = {"parameter": 'a"b', "stopped_at": None, "k": 10}
    picture = parsed(tradeoff(verdict, [run], [value], [need], "s"))
    assert "</text><script>1" in picture.text
    assert "0.9 for #010101 $x^2$ <script> within 2 ms" in picture.text
    assert "script" not in picture.tags


def test_a_control_character_is_shown_as_its_code() -> None:
    spaces = {name: {**held, "a": Held(text="bell\x07")} for name, held in SPACES.items()}
    html = page_of(Example(spaces, MOVED.cases, MOVED.results, pairs=MOVED.pairs))
    assert "\x07" not in html
    assert "bell\\x07" in html


def assert_self_contained(html: str) -> None:
    page = parsed(html)
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids)), "an id is used twice"
    for tag, name, value in page.attributes:
        assert name not in ("src", "srcset", "data", "action", "poster", "xmlns"), (tag, name)
        if name.endswith("href"):
            assert value.startswith("#") and value[1:] in ids, (tag, name, value)
    inside = re.findall(r"url\(([^)]*)\)", html)
    assert all(value.startswith("#") and value[1:] in ids for value in inside), inside
    assert "@import" not in html
    assert page.tags.count("style") == 1, "a picture's own rules would hold for the whole page"
    assert not re.search(r"(?:https?:)?//[a-z]", re.sub(r"<!--.*?-->", "", html))
    assert ("meta", "content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes


def test_it_refers_to_nothing_outside(tmp_path: Path, toy: Tree) -> None:
    assert_self_contained(page_of_fixture(tmp_path, toy))
    assert_self_contained(page_of(MOVED))


# --- what it says ---------------------------------------------------------------------------------


def test_the_verdict_comes_first_and_leaves_quality_to_a_person() -> None:
    text = parsed(page_of(MOVED)).text
    order = ["What may be decided Mechanical gates", "a person's decision", "A person may decide"]
    order += ["Before two spaces are compared", "Contract and inventory", "At k = 3"]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    # (-0.3691 + 0) / 2 defined queries = -0.1845.
    assert "Mean nDCG@3 changes by −0.1845 over 2 queries: 0 better, 1 worse, 1 unchanged." in text
    assert "nothing can be concluded from so few" in text


def test_undefined_is_a_dash_and_never_0() -> None:
    unjudged = Example(
        spaces=SPACES,
        cases={"c": Case({})},
        results={(0, "old", "c"): ["a"], (0, "new", "c"): ["b"]},
        pairs=[("old", "new")],
    )
    html = page_of(unjudged)
    text = parsed(html).text
    assert "old exact – – – – 1 0" in text
    assert "– undefined: no query here has a relevant document" in text
    assert "Mean nDCG@3 changes by" not in text
    # {a} and {b} do not overlap; that is defined.
    assert "Δ nDCG undefined nDCG – → – overlap 0.0000" in text


def test_a_changed_query_shows_both_lists_with_grades_and_ranks() -> None:
    spaces = {
        name: {**held, "d": Held(text="of d"), "q": Held(role="query", text="what is d?")}
        for name, held in SPACES.items()
    }
    text = parsed(page_of(Example(spaces, MOVED.cases, MOVED.results, pairs=MOVED.pairs))).text
    shown = text[text.index("what is d? ▼") :]
    assert shown.startswith(
        "what is d? ▼ worse by 0.3691 nDCG 1.0000 → 0.6309 overlap 1.0000 c moved asked by staff "
        "old 1 d grade 1 rank 2 in new of d 2 a not judged rank 1 in new a text "
        "new 1 a not judged rank 2 in old a text 2 d grade 1 rank 1 in old of d"
    )
    assert "same asked by" not in shown  # a query without a change is no changed query


def test_the_worst_subgroup_comes_first_and_small_ones_are_marked() -> None:
    example = Example(
        spaces=SPACES,
        cases={
            "up": Case({"a": 1}, subgroups=("better-one",)),
            "down": Case({"d": 1}, subgroups=("worse-one",)),
            "none": Case({}, subgroups=("undefined-one",)),
        },
        results={
            (0, space, case): ["d", "a"] if space == "old" else ["a", "d"]
            for space in SPACES
            for case in ("up", "down", "none")
        },
        pairs=[("old", "new")],
    )
    text = parsed(page_of(example)).text
    table = text[text.index("the largest fall first") :]
    assert (
        table.index("worse-one few 1.0000 0.6309 −0.3691")
        < table.index("better-one few 0.6309 1.0000 +0.3691")
        < table.index("undefined-one few – – –")
    )


def test_failed_gates_name_the_items_and_forbid_the_decision() -> None:
    new = {**SPACES["new"], "b": Held(acl=("other",)), "z": Held()}
    del new["a"]
    example = Example(
        spaces={"old": SPACES["old"], "new": new},
        cases={"c": Case({"d": 1})},
        results={(scope, s, "c"): ["d"] for scope in (0, 1) for s in SPACES},
        pairs=[("old", "new")],
    )
    report = report_of(built(example), "examples", "r1", redact=False)
    text = parsed(report.html).text
    assert not report.passed
    assert "✗ 1 failed" in text
    assert "A migration may not be decided on. Items only in old: 1; only in new: 1;" in text
    assert "a only in old b differs in acl z only in new" in text


def test_gates_that_could_not_run_are_not_called_failed() -> None:
    example = Example(
        spaces={"old": SPACES["old"], "new": {}},
        cases={"c": Case({"d": 1})},
        results={(0, "old", "c"): ["d"]},
        pairs=[("old", "new")],
        not_executed={"new": "no key for the provider"},
    )
    report = report_of(built(example), "examples", "r1", redact=False)
    text = parsed(report.html).text
    assert not report.passed
    assert "– 1 not executed" in text
    assert "Nothing may be decided: the gates were not executed (new: no key" in text
    assert "failed" not in text


def test_a_suite_without_audits_has_no_sections_about_migrations() -> None:
    alone = Example({"old": SPACES["old"]}, {"c": Case({"a": 1})}, {(0, "old", "c"): ["a"]})
    report = report_of(built(alone), "examples", "r1", redact=False)
    page = parsed(report.html)
    anchors = [v for tag, name, v in page.attributes if (tag, name) == ("section", "id")]
    assert anchors == ["verdict", "spaces", "measures"]
    assert report.passed
    assert "No migration is audited in this suite" in page.text
    assert "this file holds no text" in page.text


# --- texts ----------------------------------------------------------------------------------------


def with_acl(space_acl: tuple[str, ...], canonical_acl: tuple[str, ...]) -> Example:
    """A result list that holds a document the subject, of the group staff, may not read."""
    canonical = {"a": Held(), "b": Held(acl=canonical_acl, text="SECRET"), **QUERY}
    held = {**canonical, "b": Held(acl=space_acl, text="SECRET")}
    return Example(
        spaces={"first": canonical, "old": held, "new": held},
        cases={"c": Case({"a": 1})},
        results={(0, "old", "c"): ["a", "b"], (0, "new", "c"): ["b", "a"]},
        pairs=[("old", "new")],
    )


@pytest.mark.parametrize(
    ("space_acl", "canonical_acl", "shown"),
    [
        (("staff",), ("staff",), True),
        (("staff",), ("board",), False),
        (("board",), ("staff",), False),
    ],
)
def test_a_text_is_shown_only_where_both_access_lists_allow_it(
    space_acl: tuple[str, ...], canonical_acl: tuple[str, ...], shown: bool
) -> None:
    html = page_of(with_acl(space_acl, canonical_acl))
    assert ("SECRET" in html) == shown
    assert ("the query's groups may not read it" in parsed(html).text) == (not shown)


def test_another_version_of_a_text_is_not_shown_as_that_space_s() -> None:
    new = {**SPACES["new"], "d": Held(text="the newer text")}
    old = {**SPACES["old"], "d": Held(text="the older text")}
    html = page_of(Example({"old": old, "new": new}, MOVED.cases, MOVED.results, pairs=MOVED.pairs))
    assert html.count("the older text") == 1
    assert "the newer text" not in html
    assert "this space holds another version of it" in html


def test_a_long_text_is_cut(tmp_path: Path, toy: Tree) -> None:
    item_in(toy, "toy-v1", "doc-orleans-office")["text"] = "long " * 1000
    item_in(toy, "toy-v2", "doc-orleans-office")["text"] = "long " * 1000
    html = page_of_fixture(tmp_path, toy)
    # 159 characters and an ellipsis: 31 words and "long" fill them.
    assert html.count("long " * 31 + "long…") == 2


def test_redacted_it_holds_no_text_and_says_so(tmp_path: Path, toy: Tree) -> None:
    texts = {item["text"] for item in toy["items"]}
    readable = parsed(page_of_fixture(tmp_path, toy)).text
    assert sum(text[:40] in readable for text in texts) >= 4
    assert "With texts: the beginnings of" in readable
    redacted = parsed(page_of_fixture(tmp_path, toy, redact=True)).text
    assert not quoted(redacted, texts)
    assert "Redacted: this file holds no text" in redacted


def quoted(page: str, texts: Iterable[str], length: int = 12) -> list[str]:
    """Pieces of the texts, of so many characters or the whole text, that stand in the page."""
    lines = [" ".join(text.split()) for text in texts]
    starts = [(line, at) for line in lines for at in range(0, max(1, len(line) - length + 1), 4)]
    return [line[at : at + length] for line, at in starts if line[at : at + length] in page]


# --- approximate indexes --------------------------------------------------------------------------


def test_ann_recall_sweep_and_promotion_are_told_apart_from_relevance() -> None:
    text = parsed(report_of(ann_release(), "synthetic", "r1", redact=False).html).text
    assert "ANN recall is measured against exact search in the same space" in text
    # The index found 1 of the exact 2: a of {a, b}. No query has judgements.
    assert "s ivf 2 1 1 0.5000 0.5000 0 –" in text
    assert "up to 50%" not in text and "s ivf all 2 1 1 0.5000" in text
    assert "claim not supported Best is 0.6; stopped at 2." in text  # the reason, as a sentence
    assert "ivf on s ✗ not eligible 1 of 3 conditions are met" in text
    assert "recall ✗ failed 0.5 0.95" in text
    assert "judgements – not executed nobody judged loss of 0.01" in text
    assert "Default index: exact for s . Exact search serves until a person decides" in text
    assert "chat 5 0.9 – – – none reaches it" in text
    # 2 ms against 0.5 ms, each query at its fastest; 3 documents x 4 float32 are 48 bytes.
    assert "s exact 1.0000 3.00 4.00 5.00 1.00× 1,000 48 B" in text
    assert "s ivf 0.5000 0.700 0.800 0.900 4.00× 2,000 96 B 0.500× 12.0" in text


def test_a_sweep_is_drawn_with_its_values_front_stop_and_needs() -> None:
    html = report_of(ann_release(), "synthetic", "r1", redact=False).html
    begins = html.index("<svg", html.index("Sweep"))
    picture = html[begins : html.index("</svg>", begins) + 6]
    for words in ("0.9 for chat within 5 ms", "Pareto front", "stop at nprobe = 2", "one seed"):
        assert words in parsed(picture).text
    # The page's own colours only: they follow light and dark.
    colours = set(re.findall(r"(?:fill|stroke): ([^;\"]+)", picture))
    assert {colour for colour in colours if not colour.startswith("var(--")} == {"none"}


def test_an_index_that_a_person_chose_is_named_with_the_reason() -> None:
    chosen = {"index_name": "ivf", "decided_by": "Ada", "decided_at": "2026-01-02", "why": "speed"}
    text = parsed(report_of(ann_release(chosen), "synthetic", "r1", redact=False).html).text
    assert "Default index: ivf for s (decided by Ada, 2026-01-02: speed)." in text
    assert "It is the default now." in text
    assert "Exact search serves until" not in text


# --- bytes ----------------------------------------------------------------------------------------


def test_equal_releases_give_equal_bytes() -> None:
    first, second = page_of(MOVED), page_of(MOVED)
    assert first == second
    assert first.startswith(FIRST_LINE)
    assert "<svg" in first


def test_a_release_from_before_some_tables_were_made_still_has_its_report() -> None:
    con = built(MOVED)
    for table in (
        "migration_by_subgroup",
        "migration_changed_queries",
        "index_promotion",
        "comparison_statistics",
        "metric_intervals",
    ):
        con.execute(f"DROP TABLE {table}")
    assert "A person may decide" in report_of(con, "examples", "r1", redact=False).html


def test_tables_that_it_does_not_know_change_nothing() -> None:
    con = built(MOVED)
    before = report_of(con, "examples", "r1", redact=False).html
    for table in ("measured_tomorrow", "checked_tomorrow"):
        con.execute(f"CREATE TABLE {table} (whatever INTEGER)")
    assert report_of(con, "examples", "r1", redact=False).html == before
