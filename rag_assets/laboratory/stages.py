"""Where the time of a search goes, by named stage (filter, search, re-rank, post-processing).

An index or a caller that can tell its stages apart takes an optional `StageClock` and wraps each
stage: `with clock.stage("filter"): ...`. One that cannot is timed from outside as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np


@dataclass
class StageClock:
    """Adds up nanoseconds per stage name. Stages do not nest: their sum is the time inside."""

    clock: Callable[[], int] = time.perf_counter_ns
    nanoseconds: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = self.clock()
        try:
            yield
        finally:
            self.nanoseconds[name] = self.nanoseconds.get(name, 0) + self.clock() - start


def mean_stage_ms(
    run: Callable[[np.ndarray, StageClock], None],
    n_queries: int,
    *,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> dict[str, float]:
    """Mean milliseconds of a single query per stage, in order of first use; "other" is the rest.

    `run(rows: int64[1], stages)` is called for every query once, after a warm-up call. The
    stages' own timing costs about a microsecond each, so totals belong to `latency`, not here.
    """
    rows = np.arange(n_queries)
    run(rows[:1], StageClock(clock))
    stages = StageClock(clock)
    start = clock()
    for row in rows:
        run(rows[row : row + 1], stages)
    total = clock() - start
    inside = dict(stages.nanoseconds)
    inside["other"] = max(0, total - sum(inside.values()))
    return {name: spent / n_queries / 1e6 for name, spent in inside.items()}
