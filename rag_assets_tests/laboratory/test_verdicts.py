"""What rows of a sweep show: the walk, the claim, the front and the operating points, by hand."""

from __future__ import annotations

import re

import pytest

from rag_assets.errors import UsageError
from rag_assets.laboratory.sweeps import Claim, Need, StopRule
from rag_assets.laboratory.verdicts import judge, operating_points, pareto_front
from rag_assets_tests.laboratory.rows import ok, rows_of, sweep

FLAT = {1: 1.0, 2: 1.4, 4: 1.9}  # p95 grows by 40% and 36%: never the reason to stop


def test_a_claim_that_every_seed_reaches_is_supported() -> None:
    rows = rows_of({1: (0.5, 0.6, 0.7), 2: (0.8, 0.7, 0.9), 4: (0.9, 0.95, 1.0)}, FLAT)
    verdict = judge(sweep(), rows)
    assert (verdict.verdict, verdict.stopped_at) == ("supported", None)
    assert verdict.reason == (
        "mean ANN Recall@10 of at least 0.9 is reached by all 3 successful seeds at nprobe = 4; "
        "every value was walked"
    )
    first = verdict.values[0]
    assert (first.seeds, first.failed, first.min_recall, first.max_recall) == (3, 0, 0.5, 0.7)
    assert first.mean_recall == pytest.approx(0.6)
    assert first.std_recall == pytest.approx(0.1)  # sqrt((0.01 + 0 + 0.01) / 2)
    assert first.mean_p95_ms == 1.0


def test_the_walk_stops_where_recall_gains_too_little_and_what_follows_does_not_count() -> None:
    # The mean gains 0.04 from 1 to 2; at 4 every seed would reach the claim.
    rows = rows_of({1: (0.6, 0.6, 0.6), 2: (0.64, 0.64, 0.64), 4: (0.95, 0.95, 0.95)}, FLAT)
    verdict = judge(sweep(), rows)
    assert (verdict.verdict, verdict.stopped_at) == ("not_supported", 2)
    assert "the best has 0.6000; stopped at nprobe = 2: mean recall changed by +0.0400" in (
        verdict.reason
    )
    assert len(verdict.values) == 3  # still reported


def test_the_walk_stops_where_p95_grows_too_much() -> None:
    rows = rows_of({1: (0.6,) * 3, 2: (0.8,) * 3, 4: (0.95,) * 3}, {1: 1, 2: 1.5, 4: 2.3})
    verdict = judge(sweep(), rows)
    # 1 to 2 grows by exactly 50%, which is not more than 50%; 2 to 4 by 53.3%.
    assert (verdict.verdict, verdict.stopped_at) == ("not_supported", 4)
    assert "p95 grew by 53.3%, more than 50.0%" in verdict.reason


def test_growth_is_that_of_each_querys_fastest_call_not_of_the_noise() -> None:
    rows = [
        ok(value, seed, 0.3 * value, p95=10.0**value, best_p95=1.0 + value / 10)
        for value in (1, 2, 3)
        for seed in (1, 2, 3)
    ]
    assert judge(sweep(vary={"nprobe": [1, 2, 3]}), rows).stopped_at is None


@pytest.mark.parametrize("gain", [0.05, 0.1])
def test_a_gain_of_exactly_the_bound_goes_on(gain: float) -> None:
    # 0.9 + 0.05 - 0.9 is 0.04999999999999993 in floating point.
    rows = rows_of({1: (0.85, 0.85, 0.85), 2: (0.85 + gain,) * 3}, {1: 1, 2: 1})
    declared = sweep(vary={"nprobe": [1, 2]}, stop_rule=StopRule(gain, 0.5))
    assert judge(declared, rows).stopped_at is None


def test_seeds_that_disagree_are_inconclusive() -> None:
    rows = rows_of({1: (0.5, 0.5, 0.5), 2: (0.7, 0.7, 0.7), 4: (0.91, 0.89, 0.92)}, FLAT)
    verdict = judge(sweep(), rows)
    assert verdict.verdict == "inconclusive"
    assert "the seeds disagree, 2 of 3 reach it at nprobe = 4" in verdict.reason


def test_too_few_successful_seeds_are_inconclusive_even_if_none_reaches() -> None:
    rows = rows_of({1: (0.5, None, 0.5), 2: (0.7, 0.7, 0.7), 4: (0.8, 0.8, 0.8)}, FLAT)
    verdict = judge(sweep(), rows)
    assert verdict.verdict == "inconclusive"
    assert "2 seeds succeeded at nprobe = 1, 3 are needed" in verdict.reason


def test_two_seeds_that_reach_the_claim_do_not_support_it() -> None:
    rows = rows_of({1: (0.5, 0.5, 0.5), 2: (0.7, 0.7, 0.7), 4: (0.95, None, 0.95)}, FLAT)
    verdict = judge(sweep(), rows)
    assert verdict.verdict == "inconclusive"
    assert "2 seeds succeeded at nprobe = 4" in verdict.reason


