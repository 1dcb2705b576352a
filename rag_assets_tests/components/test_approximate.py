"""Approximate indexes in a suite: without their engine, and after a decision for one."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from rag_assets.laboratory.defaults import set_default_index
from rag_assets_tests.components.suites import declared, own_project, ran, rows
from rag_assets_tests.conftest import ROOT

INDEX = {
    "kind": "ivf_pq",
    "parameters": {"n_clusters": 1, "nprobe": 1, "n_subvectors": 1, "n_bits": 1, "seed": 1},
}
SUITE: dict[str, Any] = {
    "name": "lab",
    "source": {"path": "toy.json"},
    "spaces": [{"space_id": "toy-v1"}, {"space_id": "toy-v2"}],
    "audits": [],
    "k": [3],
    "indexes": [INDEX],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(ROOT / "data" / "toy" / "toy.json", tmp_path)
    own_project(tmp_path, monkeypatch)
    return tmp_path


def run(attributes: dict[str, Any], folder: Path) -> dg.ExecuteInProcessResult:
    with dg.DagsterInstance.ephemeral() as instance:
        return ran(declared(attributes, folder), instance)


def test_without_its_engine_an_index_is_not_executed_and_the_rest_is_published(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = {
        "name": "probes",
        "space": "toy-v1",
        "index": "ivf_pq",
        "vary": {"n_iters": [1, 2]},
        "seeds": [1, 2, 3],
        "k": 3,
        "stop_rule": {"min_recall_gain": 0.05, "max_p95_growth": 0.5},
        "min_mean_recall": 0.9,
    }
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "faiss", None)  # importing it now fails
        assert run({**SUITE, "sweeps": [sweep]}, folder).success
    times = {
        row["index_name"]: row
        for row in rows(
            folder, "lab", "SELECT index_name, status, status_reason, p50_ms FROM index_benchmark"
        )
    }
    assert times["exact"]["status"] == "ok"
    assert times["ivf_pq"]["status"] == "not_executed"
    assert "FAISS cannot be imported" in times["ivf_pq"]["status_reason"]
    assert times["ivf_pq"]["p50_ms"] is None
    assert rows(folder, "lab", "SELECT DISTINCT verdict FROM index_promotion") == [
        {"verdict": "not_eligible"}
    ]
    assert rows(folder, "lab", "SELECT DISTINCT ann_recall_at_k AS r FROM ann_recall_by_query") == [
        {"r": None}
    ]
    assert rows(folder, "lab", "FROM sweep_results") == []
    assert rows(folder, "lab", "SELECT count(*) AS n FROM metric_by_query WHERE k = 3")[0]["n"] > 0
    said = {
        row["severity"]
        for row in rows(
            folder,
            "lab",
            "SELECT severity FROM check_results WHERE check_name = 'result_validation' "
            "AND NOT passed",
        )
    }
    assert said == {"warn"}
    assert run({**SUITE, "sweeps": [sweep]}, folder).success  # with the engine again
    statuses = "SELECT DISTINCT index_name, status FROM index_benchmark ORDER BY index_name"
    assert rows(folder, "lab", statuses) == [
        {"index_name": "exact", "status": "ok"},
        {"index_name": "ivf_pq", "status": "ok"},
    ]
    assert rows(folder, "lab", "SELECT DISTINCT status FROM sweep_results") == [{"status": "ok"}]
    with monkeypatch.context() as patch:  # and without it, though the index is stored
        patch.setitem(sys.modules, "faiss", None)
        assert run(SUITE, folder).success
    assert rows(folder, "lab", statuses)[1] == {"index_name": "ivf_pq", "status": "not_executed"}


def test_the_index_that_was_decided_for_cannot_be_taken_from_the_suite_unnoticed(
    folder: Path,
) -> None:
    set_default_index(
        folder,
        "toy-v1",
        "ivf_pq",
        by="Ada",
        why="fast",
        evidence_digest="a" * 64,
        eligible=True,
    )
    assert run(SUITE, folder).success
    defaults = "SELECT index_name FROM default_index ORDER BY space_id"
    held = [{"index_name": "ivf_pq"}, {"index_name": "exact"}]
    assert rows(folder, "lab", defaults) == held
    result = run({**SUITE, "indexes": []}, folder)
    assert not result.success
    [failure] = [e for e in result.all_events if e.is_step_failure]
    assert "rag-assets default-index lab toy-v1 exact" in str(failure.step_failure_data.error)
    assert rows(folder, "lab", defaults) == held
