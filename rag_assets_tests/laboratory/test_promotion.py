"""The promotion gate: every condition alone can withhold eligibility."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rag_assets.laboratory.promotion import Evidence, SweepEvidence, Thresholds, judge_promotion

THRESHOLDS = Thresholds(
    min_recall=0.9, min_latency_gain=2.0, min_memory_gain=4.0, max_judgement_loss=0.01
)
GOOD = Evidence(
    space_id="s",
    index_name="ivf_pq",
    data_digest="d" * 64,
    query_count=100,
    seeds=(1, 2, 3),
    k=10,
    sweep=SweepEvidence("probes", "nprobe", "e" * 64, 3, "supported"),
    recalls=(0.95, 0.9, 0.93),
    latency_gain=2.5,
    memory_gain=1.2,
    judged_queries=50,
    judgement_loss=0.004,
)


def test_an_index_is_eligible_only_when_all_five_conditions_pass() -> None:
    promotion = judge_promotion(GOOD, THRESHOLDS)
    assert (promotion.verdict, promotion.eligible, promotion.reasons) == (
        "eligible_for_default",
        True,
        (),
    )
    assert [(row.condition, row.status) for row in promotion.rows] == [
        ("fixed_inputs", "pass"),
        ("single_variable_sweep", "pass"),
        ("recall_over_threshold", "pass"),
        ("latency_or_memory_gain", "pass"),
        ("no_material_loss_on_judgements", "pass"),
    ]
    assert {(row.space_id, row.index_name) for row in promotion.rows} == {("s", "ivf_pq")}
    assert "lowest 0.9000" in promotion.rows[2].evidence
    assert "changes by -0.0040 over 50 judged queries" in promotion.rows[4].evidence


@pytest.mark.parametrize(
    ("changes", "condition", "status"),
    [
        ({"data_digest": None}, "fixed_inputs", "fail"),
        ({"query_count": None}, "fixed_inputs", "fail"),
        ({"k": None}, "fixed_inputs", "fail"),
        ({"seeds": ()}, "fixed_inputs", "fail"),
        ({"seeds": (1, 2, 2)}, "fixed_inputs", "fail"),
        ({"sweep": None}, "single_variable_sweep", "not_executed"),
        (
            {"sweep": SweepEvidence("probes", "nprobe", "e", 2, "inconclusive")},
            "single_variable_sweep",
            "fail",
        ),
        ({"recalls": ()}, "recall_over_threshold", "not_executed"),
        ({"recalls": (0.99, 0.99, 0.89)}, "recall_over_threshold", "fail"),
        ({"recalls": (0.99, 0.99)}, "recall_over_threshold", "fail"),
        ({"recalls": (0.99, 0.99, float("nan"))}, "recall_over_threshold", "fail"),
        ({"latency_gain": 1.9}, "latency_or_memory_gain", "fail"),
        ({"latency_gain": float("nan")}, "latency_or_memory_gain", "fail"),
        (
            {"latency_gain": None, "memory_gain": None},
            "latency_or_memory_gain",
            "not_executed",
        ),
        ({"judgement_loss": 0.011}, "no_material_loss_on_judgements", "fail"),
        ({"judgement_loss": float("nan")}, "no_material_loss_on_judgements", "fail"),
        ({"judgement_loss": None}, "no_material_loss_on_judgements", "not_executed"),
        (
            {"judged_queries": 0, "judgement_loss": None},
            "no_material_loss_on_judgements",
            "not_executed",
        ),
    ],
)
def test_each_condition_alone_withholds_eligibility(
    changes: dict[str, Any], condition: str, status: str
) -> None:
    promotion = judge_promotion(replace(GOOD, **changes), THRESHOLDS)
    assert promotion.verdict == "not_eligible"
    assert [(row.condition, row.status) for row in promotion.rows if row.status != "pass"] == [
        (condition, status)
    ]
    (reason,) = promotion.reasons
    assert reason.startswith(f"{condition}: {status}: ")


@pytest.mark.parametrize(
    "changes",
    [
        {"latency_gain": 1.0, "memory_gain": 4.0},  # bytes alone are enough
        {"memory_gain": None},
        {"judgement_loss": 0.81 - 0.8},  # 0.010000000000000009 in floating point
        {"judgement_loss": -0.2},  # an accidental gain is no loss
    ],
)
def test_bounds_are_met_by_equality_and_one_gain_is_enough(changes: dict[str, Any]) -> None:
    assert judge_promotion(replace(GOOD, **changes), THRESHOLDS).eligible


def test_without_judgements_the_row_says_that_it_cannot_pass() -> None:
    bare = replace(GOOD, judged_queries=0, judgement_loss=None)
    assert "cannot pass" in judge_promotion(bare, THRESHOLDS).rows[-1].evidence
