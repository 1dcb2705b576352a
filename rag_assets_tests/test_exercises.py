"""The exercises of a teaching lab: change one thing, say beforehand what comes out."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import log2
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from rag_assets_tests.conftest import Tree, Workshop, item_in

GRADED = "doc-orleans-office"  # the only relevant document of case-orleans-key, grade 3


def evaluated(workshop: Workshop, tree: Tree, *options: object) -> Any:
    workshop.write(tree)
    result = workshop.command("evaluate", workshop.source, "--format", "json", *options)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def details(document: Any, space_id: str, k: int, case_id: str) -> Any:
    [evaluation] = [e for e in document["spaces"][space_id]["evaluation"] if e["k"] == k]
    [case] = [case for case in evaluation["details"] if case["case_id"] == case_id]
    return case


# A. The query of case-orleans-key is [0, 0, 2, 0] in toy-v1, so a document's cosine is its third
# component divided by its norm. Its groups may read five documents (not doc-breach-notes):
#   deploy-window [2,1,0,0]: 0       orleans-office [0,1,3,0]: 3/sqrt(10) = 0.949
#   first-week [0,3,0,0]: 0          rollback [4,0,-1,1]: -1/sqrt(18) = -0.236
#   oncall [1,0,-1,3]: -1/sqrt(11) = -0.302
# Grade 3 is a gain of 2^3 - 1 = 7, and the only one: nDCG = (7/log2(rank + 1)) / (7/log2(2)).


def test_a_the_graded_document_falls_to_rank_2(workshop: Workshop, toy: Tree) -> None:
    # deploy-window becomes parallel to the query: cosine 1, ahead of 0.949.
    item_in(toy, "toy-v1", "doc-deploy-window")["vector"] = [0, 0, 1, 0]
    document = evaluated(workshop, toy, "--k", 3, "--k", 10)
    for k in (3, 10):
        case = details(document, "toy-v1", k, "case-orleans-key")
        assert case["result_ids"][:2] == ["doc-deploy-window", GRADED]
        assert case["scores"][:2] == pytest.approx([1, 3 / 10**0.5], abs=1e-9)
        assert case["recall_at_k"] == 1
        assert case["precision_at_k"] == pytest.approx(1 / k)
        assert case["reciprocal_rank"] == 1 / 2
        assert case["ndcg_at_k"] == pytest.approx(1 / log2(3), abs=1e-12)  # 0.6309
    # It is also graded in case-rollback, q = [3,0,0,1]: cosine 0 now, behind rollback (0.969, grade
    # 3) and oncall (0.572, not judged), before first-week and orleans-office (0, later ids).
    # DCG = 7/log2(2) + 3/log2(4) = 8.5; ideal = 7/log2(2) + 3/log2(3).
    case = details(document, "toy-v1", 3, "case-rollback")
    assert case["result_ids"] == ["doc-rollback", "doc-oncall", "doc-deploy-window"]
    assert (case["recall_at_k"], case["reciprocal_rank"]) == (1, 1)
    assert case["ndcg_at_k"] == pytest.approx(8.5 / (7 + 3 / log2(3)), abs=1e-12)


def test_a_the_graded_document_falls_to_rank_4(workshop: Workshop, toy: Tree) -> None:
    # [2,3,-1,0]: -1/sqrt(14) = -0.267, behind 0, 0 (in order of id) and -0.236, before -0.302.
    item_in(toy, "toy-v1", GRADED)["vector"] = [2, 3, -1, 0]
    document = evaluated(workshop, toy, "--k", 10, "--k", 3)
    order = ["doc-deploy-window", "doc-first-week", "doc-rollback", GRADED, "doc-oncall"]
    at_3, at_10 = (details(document, "toy-v1", k, "case-orleans-key") for k in (3, 10))
    assert (at_3["result_ids"], at_10["result_ids"]) == (order[:3], order)
    measures = ("recall_at_k", "precision_at_k", "reciprocal_rank", "ndcg_at_k")
    assert [at_3[name] for name in measures] == [0, 0, 0, 0]
    assert [at_10[name] for name in measures] == pytest.approx(
        [1, 1 / 10, 1 / 4, 1 / log2(5)], abs=1e-12
    )
    # In the other three cases it keeps its place: first-week q = [0,2,0.5,0] gives it 5.5/7.71 =
    # 0.713, second as before; leak-at-night may not read it; rollback gives it 6/11.83 = 0.507,
    # fourth as before. So every other measure stays 1, and means are (3 + x) / 4.
    means = {e["k"]: e for e in document["spaces"]["toy-v1"]["evaluation"]}
    assert [means[3][name] for name in ("mean_recall_at_k", "mrr", "mean_ndcg_at_k")] == [
        0.75,
        0.75,
        0.75,
    ]
    assert means[10]["mean_recall_at_k"] == 1
    assert means[10]["mrr"] == 3.25 / 4
    assert means[10]["mean_ndcg_at_k"] == pytest.approx((3 + 1 / log2(5)) / 4, abs=1e-12)
    # toy-v2 is untouched, all 1; deltas are new minus old.
    deltas = {a["k"]: (a["delta_mean_recall_at_k"], a["delta_mrr"]) for a in audits(document)}
    assert deltas == {3: (0.25, 0.25), 10: (0, 0.1875)}


def audits(document: Any) -> list[Any]:
    found: list[Any] = document["migration_audits"]
    return found


# B. Only the text of one document of toy-v2 changes.


@pytest.fixture(scope="module")
def sequence(
    tmp_path_factory: pytest.TempPathFactory, republished: Callable[[Path], Workshop]
) -> dict[str, Any]:
    """Two runs after a sound release: with a contract violated, and with a text changed."""
    workshop = republished(tmp_path_factory.mktemp("sequence"))
    sound: Tree = json.loads(workshop.source.read_text("utf-8"))
    seen: dict[str, Any] = {"workshop": workshop}

    def look(name: str) -> None:
        seen[f"{name} releases"] = workshop.releases()
        seen[f"{name} link"] = workshop.link.readlink()

    look("sound")
    for name in ("violated", "changed"):
        tree = json.loads(json.dumps(sound))
        if name == "violated":
            item_in(tree, "toy-v1", "doc-oncall")["vector"][0] = True
        if name == "changed":
            item_in(tree, "toy-v2", "doc-oncall")["text"] += " Since May there are two."
        workshop.write(tree)
        seen[name] = workshop.command("run", "toy")
        look(name)
    return seen


def test_b_a_contract_violation_stops_before_anything_is_published(
    sequence: dict[str, Any],
) -> None:
    result = sequence["violated"]
    assert result.exit_code == 2
    assert result.stdout == ""
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert errors[0] == (
        'error: data/toy/toy.json: $.items[3].vector[0] (item "doc-oncall" in space "toy-v1"): '
        "wrong_type: found true; a number is needed"
    )
    assert "nothing was published; the last release stays" in errors[1]
    assert "Traceback" not in result.stderr
    # The last good release stays, byte for byte, and it is still the current one.
    assert sequence["violated releases"] == sequence["sound releases"]
    assert len(sequence["sound releases"]) == 1
    assert sequence["violated link"] == sequence["sound link"]


def test_b_a_changed_text_fails_the_gate_and_the_failure_is_published(
    sequence: dict[str, Any],
) -> None:
    workshop, result = sequence["workshop"], sequence["changed"]
    assert result.exit_code == 1
    assert "CHECK FAILED mechanical_gates on toy/migration_audit" in result.stdout
    assert "doc-oncall" in result.stdout
    assert "Relevance" in result.stdout  # complete all the same
    assert "Traceback" not in result.output
    assert len(sequence["changed releases"]) == 2
    [audit] = workshop.rows("SELECT * FROM migration_audit WHERE index_name = 'exact'")
    assert audit["canonical_match"] is False
    assert audit["canonical_mismatches"] == ["doc-oncall"]
    assert audit["inventory_match"] is True
    assert audit["mechanical_gates_pass"] is False
    # Same documents and vectors: quality is still compared, over all of them.
    assert audit["quality_scope"] == "all_documents"
    assert (audit["delta_mrr"], audit["mean_top_k_jaccard"]) == (0, 0.875)
    assert audit["quality_note"].startswith("The mechanical gates failed.")
    assert workshop.rows("SELECT field FROM migration_differences ORDER BY field") == [
        {"field": "content_sha256"},
        {"field": "text"},
    ]
    assert workshop.rows("SELECT value FROM manifest WHERE key = 'mechanical_gates'") == [
        {"value": "failed"}
    ]
    assert workshop.rows(
        "SELECT check_name, asset FROM check_results WHERE NOT passed AND severity = 'error'"
    ) == [
        {"check_name": "mechanical_gates", "asset": "toy/migration_audit"},
        {"check_name": "release_checklist", "asset": "toy/release_checklist"},
    ]
    [item] = workshop.rows("SELECT item, evidence FROM release_checklist WHERE status = 'fail'")
    assert item["item"] == "content_reconciled"
    assert item["evidence"] == "1 items differ from the canonical item: doc-oncall (toy-v2)"


def test_b_the_failed_gate_shows_in_the_ui_with_its_expectations(
    sequence: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in sequence["workshop"].environment.items():
        monkeypatch.setenv(name, value)
    key = dg.AssetCheckKey(dg.AssetKey(["toy", "migration_audit"]), "mechanical_gates")
    with dg.DagsterInstance.get() as instance:
        runs = instance.get_runs(limit=1)
        records = instance.event_log_storage.get_asset_check_execution_history(key, limit=3)
    [newest, *_] = [record for record in records if record.run_id == runs[0].run_id]
    evaluation = newest.evaluation
    assert evaluation is not None
    assert not evaluation.passed
    assert evaluation.severity == dg.AssetCheckSeverity.ERROR
    assert "canonical_match" in str(evaluation.metadata["expectations"].value)
    assert evaluation.metadata["pairs_failing"].value == 1


# C. Refused by the strict loader (an InputError with a code), before anything is computed.


def document_with_role_query(tree: Tree) -> None:
    item_in(tree, "toy-v1", "doc-oncall")["role"] = "query"


def unit_vector_doubled(tree: Tree) -> None:
    item_in(tree, "toy-v2", "doc-oncall")["vector"] = [0, 0, 1.2, 1.6, 0]  # norm 2 instead of 1


def bool_in_a_vector(tree: Tree) -> None:
    item_in(tree, "toy-v1", "doc-first-week")["vector"][1] = True


@pytest.mark.parametrize(
    ("change", "code", "place"),
    [
        (document_with_role_query, "gold_not_document", '$.queries[1].relevance["doc-oncall"]'),
        (unit_vector_doubled, "not_normalized", "$.items[13].vector"),
        (bool_in_a_vector, "wrong_type", "$.items[2].vector[1]"),
    ],
)
def test_c_refused_by_the_loader(
    change: Callable[[Tree], None], code: str, place: str, workshop: Workshop, toy: Tree
) -> None:
    change(toy)
    workshop.write(toy)
    result = workshop.command("evaluate", workshop.source)
    assert result.exit_code == 2
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith(f"error: {workshop.source}: {place}")
    assert f": {code}: found " in line


# D. New queries and subgroups leave every other row as it was.


def test_d_added_subgroups_and_queries_touch_nothing_else(workshop: Workshop, toy: Tree) -> None:
    before = evaluated(workshop, toy)
    # A subgroup on one case, and a new case with a new query item in both spaces.
    [leak] = [case for case in toy["queries"] if case["case_id"] == "case-leak-at-night"]
    leak["subgroups"].append("night")
    for space_id, vector in (("toy-v1", [0, 0, 0, 5]), ("toy-v2", [0, 0, 0.6, 0.8, 0])):
        pager = dict(item_in(toy, space_id, "q-leak-at-night"))
        toy["items"].append(pager | {"item_id": "q-pager", "text": "Who?", "vector": vector})
    toy["queries"].insert(
        0,
        {
            "case_id": "case-pager",
            "query_item_id": "q-pager",
            "subject_groups": ["support"],
            "relevance": {"doc-oncall": 1},
            "subgroups": ["pager"],
        },
    )
    after = evaluated(workshop, toy)

    def old_rows(document: Any, space_id: str) -> list[Any]:
        [evaluation] = document["spaces"][space_id]["evaluation"]
        rows = [row for row in evaluation["details"] if row["case_id"] != "case-pager"]
        return [{**row, "subgroups": set(row["subgroups"]) - {"night"}} for row in rows]

    for space_id in ("toy-v1", "toy-v2"):
        assert old_rows(after, space_id) == old_rows(before, space_id)
        [old], [new] = (d["spaces"][space_id]["evaluation"] for d in (before, after))
        added = {name: new["subgroups"].pop(name) for name in ("night", "pager")}
        assert new["subgroups"] == old["subgroups"]
        # night holds one case, where oncall (3) and breach-notes (2) come first: all 1.
        assert [added["night"][m] for m in ("query_count", "mrr", "mean_ndcg_at_k")] == [1, 1, 1]
        # pager: support may read one document, the relevant one: P@3 = 1/3.
        pager = added["pager"]
        assert [pager["mrr"], pager["mean_precision_at_k"]] == [1, 1 / 3]
        assert new["query_count"] == old["query_count"] + 1
    [old_audit], [new_audit] = audits(before), audits(after)
    kept = [row for row in new_audit["details"] if row["case_id"] != "case-pager"]
    assert kept == old_audit["details"]
    # The new case's Jaccard is 1 (one document each): (1 + 1 + 0.5 + 1 + 1) / 5 = 0.9.
    assert new_audit["mean_top_k_jaccard"] == pytest.approx(0.9)
