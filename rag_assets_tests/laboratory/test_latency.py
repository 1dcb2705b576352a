"""The latency protocol, on a clock that only moves when an arm works."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable

import numpy as np
import pytest

from rag_assets.errors import UsageError
from rag_assets.laboratory.latency import Arm, measure_latency, measure_throughput
from rag_assets.laboratory.stages import StageClock, mean_stage_ms

MS = 1_000_000  # ns


class Workshop:
    """Arms that note every call, (name, row), and take as long as they are told to."""

    def __init__(self) -> None:
        self.now = 0
        self.calls: list[tuple[str, int]] = []

    def clock(self) -> int:
        return self.now

    def arm(self, name: str, cost: Callable[[int, int], int]) -> Arm:
        """`cost(row, how often this arm answered the row before)` in ns."""
        seen: dict[int, int] = {}

        def run(rows: np.ndarray) -> None:
            for row in rows.tolist():
                self.now += cost(row, seen.get(row, 0))
                seen[row] = seen.get(row, 0) + 1
                self.calls.append((name, row))

        return Arm(name, run)


def test_arms_take_turns_in_blocks_of_thirty_behind_three_lead_ins() -> None:
    shop = Workshop()
    arms = [shop.arm("a", lambda row, seen: MS), shop.arm("b", lambda row, seen: 2 * MS)]
    report = measure_latency(arms, 40, clock=shop.clock)
    warm_up = [(name, n % 40) for name in "ab" for n in range(50)]
    assert shop.calls[:100] == warm_up
    # Queries 0-29, led in by the last three of the set, then 30-39, led in by 27-29.
    first = [37, 38, 39, *range(30)]
    second = [27, 28, 29, *range(30, 40)]
    one_round = [(name, row) for part in (first, second) for name in "ab" for row in part]
    assert shop.calls[100:] == one_round * 5
    assert (report.rounds, report.cut_short) == (5, None)
    # Lead-ins and warm-up are not among the 5 * 40 calls of an arm.
    assert [(arm.arm, arm.calls, arm.queries) for arm in report.arms] == [
        ("a", 200, 40),
        ("b", 200, 40),
    ]
    assert report.arm("b").p50_ms == report.arm("b").best_mean_ms == 2.0


def test_a_tiny_query_set_is_warmed_up_five_times_over_at_most() -> None:
    shop = Workshop()
    measure_latency([shop.arm("a", lambda row, seen: MS)], 2, clock=shop.clock)
    # 10 of warm-up, then five rounds of 3 lead-ins (1, 0, 1: cyclic before query 0) and 0, 1.
    assert [row for _, row in shop.calls] == [0, 1] * 5 + [1, 0, 1, 0, 1] * 5


def test_pooled_percentiles_see_slow_calls_and_the_best_of_each_query_does_not() -> None:
    shop = Workshop()
    # 21 queries: query n costs n ms, and 100 ms more in its first measured call. Every query was
    # answered at least twice in the warm-up (50 = 2 * 21 + 8, so 0..7 three times); the lead-ins
    # are 18, 19, 20 before the one block.
    measured_first = {row: 2 + (row < 8) + (row >= 18) for row in range(21)}

    def cost(row: int, seen: int) -> int:
        return row * MS + (100 * MS if seen == measured_first[row] else 0)

    arm = measure_latency([shop.arm("a", cost)], 21, clock=shop.clock).arms[0]
    # best: 0..20 ms. The median is 10, the 95th percentile 19, the mean 10.
    assert (arm.best_p50_ms, arm.best_p95_ms, arm.best_mean_ms) == (10.0, 19.0, 10.0)
    # pooled, 105 calls: each of 0..20 four times, and 100..120 once. Place 104 * 0.95 = 98.8 of
    # 0..104: the 21 slow calls are places 84..104, so it is 14.8 into them.
    assert arm.p95_ms == pytest.approx(114.8)
    # Place 52 lies among the 84 fast ones: 52 // 4 = 13.
    assert arm.p50_ms == 13.0
    assert arm.p99_ms == pytest.approx(118.96)  # place 102.96


def test_the_budget_drops_the_block_at_hand_for_all_arms_and_is_reported() -> None:
    shop = Workshop()
    arms = [shop.arm("a", lambda row, seen: MS), shop.arm("b", lambda row, seen: MS)]
    # Warm-up 100 ms, a round 2 * (33 + 13) = 92 ms: four rounds end at 468 ms, the first block of
    # the fifth at 534 ms; a's part of the second block is cut off at 540 ms.
    report = measure_latency(arms, 40, budget_s=0.54, clock=shop.clock)
    assert report.rounds == 4
    assert [(arm.calls, arm.queries) for arm in report.arms] == [(190, 40), (190, 40)]
    assert report.cut_short == (
        "time budget of 0.54 s: 4 of 5 rounds are complete (190 of 200 calls an arm)"
    )
    assert shop.now == 540 * MS


def test_a_budget_too_small_for_anything_gives_no_numbers_rather_than_wrong_ones() -> None:
    shop = Workshop()
    arms = [shop.arm("a", lambda row, seen: 1000 * MS)]
    report = measure_latency(arms, 4, budget_s=2, clock=shop.clock)
    assert report.rounds == 0
    assert report.arms[0].calls == 0
    assert math.isnan(report.arms[0].p50_ms)
    assert report.cut_short is not None
    assert "warm-up was cut short" in report.cut_short


def test_collection_is_off_while_measuring_and_on_again_after_a_failure() -> None:
    states: list[bool] = []

    def fails(rows: np.ndarray) -> None:
        states.append(gc.isenabled())
        raise RuntimeError("broken arm")

    assert gc.isenabled()
    with pytest.raises(RuntimeError, match="broken arm"):
        measure_latency([Arm("a", fails)], 3)
    assert states == [False]
    assert gc.isenabled()


def test_throughput_is_the_fastest_of_alternating_batches() -> None:
    shop = Workshop()
    # The unmeasured batch costs 5 ms a query, then 4, 3, 2.
    arms = [shop.arm(name, lambda row, seen: (5 - seen) * MS) for name in "ab"]
    one, two = measure_throughput(arms, 10, threads=1, clock=shop.clock)
    assert [name for name, row in shop.calls if row == 0] == ["a", "b"] * 4
    assert (one.arm, two.arm, one.batches, one.threads) == ("a", "b", 3, 1)
    assert one.queries_per_second == 500  # 10 queries in 20 ms


def test_throughput_stops_at_its_budget() -> None:
    shop = Workshop()
    arms = [shop.arm("a", lambda row, seen: 100 * MS)]
    (found,) = measure_throughput(arms, 10, threads=1, budget_s=1.5, clock=shop.clock)
    assert (found.batches, found.queries_per_second) == (1, 10.0)
    (none,) = measure_throughput(arms, 10, threads=1, budget_s=0, clock=shop.clock)
    assert none.batches == 0
    assert math.isnan(none.queries_per_second)


@pytest.mark.parametrize(
    ("names", "queries", "rounds", "said"),
    [
        ("", 1, 5, "no arms"),
        ("aa", 1, 5, "names must differ"),
        ("a", 0, 5, "no queries"),
        ("a", 1, 4, "at least 5"),
    ],
)
def test_measurements_of_nothing_are_refused(
    names: str, queries: int, rounds: int, said: str
) -> None:
    arms = [Arm(name, lambda rows: None) for name in names]
    with pytest.raises(UsageError, match=said):
        measure_latency(arms, queries, rounds=rounds)


def test_stages_add_up_and_the_rest_is_named() -> None:
    now = [0]

    def run(rows: np.ndarray, stages: StageClock) -> None:
        with stages.stage("filter"):
            now[0] += 1 * MS
        with stages.stage("search"):
            now[0] += 4 * MS
        with stages.stage("filter"):
            now[0] += 2 * MS
        now[0] += 3 * MS

    found = mean_stage_ms(run, 6, clock=lambda: now[0])
    assert found == {"filter": 3.0, "search": 4.0, "other": 3.0}
