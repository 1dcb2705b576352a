"""The gate `index_promotion`: may an approximate index become the default of a space?

Each condition is a row with its evidence, its threshold and "pass", "fail" or "not_executed". Only
if all pass is the index `eligible_for_default`. A condition that could not be examined does not
pass: an index over a corpus without judgements never becomes eligible, because nobody has seen what
its errors cost. Eligible is not chosen: the default changes by a person's decision (`defaults`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rag_assets.laboratory.sweeps import LEAST_SEEDS

ELIGIBLE = "eligible_for_default"
NOT_ELIGIBLE = "not_eligible"
Status = Literal["pass", "fail", "not_executed"]
_ROUNDING = 1e-9  # a difference of means is off by its last bits


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a suite demands. Gains are ratios exact / approximate: 2.0 is half the time or bytes.

    Either gain is enough. `max_judgement_loss`: of mean nDCG@k, exact minus approximate.
    """

    min_recall: float = 0.95
    min_latency_gain: float = 1.5
    min_memory_gain: float = 2.0
    max_judgement_loss: float = 0.01


@dataclass(frozen=True, slots=True)
class SweepEvidence:
    """The sweep that chose the index's parameters, run under a plan registered before."""

    name: str
    parameter: str
    plan_digest: str
    successful_seeds: int
    verdict: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about one index of one space; None or empty where it was not measured.

    `recalls`: mean ANN Recall@k of the index per seed. `latency_gain`: ratio of the median
    single-query times, each query at its fastest, both arms in one run. `memory_gain`: ratio of
    raw vector bytes to index bytes. `judged_queries`: cases with a defined nDCG@k;
    `judgement_loss`: their mean nDCG@k under exact search minus that under the index.
    """

    space_id: str
    index_name: str
    data_digest: str | None
    query_count: int | None
    seeds: Sequence[int]
    k: int | None
    sweep: SweepEvidence | None
    recalls: Sequence[float]
    latency_gain: float | None
    memory_gain: float | None
    judged_queries: int
    judgement_loss: float | None


@dataclass(frozen=True, slots=True)
class ConditionRow:
    space_id: str
    index_name: str
    condition: str
    status: Status
    evidence: str
    threshold: str


@dataclass(frozen=True, slots=True)
class Promotion:
    """`verdict` is "eligible_for_default" or "not_eligible"; `reasons`: what does not pass."""

    rows: tuple[ConditionRow, ...]
    verdict: str
    reasons: tuple[str, ...]

    @property
    def eligible(self) -> bool:
        return self.verdict == ELIGIBLE


def judge_promotion(evidence: Evidence, thresholds: Thresholds) -> Promotion:
    """Every condition of the gate for one index, and the verdict."""
    judged = {
        "fixed_inputs": _fixed_inputs(evidence),
        "single_variable_sweep": _single_variable_sweep(evidence),
        "recall_over_threshold": _recall(evidence, thresholds),
        "latency_or_memory_gain": _gain(evidence, thresholds),
        "no_material_loss_on_judgements": _judgements(evidence, thresholds),
    }
    rows = tuple(
        ConditionRow(evidence.space_id, evidence.index_name, condition, *outcome)
        for condition, outcome in judged.items()
    )
    reasons = tuple(
        f"{row.condition}: {row.status}: {row.evidence}" for row in rows if row.status != "pass"
    )
    return Promotion(rows, NOT_ELIGIBLE if reasons else ELIGIBLE, reasons)


Outcome = tuple[Status, str, str]  # status, evidence, threshold


def _fixed_inputs(evidence: Evidence) -> Outcome:
    threshold = f"data, queries, k and at least {LEAST_SEEDS} different seeds are recorded"
    missing = [
        name
        for name, known in (
            ("data", evidence.data_digest),
            ("queries", evidence.query_count),
            ("seeds", evidence.seeds),
            ("k", evidence.k),
        )
        if not known
    ]
    if missing:
        return "fail", f"not recorded: {', '.join(missing)}", threshold
    seeds = sorted(set(evidence.seeds))
    said = (
        f"data {str(evidence.data_digest)[:12]}, {evidence.query_count} queries, "
        f"k {evidence.k}, seeds {', '.join(map(str, seeds))}"
    )
    return ("pass" if len(seeds) >= LEAST_SEEDS else "fail"), said, threshold


def _single_variable_sweep(evidence: Evidence) -> Outcome:
    threshold = f"a sweep of one parameter under a registered plan, {LEAST_SEEDS} seeds succeeded"
    sweep = evidence.sweep
    if sweep is None:
        return "not_executed", "no sweep was run for this index", threshold
    said = (
        f"sweep {sweep.name!r} over {sweep.parameter}, plan {sweep.plan_digest[:12]}, "
        f"{sweep.successful_seeds} seeds succeeded; its claim is {sweep.verdict}"
    )
    return ("pass" if sweep.successful_seeds >= LEAST_SEEDS else "fail"), said, threshold


def _recall(evidence: Evidence, thresholds: Thresholds) -> Outcome:
    threshold = (
        f"mean ANN Recall@k of at least {thresholds.min_recall:g} with every seed, "
        f"{LEAST_SEEDS} or more"
    )
    if not evidence.recalls:
        return "not_executed", "recall was not measured", threshold
    lowest = min(evidence.recalls)
    mean = sum(evidence.recalls) / len(evidence.recalls)
    said = (
        f"mean ANN Recall@{evidence.k} {mean:.4f} over {len(evidence.recalls)} seeds, "
        f"lowest {lowest:.4f}"
    )
    enough = len(evidence.recalls) >= LEAST_SEEDS and all(
        recall >= thresholds.min_recall - _ROUNDING for recall in evidence.recalls
    )
    return ("pass" if enough else "fail"), said, threshold


def _gain(evidence: Evidence, thresholds: Thresholds) -> Outcome:
    threshold = (
        f"at least {thresholds.min_latency_gain:g} times as fast as exact search, or at most "
        f"1/{thresholds.min_memory_gain:g} of the memory"
    )
    latency, memory = evidence.latency_gain, evidence.memory_gain
    if latency is None and memory is None:
        return "not_executed", "neither latency nor bytes were measured", threshold
    said = ", ".join(
        f"{what} gain {gain:.2f}" if gain is not None else f"{what} not measured"
        for what, gain in (("latency", latency), ("memory", memory))
    )
    enough = (latency is not None and latency >= thresholds.min_latency_gain) or (
        memory is not None and memory >= thresholds.min_memory_gain
    )
    return ("pass" if enough else "fail"), said, threshold


def _judgements(evidence: Evidence, thresholds: Thresholds) -> Outcome:
    threshold = f"mean nDCG@k falls by at most {thresholds.max_judgement_loss:g}"
    if evidence.judged_queries == 0:
        said = "no query has judgements; what the lost recall costs is unknown, so this cannot pass"
        return "not_executed", said, threshold
    if evidence.judgement_loss is None:
        return "not_executed", "the judged queries were not searched with this index", threshold
    change = round(-evidence.judgement_loss, 4) + 0.0  # never "-0.0000"
    said = (
        f"mean nDCG@{evidence.k} changes by {change:+.4f} "
        f"over {evidence.judged_queries} judged queries"
    )
    small = evidence.judgement_loss <= thresholds.max_judgement_loss + _ROUNDING
    return ("pass" if small else "fail"), said, threshold
