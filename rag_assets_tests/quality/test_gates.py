from __future__ import annotations

import pandas as pd
import pytest

from rag_assets.quality.suites import check_mechanical_gates
from rag_assets_tests.quality.examples import bad, only


def audit(**changes: object) -> pd.DataFrame:
    """One pair at two cut-offs; `changes` apply to the row of k = 3."""
    row: dict[str, object] = {
        "old_space_id": "v1",
        "new_space_id": "v2",
        "index_name": "exact",
        "k": 3,
        "vectors_directly_comparable": False,
        "inventory_match": True,
        "canonical_match": True,
        "only_old": [],
        "only_new": [],
        "canonical_mismatches": [],
        "mechanical_gates_pass": True,
        "quality_decision_required": True,
    }
    return pd.DataFrame([row | changes, row | {"k": 10}])


def test_passing_gates_pass() -> None:
    report = check_mechanical_gates(audit(), 1)
    assert report.passed
    assert report.check_name == "mechanical_gates"
    assert report.numbers["audited_pairs"] == 1
    assert report.numbers["pairs_failing"] == 0


def test_a_failing_inventory_gate_lists_the_ids() -> None:
    found = audit(
        inventory_match=False,
        mechanical_gates_pass=False,
        only_old=["d1"],
        only_new=[f"n{number:02}" for number in range(12)],
    )
    failing = bad(check_mechanical_gates(found, 1))
    assert {column for _, column, _ in failing} == {"inventory_match", "mechanical_gates_pass"}
    outcome = failing["migration_audit", "inventory_match", "column_values_to_be_in_set"]
    assert outcome.sample == ("v1 -> v2 (exact, k=3)",)
    assert "only_old: d1" in outcome.observed
    assert "n09 and 2 more" in outcome.observed


def test_a_failing_canonical_gate_lists_the_ids() -> None:
    found = audit(canonical_match=False, mechanical_gates_pass=False, canonical_mismatches=["d4"])
    failing = bad(check_mechanical_gates(found, 1))
    outcome = failing["migration_audit", "canonical_match", "column_values_to_be_in_set"]
    assert outcome.observed == "False; canonical_mismatches: d4"


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"vectors_directly_comparable": None}, "vectors_directly_comparable"),
        ({"quality_decision_required": None}, "quality_decision_required"),
        ({"quality_decision_required": False}, "quality_decision_required"),
    ],
)
def test_one_fault_fails_one_expectation(changes: dict[str, object], column: str) -> None:
    outcome = only(check_mechanical_gates(audit(**changes), 1))
    assert (outcome.column, outcome.sample) == (column, ("v1 -> v2 (exact, k=3)",))


@pytest.mark.parametrize("column", ["inventory_match", "canonical_match"])
def test_an_unknown_gate_fails_and_contradicts_a_passing_verdict(column: str) -> None:
    failing = bad(check_mechanical_gates(audit(**{column: None}), 1))
    assert set(failing) == {
        ("migration_audit", column, "column_values_to_not_be_null"),
        (
            "migration_audit",
            "mechanical_gates_pass, both_gates",
            "column_pair_values_to_be_equal",
        ),
    }


def test_a_verdict_against_its_gates_fails() -> None:
    failing = bad(check_mechanical_gates(audit(inventory_match=False, only_old=["d1"]), 1))
    assert {column for _, column, _ in failing} == {
        "inventory_match",
        "mechanical_gates_pass, both_gates",
    }


def test_every_declared_pair_must_be_audited() -> None:
    assert {expectation for _, _, expectation in bad(check_mechanical_gates(audit(), 2))} == {
        "column_unique_value_count_to_be_between"
    }
    nothing = check_mechanical_gates(audit().iloc[:0], 1)
    assert not nothing.passed
    assert check_mechanical_gates(audit().iloc[:0], 0).passed


def test_a_pair_with_a_space_that_was_not_executed_warns_and_neither_passes_nor_fails() -> None:
    found = audit(
        status="not_executed",
        status_reason="v2: no key",
        inventory_match=None,
        canonical_match=None,
        mechanical_gates_pass=False,
    )
    report = check_mechanical_gates(found, 1)
    assert set(bad(report)) == {("audited pairs", "gates", "column_values_to_be_in_set")}
    assert (report.passed, report.severity, report.blocks) == (False, "warn", False)
    assert "v2: no key" in report.outcomes[2].observed


def test_gates_that_an_executed_pair_does_not_state_block() -> None:
    assert check_mechanical_gates(audit(status="evaluated", inventory_match=None), 1).blocks
