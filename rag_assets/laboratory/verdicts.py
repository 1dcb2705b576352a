"""What a sweep showed, by the rule that was declared before it was run.

The values are walked in order. At each value after the first, means over the seeds that succeeded
at both this value and the one before are compared: recall, and the p95 over queries of each query's
fastest call (the number that a noisy machine disturbs least). The first value with

    mean recall - mean recall before < min_recall_gain   or   p95 / p95 before - 1 > max_p95_growth

is the stop; it and everything behind it do not count. The claim "a mean ANN Recall@k of at least X
is reached before the stop" is

- supported, if at some value before the stop at least three seeds succeeded and each reached X;
- not supported, if at least three seeds succeeded at every value before the stop and none of them
  reached X anywhere;
- inconclusive otherwise: seeds disagree, too many failed, or no seed succeeded at both values of a
  step, so that the rule could not be applied to it (the walk ends there too).
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from rag_assets.errors import UsageError
from rag_assets.laboratory.sweep_runs import SweepRow
from rag_assets.laboratory.sweeps import LEAST_SEEDS, Need, Sweep

Decision = Literal["supported", "not_supported", "inconclusive"]
# Means of fractions are off by their last bits; differences this small decide nothing.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class ValueSummary:
    """The seeds of one value: `seeds` succeeded, `failed` did not. `std` is the sample standard
    deviation (n - 1). Numbers are None where no seed succeeded, `std` where fewer than two did.
    """

    value: Any
    seeds: int
    failed: int
    mean_recall: float | None
    min_recall: float | None
    max_recall: float | None
    std_recall: float | None
    mean_p95_ms: float | None
    mean_best_p95_ms: float | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """`stopped_at` is the first value that no longer counts, None if every value was walked."""

    verdict: Decision
    reason: str
    stopped_at: Any | None
    values: tuple[ValueSummary, ...]


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """The value that serves a need, or None and why; `mean_p95_ms` is the pooled one."""

    need: Need
    value: Any | None
    mean_recall: float | None
    mean_p95_ms: float | None
    reason: str


def judge(sweep: Sweep, rows: Sequence[SweepRow]) -> Verdict:
    """The verdict on a sweep's claim. Raises UsageError unless `rows` are exactly its rows."""
    by_value = _by_value(sweep, rows)
    walked, stopped_at, ending = _walk(sweep, by_value)
    verdict, reason = _decide(sweep, {value: by_value[value] for value in walked})
    if verdict == "not_supported" and ending is not None and stopped_at is None:
        verdict = "inconclusive"  # the walk did not end by the rule: what follows is not known
    return Verdict(
        verdict,
        f"{reason}; {ending or 'every value was walked'}",
        stopped_at,
        tuple(_summary(value, found) for value, found in by_value.items()),
    )


def _decide(sweep: Sweep, counted: dict[Any, list[SweepRow]]) -> tuple[Decision, str]:
    """(verdict, sentence) from the rows of the values that count."""
    least = sweep.claim.min_mean_recall
    claim = f"mean ANN Recall@{sweep.k} of at least {least:g}"
    recalls = {
        value: [_recall_of(row) for row in rows if row.status == "ok"]
        for value, rows in counted.items()
    }
    reached = {
        value: [recall >= least - _ROUNDING for recall in found] for value, found in recalls.items()
    }
    for value, hits in reached.items():
        if len(hits) >= LEAST_SEEDS and all(hits):
            at = f"at {sweep.parameter} = {value}"
            return "supported", f"{claim} is reached by all {len(hits)} successful seeds {at}"
    for value, hits in reached.items():
        at = f"at {sweep.parameter} = {value}"
        if len(hits) < LEAST_SEEDS:
            needed = f"{LEAST_SEEDS} are needed"
            return "inconclusive", f"{claim}: {len(hits)} seeds succeeded {at}, {needed}"
        if any(hits):
            shares = f"{sum(hits)} of {len(hits)} reach it {at}"
            return "inconclusive", f"{claim}: the seeds disagree, {shares}"
    best = max(max(found) for found in recalls.values())
    return "not_supported", (
        f"{claim} is reached by no seed; of the values that count, the best has {best:.4f}"
    )


def pareto_front(rows: Sequence[SweepRow]) -> tuple[Any, ...]:
    """The values, by rising p95, that no other value beats: none has at least their mean recall at
    no more than their mean p95, and is better in one. p95 is over queries of each one's fastest
    call, as in the walk; only values at which every seed succeeded take part.
    """
    points = {value.value: (value.mean_recall, value.mean_best_p95_ms) for value in _complete(rows)}
    front = [
        value
        for value, (recall, p95) in points.items()
        if not any(
            other[0] >= recall and other[1] <= p95 and other != (recall, p95)
            for other in points.values()
        )
    ]
    return tuple(sorted(front, key=lambda value: points[value][1]))


def operating_points(sweep: Sweep, rows: Sequence[SweepRow]) -> tuple[OperatingPoint, ...]:
    """For each declared need the cheapest value on the front that satisfies both its bounds.

    A latency bound is held against the mean over seeds of the pooled p95, what users would have
    waited on this machine, noise included.
    """
    values = {value.value: value for value in _complete(rows)}
    front = [values[value] for value in pareto_front(rows)]
    return tuple(_operating_point(sweep, need, front) for need in sweep.needs)


