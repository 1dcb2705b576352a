"""`rag-assets evaluate` on fixtures that nobody would call normal."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from rag_assets.errors import UsageError
from rag_assets.evaluation import audited_pairs, check_ks
from rag_assets_tests.conftest import Tree, Workshop, item_in
from rag_assets_tests.sources.tiny import VALID, contract_of, item_of


def evaluated(workshop: Workshop, tree: Tree, *options: object, status: int = 0) -> Any:
    workshop.write(tree)
    result = workshop.command("evaluate", workshop.source, "--format", "json", *options)
    assert result.exit_code == status, result.stderr
    return json.loads(result.stdout)


def renamed(tree: Tree, names: dict[str, str]) -> Tree:
    changed = copy.deepcopy(tree)
    for record in (*changed["contracts"], *changed["items"]):
        record["space_id"] = names[record["space_id"]]
    return changed


def with_copy_of(tree: Tree, space_id: str, new_id: str) -> Tree:
    """`tree` with one more space that holds the same vectors."""
    extended = copy.deepcopy(tree)
    for section in ("contracts", "items"):
        same = [record for record in tree[section] if record["space_id"] == space_id]
        extended[section] += [{**record, "space_id": new_id} for record in same]
    return extended


def pairs_of(document: Any) -> list[tuple[str, str]]:
    return [(a["old_space_id"], a["new_space_id"]) for a in document["migration_audits"]]


def test_a_fixture_of_one_space_has_no_audit_and_passes(
    workshop: Workshop, toy: Tree, tmp_path: Path
) -> None:
    for section in ("contracts", "items"):
        toy[section] = [record for record in toy[section] if record["space_id"] == "toy-v1"]
    document = evaluated(workshop, toy, "--db", tmp_path / "one.duckdb")
    assert list(document["spaces"]) == ["toy-v1"]
    assert document["migration_audits"] == []
    with duckdb.connect(str(tmp_path / "one.duckdb"), read_only=True) as con:
        for table in ("migration_audit", "migration_by_query", "migration_differences"):
            assert con.sql(f"SELECT * FROM {table}").fetchall() == []
        assert con.sql("SELECT check_name FROM check_results WHERE NOT passed").fetchall() == []


def test_neighbouring_spaces_are_audited_in_file_order(workshop: Workshop, toy: Tree) -> None:
    three = with_copy_of(toy, "toy-v1", "a-third")
    document = evaluated(workshop, three)
    assert list(document["spaces"]) == ["toy-v1", "toy-v2", "a-third"]
    assert pairs_of(document) == [("toy-v1", "toy-v2"), ("toy-v2", "a-third")]
    assert [a["vectors_directly_comparable"] for a in document["migration_audits"]] == [False] * 2
    # Chosen pairs instead, in the order given; an alias of a space holds comparable vectors.
    chosen = evaluated(
        workshop,
        three,
        "--audit",
        "a-third:toy-v1",
        "--audit",
        "toy-v1:a-third",
        "--k",
        1,
        "--k",
        2,
    )
    assert pairs_of(chosen) == [("a-third", "toy-v1")] * 2 + [("toy-v1", "a-third")] * 2
    for audit in chosen["migration_audits"]:
        assert audit["vectors_directly_comparable"] is True
        assert (audit["mean_top_k_jaccard"], audit["delta_mrr"]) == (1, 0)
    assert [a["k"] for a in chosen["migration_audits"]] == [1, 2, 1, 2]


def test_spaces_with_different_documents_are_compared_over_the_shared_ones(
    workshop: Workshop, toy: Tree, tmp_path: Path
) -> None:
    # A document that only toy-v1 holds, parallel to the query of case-orleans-key: it comes first
    # there (cosine 1 against 0.949), so that case's reciprocal rank over all documents is 1/2.
    extra = item_in(toy, "toy-v1", "doc-first-week") | {
        "item_id": "doc-extra",
        "vector": [0, 0, 1, 0],
    }
    toy["items"].append(extra)
    document = evaluated(workshop, toy, "--db", tmp_path / "d.duckdb", status=1)
    [whole] = document["spaces"]["toy-v1"]["evaluation"]
    assert whole["mrr"] == (1 + 1 + 1 / 2 + 1) / 4
    assert document["spaces"]["toy-v1"]["inventory"]["document_count"] == 7
    [audit] = document["migration_audits"]
    assert (audit["inventory_match"], audit["canonical_match"]) == (False, True)
    assert (audit["only_old"], audit["only_new"]) == (["doc-extra"], [])
    assert audit["mechanical_gates_pass"] is False
    assert audit["quality_decision_required"] is True
    # Over the six that both hold, both spaces are as good as in the untouched fixture.
    assert audit["quality_scope"] == "shared_documents"
    assert audit["quality_note"] == (
        "The mechanical gates failed. The spaces hold different documents; quality is compared "
        "over the 6 documents that both hold."
    )
    assert (audit["delta_mrr"], audit["delta_mean_recall_at_k"]) == (0, 0)
    assert audit["mean_top_k_jaccard"] == 0.875
    with duckdb.connect(str(tmp_path / "d.duckdb"), read_only=True) as con:
        failing = "SELECT asset, check_name, severity FROM check_results WHERE NOT passed"
        assert con.sql(failing + " ORDER BY ALL").fetchall() == [
            ("toy.json/migration_audit", "mechanical_gates", "error"),
            ("toy.json/toy-v2/embeddings", "contract_validation", "warn"),
        ]


def test_spaces_that_share_no_document_have_no_quality_to_compare(workshop: Workshop) -> None:
    # Gold documents must be in both spaces, so there is always one: here it is the only one.
    tree = {
        "contracts": [contract_of("a"), contract_of("b")],
        "items": [
            item_of("q", "a", [1, 0]),
            item_of("d-both", "a", [1, 0]),
            item_of("d-a", "a", [2, 0]),
            item_of("q", "b", [1, 0]),
            item_of("d-both", "b", [0, 1]),
            item_of("d-b", "b", [1, 0]),
        ],
        "queries": [
            {
                "case_id": "c",
                "query_item_id": "q",
                "subject_groups": ["staff"],
                "relevance": {"d-both": 1},
                "subgroups": [],
            }
        ],
    }
    [audit] = evaluated(workshop, tree, "--k", 1, status=1)["migration_audits"]
    assert (audit["only_old"], audit["only_new"]) == (["d-a"], ["d-b"])
    # Alone, d-both is first in both spaces; among all, d-a ties and wins by id, d-b wins by score.
    assert (audit["delta_mrr"], audit["mean_top_k_jaccard"]) == (0, 1)


def test_spaces_may_have_roles_of_their_own_and_disagree_about_texts_and_rights(
    workshop: Workshop,
) -> None:
    [audit] = evaluated(workshop, VALID, status=1)["migration_audits"]
    # q1 has another role in b, d1 another text and ACL; d0 is only in b.
    assert audit["canonical_mismatches"] == ["d1", "q1"]
    assert audit["only_new"] == ["d0"]


@pytest.mark.parametrize(
    "name",
    ["it's", 'say "v1"', "a/b", "../v1", "C:\\v1", "two words", "ü-新", "x'; DROP TABLE t--"],
)
def test_a_space_may_have_any_name(
    name: str, workshop: Workshop, toy: Tree, tmp_path: Path
) -> None:
    tree = renamed(toy, {"toy-v1": name, "toy-v2": "toy-v2"})
    options = ("--audit", f"{name}:toy-v2", "--audit", f"toy-v2:{name}")
    document = evaluated(workshop, tree, *options)
    assert list(document["spaces"]) == [name, "toy-v2"]
    assert document["spaces"][name]["evaluation"][0]["mrr"] == 1
    assert pairs_of(document) == [(name, "toy-v2"), ("toy-v2", name)]
    result = workshop.command("evaluate", workshop.source)
    assert name in result.stdout


def test_a_colon_in_a_name_is_read_as_the_names_allow(workshop: Workshop, toy: Tree) -> None:
    tree = renamed(toy, {"toy-v1": "m:1", "toy-v2": "m:2"})
    assert pairs_of(evaluated(workshop, tree, "--audit", "m:2:m:1")) == [("m:2", "m:1")]
    ambiguous = renamed(
        with_copy_of(toy, "toy-v1", "c"), {"toy-v1": "a", "toy-v2": "b:c", "c": "a:b"}
    )
    ambiguous = with_copy_of(ambiguous, "a", "c")
    workshop.write(ambiguous)
    result = workshop.command("evaluate", workshop.source, "--audit", "a:b:c")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: audit a:b:c: this names several pairs of spaces\n"


def test_a_case_whose_subject_may_read_one_document_returns_one(
    workshop: Workshop, toy: Tree
) -> None:
    toy["queries"][0] |= {"subject_groups": ["support"], "relevance": {"doc-oncall": 2}}
    [evaluation] = evaluated(workshop, toy, "--k", 7)["spaces"]["toy-v1"]["evaluation"]
    case = evaluation["details"][0]
    assert case["result_ids"] == ["doc-oncall"]
    assert len(case["scores"]) == 1
    assert (case["precision_at_k"], case["ndcg_at_k"]) == (1 / 7, 1)


def test_k_beyond_the_number_of_documents_returns_all_of_them(
    workshop: Workshop, toy: Tree
) -> None:
    [evaluation] = evaluated(workshop, toy, "--k", 10_000)["spaces"]["toy-v1"]["evaluation"]
    # engineering + everyone read five of six documents, everyone + support three.
    found = {case["case_id"]: len(case["result_ids"]) for case in evaluation["details"]}
    assert (found["case-orleans-key"], found["case-first-week"]) == (5, 3)


def test_numbers_of_the_release_and_of_the_command_are_the_same(
    published: Workshop, tmp_path: Path
) -> None:
    path = tmp_path / "out.duckdb"
    result = published.command("evaluate", published.source, "--db", path)
    assert result.exit_code == 0
    tables = "metric_by_query metric_by_space metric_by_subgroup space_inventory spaces qrels "
    tables += "canonical_items space_items query_cases query_results migration_audit "
    tables += "migration_by_query migration_differences"
    # The release may hold further indexes; what both hold must be equal to the last bit.
    with (
        duckdb.connect(str(path), read_only=True) as ours,
        duckdb.connect(str(published.link.resolve()), read_only=True) as released,
    ):
        for table in tables.split():
            query = f"SELECT * FROM {table}"
            if "index_name" in ours.sql(query).columns:
                query += " WHERE index_name = 'exact'"
            query += " ORDER BY ALL"
            rows = ours.sql(query).fetchall()
            assert rows == released.sql(query).fetchall(), table
            assert rows or table == "migration_differences"


def test_pairs_and_cut_offs_are_checked_for_python_callers_too() -> None:
    assert [(p.old, p.new) for p in audited_pairs(None, ["a", "b", "c"])] == [
        ("a", "b"),
        ("b", "c"),
    ]
    assert audited_pairs(None, ["a"]) == ()
    assert audited_pairs([], ["a", "b"]) == ()
    with pytest.raises(UsageError, match="unknown space 'x'; known spaces are a, b"):
        audited_pairs([("a", "x")], ["a", "b"])
    with pytest.raises(UsageError, match="cannot be audited against itself"):
        audited_pairs([("a", "a")], ["a", "b"])
    assert check_ks([10, 3]) == (3, 10)
    for k in (0, -1, True, 2.0, "3", None):
        with pytest.raises(UsageError, match="k must be an integer from 1 to 10000, not "):
            check_ks([k])
