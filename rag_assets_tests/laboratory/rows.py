"""Sweeps and their rows, made of plain numbers."""

from __future__ import annotations

from typing import Any

from rag_assets.indexes.specs import IvfPq
from rag_assets.laboratory.sweep_runs import SweepRow
from rag_assets.laboratory.sweeps import Claim, Need, StopRule, Sweep

INDEX = IvfPq(n_clusters=16, nprobe=1)


def sweep(**changes: Any) -> Sweep:
    """nprobe 1, 2, 4 over seeds 1, 2, 3: stop at a gain under 0.05 or p95 growth over 50%."""
    given: dict[str, Any] = {
        "name": "probes",
        "index": INDEX,
        "vary": {"nprobe": [1, 2, 4]},
        "seeds": [1, 2, 3],
        "k": 10,
        "stop_rule": StopRule(min_recall_gain=0.05, max_p95_growth=0.5),
        "claim": Claim(min_mean_recall=0.9),
        "needs": [Need("interactive", 2.0, 0.8)],
    }
    return Sweep(**{**given, **changes})


def ok(value: Any, seed: int, recall: float, p95: float, best_p95: float | None = None) -> SweepRow:
    return SweepRow(
        value,
        seed,
        "ok",
        None,
        100,
        defined_count=100,
        mean_recall=recall,
        mean_tie_aware_recall=recall,
        short_results=0,
        p50_ms=p95 / 2,
        p95_ms=p95,
        best_p50_ms=p95 / 2,
        best_p95_ms=p95 if best_p95 is None else best_p95,
        exact_best_p95_ms=5.0,
        build_ms=1.0,
        index_bytes=1000,
    )


def failed(value: Any, seed: int) -> SweepRow:
    return SweepRow(value, seed, "failed", "build: RuntimeError: no", 100)


def rows_of(recalls: dict[Any, tuple[float | None, ...]], p95: dict[Any, float]) -> list[SweepRow]:
    """Per value one recall for each of the seeds 1, 2, ...; None is a failed run."""
    return [
        failed(value, seed) if recall is None else ok(value, seed, recall, p95[value])
        for value, found in recalls.items()
        for seed, recall in enumerate(found, start=1)
    ]
