"""`rag-assets report`: where the file goes, what is refused, and the exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rag_assets.cli import main
from rag_assets.fixture_evaluation import evaluate_fixture
from rag_assets.report.page import FIRST_LINE, report_of
from rag_assets.warehouse.build import build
from rag_assets.warehouse.release import publish, reading
from rag_assets_tests.conftest import Tree, Workshop
from rag_assets_tests.report.releases import handbook
from rag_assets_tests.report.test_page import MOVED, assert_self_contained, parsed, quoted
from rag_assets_tests.warehouse.examples import MODELS, Example, Held, base_tables

Report = Callable[..., Result]


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """`rag-assets report ...` over the warehouse of `tmp_path`."""

    def run(*arguments: object) -> Result:
        environment = {"RAG_ASSETS_WAREHOUSE": str(tmp_path)}
        return CliRunner().invoke(main, ["report", *map(str, arguments)], env=environment)

    return run


def published_example(warehouse: Path, example: Example = MOVED) -> None:
    publish(
        lambda con: build(con, base_tables(example), MODELS), warehouse=warehouse, suite="moved"
    )


def assert_refused(result: Result, *said: str) -> None:
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    for words in said:
        assert words in line


def test_the_report_lies_in_the_warehouse_and_a_redacted_one_beside_it(
    tmp_path: Path, report: Report
) -> None:
    published_example(tmp_path)
    result = report("moved")
    assert (result.exit_code, result.stderr) == (0, "")
    readable = tmp_path / "reports" / "moved.html"
    assert result.stdout == f"Report: {readable}\n"
    assert report("moved", "--redact").exit_code == 0
    redacted = tmp_path / "reports" / "moved.redacted.html"
    assert "With texts:" in readable.read_text("utf-8")
    assert "Redacted:" in redacted.read_text("utf-8")
    assert sorted(file.name for file in readable.parent.iterdir()) == [
        "moved.html",
        "moved.redacted.html",
    ]


def test_again_it_writes_the_same_bytes_and_replaces_only_a_report(
    tmp_path: Path, report: Report
) -> None:
    published_example(tmp_path)
    file = tmp_path / "mine.html"
    assert report("moved", "--output", file).exit_code == 0
    first = file.read_bytes()
    assert report("moved", "--output", file).exit_code == 0
    assert file.read_bytes() == first
    file.write_text("my notes", "utf-8")
    assert_refused(report("moved", "--output", file), "mine.html: exists and is no report")
    assert file.read_text("utf-8") == "my notes"


def test_a_suite_without_a_release_and_a_place_that_cannot_be_are_refused(
    tmp_path: Path, report: Report
) -> None:
    assert_refused(report("moved"), "suite 'moved' has no release yet", "rag-assets run moved")
    published_example(tmp_path)
    assert_refused(report("moved", "--output", tmp_path / "no" / "x.html"), "create it first")
    assert_refused(report("moved", "--output", tmp_path), "is a folder; name a file in it")
    assert_refused(report("../moved"), "is not the name of a suite")
    assert not (tmp_path / "reports").exists()


def test_a_failed_gate_is_status_1_and_a_complete_report(tmp_path: Path, report: Report) -> None:
    spaces = {**MOVED.spaces, "new": {**MOVED.spaces["new"], "b": Held(acl=("board",))}}
    published_example(tmp_path, Example(spaces, MOVED.cases, MOVED.results, pairs=MOVED.pairs))
    result = report("moved")
    assert result.exit_code == 1
    assert result.stdout.startswith("Report: ")
    page = parsed((tmp_path / "reports" / "moved.html").read_text("utf-8"))
    assert "A migration may not be decided on" in page.text


def test_the_toy_suite_with_its_checks_indexes_and_manifest(
    published: Workshop, tmp_path: Path, toy: Tree
) -> None:
    file = tmp_path / "toy.html"
    result = published.command("report", "toy", "--output", file)
    # A check that only warned is no failure.
    assert result.exit_code == 0, result.output
    html = file.read_text("utf-8")
    assert html.startswith(FIRST_LINE)
    assert_self_contained(html)
    page = parsed(html)
    anchors = [v for tag, name, v in page.attributes if (tag, name) == ("section", "id")]
    assert " ".join(anchors) == (
        "verdict gates checklist spaces measures statistics subgroups changes indexes history "
        "checks manifest"
    )
    assert "Vectors are hand-authored: the numbers of this suite exercise the pipeline" in page.text
    assert "index_training toy/toy-v1/ivf_pq_index ! warned" in page.text
    assert "There were enough vectors to train on" in page.text
    assert "0 of 2" in page.text
    redacted = published.command("report", "toy", "--redact", "--output", file)
    assert redacted.exit_code == 0
    assert not quoted(parsed(file.read_text("utf-8")).text, {item["text"] for item in toy["items"]})


def test_the_handbook_stays_small_and_keeps_its_secrets(tmp_path: Path) -> None:
    tree: dict[str, Any] = handbook()
    source, database = tmp_path / "handbook.json", tmp_path / "handbook.duckdb"
    source.write_text(json.dumps(tree), "utf-8")
    evaluate_fixture(source, ks=[3, 10], audits=None, max_bytes=2**25, db=database)
    with reading(database) as con:
        html = report_of(con, "handbook", "r1", redact=False).html
        redacted = report_of(con, "handbook", "r1", redact=True).html
    assert len(html.encode()) < 2_000_000
    assert_self_contained(html)
    page = parsed(html)
    assert page.text.count(" asked by ") == 10
    queries = {item["text"] for item in tree["items"] if item["role"] == "query"}
    assert sum(" ".join(text.split()) in page.text for text in queries) >= 10
    # Shorter pieces ("of the two spaces") are also the report's own words.
    assert not quoted(parsed(redacted).text, {item["text"] for item in tree["items"]}, length=20)
