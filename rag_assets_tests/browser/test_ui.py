"""The Dagster UI as a newcomer uses it: look, materialize, open a check, read the audit."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from rag_assets_tests.browser.server import Server, serving

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Locator, Page

    from rag_assets_tests.browser.conftest import Visit
    from rag_assets_tests.conftest import Tree

pytestmark = pytest.mark.browser

RUN_MILLISECONDS = 240_000
# In the order in which data flows.
GROUPS = [
    "toy__1_corpus",
    "toy__2_toy_v1",
    "toy__2_toy_v2",
    "toy__3_measures",
    "toy__4_audits",
    "toy__5_history",
]
# The graph of one suite, as typing key:"toy/*" into its search field shows it.
SELECTION = 'key:"toy/*"'
GRAPH = f"/asset-groups~{quote(SELECTION, safe='*')}/"
# `dagster dev` says of itself that `dg dev` is the better command, before it loads any project.
RECOMMENDATION = "SupersessionWarning: Function `dev_command` is superseded"
# On a machine too busy for its heartbeats Dagster starts its code server again, and says so.
BUSY = ("No heartbeat received in ", "Code server process has exited with code 0. Restarting")


def materialize_all(ui: Server, page: Page) -> str:
    """Clicks "Materialize all" on the suite's graph; the status that the run ends with."""
    page.goto(ui.url + GRAPH)
    page.get_by_text(GROUPS[-1], exact=True).last.wait_for()
    with page.expect_response(lambda reply: "LaunchPipelineExecution" in reply.url) as launched:
        page.get_by_role("button", name="Materialize all").click()
    run = launched.value.json()["data"]["launchPipelineExecution"]["run"]
    page.goto(f"{ui.url}/runs/{run['id']}")
    # The page of a run follows it while it works.
    ended = page.get_by_text("Success", exact=True).or_(page.get_by_text("Failure", exact=True))
    ended.first.wait_for(timeout=RUN_MILLISECONDS)
    return ended.first.inner_text()


@pytest.fixture(scope="module")
def materialized(ui: Server, browser: tuple[BrowserContext, Visit]) -> str:
    """How the run over the bundled data ended."""
    page = browser[0].new_page()
    try:
        return materialize_all(ui, page)
    finally:
        page.close()


def open_check(ui: Server, page: Page, asset: str, check: str) -> Locator:
    """Opens a check from the page of its asset, and then its expectations."""
    page.goto(f"{ui.url}/assets/{asset}")
    page.get_by_text("Checks", exact=True).click()
    page.get_by_text(check, exact=True).first.click()
    page.get_by_text("Show Markdown").click()
    table = page.get_by_role("dialog").locator("table")
    table.wait_for()
    return table


def asked_often(tree: Tree) -> Tree:
    """Every query twenty times: enough for intervals, and so for pictures."""
    cases = tree["queries"]
    tree["queries"] = [
        {**case, "case_id": f"{case['case_id']}-{time}"} for case in cases for time in range(20)
    ]
    return tree


def lines(table: Locator) -> list[list[str]]:
    """The cells of a table, line by line, without its heading."""
    found: list[list[str]] = table.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    return found


def test_the_asset_graph_folds_into_stages_and_spaces(ui: Server, page: Page) -> None:
    page.goto(ui.url + GRAPH)
    page.get_by_text(GROUPS[-1], exact=True).last.wait_for()
    # Each is in the list beside the graph, in this order, and is a box of the graph.
    shown = page.get_by_text(re.compile(r"^\w+__\d_\w+$")).all_inner_texts()
    assert list(dict.fromkeys(shown)) == GROUPS
    assert page.get_by_text("canonical_items", exact=True).count() == 0
    page.get_by_text(GROUPS[0], exact=True).last.click()
    page.get_by_text("canonical_items", exact=True).first.wait_for()


def test_materialize_all_succeeds(materialized: str) -> None:
    assert materialized == "Success"


