"""Running sweeps over an index that forgets on purpose, and over the real one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from rag_assets.embeddings.space import EmbeddedSpace, declared_embeddings
from rag_assets.errors import EngineMissing, UsageError
from rag_assets.indexes.ann import AnnIndex
from rag_assets.indexes.exact import ExactIndex
from rag_assets.indexes.specs import IndexSpec, IvfFlat, IvfPq
from rag_assets.laboratory.latency import Arm, ArmLatency, LatencyReport
from rag_assets.laboratory.queries import Queries, case_queries, search_all
from rag_assets.laboratory.recall import ann_recall
from rag_assets.laboratory.sweep_runs import run_sweep
from rag_assets.laboratory.sweeps import Claim, StopRule, Sweep
from rag_assets.laboratory.synthetic import SPACE_ID, synthetic_corpus
from rag_assets.laboratory.verdicts import judge
from rag_assets_tests.laboratory.rows import sweep
from rag_assets_tests.results.spaces import case_table, corpus_of, embedded_space, item_table

CORPUS = synthetic_corpus(300, 16, 12, seed=1)
SPACE = declared_embeddings(CORPUS, "synthetic")
QUERIES = case_queries(SPACE, CORPUS)


@dataclass(frozen=True)
class Forgetful:
    """Finds the first 2 * nprobe of the exact top k, and -1 instead of the rest."""

    exact: ExactIndex
    spec: IvfPq
    nbytes: int = 77
    searched: list[tuple[int, int]] = field(default_factory=list)

    def search(
        self,
        queries: np.ndarray,
        k: int,
        eligible: np.ndarray | None = None,
        *,
        threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        rows, scores = self.exact.search(queries, k, eligible)
        rows[:, 2 * self.spec.nprobe :] = -1
        return rows, scores

    def with_search_parameter(self, parameter: str, value: Any) -> Forgetful:
        if value == 4 and self.spec.seed == 3:
            raise RuntimeError("seed 3 breaks\nat 4")
        return replace(self, spec=replace(self.spec, **{parameter: value}))


class Bench:
    """Counts builds, and gives arm number n a latency of n ms."""

    def __init__(self, breaks: int | None = None) -> None:
        self.built: list[IndexSpec] = []
        self.measured: list[tuple[tuple[str, ...], int, float]] = []
        self.breaks = breaks

    def build(self, spec: IndexSpec, space: EmbeddedSpace) -> Forgetful:
        assert isinstance(spec, IvfPq)
        self.built.append(spec)
        if spec.seed == self.breaks:
            raise MemoryError
        return Forgetful(ExactIndex.build(space), spec)

    def measure(self, arms: Sequence[Arm], n_queries: int, budget_s: float) -> LatencyReport:
        for arm in arms:
            arm.run(np.arange(n_queries))
            arm.run(np.array([0]))
        self.measured.append((tuple(arm.name for arm in arms), n_queries, budget_s))
        found = [
            ArmLatency(arm.name, n_queries, n_queries, n / 2, n, n, n / 4, n / 3, n / 4)
            for n, arm in enumerate(arms, start=1)
        ]
        return LatencyReport(tuple(found), 5, None)


def test_one_build_a_seed_serves_every_value_of_a_search_parameter() -> None:
    bench = Bench()
    rows = run_sweep(
        sweep(seeds=[1, 2, 5]),
        SPACE,
        QUERIES,
        build=bench.build,
        measure=bench.measure,
        budget_s=30,
    )
    assert [spec.seed for spec in bench.built] == [1, 2, 5]
    # Exact search is timed in each of the three runs, which share the budget.
    assert bench.measured == [(("exact", "1", "2", "4"), 12, 10.0)] * 3
    assert [(row.value, row.seed) for row in rows] == [(v, s) for v in (1, 2, 4) for s in (1, 2, 5)]
    # 2, 4 and 8 of the top 10 are found, for every seed; p95 is 2, 3, 4 ms by place among the arms.
    assert [row.mean_recall for row in rows[::3]] == pytest.approx([0.2, 0.4, 0.8])
    assert [row.p95_ms for row in rows[::3]] == [2, 3, 4]
    row = rows[0]
    assert (row.status, row.reason, row.query_count, row.defined_count) == ("ok", None, 12, 12)
    assert (row.short_results, row.index_bytes, row.exact_best_p95_ms) == (12, 77, 1 / 3)
    assert row.mean_tie_aware_recall == pytest.approx(0.2)  # no ties among random vectors
    assert (row.recall_low, row.recall_high) == (None, None)  # not a sample


def test_a_build_parameter_needs_a_build_for_each_value_and_seed() -> None:
    bench = Bench()
    declared = sweep(vary={"n_bits": [4, 8]})
    run_sweep(declared, SPACE, QUERIES, build=bench.build, measure=bench.measure, budget_s=60)
    assert sorted((s.n_bits, s.seed) for s in bench.built if isinstance(s, IvfPq)) == [
        (bits, seed) for bits in (4, 8) for seed in (1, 2, 3)
    ]
    assert bench.measured[0] == (("exact", "4"), 12, 10.0)


def test_a_seed_that_fails_is_a_row_and_the_others_go_on() -> None:
    bench = Bench(breaks=2)
    declared = sweep()
    rows = run_sweep(declared, SPACE, QUERIES, build=bench.build, measure=bench.measure)
    failed = {(row.value, row.seed): row.reason for row in rows if row.status == "failed"}
    assert failed == {
        (1, 2): "build: MemoryError: no message",
        (2, 2): "build: MemoryError: no message",
        (4, 2): "build: MemoryError: no message",
        (4, 3): "search: RuntimeError: seed 3 breaks at 4",
    }
    assert len(rows) == 9
    assert all(row.mean_recall is None for row in rows if row.status == "failed")
    assert judge(declared, rows).verdict == "inconclusive"


def test_a_measurement_that_fails_fails_the_values_it_was_for() -> None:
    def breaks(arms: Sequence[Arm], n_queries: int, budget_s: float) -> LatencyReport:
        raise OSError("clock lost")

    rows = run_sweep(sweep(), SPACE, QUERIES, build=Bench().build, measure=breaks)
    assert {row.reason for row in rows} == {
        "latency: OSError: clock lost",
        "search: RuntimeError: seed 3 breaks at 4",
    }


def test_a_missing_engine_is_no_failed_seed() -> None:
    def build(spec: IndexSpec, space: EmbeddedSpace) -> Forgetful:
        raise EngineMissing("no engine here")

    with pytest.raises(EngineMissing):
        run_sweep(sweep(), SPACE, QUERIES, build=build, measure=Bench().measure)


def test_impossible_values_are_refused_before_any_work() -> None:
    bench = Bench()
    with pytest.raises(UsageError, match="nprobe = 32"):
        run_sweep(sweep(vary={"nprobe": [1, 32]}), SPACE, QUERIES, build=bench.build)
    assert bench.built == []


def test_a_sample_of_the_queries_has_an_interval_around_its_mean() -> None:
    bench = Bench()
    declared = sweep(query_sample=5, sample_seed=3)
    rows = run_sweep(declared, SPACE, QUERIES, build=bench.build, measure=bench.measure)
    assert bench.measured[0][1] == 5
    assert rows[0].query_count == rows[0].defined_count == 5
    assert (rows[0].recall_low, rows[0].recall_high) == pytest.approx((0.2, 0.2))


def test_rights_narrow_what_is_searched_and_empty_ones_are_left_out() -> None:
    # Documents 0..3 on a line; odd ones are secret. K is 2 for a guest, 4 for the staff.
    documents = [[1.0, 0.0], [1.0, 0.1], [1.0, 0.2], [1.0, 0.3]]
    acls = [["all"], ["secret"], ["all"], ["secret"], ["all"], ["all"], ["all"]]
    space = embedded_space(documents, [[1.0, 0.0]] * 3, "cosine", acls)
    cases = case_table([0, 1, 2], [["all"], ["all", "secret"], ["nobody"]], documents=4)
    corpus = corpus_of(space, item_table(4, 3, acls), cases)
    queries = case_queries(space, corpus)
    assert [
        None if rows is None else rows.tolist() for rows in map(queries.eligible, range(3))
    ] == [
        [0, 2],
        None,
        [],
    ]
    bench = Bench()
    declared = sweep(
        index=IvfPq(n_clusters=2, nprobe=1, n_subvectors=2, n_bits=1), vary={"nprobe": [1, 2]}
    )
    rows = run_sweep(declared, space, queries, build=bench.build, measure=bench.measure)
    assert bench.measured[0][1] == 2  # a query that may see nothing is not timed
    # nprobe 1 finds 2: 2 of 2 for the guest, 2 of 4 for the staff.
    assert (rows[0].mean_recall, rows[0].defined_count, rows[0].query_count) == (0.75, 2, 3)
    assert (rows[0].short_results, rows[3].mean_recall) == (1, 1.0)
    nobody = Queries(queries.vectors[2:], queries.eligible_sets, queries.set_no[2:])
    with pytest.raises(UsageError, match="no query may see any document"):
        run_sweep(declared, space, nobody, build=bench.build)


def test_probing_every_list_of_uncompressed_vectors_finds_everything() -> None:
    pytest.importorskip("faiss")
    declared = sweep(index=IvfFlat(n_clusters=6, nprobe=1), vary={"nprobe": [1, 6]}, k=5)
    rows = run_sweep(declared, SPACE, QUERIES, budget_s=20, threads=1)
    assert {row.status for row in rows} == {"ok"}
    assert [row.mean_recall for row in rows[3:]] == [1.0, 1.0, 1.0]
    assert all(row.mean_recall is not None and row.mean_recall < 1 for row in rows[:3])
    assert all(row.p95_ms and row.build_ms and row.index_bytes for row in rows)


def test_recall_of_an_nprobe_sweep_is_that_of_searching_with_each_value() -> None:
    corpus = synthetic_corpus(800, 16, 60, seed=3)
    space = declared_embeddings(corpus, SPACE_ID)
    queries = case_queries(space, corpus)
    spec = IvfPq(n_clusters=16, nprobe=1, n_subvectors=4, n_bits=6, n_iters=5)
    declared = Sweep(
        name="one-pass",
        index=spec,
        vary={"nprobe": [1, 4, 16]},
        seeds=[1, 2, 3],
        k=10,
        stop_rule=StopRule(0.0, 100.0),
        claim=Claim(0.5),
    )
    truth, _ = search_all(ExactIndex.build(space), queries, 10)
    for found in run_sweep(declared, space, queries, budget_s=6):
        index = AnnIndex.build(declared.spec(found.value, found.seed), space)
        rows, _ = search_all(index, queries, 10)
        wanted = ann_recall(truth, rows, queries.eligible_counts(800), 10).mean
        assert found.mean_recall == pytest.approx(wanted, abs=5e-4)
