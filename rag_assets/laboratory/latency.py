"""How long a query takes: the protocol that makes two arms comparable on a busy machine.

Garbage collection is off and libraries are held to one thread. Each arm first answers warm-up
queries. A round then takes the queries in blocks; every arm answers a block before the next block
begins, and opens it with a few unmeasured queries, so that none is measured in the cache that the
other arm left behind (alternating query by query biases the ratio by 40%). At least five rounds.

Two numbers per arm: percentiles over every measured call (what a user saw), and percentiles over
the queries of each query's fastest call (what the work costs, with the machine's noise taken out).
Gates and ratios use the latter.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from rag_assets.errors import UsageError

BLOCK = 30
LEAD_INS = 3
WARM_UP = 50
WARM_UP_SHARE = 0.2  # of the time budget, at most
LEAST_ROUNDS = 5
_MS = 1e-6  # milliseconds in a nanosecond


@dataclass(frozen=True, slots=True)
class Arm:
    """One contestant: `run(rows: int64[*])` answers those queries and returns nothing."""

    name: str
    run: Callable[[np.ndarray], None]


@dataclass(frozen=True, slots=True)
class ArmLatency:
    """Milliseconds of single queries. `p50_ms` to `p99_ms` pool every measured call; `best_*` are
    over the queries, each at its fastest. NaN where nothing was measured.
    """

    arm: str
    calls: int
    queries: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    best_p50_ms: float
    best_p95_ms: float
    best_mean_ms: float


@dataclass(frozen=True, slots=True)
class LatencyReport:
    """`rounds` counts complete ones; `cut_short` says what the time budget left out, or None."""

    arms: tuple[ArmLatency, ...]
    rounds: int
    cut_short: str | None

    def arm(self, name: str) -> ArmLatency:
        return next(arm for arm in self.arms if arm.arm == name)


@dataclass(frozen=True, slots=True)
class Throughput:
    """Batch speed of one arm: all queries in one call, the fastest of `batches` calls."""

    arm: str
    threads: int
    batches: int
    queries_per_second: float


def measure_latency(
    arms: Sequence[Arm],
    n_queries: int,
    *,
    rounds: int = LEAST_ROUNDS,
    budget_s: float = 120.0,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> LatencyReport:
    """Time every arm on queries 0 .. n_queries-1, one query a call, as the module says.

    Warm-up is 50 queries an arm, at most five times the whole set, and at most a fifth of
    `budget_s` for all. When the budget is used up the block at hand is dropped for all arms, so
    that they stay on equal terms, and the report says so. Raises UsageError for no arms, no
    queries or fewer than five rounds; whatever an arm raises goes through.
    """
    if rounds < LEAST_ROUNDS:
        raise UsageError(f"rounds is {rounds}; the protocol needs at least {LEAST_ROUNDS}")
    _check(arms, n_queries)
    rows = np.arange(n_queries)
    spent = np.full((len(arms), rounds, n_queries), np.nan)  # ns
    with _quiet(threads=1):
        begun = clock()
        deadline = begun + int(budget_s * 1e9)
        warm = _warm_up(arms, rows, clock, begun + int(budget_s * 1e9 * WARM_UP_SHARE))
        blocks = [
            (number, start, min(start + BLOCK, n_queries))
            for number in range(rounds)
            for start in range(0, n_queries, BLOCK)
        ]
        for number, start, stop in blocks:
            if not _time_block(arms, rows, spent[:, number], start, stop, clock, deadline):
                spent[:, number, start:stop] = np.nan
                break
    measured = int((~np.isnan(spent[0])).sum())
    complete = measured // n_queries
    missing = []
    if not warm:
        missing.append("the warm-up was cut short")
    if measured < rounds * n_queries:
        missing.append(
            f"{complete} of {rounds} rounds are complete "
            f"({measured} of {rounds * n_queries} calls an arm)"
        )
    cut_short = f"time budget of {budget_s:g} s: {'; '.join(missing)}" if missing else None
    found = tuple(_summary(arm.name, times) for arm, times in zip(arms, spent, strict=True))
    return LatencyReport(found, complete, cut_short)


def measure_throughput(
    arms: Sequence[Arm],
    n_queries: int,
    *,
    threads: int,
    batches: int = 3,
    budget_s: float = 120.0,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> tuple[Throughput, ...]:
    """Batch queries per second of arms that were made to use `threads` threads.

    After one unmeasured batch an arm, arms take turns, `batches` times; the fastest batch counts.
    When `budget_s` is used up no further turn begins: `batches` of the result says how many there
    were, and without any the speed is NaN. Raises UsageError for no arms or no queries.
    """
    _check(arms, n_queries)
    rows = np.arange(n_queries)
    spent: list[list[int]] = [[] for _ in arms]
    with _quiet(threads=threads):
        deadline = clock() + int(budget_s * 1e9)
        for arm in arms:
            if clock() < deadline:
                arm.run(rows)
        for _ in range(batches):
            if clock() >= deadline:
                break
            for arm, times in zip(arms, spent, strict=True):
                start = clock()
                arm.run(rows)
                times.append(clock() - start)
    return tuple(
        Throughput(
            arm.name,
            threads,
            len(times),
            n_queries / (max(min(times), 1) / 1e9) if times else float("nan"),
        )
        for arm, times in zip(arms, spent, strict=True)
    )


def _check(arms: Sequence[Arm], n_queries: int) -> None:
    if not arms:
        raise UsageError("nothing to time: there are no arms")
    names = [arm.name for arm in arms]
    if len(set(names)) < len(names):
        raise UsageError(f"the arms are {', '.join(names)}; their names must differ")
    if n_queries < 1:
        raise UsageError("nothing to time: there are no queries")


@contextmanager
def _quiet(threads: int) -> Iterator[None]:
    """No garbage collection, and at most `threads` threads inside BLAS and OpenMP."""
    from threadpoolctl import threadpool_limits

    collecting = gc.isenabled()
    gc.disable()
    try:
        with threadpool_limits(limits=threads):
            yield
    finally:
        if collecting:
            gc.enable()


def _warm_up(
    arms: Sequence[Arm], rows: np.ndarray, clock: Callable[[], int], deadline: int
) -> bool:
    """Answer the warm-up queries; False if the deadline came first."""
    for arm in arms:
        for number in range(min(WARM_UP, 5 * len(rows))):
            if clock() >= deadline:
                return False
            at = number % len(rows)
            arm.run(rows[at : at + 1])
    return True


def _time_block(
    arms: Sequence[Arm],
    rows: np.ndarray,
    spent: np.ndarray,
    start: int,
    stop: int,
    clock: Callable[[], int],
    deadline: int,
) -> bool:
    """Fill `spent: float64[n_arms, n_queries]` (ns) for one block; False if the deadline came."""
    for arm, times in zip(arms, spent, strict=True):
        # The queries before the block, so that the measured ones are not warmed by themselves.
        for before in range(start - LEAD_INS, start):
            at = before % len(rows)
            arm.run(rows[at : at + 1])
        for at in range(start, stop):
            one = rows[at : at + 1]
            begun = clock()
            arm.run(one)
            ended = clock()
            times[at] = ended - begun
            if ended >= deadline:
                return False
    return True


def _summary(name: str, spent: np.ndarray) -> ArmLatency:
    """`spent: float64[n_rounds, n_queries]` in ns, NaN where not measured."""
    calls = spent[~np.isnan(spent)]
    asked = ~np.isnan(spent).all(axis=0)
    if not calls.size:
        nothing = float("nan")
        return ArmLatency(name, 0, 0, nothing, nothing, nothing, nothing, nothing, nothing)
    best = np.nanmin(spent[:, asked], axis=0)
    p50, p95, p99 = (float(value) for value in np.percentile(calls, [50, 95, 99]) * _MS)
    best_p50, best_p95 = (float(value) for value in np.percentile(best, [50, 95]) * _MS)
    return ArmLatency(
        name,
        calls=int(calls.size),
        queries=int(asked.sum()),
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        best_p50_ms=best_p50,
        best_p95_ms=best_p95,
        best_mean_ms=float(best.mean()) * _MS,
    )