def test_a_failed_seed_does_not_undo_what_three_others_show() -> None:
    four = sweep(seeds=[1, 2, 3, 4], vary={"nprobe": [1, 2]})
    rows = rows_of({1: (0.5, 0.5, 0.5, None), 2: (0.9, None, 0.95, 0.95)}, FLAT)
    verdict = judge(four, rows)
    assert verdict.verdict == "supported"
    assert [(value.seeds, value.failed) for value in verdict.values] == [(3, 1), (3, 1)]


def test_steps_are_compared_on_the_seeds_that_both_values_have() -> None:
    # Seed 1 failed at 2. On seeds 2 and 3 the gain is 0.02, on all means it would be 0.27.
    four = sweep(seeds=[1, 2, 3], vary={"nprobe": [1, 2]})
    rows = rows_of({1: (0.1, 0.85, 0.85), 2: (None, 0.87, 0.87)}, FLAT)
    assert judge(four, rows).stopped_at == 2


def test_a_step_that_no_seed_made_ends_the_walk_without_a_verdict() -> None:
    rows = rows_of({1: (0.5, 0.5, 0.5), 2: (None, None, None), 4: (0.99, 0.99, 0.99)}, FLAT)
    verdict = judge(sweep(), rows)
    assert (verdict.verdict, verdict.stopped_at) == ("inconclusive", None)
    assert "cannot be applied at nprobe = 2" in verdict.reason
    assert verdict.values[1].mean_recall is None
    # What was shown before the gap stays shown.
    assert judge(sweep(claim=Claim(0.5)), rows).verdict == "supported"


def test_a_latency_bound_is_held_against_what_users_waited() -> None:
    declared = sweep(vary={"nprobe": [1, 2]}, needs=[Need("chat", 1.0, 0.5)])
    rows = [ok(value, s, 0.6, p95=2.0, best_p95=0.5) for value in (1, 2) for s in (1, 2, 3)]
    assert operating_points(declared, rows)[0].value is None


def test_rows_that_are_not_those_declared_are_refused() -> None:
    rows = rows_of({1: (0.5, 0.6, 0.7), 2: (0.8, 0.7, 0.9), 4: (0.9, 0.95, 1.0)}, FLAT)
    for wrong in (rows[:-1], rows + rows[:1], [*rows[:-1], ok(8, 3, 1.0, 1.0)]):
        with pytest.raises(UsageError, match="9 pairs of value and seed"):
            judge(sweep(), wrong)


def test_the_front_keeps_what_nothing_beats() -> None:
    # 2 is slower than 4 and finds less; 8 is as good as 4 but slower; 16 has a failed seed.
    recalls = {1: 0.5, 2: 0.6, 4: 0.8, 8: 0.8, 32: 0.9}
    p95 = {1: 1.0, 2: 3.0, 4: 2.0, 8: 2.5, 32: 9.0}
    rows = rows_of({value: (recall,) * 3 for value, recall in recalls.items()}, p95)
    rows += rows_of({16: (0.99, None, 0.99)}, {16: 0.1})
    assert pareto_front(rows) == (1, 4, 32)
    assert pareto_front(rows_of({1: (None,)}, {})) == ()
    # What counts is each query's fastest call: pooled over calls, 2 would be beaten.
    noisy = [ok(1, 1, 0.5, p95=1.0, best_p95=0.9), ok(2, 1, 0.4, p95=9.0, best_p95=0.8)]
    assert pareto_front(noisy) == (2, 1)
    # Two equal points do not beat each other.
    assert pareto_front(rows_of({1: (0.5,), 2: (0.5,)}, {1: 1.0, 2: 1.0})) == (1, 2)


def test_a_need_gets_the_cheapest_value_within_its_bounds_or_the_reason() -> None:
    declared = sweep(
        needs=[
            Need("chat", 2.0, 0.8),
            Need("audit", 100.0, 0.85),
            Need("both", 3.0, 0.85),
            Need("fast", 0.5, 0.1),
            Need("perfect", 100.0, 1.0),
        ]
    )
    rows = rows_of({1: (0.5,) * 3, 2: (0.7, 0.8, 0.9), 4: (0.9,) * 3}, {1: 1.0, 2: 2.0, 4: 9.0})
    points = operating_points(declared, rows)
    assert [point.value for point in points] == [2, 4, None, None, None]
    assert points[0].mean_recall == pytest.approx(0.8)
    assert points[0].mean_p95_ms == 2.0
    reasons = [point.reason for point in points[2:]]
    assert re.search(
        r"best recall within 3 ms is 0\.8000 \(nprobe = 2\), the cheapest with recall 0\.85 "
        r"needs 9 ms \(nprobe = 4\)",
        reasons[0],
    )
    assert "no value is within 0.5 ms" in reasons[1]
    assert "no value reaches recall 1" in reasons[2]
    nothing = rows_of(dict.fromkeys((1, 2, 4), (None,) * 3), {})
    assert operating_points(sweep(), nothing)[0].reason == "no value succeeded with every seed"
