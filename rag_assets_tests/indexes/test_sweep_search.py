"""One pass over the inverted lists answers a sweep as one search per value of nprobe does."""

from __future__ import annotations

import numpy as np
import pytest

from rag_assets.canonical.contracts import METRICS, Metric
from rag_assets.errors import UsageError
from rag_assets.indexes import sweep_search
from rag_assets.indexes.ann import AnnIndex
from rag_assets.indexes.specs import FilterPolicy, IndexSpec, IvfFlat, IvfPq, IvfRabitq, Refine
from rag_assets.indexes.sweep_search import sweep_nprobe
from rag_assets_tests.results.spaces import embedded_space

FLAT = IvfFlat(n_clusters=20, nprobe=2, n_iters=4)
PQ = IvfPq(n_clusters=20, nprobe=2, n_iters=4, n_subvectors=8, n_bits=5)
OPQ = IvfPq(n_clusters=20, nprobe=2, n_iters=4, n_subvectors=8, n_bits=5, opq=True)
VALUES = [7, 1, 3, 20]


def vectors() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(31)
    documents = rng.standard_normal((3000, 16)).astype(np.float32)
    documents[5] = 0.0
    queries = documents[:40] + 0.3 * rng.standard_normal((40, 16)).astype(np.float32)
    queries[39] = 0.0
    return documents, queries


def built(spec: IndexSpec, metric: Metric) -> AnnIndex:
    return AnnIndex.build(spec, embedded_space(*vectors(), metric))


def agreement(one: np.ndarray, two: np.ndarray) -> float:
    """The share of places with the same row, in any order within a query."""
    return float(
        np.mean([len(np.intersect1d(*pair)) / len(pair[0]) for pair in zip(one, two, strict=True)])
    )


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("spec", [FLAT, PQ, OPQ])
def test_every_value_is_answered_as_by_its_own_search(spec: IndexSpec, metric: Metric) -> None:
    index, (_, queries) = built(spec, metric), vectors()
    eligible = np.flatnonzero(np.random.default_rng(32).random(3000) < 0.4)
    for among in (None, eligible):
        answers = sweep_nprobe(index, queries, 10, VALUES, among, threads=2)
        assert list(answers) == [1, 3, 7, 20]
        for value, (rows, scores) in answers.items():
            alone = index.with_search_parameter("nprobe", value).search(queries, 10, among)
            # Codes tie often, and which of equal documents come is nobody's promise.
            assert agreement(rows[:39], alone[0][:39]) > 0.99
            np.testing.assert_allclose(scores, alone[1], rtol=0, atol=2e-3)
            assert among is None or np.isin(rows[rows >= 0], among).all()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("spec", [FLAT, PQ])
@pytest.mark.parametrize("shift", [0.0, 30.0])  # so far away, bfloat16 can rule out nothing
def test_float32_alone_finds_what_it_finds_after_bfloat16(
    spec: IndexSpec, metric: Metric, shift: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents, queries = vectors()
    space = embedded_space(documents + np.float32(shift), queries + np.float32(shift), metric)
    index = AnnIndex.build(spec, space)
    eligible = np.flatnonzero(np.random.default_rng(33).random(3000) < 0.6)
    either = []
    for least in (sweep_search._FEW, 1):
        monkeypatch.setattr(sweep_search, "_FEW", least)
        either.append(sweep_nprobe(index, space.vectors[3000:], 10, VALUES, eligible))
    monkeypatch.setattr(sweep_search, "product_errors", lambda queries: None)
    alone = sweep_nprobe(index, space.vectors[3000:], 10, VALUES, eligible)
    for found in either:
        for value, (rows, scores) in alone.items():
            atol = 2e-3 if metric != "dot" else 1e-5 * np.nanmax(np.abs(scores))
            np.testing.assert_allclose(found[value][1], scores, rtol=0, atol=atol)
            assert shift or agreement(found[value][0][:39], rows[:39]) > 0.99


def test_short_lists_give_short_results() -> None:
    index, (_, queries) = built(FLAT, "euclidean"), vectors()
    eligible = np.arange(0, 3000, 100)
    answers = sweep_nprobe(index, queries, 40, [1, 20], eligible)
    for value, (rows, scores) in answers.items():
        alone = index.with_search_parameter("nprobe", value).search(queries, 40, eligible)
        assert np.array_equal(np.sort(rows, axis=1), np.sort(alone[0], axis=1))
        assert (np.isnan(scores) == (rows < 0)).all()
    assert (answers[20][0] >= 0).sum(axis=1).tolist() == [30] * 40


@pytest.mark.parametrize("twin", [0, 17, 1234])
def test_an_ineligible_twin_of_the_query_never_comes_back(twin: int) -> None:
    index, (documents, _) = built(PQ, "cosine"), vectors()
    eligible = np.delete(np.arange(3000), twin)
    answers = sweep_nprobe(index, documents[twin : twin + 1], 3000, [1, 2, 20], eligible)
    assert all(twin not in rows for rows, _ in answers.values())
    assert twin in sweep_nprobe(index, documents[twin : twin + 1], 3000, [20])[20][0]


@pytest.mark.parametrize(
    "spec",
    [
        IvfPq(n_clusters=20, nprobe=2, n_iters=4, refine=Refine(4, "exact")),
        IvfRabitq(n_clusters=20, nprobe=2, n_iters=4),
        IvfFlat(n_clusters=20, nprobe=2, n_iters=4, policy=FilterPolicy(10, 500)),
    ],
)
def test_other_indexes_are_searched_once_per_value(spec: IndexSpec) -> None:
    index, (_, queries) = built(spec, "cosine"), vectors()
    for value, (rows, scores) in sweep_nprobe(index, queries, 5, [1, 4]).items():
        alone = index.with_search_parameter("nprobe", value).search(queries, 5)
        assert np.array_equal(rows, alone[0])
        assert np.array_equal(scores, alone[1], equal_nan=True)


def test_nobody_eligible_and_values_out_of_range() -> None:
    index, (_, queries) = built(FLAT, "dot"), vectors()
    rows, scores = sweep_nprobe(index, queries, 3, [2], np.empty(0, np.int64))[2]
    assert (rows == -1).all()
    assert np.isnan(scores).all()
    with pytest.raises(UsageError, match="nprobe is 21"):
        sweep_nprobe(index, queries, 3, [1, 21])
    with pytest.raises(UsageError, match="positive integer"):
        sweep_nprobe(index, queries, 0, [1])
    with pytest.raises(UsageError, match="dimension 16"):
        sweep_nprobe(index, queries[:, :3], 3, [1])