def _walk(
    sweep: Sweep, by_value: dict[Any, list[SweepRow]]
) -> tuple[list[Any], Any | None, str | None]:
    """(values that count, the value of the stop or None, why the walk ended early or None)."""
    rule, name = sweep.stop_rule, sweep.parameter
    walked = [sweep.values[0]]
    for before, value in pairwise(sweep.values):
        earlier = {row.seed: row for row in by_value[before] if row.status == "ok"}
        later = {row.seed: row for row in by_value[value] if row.status == "ok"}
        common = sorted(earlier.keys() & later.keys())
        if not common:
            return (
                walked,
                None,
                f"the stop rule cannot be applied at {name} = {value}: no seed succeeded there and "
                f"at {before}",
            )
        gain = statistics.fmean(_recall_of(later[s]) for s in common) - statistics.fmean(
            _recall_of(earlier[s]) for s in common
        )
        growth = (
            statistics.fmean(_best_p95(later[s]) for s in common)
            / statistics.fmean(_best_p95(earlier[s]) for s in common)
            - 1
        )
        broken = []
        if gain < rule.min_recall_gain - _ROUNDING:
            broken.append(f"mean recall changed by {gain:+.4f}, less than {rule.min_recall_gain:g}")
        if growth > rule.max_p95_growth + _ROUNDING:
            broken.append(f"p95 grew by {growth:.1%}, more than {rule.max_p95_growth:.1%}")
        if broken:
            return walked, value, f"stopped at {name} = {value}: {' and '.join(broken)}"
        walked.append(value)
    return walked, None, None


def _operating_point(sweep: Sweep, need: Need, front: Sequence[_Complete]) -> OperatingPoint:
    name = sweep.parameter
    if not front:
        return OperatingPoint(need, None, None, None, "no value succeeded with every seed")
    fast = [value for value in front if value.mean_p95_ms <= need.p95_ms]
    good = [value for value in front if value.mean_recall >= need.min_recall - _ROUNDING]
    for value in good:  # by rising p95
        if value in fast:
            reason = (
                f"{name} = {value.value}: mean recall {value.mean_recall:.4f} at p95 "
                f"{value.mean_p95_ms:.3g} ms, within {need.p95_ms:g} ms and at least "
                f"{need.min_recall:g}"
            )
            return OperatingPoint(need, value.value, value.mean_recall, value.mean_p95_ms, reason)
    best = max(fast, key=lambda value: value.mean_recall, default=None)
    parts = [
        f"no value is within {need.p95_ms:g} ms"
        if best is None
        else f"the best recall within {need.p95_ms:g} ms is {best.mean_recall:.4f} "
        f"({name} = {best.value})",
        f"the cheapest with recall {need.min_recall:g} needs {good[0].mean_p95_ms:.3g} ms "
        f"({name} = {good[0].value})"
        if good
        else f"no value reaches recall {need.min_recall:g}",
    ]
    return OperatingPoint(need, None, None, None, "no value: " + ", ".join(parts))


def _by_value(sweep: Sweep, rows: Sequence[SweepRow]) -> dict[Any, list[SweepRow]]:
    expected = {(value, seed) for value in sweep.values for seed in sweep.seeds}
    if len(rows) != len(expected) or {(row.value, row.seed) for row in rows} != expected:
        raise UsageError(
            f"sweep {sweep.name!r} declares {len(expected)} pairs of value and seed, and the "
            f"{len(rows)} rows are not exactly those; run the sweep again"
        )
    return {value: [row for row in rows if row.value == value] for value in sweep.values}


@dataclass(frozen=True, slots=True)
class _Complete:
    """A value at which every seed succeeded: means over all of them."""

    value: Any
    mean_recall: float
    mean_p95_ms: float
    mean_best_p95_ms: float


def _complete(rows: Sequence[SweepRow]) -> list[_Complete]:
    complete = []
    for value in dict.fromkeys(row.value for row in rows):
        found = _summary(value, [row for row in rows if row.value == value])
        recall, p95, best_p95 = found.mean_recall, found.mean_p95_ms, found.mean_best_p95_ms
        if not found.failed and recall is not None and p95 is not None and best_p95 is not None:
            complete.append(_Complete(value, recall, p95, best_p95))
    return complete


def _summary(value: Any, rows: Sequence[SweepRow]) -> ValueSummary:
    fine = [row for row in rows if row.status == "ok"]
    failed = len(rows) - len(fine)
    if not fine:
        return ValueSummary(value, 0, failed, None, None, None, None, None, None)
    recalls = [_recall_of(row) for row in fine]
    return ValueSummary(
        value,
        len(fine),
        failed,
        statistics.fmean(recalls),
        min(recalls),
        max(recalls),
        statistics.stdev(recalls) if len(recalls) > 1 else None,
        statistics.fmean(row.p95_ms for row in fine if row.p95_ms is not None),
        statistics.fmean(_best_p95(row) for row in fine),
    )


def _recall_of(row: SweepRow) -> float:
    assert row.mean_recall is not None  # a row that is "ok" has every number
    return row.mean_recall


def _best_p95(row: SweepRow) -> float:
    assert row.best_p95_ms is not None
    return row.best_p95_ms
