"""Run a declared sweep: one row per value and seed, exact search timed in the same run.

Recall is taken from one batch search of all (sampled) queries, for all values of nprobe in one pass
over the lists (`sweep_search`); latency by the protocol of `latency`. Where only search reads the
varied parameter, each seed's index is built once, and all values are timed against each other and
against exact search in one go; otherwise every value and seed has its own index and its own exact
arm. A seed that fails is a row that says why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.errors import EngineMissing, UsageError
from rag_assets.indexes.ann import AnnIndex
from rag_assets.indexes.exact import ExactIndex
from rag_assets.indexes.faiss_engine import load_faiss
from rag_assets.indexes.specs import IndexSpec
from rag_assets.indexes.sweep_search import sweep_nprobe
from rag_assets.laboratory.latency import Arm, ArmLatency, LatencyReport, measure_latency
from rag_assets.laboratory.queries import Queries, SearchIndex, search_all
from rag_assets.laboratory.recall import AnnRecall, ann_recall, ranking_keys_of
from rag_assets.laboratory.sampling import bootstrap_interval, sample_queries
from rag_assets.laboratory.sweeps import Sweep

EXACT = "exact"


class ApproximateIndex(SearchIndex, Protocol):
    """What a sweep needs of an index; `rag_assets.indexes.ann.AnnIndex` is one."""

    @property
    def nbytes(self) -> int: ...
    def with_search_parameter(self, parameter: str, value: Any) -> ApproximateIndex: ...


Build = Callable[[IndexSpec, EmbeddedSpace], ApproximateIndex]
Measure = Callable[[Sequence[Arm], int, float], LatencyReport]


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One value and seed. Every number is None where `status` is "failed", `reason` says why.

    `mean_recall` is over the `defined_count` queries that may see anything; `recall_low` and
    `recall_high` bound the mean over all queries (95%, percentile bootstrap) where only a sample
    was searched. `p50_ms`, `p95_ms`: pooled single-query latency; `best_*`: each query at its
    fastest; `exact_best_p95_ms`: exact search in the same run. `reason` of a row that is "ok"
    says what the time budget cut short, if anything.
    """

    value: Any
    seed: int
    status: Literal["ok", "failed"]
    reason: str | None
    query_count: int
    defined_count: int | None = None
    mean_recall: float | None = None
    mean_tie_aware_recall: float | None = None
    recall_low: float | None = None
    recall_high: float | None = None
    short_results: int | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None
    best_p50_ms: float | None = None
    best_p95_ms: float | None = None
    exact_best_p95_ms: float | None = None
    build_ms: float | None = None
    index_bytes: int | None = None


