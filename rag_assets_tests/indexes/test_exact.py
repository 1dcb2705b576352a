"""Exact search at the edges of float32, under poisoned rows, and against plain float64."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from rag_assets.canonical.contracts import METRICS, Metric
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.errors import StoreError, UsageError
from rag_assets.indexes.exact import ExactIndex, top_k
from rag_assets.indexes.ranking import grid_steps, norms, pair_scores, rank_pairs, ranking_keys
from rag_assets_tests.indexes.rational import rational_ranking
from rag_assets_tests.results.spaces import embedded_space

Found = tuple[np.ndarray, np.ndarray]


def same(one: Found, two: Found) -> bool:
    return np.array_equal(one[0], two[0]) and one[1].tobytes() == two[1].tobytes()


def every_score(documents: np.ndarray, queries: np.ndarray, metric: str) -> np.ndarray:
    """Plain float64 scores by NumPy's own reductions: float64[m, n]."""
    x, q = documents.astype(np.float64), queries.astype(np.float64)
    if metric == "euclidean":
        return -np.stack([np.linalg.norm(x - one, axis=1) for one in q])
    dots = np.stack([(x * one).sum(axis=1) for one in q])
    if metric == "dot":
        return dots
    dots /= np.linalg.norm(q, axis=1)[:, np.newaxis] * np.linalg.norm(x, axis=1)
    return dots


def brute_force(documents: np.ndarray, queries: np.ndarray, k: int, metric: str) -> np.ndarray:
    """The best rows by full float64 scoring on the grid: 2^-30 of a power of two >= S."""
    scores = every_score(documents, queries, metric)
    largest = np.linalg.norm(documents.astype(np.float64), axis=1).max()
    lengths = np.linalg.norm(queries.astype(np.float64), axis=1)
    attainable = {"cosine": lengths * 0 + 1, "dot": lengths * largest}.get(
        metric, lengths + largest
    )
    steps = 2.0 ** np.ceil(np.log2(attainable)) * 2.0**-30
    keys = np.rint(scores / steps[:, np.newaxis])
    rows = np.arange(len(documents))
    return np.stack([np.lexsort((rows, -key))[:k] for key in keys])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("unit", [True, False])
def test_agrees_with_plain_float64_for_any_block_size_and_thread_count(
    metric: Metric, dtype: str, unit: bool
) -> None:
    rng = np.random.default_rng(11)
    documents = rng.standard_normal((3000, 96)).astype(dtype)
    queries = rng.standard_normal((200, 96)).astype(dtype)
    documents[1500:1600] = documents[0]  # a hundred duplicates
    queries[0] = documents[0]
    if unit:
        documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    found = top_k(documents, queries, 10, metric)
    assert np.array_equal(found[0], brute_force(documents, queries, 10, metric))
    assert found[0][0].tolist() == [0, *range(1500, 1509)] or metric == "dot"
    scores = np.take_along_axis(every_score(documents, queries, metric), found[0], axis=1)
    np.testing.assert_allclose(found[1], scores, rtol=0, atol=1e-13 * np.abs(scores).max())
    for block_rows, threads in [(7, 1), (64, 2), (977, 3), (5000, 1)]:
        if block_rows == 7 and (unit or dtype == "float64"):
            continue  # slow, and the same path
        other = top_k(documents, queries, 10, metric, block_rows=block_rows, threads=threads)
        assert same(found, other)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dimension", [1, 7, 33, 384])
def test_a_question_alone_scores_to_the_bit_as_in_a_batch(metric: Metric, dimension: int) -> None:
    rng = np.random.default_rng(3)
    documents = rng.standard_normal((500, dimension)).astype(np.float32)
    queries = rng.standard_normal((20, dimension)).astype(np.float32)
    rows, scores = top_k(documents, queries, 1, metric)
    for place in range(20):
        alone = top_k(documents, queries[place : place + 1], 1, metric)
        assert same(alone, (rows[place : place + 1], scores[place : place + 1]))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("power", [-149, -140, -100, -66, 66, 100, 123])
