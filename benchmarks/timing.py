"""Timing two or more arms fairly on a machine that others use too."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Arm = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Seconds:
    """One arm's times: `cpu`, the least processor time of a round; `wall`, the least elapsed time,
    and `wall_median`."""

    cpu: float
    wall: float
    wall_median: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """One line of the report. `ratio` = peer's time / ours; None where there is no peer."""

    name: str
    peer: str | None
    ours_s: float
    peer_s: float | None
    ratio: float | None
    settings: Mapping[str, Any]


def times(arms: Mapping[str, Arm], rounds: int, *, warm: bool = True) -> dict[str, Seconds]:
    """Run the arms in turn, `rounds` times, after one unmeasured run of each unless `warm` is
    False (for arms that ran just before); no collection of garbage inside a run. Processor time is
    that of the whole process."""
    for arm in arms.values() if warm else ():
        arm()
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in arms}
    for _ in range(rounds):
        for name, arm in arms.items():
            gc.collect()
            gc.disable()
            try:
                wall, cpu = time.perf_counter(), time.process_time()
                arm()
                taken[name].append((time.process_time() - cpu, time.perf_counter() - wall))
            finally:
                gc.enable()
    return {
        name: Seconds(
            min(cpu for cpu, _ in pairs),
            min(wall for _, wall in pairs),
            statistics.median(wall for _, wall in pairs),
        )
        for name, pairs in taken.items()
    }


def compared(
    name: str,
    peer: str,
    ours: Seconds,
    theirs: Seconds,
    *,
    clock: str = "cpu",
    peer_share: float = 1.0,
    **settings: Any,
) -> Measurement:
    """A line of the report by `clock` ("cpu": one thread each; "wall": as many as each likes).

    `peer_share`: the part of the work that the peer was given; its times are scaled up.
    """
    ours_s = float(getattr(ours, clock))
    peer_s = float(getattr(theirs, clock)) / peer_share
    wall = theirs.wall_median / peer_share
    noted = {
        "clock": clock,
        "load": round(os.getloadavg()[0], 1),
        "ours_wall_median_s": round(ours.wall_median, 4),
        "peer_wall_median_s": round(wall, 4),
        "wall_median_ratio": round(wall / ours.wall_median, 2),
        **settings,
    }
    if peer_share != 1.0:
        noted["peer_measured_on"] = f"{peer_share:.3g} of the queries, scaled up"
    return Measurement(name, peer, ours_s, peer_s, peer_s / ours_s, noted)
