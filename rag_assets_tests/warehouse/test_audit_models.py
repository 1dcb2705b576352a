"""The migration audit: mechanical gates, quality over the same documents, spaces not executed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_assets_tests.warehouse.examples import (
    DOCUMENTS,
    QUERY,
    Case,
    Example,
    Held,
    built,
    row,
    rows,
)

ITEMS = {**DOCUMENTS, **QUERY}
IDENTICAL = Example(
    spaces={"old": ITEMS, "new": ITEMS},
    cases={"one": Case({"a": 1}), "two": Case({"b": 2})},
    results={
        (0, "old", "one"): ["a", "b", "c"],
        (0, "new", "one"): ["d", "a", "c"],
        (0, "old", "two"): ["b", "c", "d"],
        (0, "new", "two"): ["b", "c", "d"],
    },
    pairs=[("old", "new")],
)


def with_new(example: Example, **changed: Held | None) -> Example:
    """`example` with items of the new space changed, or removed where None."""
    new = {**example.spaces["new"], **changed}
    kept = {item_id: held for item_id, held in new.items() if held is not None}
    return replace(example, spaces={**example.spaces, "new": kept})


def test_identical_inventories_pass_the_gates_and_quality_stays_a_decision() -> None:
    con = built(IDENTICAL)
    audit = row(con, "FROM migration_audit")
    assert audit["index_name"] == "exact"
    assert (audit["status"], audit["status_reason"]) == ("evaluated", None)
    assert audit["inventory_match"] is True
    assert audit["canonical_match"] is True
    assert audit["mechanical_gates_pass"] is True
    assert audit["quality_decision_required"] is True
    assert audit["vectors_directly_comparable"] is True
    assert audit["only_old"] == audit["only_new"] == audit["canonical_mismatches"] == []
    assert audit["quality_scope"] == "all_documents"
    # RR falls from 1 to 1/2 in one of two cases; Jaccard {a c} of {a b c d} = 1/2, and 1.
    assert audit["delta_mean_recall_at_k"] == 0.0
    assert audit["delta_mrr"] == -0.25
    assert audit["mean_top_k_jaccard"] == 0.75
    assert (audit["query_count"], audit["defined_count"], audit["jaccard_count"]) == (2, 2, 2)
    assert rows(con, "FROM migration_differences") == []


def test_deltas_are_new_minus_old_per_query() -> None:
    found = row(built(IDENTICAL), "FROM migration_by_query WHERE case_id = 'one'")
    assert (found["old_reciprocal_rank"], found["new_reciprocal_rank"]) == (1.0, 0.5)
    assert found["delta_reciprocal_rank"] == -0.5
    assert found["top_k_jaccard"] == 0.5


def test_jaccard_is_cut_at_k_on_both_sides() -> None:
    con = built(replace(IDENTICAL, ks=(1, 2)))
    # Case one: top 1 {a} and {d}; top 2 {a b} and {d a}.
    found = rows(con, "FROM migration_by_query WHERE case_id = 'one' ORDER BY k")
    assert [r["top_k_jaccard"] for r in found] == [0.0, 1 / 3]


def test_jaccard_of_two_empty_lists_is_undefined() -> None:
    results = {key: ids for key, ids in IDENTICAL.results.items() if key[2] == "one"}
    audit = row(built(replace(IDENTICAL, results=results)), "FROM migration_audit")
    assert (audit["jaccard_count"], audit["mean_top_k_jaccard"]) == (1, 0.5)


def test_an_undefined_case_has_no_deltas_and_is_left_out_of_their_means() -> None:
    cases = {"one": Case({"a": 1}), "two": Case({"b": 0})}
    con = built(replace(IDENTICAL, cases=cases))
    assert row(con, "FROM migration_by_query WHERE case_id = 'two'")["delta_recall_at_k"] is None
    audit = row(con, "FROM migration_audit")
    assert (audit["query_count"], audit["defined_count"], audit["delta_mrr"]) == (2, 1, -0.5)


def test_items_that_only_one_space_holds_are_named_and_fail_the_inventory_gate() -> None:
    con = built(with_new(IDENTICAL, d=None, e=Held(), f=Held(role="query")))
    audit = row(con, "FROM migration_audit")
    assert (audit["only_old"], audit["only_old_count"]) == (["d"], 1)
    assert (audit["only_new"], audit["only_new_count"]) == (["e", "f"], 2)
    assert audit["inventory_match"] is False
    assert audit["canonical_match"] is True
    assert audit["mechanical_gates_pass"] is False
    assert rows(con, "SELECT item_id, old_value, new_value FROM migration_differences") == [
        {"item_id": "d", "old_value": "present", "new_value": "absent"},
        {"item_id": "e", "old_value": "absent", "new_value": "present"},
        {"item_id": "f", "old_value": "absent", "new_value": "present"},
    ]


def test_each_field_that_differs_is_reported_with_both_values() -> None:
    con = built(
        with_new(
            IDENTICAL,
            a=Held(acl=("staff", "board")),
            b=Held(text="another text"),
            c=Held(revision="r2"),
            d=Held(role="query"),
        )
    )
    audit = row(con, "FROM migration_audit")
    assert audit["canonical_mismatches"] == ["a", "b", "c", "d"]
    assert audit["canonical_mismatch_count"] == 4
    assert (audit["inventory_match"], audit["canonical_match"]) == (True, False)
    assert audit["mechanical_gates_pass"] is False
    found = [
        (r["item_id"], r["field"], r["old_value"], r["new_value"])
        for r in rows(con, "FROM migration_differences")
    ]
    hashes = found[1][2:]
    assert all(len(value) == 64 for value in hashes)
    assert found == [
        ("a", "acl", "[staff]", "[board, staff]"),
        ("b", "content_sha256", *hashes),
        ("b", "text", "a text", None),
        ("c", "source_revision", "r1", "r2"),
        ("d", "role", "document", "query"),
    ]


def test_access_lists_are_compared_as_sets() -> None:
    old = {**ITEMS, "a": Held(acl=("board", "staff"))}
    example = replace(IDENTICAL, spaces={"old": old, "new": ITEMS})
    con = built(with_new(example, a=Held(acl=("staff", "board", "staff"))))
    assert row(con, "FROM migration_audit")["canonical_match"] is True


def test_a_failed_gate_over_equal_documents_still_compares_quality_over_all_of_them() -> None:
    audit = row(built(with_new(IDENTICAL, b=Held(text="changed"))), "FROM migration_audit")
    assert audit["quality_scope"] == "all_documents"
    assert audit["mean_top_k_jaccard"] == 0.75
    assert audit["quality_note"].startswith("The mechanical gates failed.")


def test_different_documents_are_compared_over_the_shared_ones() -> None:
    # The new space lacks d and holds e, which ranks first there and is judged relevant.
    example = replace(
        with_new(IDENTICAL, d=None, e=Held()),
        cases={"one": Case({"a": 1, "e": 3}), "two": Case({"d": 2})},
        results={
            (0, "old", "one"): ["d", "a"],
            (0, "new", "one"): ["e", "b", "a"],
            (1, "old", "one"): ["a", "b", "c"],
            (1, "new", "one"): ["b", "a", "c"],
            (1, "old", "two"): ["a", "b"],
            (1, "new", "two"): ["b", "c"],
        },
    )
    con = built(example)
    audit = row(con, "FROM migration_audit")
    assert audit["quality_scope"] == "shared_documents"
    assert "over the 3 documents that both hold" in audit["quality_note"]
    # Shared: a b c. Case one: e is no longer judged, RR goes from 1 to 1/2. Case two is undefined:
    # its only relevant document is not shared. Jaccard 1 and |{b}| / |{a b c}|.
    assert (audit["query_count"], audit["defined_count"]) == (2, 1)
    assert audit["delta_mrr"] == -0.5
    assert audit["delta_mean_recall_at_k"] == 0.0
    assert audit["mean_top_k_jaccard"] == (1 + 1 / 3) / 2
    # What people read about a space itself stays over all of its documents.
    own = rows(
        con, "SELECT recall_at_k FROM metric_by_query WHERE case_id = 'one' ORDER BY space_id"
    )
    assert [r["recall_at_k"] for r in own] == [1.0, 0.5]
    assert len(rows(con, "FROM query_results")) == 5


def test_shared_documents_that_were_not_searched_give_no_numbers() -> None:
    audit = row(built(with_new(IDENTICAL, d=None)), "FROM migration_audit")
    assert audit["status"] == "not_executed"
    assert audit["quality_scope"] is None
    assert audit["mean_top_k_jaccard"] is None
    assert "different documents" in audit["status_reason"]


def test_a_space_that_was_not_executed_has_a_reason_and_no_quality() -> None:
    example = replace(
        IDENTICAL,
        results={key: ids for key, ids in IDENTICAL.results.items() if key[1] == "old"},
        not_executed={"new": "the provider's key is not set"},
    )
    audit = row(built(example), "FROM migration_audit")
    assert (audit["index_name"], audit["status"]) == ("exact", "not_executed")
    assert audit["status_reason"] == "new: the provider's key is not set"
    assert "the provider's key is not set" in audit["quality_note"]
    assert audit["mechanical_gates_pass"] is True  # the items it would embed are known
    for column in ("delta_mrr", "mean_top_k_jaccard", "query_count", "quality_scope"):
        assert audit[column] is None
    con = built(replace(example, spaces={"old": ITEMS, "new": {}}))
    audit = row(con, "FROM migration_audit")
    assert audit["inventory_match"] is None
    assert audit["only_old"] is None
    assert audit["mechanical_gates_pass"] is False
    assert rows(con, "FROM migration_differences") == []
    assert [r["space_id"] for r in rows(con, "FROM metric_by_space")] == ["old"]


def test_pairs_that_share_a_space_are_audited_apart() -> None:
    example = replace(
        IDENTICAL,
        spaces={**IDENTICAL.spaces, "next": ITEMS},
        results={**IDENTICAL.results, (0, "next", "one"): ["a", "b", "c"]},
        pairs=[("new", "next"), ("old", "new")],
        contract={"next": {"contract_signature": "another signature"}},
    )
    found = rows(built(example), "FROM migration_audit")
    assert [(r["old_space_id"], r["new_space_id"]) for r in found] == [
        ("new", "next"),
        ("old", "new"),
    ]
    assert [r["vectors_directly_comparable"] for r in found] == [False, True]
    # new -> next: case one {d a c} to {a b c} 1/2, case two {b c d} to nothing 0.
    assert [r["mean_top_k_jaccard"] for r in found] == [0.25, 0.75]


def test_subgroups_and_the_most_changed_queries_of_a_migration() -> None:
    """Case "one" is relevant to a; the old space finds it first, the new one second: nDCG falls
    from 1 to 1 / log2(3) = 0.6309. Case "two" stays as it is."""
    example = Example(
        spaces={"old": {**DOCUMENTS, **QUERY}, "new": {**DOCUMENTS, **QUERY}},
        cases={
            "one": Case({"a": 1}, subgroups=("both", "both", "worse")),
            "two": Case({"b": 2}, subgroups=("both",)),
        },
        results={
            (0, "old", "one"): ["a", "b"],
            (0, "new", "one"): ["b", "a"],
            (0, "old", "two"): ["b", "c"],
            (0, "new", "two"): ["b", "c"],
        },
        ks=(2,),
        pairs=[("old", "new")],
    )
    con = built(example)
    worse = row(con, "FROM migration_by_subgroup WHERE subgroup = 'worse'")
    assert worse["delta_mean_ndcg_at_k"] == pytest.approx(0.6309297535714575 - 1, abs=1e-12)
    assert (worse["better"], worse["worse"], worse["mean_top_k_jaccard"]) == (0, 1, 1.0)
    both = row(con, "FROM migration_by_subgroup WHERE subgroup = 'both'")
    assert both["delta_mean_ndcg_at_k"] == pytest.approx((0.6309297535714575 - 1) / 2, abs=1e-12)
    first, second = rows(con, "FROM migration_changed_queries ORDER BY change_rank")
    assert (first["case_id"], second["case_id"]) == ("one", "two")
    assert first["old_results"] == ["a [1]", "b"]
    assert first["new_results"] == ["b", "a [1]"]
    assert first["query_text"] == "a text"