def test_extreme_magnitudes_rank_as_exact_rationals(metric: Metric, power: int) -> None:
    scale = np.float32(2.0**power)  # 2^-149 is the smallest subnormal, 9 · 2^123 near the largest
    rng = np.random.default_rng(5)
    documents = (rng.integers(-9, 10, (300, 5)) * scale).astype(np.float32)
    queries = (rng.integers(-9, 10, (10, 5)) * scale).astype(np.float32)
    rows, _ = top_k(documents, queries, 300, metric, block_rows=50)
    exact = [[Fraction(float(value)) for value in row] for row in documents]
    for query, found in zip(queries, rows, strict=True):
        one = [Fraction(float(value)) for value in query]
        assert found.tolist() == rational_ranking(metric, one, exact, range(300), 300)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("spread", [10, 35])
def test_magnitudes_mixed_over_many_powers_of_ten(metric: Metric, spread: int) -> None:
    rng = np.random.default_rng(6)
    documents = rng.standard_normal((400, 8)) * 10.0 ** rng.uniform(-spread, spread, (400, 1))
    queries = rng.standard_normal((30, 8)) * 10.0 ** rng.uniform(-spread, spread, (30, 1))
    for dtype in ("float32", "float64"):
        x, q = documents.astype(dtype), queries.astype(dtype)
        rows, _ = top_k(x, q, 20, metric, block_rows=64)
        assert np.array_equal(rows, brute_force(x, q, 20, metric))


def test_float64_vectors_beyond_the_range_of_float32_are_ranked() -> None:
    documents = np.array([[3e90, 0.0], [1e90, 0.0], [2e90, 0.0]])
    rows, scores = top_k(documents, np.array([[1e-90, 0.0]]), 3, "dot")
    assert rows.tolist() == [[0, 2, 1]]
    np.testing.assert_allclose(scores, [[3.0, 2.0, 1.0]], rtol=1e-15)


def test_float64_differences_that_float32_cannot_see_are_ranked() -> None:
    # Steps of 1e-8 vanish in float32 (1 + 1e-8 rounds to 1) and stand above the grid (4e-9).
    documents = 1.0 + 1e-8 * np.array([[3.0], [1.0], [4.0], [2.0]])
    rows, _ = top_k(documents, np.array([[1.0]]), 2, "euclidean")
    assert rows.tolist() == [[1, 3]]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ten_thousand_identical_documents_give_the_smallest_rows(
    metric: Metric, dtype: str
) -> None:
    vector = np.random.default_rng(8).standard_normal(32).astype(dtype)
    documents = np.tile(vector, (10_000, 1))
    queries = np.stack([vector, -vector, vector[::-1]])
    for threads in (1, 2):
        rows, _ = top_k(documents, queries, 25, metric, block_rows=1024, threads=threads)
        assert rows.tolist() == [list(range(25))] * 3


def test_so_many_near_ties_that_pairs_are_thinned_out_are_still_ranked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # All 4,000 distances lie within the float32 bound; 100 pairs may wait at once.
    monkeypatch.setattr("rag_assets.indexes.scan._PENDING", 100)
    monkeypatch.setattr("rag_assets.indexes.scan._PENDING_EACH", 0)
    rng = np.random.default_rng(9)
    documents = 1.0 + 1e-7 * rng.integers(0, 50, (4000, 16)).astype(np.float64)
    queries = np.ones((3, 16))
    rows, _ = top_k(documents, queries, 7, "euclidean", block_rows=100, threads=2)
    assert np.array_equal(rows, brute_force(documents, queries, 7, "euclidean"))


@pytest.mark.parametrize("metric", METRICS)
def test_five_thousand_dimensions(metric: Metric) -> None:
    rng = np.random.default_rng(10)
    documents = rng.standard_normal((200, 5000)).astype(np.float32)
    queries = rng.standard_normal((4, 5000)).astype(np.float32)
    rows, _ = top_k(documents, queries, 20, metric)
    assert np.array_equal(rows, brute_force(documents, queries, 20, metric))


@pytest.mark.parametrize("metric", METRICS)
def test_one_document_and_a_larger_k(metric: Metric) -> None:
    rows, scores = top_k(np.ones((1, 1), np.float32), np.ones((2, 1), np.float32), 3, metric)
    assert rows.tolist() == [[0, -1, -1]] * 2
    assert scores[:, 0].tolist() == [0.0 if metric == "euclidean" else 1.0] * 2
    assert np.isnan(scores[:, 1:]).all()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("poison", [np.nan, np.inf, 3e38])