@pytest.mark.usefixtures("materialized")
def test_a_check_shows_what_it_expected_and_what_it_found(ui: Server, page: Page) -> None:
    table = open_check(ui, page, "toy/canonical_items", "contract_validation")
    headings = table.locator("th").all_inner_texts()
    assert headings[:4] == ["result", "expectation", "column", "expected"]
    expectations = lines(table)
    assert len(expectations) > 20
    assert {line[0] for line in expectations} == {"passed"}
    # 6 documents and 4 queries.
    assert [
        "passed",
        "expect_column_values_to_be_unique",
        "items.item_id",
        "be unique",
        "10 rows",
        "0",
    ] in [line[:6] for line in expectations]


@pytest.mark.usefixtures("materialized")
def test_the_audit_shows_its_table(ui: Server, page: Page) -> None:
    page.goto(f"{ui.url}/assets/toy/migration_audit")
    audit = page.locator("table table").filter(has_text="mean top k jaccard")
    audit.wait_for()
    exact = audit.locator("th").all_inner_texts().index("exact")
    fields = {line[0]: line[exact] for line in lines(audit)}
    # One of four cases keeps 2 of 3 documents: 2 shared of 4 in either. (1 + 1 + 1 + 0.5) / 4.
    assert fields["mean top k jaccard"] == "0.8750"
    assert fields["mechanical gates pass"] == "true"
    assert fields["vectors directly comparable"] == "false"
    assert fields["quality decision required"] == "true"
    assert fields["delta mean ndcg at k"] == "0.0000"


def test_the_daily_schedule_is_there_and_off(ui: Server, page: Page) -> None:
    page.goto(f"{ui.url}/locations/rag-assets/schedules/evaluate_toy_schedule")
    page.get_by_text("At 05:00 AM UTC").first.wait_for()
    assert not page.get_by_role("switch").or_(page.get_by_role("checkbox")).first.is_checked()


@pytest.mark.usefixtures("materialized")
def test_dg_dev_logs_no_warning(ui: Server) -> None:
    assert ui.warnings() == []


@pytest.mark.usefixtures("materialized")
def test_a_text_that_differs_fails_the_gates_and_is_reported_all_the_same(
    ui: Server, page: Page
) -> None:
    source = ui.project / "data" / "toy" / "toy.json"
    bundled = source.read_text("utf-8")
    source.write_text(json.dumps(asked_often(other_text(json.loads(bundled)))), "utf-8")
    try:
        assert materialize_all(ui, page) == "Failure"
        failed = lines(open_check(ui, page, "toy/migration_audit", "mechanical_gates"))
    finally:
        source.write_text(bundled, "utf-8")
    page.keyboard.press("Escape")
    page.get_by_text("Failed", exact=True).first.wait_for()
    columns = {line[2] for line in failed if line[0] == "failed"}
    assert any(column.endswith("canonical_match") for column in columns)
    assert not any(column.endswith("inventory_match") for column in columns)
    page.get_by_text("doc-oncall").first.wait_for()
    page.goto(f"{ui.url}/assets/toy/report")
    page.get_by_text("warehouse/reports/toy.html").first.wait_for()
    page.get_by_text("Show Markdown").first.click()
    picture = page.get_by_role("dialog").get_by_role("img", name="means at k = 3")
    picture.wait_for()
    drawn = "image => image.decode().then(() => image.naturalWidth)"
    assert picture.evaluate(drawn) > 500
    assert (ui.warehouse / "reports" / "toy.html").is_file()


def other_text(tree: dict[str, Any]) -> dict[str, Any]:
    """The fixture with another text for one document, in the second space only."""
    [item] = [
        item
        for item in tree["items"]
        if (item["space_id"], item["item_id"]) == ("toy-v2", "doc-oncall")
    ]
    item["text"] += " Amended."
    return tree


def test_dagster_dev_reads_the_workspace_file_without_a_warning(tmp_path: Path) -> None:
    with serving(["dagster", "dev", "-w", "workspace.yaml"], tmp_path) as server:
        question = {"query": "{workspaceOrError {... on Workspace {locationEntries {name}}}}"}
        request = urllib.request.Request(
            f"{server.url}/graphql",
            json.dumps(question).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as reply:
            assert '"name":"rag-assets"' in reply.read().decode().replace(" ", "")
    beside = (RECOMMENDATION, *BUSY)
    assert [line for line in server.warnings() if not any(it in line for it in beside)] == []