def run_sweep(
    sweep: Sweep,
    space: EmbeddedSpace,
    queries: Queries,
    *,
    build: Build | None = None,
    measure: Measure | None = None,
    budget_s: float = 600.0,
    threads: int | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> tuple[SweepRow, ...]:
    """The rows of a sweep, by value, then seed, as declared.

    `budget_s` is shared out evenly over the latency measurements; building and batch search are
    not bounded. `threads` is for building and batch search; latency uses one. Raises UsageError
    before any work where a value cannot be built, or no query may see a document, and
    EngineMissing where the engine cannot be imported; any other failure is a row.
    """
    sweep.check_against(space.contract.dimension, space.document_count)
    sample = queries.take(sample_queries(len(queries), sweep.query_sample, sweep.sample_seed))
    sampled = len(sample) < len(queries)
    truth = _truth(space, sample, sweep.k, threads)
    trial = _Trial(
        sweep,
        space,
        truth,
        sampled,
        build or _build_ann(threads),
        measure or _measure_latency,
        budget_s / (len(sweep.seeds) * (1 if sweep.search_only else len(sweep.values))),
        threads,
    )
    rows: dict[tuple[Any, int], SweepRow] = {}
    for seed in sweep.seeds:
        batches = [sweep.values] if sweep.search_only else [(value,) for value in sweep.values]
        for values in batches:
            shown = ", ".join(map(str, values))
            progress(f"sweep {sweep.name}: seed {seed}, {sweep.parameter} {shown}")
            for row in _run_values(trial, seed, values):
                rows[row.value, seed] = row
    return tuple(rows[value, seed] for value in sweep.values for seed in sweep.seeds)


@dataclass(frozen=True)
class _Truth:
    """Exact answers to the queries: rows and ranking keys, and what the keys need.

    `timed` are the queries that may see anything: the others are answered without a search.
    """

    queries: Queries
    timed: Queries
    index: ExactIndex
    eligible_counts: np.ndarray
    largest_norms: np.ndarray
    rows: np.ndarray
    keys: np.ndarray


@dataclass(frozen=True)
class _Trial:
    sweep: Sweep
    space: EmbeddedSpace
    truth: _Truth
    sampled: bool
    build: Build
    measure: Measure
    budget_s: float
    threads: int | None


def _truth(space: EmbeddedSpace, queries: Queries, k: int, threads: int | None) -> _Truth:
    index = ExactIndex.build(space)
    counts = queries.eligible_counts(space.document_count)
    if not (counts > 0).any():
        raise UsageError("no query may see any document; there is nothing to measure recall on")
    norms = index.document_norms
    largest = np.array(
        [
            norms.max() if rows is None else norms[rows].max(initial=0.0)
            for rows in queries.eligible_sets
        ]
    )[queries.set_no]
    rows, _ = search_all(index, queries, k, threads=threads)
    keys = ranking_keys_of(
        space.documents, queries.vectors, rows, space.contract.metric, largest, norms
    )
    timed = queries.take(np.flatnonzero(counts > 0))
    return _Truth(queries, timed, index, counts, largest, rows, keys)


def _run_values(trial: _Trial, seed: int, values: Sequence[Any]) -> list[SweepRow]:
    """Build once and search with every value."""
    sweep, truth = trial.sweep, trial.truth
    count = len(truth.queries)
    started = time.perf_counter_ns()
    try:
        built = trial.build(sweep.spec(values[0], seed), trial.space)
    except EngineMissing:
        raise
    except Exception as error:
        return [_failed(value, seed, count, "build", error) for value in values]
    build_ms = (time.perf_counter_ns() - started) / 1e6

    rows: list[SweepRow] = []
    found: dict[Any, tuple[ApproximateIndex, AnnRecall]] = {}
    try:
        answers = _one_pass(trial, built, values)
    except Exception as error:
        return [_failed(value, seed, count, "search", error) for value in values]
    for value in values:
        try:
            index = (
                built.with_search_parameter(sweep.parameter, value) if sweep.search_only else built
            )
            found[value] = (index, _recall(trial, index, answers.get(value)))
        except Exception as error:
            rows.append(_failed(value, seed, count, "search", error))
    if not found:
        return rows
    arms = [search_arm(EXACT, truth.index, truth.timed, sweep.k)]
    arms += [
        search_arm(repr(value), index, truth.timed, sweep.k) for value, (index, _) in found.items()
    ]
    try:
        report = trial.measure(arms, len(truth.timed), trial.budget_s)
    except Exception as error:
        return rows + [_failed(value, seed, count, "latency", error) for value in found]
    for value, (index, recall) in found.items():
        rows.append(_row(trial, value, seed, recall, report, build_ms, index.nbytes))
    return rows


def search_arm(name: str, index: SearchIndex, queries: Queries, k: int, threads: int = 1) -> Arm:
    """An arm that answers queries through `index.search`, those with the same rights together.

    A single query goes straight in, so that an arm's own work stays out of what is timed.
    """

    def run(rows: np.ndarray) -> None:
        if len(rows) == 1:
            eligible = queries.eligible(int(rows[0]))
            index.search(queries.vectors[rows], k, eligible, threads=threads)
            return
        for some, eligible in queries.groups(rows):
            index.search(queries.vectors[some], k, eligible, threads=threads)

    return Arm(name, run)


def _one_pass(
    trial: _Trial, index: ApproximateIndex, values: Sequence[Any]
) -> dict[Any, np.ndarray]:
    """The rows that each value of nprobe returns, found in one pass over the lists; empty for any
    other sweep, whose values are searched one by one."""
    if trial.sweep.parameter != "nprobe" or not isinstance(index, AnnIndex):
        return {}
    queries, k = trial.truth.queries, trial.sweep.k
    answers = {value: np.full((len(queries), k), -1, dtype=np.int64) for value in values}
    for some, eligible in queries.groups(np.arange(len(queries))):
        if eligible is None or eligible.size:
            swept = sweep_nprobe(
                index, queries.vectors[some], k, values, eligible, threads=trial.threads
            )
            for value, (rows, _) in swept.items():
                answers[value][some] = rows
    return answers


def _recall(trial: _Trial, index: SearchIndex, rows: np.ndarray | None) -> AnnRecall:
    """Recall of the `rows` that the index returned; it is searched where none are given."""
    truth, space, k = trial.truth, trial.space, trial.sweep.k
    if rows is None:
        rows, _ = search_all(index, truth.queries, k, threads=trial.threads)
    keys = ranking_keys_of(
        space.documents,
        truth.queries.vectors,
        rows,
        space.contract.metric,
        truth.largest_norms,
        truth.index.document_norms,
    )
    return ann_recall(
        truth.rows, rows, truth.eligible_counts, k, truth_keys=truth.keys, found_keys=keys
    )


def _row(
    trial: _Trial,
    value: Any,
    seed: int,
    recall: AnnRecall,
    report: LatencyReport,
    build_ms: float,
    index_bytes: int,
) -> SweepRow:
    timed: ArmLatency = report.arm(repr(value))
    count = len(trial.truth.queries)
    if timed.calls == 0:
        return SweepRow(value, seed, "failed", f"latency: {report.cut_short}", count)
    interval = None
    if trial.sampled:
        interval = bootstrap_interval(recall.recall, trial.sweep.sample_seed)
    low, high = interval or (None, None)
    return SweepRow(
        value,
        seed,
        "ok",
        report.cut_short,
        count,
        defined_count=recall.defined,
        mean_recall=recall.mean,
        mean_tie_aware_recall=recall.tie_aware_mean,
        recall_low=low,
        recall_high=high,
        short_results=int((recall.short_results > 0).sum()),
        p50_ms=timed.p50_ms,
        p95_ms=timed.p95_ms,
        best_p50_ms=timed.best_p50_ms,
        best_p95_ms=timed.best_p95_ms,
        exact_best_p95_ms=report.arm(EXACT).best_p95_ms,
        build_ms=build_ms,
        index_bytes=index_bytes,
    )


def _failed(value: Any, seed: int, count: int, stage: str, error: Exception) -> SweepRow:
    said = " ".join(str(error).split()) or "no message"
    return SweepRow(value, seed, "failed", f"{stage}: {type(error).__name__}: {said}", count)


def _build_ann(threads: int | None) -> Build:
    load_faiss()  # the first import is no part of the first seed's build

    def build(spec: IndexSpec, space: EmbeddedSpace) -> ApproximateIndex:
        return AnnIndex.build(spec, space, threads=threads)

    return build


def _measure_latency(arms: Sequence[Arm], n_queries: int, budget_s: float) -> LatencyReport:
    return measure_latency(arms, n_queries, budget_s=budget_s)