@pytest.mark.parametrize("prepared", [True, False])
def test_rows_that_are_not_eligible_never_enter_scoring(
    metric: Metric, poison: float, prepared: bool
) -> None:
    rng = np.random.default_rng(12)
    documents = rng.standard_normal((60, 8)).astype(np.float32)
    queries = documents[:4].copy()
    eligible = np.arange(1, 60, 2)
    clean = top_k(documents, queries, 10, metric, eligible=eligible)
    documents[::2] = poison
    with np.errstate(all="raise" if not prepared else "ignore"):
        found = top_k(
            documents,
            queries,
            10,
            metric,
            eligible=eligible,
            document_norms=norms(documents) if prepared else None,
        )
    assert same(clean, found)


@pytest.mark.parametrize("metric", ["dot", "euclidean"])
def test_the_grid_is_that_of_the_eligible_documents(metric: Metric) -> None:
    # Row 0 would stretch the grid to 1e9 · 2^-30, about 1, where rows 1 and 2 tie.
    documents = np.array([[1e9, 0], [1, 0], [1.25, 0]], dtype=np.float64)
    query = np.array([[1.25, 0]])
    rows, _ = top_k(documents, query, 2, metric, eligible=np.array([1, 2]))
    assert rows.tolist() == [[2, 1]]
    rows, _ = top_k(documents, query, 3, metric)
    assert rows.tolist() == [[0, 1, 2] if metric == "dot" else [1, 2, 0]]


def test_grid_steps_are_powers_of_two_at_the_attainable_magnitude() -> None:
    # dot: 3 · 5 = 15 -> 16; 1 · 5 = 5 -> 8. euclidean: 3 + 5 = 8 -> 8; 1 + 5 = 6 -> 8.
    lengths = np.array([3.0, 1.0, 0.0])
    assert (grid_steps("dot", lengths, 5.0) * 2**30).tolist() == [16.0, 8.0, 2**30]
    assert (grid_steps("euclidean", lengths, 5.0) * 2**30).tolist() == [8.0, 8.0, 8.0]
    assert (grid_steps("cosine", lengths, 5.0) * 2**30).tolist() == [1.0, 1.0, 1.0]


def test_keys_round_scores_to_the_nearest_step() -> None:
    steps = np.array([0.25])
    assert ranking_keys(np.array([0.24, 0.26, -0.4, 0.0]), steps).tolist() == [1, 1, -2, 0]


@pytest.mark.parametrize("k", [1, 3, 50])
def test_pairs_rank_alike_in_any_order(k: int) -> None:
    # Query 0 has 1 pair, query 1 none, query 2 two, ...; keys repeat, so rows break ties.
    rng = np.random.default_rng(15)
    counts = [1, 0, 2, 9, 9, 5]
    queries = np.repeat(np.arange(6), counts)
    rows = np.concatenate([np.sort(rng.permutation(20)[:count]) for count in counts])
    keys = rng.integers(-2, 3, len(rows))
    expected = [
        (query, *pair[1:], rank)
        for query in range(6)
        for rank, pair in enumerate(
            sorted((-keys[at], rows[at]) for at in np.flatnonzero(queries == query))[:k]
        )
    ]
    for order in (np.arange(len(rows)), rng.permutation(len(rows))):
        positions, ranks = rank_pairs(queries[order], rows[order], keys[order], k)
        at = order[positions]
        assert list(zip(queries[at], rows[at], ranks, strict=True)) == expected


def test_scores_worked_out_by_hand() -> None:
    documents = np.array([[3, 4], [0, 2]], dtype=np.float32)
    queries = np.array([[0, -1]], dtype=np.float32)
    pairs = (np.array([0, 0]), np.array([0, 1]))
    lengths = norms(documents), norms(queries)
    assert lengths[0].tolist() == [5.0, 2.0]
    # cosine -4/(5·1), -2/(2·1); dot -4, -2; euclidean -sqrt(9 + 25), -sqrt(0 + 9)
    assert pair_scores(documents, queries, pairs, "cosine", *lengths).tolist() == [-0.8, -1.0]
    assert pair_scores(documents, queries, pairs, "dot", *lengths).tolist() == [-4.0, -2.0]
    far = pair_scores(documents, queries, pairs, "euclidean", *lengths)
    assert far.tolist() == [-(34**0.5), -3.0]


