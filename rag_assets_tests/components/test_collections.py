"""A collection of the field through the whole chain: providers, derived spaces, runs, gaps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from rag_assets_tests.components.suites import declared, own_project, ran, rows

WORDS = {"provider": "scikit-learn", "model": "lsa", "revision": "fitted", "metric": "cosine"}
ATTRIBUTES: dict[str, Any] = {
    "name": "small",
    "source": {
        "format": "beir",
        "path": "data/small",
        "acl": {"field": "metadata.groups"},
        "subject_groups": ["staff"],
    },
    "spaces": [
        {
            "space_id": "words",
            "contract": {**WORDS, "dimension": 3, "normalized": True},
            "vectors": {"provider": "lsa"},
        },
        {"space_id": "words-int8", "derive": {"parent": "words", "int8": "vector"}},
        {
            "space_id": "remote",
            "contract": {
                "provider": "p",
                "model": "m",
                "revision": "1",
                "metric": "cosine",
                "dimension": 3,
                "normalized": True,
            },
            "vectors": {
                "provider": "openai_compatible",
                "base_url": "http://127.0.0.1:9/v1",
                "api_key_env": "RAG_ASSETS_NO_SUCH_KEY",
            },
        },
    ],
    "k": [2],
    "audits": [{"old": "words", "new": "words-int8"}, {"old": "words", "new": "remote"}],
    "runs": [{"name": "bm25", "space": "words", "path": "data/small/bm25.run"}],
}
TEXTS = {
    "apples": "Apples grow on trees and fall in autumn.",
    "boats": "Boats float on water and sail with wind.",
    "cats": "Cats sleep all day and hunt at night.",
    "secret": "The secret boats of the night are water and wind.",
}


def write_small(folder: Path) -> None:
    (folder / "qrels").mkdir(parents=True)
    documents = [
        {"_id": name, "title": "", "text": text}
        | {"metadata": {"groups": ["board" if name == "secret" else "staff"]}}
        for name, text in TEXTS.items()
    ]
    queries = [{"_id": "q-boats", "text": "boats on water"}, {"_id": "q-none", "text": "wind"}]
    for name, records in (("corpus", documents), ("queries", queries)):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines, "utf-8")
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq-boats\tboats\t1\n", "utf-8"
    )
    # The run has the relevant document second: RR 1/2, recall 1.
    (folder / "bm25.run").write_text(
        "q-boats Q0 cats 1 9.5 bm25\nq-boats Q0 boats 2 3.5 bm25\n", "utf-8"
    )


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("small")
    write_small(folder / "data" / "small")
    with pytest.MonkeyPatch.context() as patch:
        own_project(folder, patch)
        with dg.DagsterInstance.ephemeral() as instance:
            result = ran(declared(ATTRIBUTES, folder), instance)
    return folder, result


def test_the_suite_completes_although_one_space_has_no_provider(evaluated: Any) -> None:
    folder, result = evaluated
    assert result.success
    spaces = rows(folder, "small", "SELECT space_id, status, status_reason FROM spaces")
    assert [(row["space_id"], row["status"]) for row in spaces] == [
        ("words", "evaluated"),
        ("words-int8", "evaluated"),
        ("remote", "not_executed"),
    ]
    assert "RAG_ASSETS_NO_SUCH_KEY" in spaces[2]["status_reason"]
    assert rows(folder, "small", "FROM metric_by_space WHERE space_id = 'remote'") == []


def test_an_audit_that_needs_the_missing_space_says_so(evaluated: Any) -> None:
    folder, _ = evaluated
    [audit] = rows(folder, "small", "FROM migration_audit WHERE new_space_id = 'remote'")
    assert audit["status"] == "not_executed"
    assert (audit["inventory_match"], audit["delta_mean_ndcg_at_k"]) == (None, None)
    [gates] = rows(folder, "small", "FROM check_results WHERE check_name = 'mechanical_gates'")
    assert (gates["passed"], gates["severity"]) == (False, "warn")


def test_a_derived_space_is_audited_against_its_parent(evaluated: Any) -> None:
    folder, _ = evaluated
    [audit] = rows(folder, "small", "FROM migration_audit WHERE new_space_id = 'words-int8'")
    assert audit["mechanical_gates_pass"] is True
    assert audit["vectors_directly_comparable"] is False
    assert audit["mean_top_k_jaccard"] == 1.0


def test_a_run_from_elsewhere_is_measured_beside_our_indexes(evaluated: Any) -> None:
    folder, _ = evaluated
    [run] = rows(folder, "small", "FROM metric_by_space WHERE index_name = 'bm25'")
    assert (run["mean_recall_at_k"], run["mrr"], run["defined_count"]) == (1.0, 0.5, 1)
    assert rows(folder, "small", "FROM ann_recall_by_query") == []  # nobody knows its index


def test_a_query_without_judgements_is_undefined_and_rights_hold(evaluated: Any) -> None:
    folder, _ = evaluated
    unjudged = rows(folder, "small", "FROM metric_by_query WHERE case_id = 'q-none'")
    assert {row["index_name"] for row in unjudged} == {"exact", "bm25"}
    assert {row["recall_at_k"] for row in unjudged} == {None}
    returned = rows(folder, "small", "SELECT DISTINCT item_id FROM query_results")
    assert "secret" not in {row["item_id"] for row in returned}


def test_data_checks_stand_beside_the_contract(evaluated: Any) -> None:
    folder, _ = evaluated
    names = rows(
        folder,
        "small",
        "SELECT check_name FROM check_results WHERE asset = 'small/canonical_items'",
    )
    assert {row["check_name"] for row in names} == {"contract_validation", "data_checks"}


def test_a_run_that_leaks_stops_the_suite_before_anything_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_project(tmp_path, monkeypatch)
    write_small(tmp_path / "data" / "small")
    run = tmp_path / "data" / "small" / "bm25.run"
    run.write_text("q-boats Q0 secret 1 9.5 bm25\n", "utf-8")
    with dg.DagsterInstance.ephemeral() as instance:
        result = ran(
            declared({**ATTRIBUTES, "spaces": ATTRIBUTES["spaces"][:1], "audits": []}, tmp_path),
            instance,
        )
    assert not result.success
    failed = [event for event in result.all_events if event.is_step_failure]
    assert [event.step_key for event in failed] == ["small__words__bm25_results"]
    assert not (tmp_path / "warehouse" / "small.duckdb").exists()
