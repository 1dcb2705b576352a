"""The report as an asset: written with every release, its pictures on the tables it is about."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from rag_assets.report.files import report_path, write_report
from rag_assets.report.page import report_of
from rag_assets.warehouse.build import build
from rag_assets.warehouse.release import current_release, publish
from rag_assets.whole_files import locked_folder
from rag_assets_tests.components.suites import declared, ran
from rag_assets_tests.conftest import Tree, item_in
from rag_assets_tests.report.test_page import MOVED, parsed
from rag_assets_tests.warehouse.examples import MODELS, base_tables, built

Metadata = dict[str, dict[str, Any]]


def materialized(folder: Path, tree: Tree) -> tuple[dg.ExecuteInProcessResult, Metadata]:
    """A run of the tree as the suite "told"; the metadata of its assets, by their last name."""
    source = folder / "source.json"
    source.write_text(json.dumps(tree), "utf-8")
    suite = {
        "name": "told",
        "source": {"path": str(source)},
        "spaces": [{"space_id": "toy-v1"}, {"space_id": "toy-v2"}],
    }
    result = ran(declared(suite, folder), dg.DagsterInstance.ephemeral())
    found = {
        event.asset_key.path[-1]: {
            name: value.value
            for name, value in event.step_materialization_data.materialization.metadata.items()
        }
        for event in result.all_events
        if event.is_step_materialization and event.asset_key
    }
    return result, found


def test_every_run_writes_the_report_and_shows_its_pictures(tmp_path: Path, toy: Tree) -> None:
    result, found = materialized(tmp_path, toy)
    assert result.success
    warehouse = tmp_path / "warehouse"
    file = report_path(warehouse, "told")
    html = file.read_text("utf-8")
    report = found["report"]
    assert report["release"] == current_release(warehouse, "told").stem
    assert report["release"] in html
    assert report["gates_and_checks"] == "passed"
    assert report["bytes"] == len(html.encode())
    # Each table says where the report is.
    for table in ("metric_by_space", "migration_audit", "manifest"):
        assert found[table]["report"] == str(file)
    # The command writes the same bytes.
    file.unlink()
    assert write_report(warehouse, "told").path.read_text("utf-8") == html


def test_failed_gates_are_in_the_report_too(tmp_path: Path, toy: Tree) -> None:
    item_in(toy, "toy-v2", "doc-oncall")["text"] += " Amended."
    result, found = materialized(tmp_path, toy)
    assert not result.success
    assert found["report"]["gates_and_checks"] == "not all passed"
    page = parsed(report_path(tmp_path / "warehouse", "told").read_text("utf-8"))
    assert "A migration may not be decided on" in page.text


def test_a_file_that_is_no_report_stays_and_the_release_is_published(
    tmp_path: Path, toy: Tree
) -> None:
    file = report_path(tmp_path / "warehouse", "told")
    file.parent.mkdir(parents=True)
    file.write_text("my notes", "utf-8")
    result, found = materialized(tmp_path, toy)
    assert not result.success
    assert file.read_text("utf-8") == "my notes"
    assert "report" not in found
    assert found["manifest"]["release"] == current_release(tmp_path / "warehouse", "told").stem
    [failure] = [e for e in result.all_events if e.event_type == dg.DagsterEventType.STEP_FAILURE]
    assert failure.step_failure_data.user_failure_data is not None
    assert "exists and is no report" in str(failure.step_failure_data.user_failure_data.description)


@pytest.mark.parametrize("prepared", [False, True])
def test_a_writer_that_waited_writes_the_newest_release(tmp_path: Path, prepared: bool) -> None:
    def published() -> str:
        release = publish(
            lambda con: build(con, base_tables(MOVED), MODELS), warehouse=tmp_path, suite="moved"
        )
        return release.release_id

    older = published()
    made = report_of(built(MOVED), "moved", older, redact=False) if prepared else None
    path = report_path(tmp_path, "moved")
    path.parent.mkdir()
    written = []
    writer = threading.Thread(
        target=lambda: written.append(write_report(tmp_path, "moved", made=made))
    )
    with locked_folder(path.parent):
        writer.start()
        newest = published()
        assert not path.exists()
    writer.join(60)
    assert written[0].report.release_id == newest
    assert newest in path.read_text("utf-8")
    assert older not in path.read_text("utf-8")


def test_assets_show_the_pictures_of_the_report(tmp_path: Path, toy: Tree) -> None:
    """Toy's four queries asked twenty times each: enough for intervals, and so for pictures."""
    toy["queries"] = [
        {**case, "case_id": f"{case['case_id']}-{time}"}
        for case in toy["queries"]
        for time in range(20)
    ]
    _, found = materialized(tmp_path, toy)
    report = found["report"]
    drawn = {name for name, value in report.items() if "data:image/svg+xml;base64," in str(value)}
    assert {"means at k = 3", "nDCG@3 by subgroup"} <= drawn
    assert report["means at k = 3"] == found["metric_by_space"]["means at k = 3"]
    assert report["nDCG@3 by subgroup"] == found["metric_by_subgroup"]["nDCG@3 by subgroup"]