def folded(values: list[float]) -> float:
    """The documented order of a sum: the upper half onto the lower until one value is left."""
    while len(values) > 1:
        half = (len(values) + 1) // 2
        upper = values[half:] + [0.0] * (2 * half - len(values))
        values = [low + high for low, high in zip(values[:half], upper, strict=True)]
    return values[0]


@pytest.mark.parametrize("dimension", [1, 2, 31, 33, 100, 777])
def test_scores_have_the_bits_of_the_documented_order_of_additions(dimension: int) -> None:
    rng = np.random.default_rng(14)
    one, two = rng.standard_normal((2, 1, dimension)).astype(np.float32)
    x, q = one[0].tolist(), two[0].tolist()
    pairs = (np.array([0]), np.array([0]))
    lengths = norms(one), norms(two)
    dot = folded([a * b for a, b in zip(x, q, strict=True)])
    length = math.sqrt(folded([a * a for a in x])) * math.sqrt(folded([b * b for b in q]))
    gap = math.sqrt(folded([(a - b) ** 2 for a, b in zip(x, q, strict=True)]))
    assert pair_scores(one, two, pairs, "dot", *lengths).tolist() == [dot]
    assert pair_scores(one, two, pairs, "cosine", *lengths).tolist() == [dot / length]
    assert pair_scores(one, two, pairs, "euclidean", *lengths).tolist() == [-gap]


@pytest.mark.parametrize("k", [0, -1, True, 2.0, "3", None])
def test_k_must_be_a_positive_integer(k: object) -> None:
    with pytest.raises(UsageError, match="positive integer"):
        top_k(np.ones((1, 1)), np.ones((1, 1)), k, "dot")  # type: ignore[arg-type]


def test_vectors_that_are_not_finite_are_refused() -> None:
    good, bad = np.ones((2, 2)), np.array([[1.0, 1.0], [np.nan, 1.0]])
    with pytest.raises(UsageError, match="query 1 has norm nan"):
        top_k(good, bad, 1, "dot")
    with pytest.raises(UsageError, match="eligible document 1 has norm nan"):
        top_k(bad, good, 1, "dot")
    with pytest.raises(UsageError, match="dimension"):
        top_k(good, np.ones((2, 3)), 1, "dot")


def test_no_eligible_document_and_no_query_give_padding() -> None:
    nobody = np.empty(0, dtype=np.int64)
    rows, scores = top_k(np.ones((2, 2)), np.ones((1, 2)), 2, "dot", eligible=nobody)
    assert rows.tolist() == [[-1, -1]]
    assert np.isnan(scores).all()
    assert top_k(np.ones((2, 2)), np.ones((0, 2)), 2, "dot")[0].shape == (0, 2)


@pytest.fixture
def space() -> EmbeddedSpace:
    rng = np.random.default_rng(13)
    return embedded_space(rng.standard_normal((50, 6)), rng.standard_normal((3, 6)), "cosine")


def test_a_saved_index_answers_as_the_built_one(space: EmbeddedSpace, tmp_path: Path) -> None:
    built = ExactIndex.build(space)
    built.save(tmp_path)
    loaded = ExactIndex.load(tmp_path, space)
    queries = space.vectors[50:]
    assert same(built.search(queries, 5), loaded.search(queries, 5))
    assert same(built.search(queries, 5), top_k(space.documents, queries, 5, "cosine"))
    assert loaded.nbytes == 50 * 8


def test_an_index_of_other_vectors_is_refused(space: EmbeddedSpace, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        ExactIndex.load(tmp_path, space)
    ExactIndex.build(space).save(tmp_path)
    others: list[tuple[np.ndarray, np.ndarray, Metric]] = [
        (space.vectors[:50] * 2, space.vectors[50:], "cosine"),
        (space.vectors[:49], space.vectors[50:], "cosine"),
        (space.vectors[:50], space.vectors[50:], "dot"),
    ]
    for vectors, queries, metric in others:
        with pytest.raises(StoreError, match="build it again"):
            ExactIndex.load(tmp_path, embedded_space(vectors, queries, metric))
