"""Approximate indexes: how close to exact search, how large, and how they are kept."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rag_assets.canonical.contracts import METRICS, Metric
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.errors import EngineMissing, StoreError, UsageError
from rag_assets.indexes.ann import AnnIndex
from rag_assets.indexes.exact import top_k
from rag_assets.indexes.specs import (
    FilterPolicy,
    Hnsw,
    IndexSpec,
    IvfFlat,
    IvfPq,
    IvfRabitq,
    Refine,
)
from rag_assets_tests.indexes.ann_examples import LISTS, SPECS, clustered, clustered_space
from rag_assets_tests.results.spaces import embedded_space

Found = tuple[np.ndarray, np.ndarray]


@cache
def space_of(metric: Metric) -> EmbeddedSpace:
    return clustered_space(metric)


@cache
def built(name: str, metric: Metric) -> AnnIndex:
    return AnnIndex.build(SPECS[name], space_of(metric), threads=1)


def queries_of(space: EmbeddedSpace) -> np.ndarray:
    return space.vectors[space.document_count :]


def recall(found: np.ndarray, truth: np.ndarray) -> float:
    return float(
        np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, truth, strict=True)])
    )


def same(one: Found, two: Found) -> bool:
    return np.array_equal(one[0], two[0]) and np.array_equal(one[1], two[1], equal_nan=True)


# Least recall@10 at 6 of 16 lists: nearly every neighbour of clustered data is in its list, 5-bit
# codes tell few of them apart, and re-ranking 80 candidates finds most.
LEAST = {"ivf_flat": 0.95, "ivf_pq": 0.4, "ivf_rabitq": 0.3, "hnsw": 0.95}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", [name for name in SPECS if "policy" not in name])
def test_finds_most_of_what_exact_search_finds_in_clustered_data(name: str, metric: Metric) -> None:
    space = space_of(metric)
    truth, exact = top_k(space.documents, queries_of(space), 10, metric)
    hits = built(name, metric).search_detailed(queries_of(space), 10, threads=1)
    assert recall(hits.rows, truth) >= LEAST.get(name, 0.85)
    assert hits.path == "index"
    assert (hits.nprobe == (0 if name == "hnsw" else 6)).all()
    if name.endswith("exact"):
        same_rows = hits.rows == truth
        assert same_rows.mean() > 0.5
        np.testing.assert_array_equal(hits.scores[same_rows], exact[same_rows])
    # higher scores first; never above the best that exists by more than codes blur
    assert (np.diff(hits.scores, axis=1) <= 1e-6 * np.abs(exact).max()).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("spec", [IvfFlat(1, 1), IvfFlat(7, 7, n_iters=3)])
def test_uncompressed_lists_that_are_all_probed_equal_exact_search(
    spec: IndexSpec, metric: Metric, dtype: str
) -> None:
    space = embedded_space(*clustered(500, 24, 3, 30), metric, dtype=dtype)  # type: ignore[arg-type]
    index = AnnIndex.build(spec, space, threads=1)
    for eligible in [None, np.arange(0, 500, 3), np.array([499])]:
        rows, scores = index.search(queries_of(space), 12, eligible, threads=1)
        truth, exact = top_k(space.documents, queries_of(space), 12, metric, eligible=eligible)
        np.testing.assert_array_equal(rows, truth)
        largest = np.nanmax(np.abs(exact))
        np.testing.assert_allclose(scores, exact, rtol=0, atol=3e-6 * largest)
        assert rows.dtype == np.int64
        assert scores.dtype == np.float64


@pytest.mark.parametrize("spec", [IvfFlat(4, 4), Hnsw(), IvfPq(4, 4, n_bits=4, n_subvectors=3)])
def test_equal_scores_are_ordered_by_row_and_zero_vectors_score_zero(spec: IndexSpec) -> None:
    documents = clustered(60, 24, 9)[0]
    documents[[10, 20, 30]] = documents[40]
    documents[[5, 6]] = 0.0
    space = embedded_space(documents, np.stack([documents[40], np.zeros(24)]), "cosine")
    rows, scores = AnnIndex.build(spec, space, threads=1).search(queries_of(space), 60)
    first = rows[0].tolist()
    twins = [first.index(row) for row in (10, 20, 30, 40)]
    assert twins == list(range(twins[0], twins[0] + 4))
    assert scores[0][np.isin(rows[0], [5, 6])].tolist() == [0.0, 0.0]
    assert rows[1][rows[1] >= 0].tolist() == sorted(rows[1][rows[1] >= 0])
    assert set(scores[1][rows[1] >= 0]) == {0.0}


@pytest.mark.parametrize("seed", range(5))
def test_the_published_configuration_keeps_its_low_recall_and_its_size(seed: int) -> None:
    """5,000 unit Gaussian vectors; 100 of them plus 0.01 noise, normalized again, as queries."""
    rng = np.random.default_rng(seed)
    documents = rng.standard_normal((5000, 64))
    documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    queries = documents[rng.choice(5000, 100, replace=False)]
    queries = queries + 0.01 * rng.standard_normal(queries.shape)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    space = embedded_space(documents, queries, "cosine")
    spec = IvfPq(n_clusters=64, nprobe=8, n_iters=8, seed=seed, n_subvectors=8, n_bits=4)
    index = AnnIndex.build(spec, space, threads=1)
    truth, _ = top_k(space.documents, queries_of(space), 10, "cosine")
    found, _ = index.search(queries_of(space), 10, threads=1)
    assert 0.20 <= recall(found, truth) <= 0.27
    # codes 5000 * 8 * 4 / 8 + ids 5000 * 8 + centroids 64 * 64 * 4 + codebooks 16 * 64 * 4
    # = 20,000 + 40,000 + 16,384 + 4,096 = 80,480, and FAISS's headers
    assert index.nbytes == pytest.approx(81_172, rel=0.01)
    assert index.nbytes > 80_480
    # the table holds one float per list, subvector and codebook entry: 64 * 8 * 16 * 4 bytes;
    # beside it a norm (8 bytes) and a list number (4) for each vector
    assert index.memory_bytes == index.nbytes + 32_768 + 5000 * 12
    assert index.warnings == ()


@pytest.mark.parametrize(
    ("spec", "reads_vectors"),
    [
        (IvfFlat(4, 1), False),
        (IvfPq(4, 1, n_subvectors=2, n_bits=2, refine=Refine(4, "sq8")), False),
        (IvfPq(4, 1, n_subvectors=2, n_bits=2, refine=Refine(4, "exact")), True),
        (IvfFlat(4, 1, policy=FilterPolicy(exact_below=0)), False),
        (IvfFlat(4, 1, policy=FilterPolicy(exact_below=1)), True),
    ],
)
def test_vectors_that_searching_reads_count_as_memory(spec: IndexSpec, reads_vectors: bool) -> None:
    rng = np.random.default_rng(6)
    space = embedded_space(rng.standard_normal((200, 8)), rng.standard_normal((1, 8)), "dot")
    index = AnnIndex.build(spec, space, threads=1)
    vectors = space.documents.nbytes
    beside = index.memory_bytes - index.nbytes - index.engine.table_bytes
    assert beside == 200 * (8 + 4) + (vectors if reads_vectors else 0)


@pytest.mark.parametrize("name", ["ivf_pq sq8", "ivf_flat", "ivf_rabitq sq8", "hnsw"])
def test_equal_seed_and_data_give_equal_bytes_on_any_thread_count(name: str) -> None:
    space = space_of("cosine")
    digests = {AnnIndex.build(SPECS[name], space, threads=n).digest for n in (1, 2, 3)}
    assert digests == {built(name, "cosine").digest}
    assert AnnIndex.build(replace(SPECS[name], seed=7), space, threads=1).digest not in digests


def test_a_learned_rotation_is_reproducible_too() -> None:
    space = embedded_space(*clustered(400, 16, 2), "cosine")
    spec = IvfPq(4, 2, n_iters=3, n_subvectors=4, n_bits=3, opq=True)
    assert len({AnnIndex.build(spec, space, threads=n).digest for n in (1, 2)}) == 1


def test_training_takes_a_seeded_sample_of_many_vectors() -> None:
    # more than 256 vectors for each of 2 clusters: two seeds train on different ones
    space = embedded_space(*clustered(3000, 8, 2), "euclidean")
    digests = [AnnIndex.build(IvfFlat(2, 1, seed=s), space, threads=1).digest for s in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("name", SPECS)
def test_a_saved_index_answers_as_before(name: str, tmp_path: Path) -> None:
    space, index = space_of("cosine"), built(name, "cosine")
    index.save(tmp_path)
    loaded = AnnIndex.load(tmp_path, space)
    eligible = np.arange(0, 2000, 4)
    for among in (None, eligible):
        one = index.search(queries_of(space), 10, among, threads=1)
        assert same(one, loaded.search(queries_of(space), 10, among, threads=2))
    for fact in ("spec", "warnings", "nbytes", "memory_bytes", "digest"):
        assert getattr(loaded, fact) == getattr(index, fact)
    assert loaded.engine.measure() == (loaded.nbytes, loaded.digest)


def test_an_index_of_other_vectors_is_refused(tmp_path: Path) -> None:
    space = space_of("cosine")
    built("ivf_flat", "cosine").save(tmp_path)
    vectors = space.vectors.copy()
    vectors[0, 0] += 0.25
    others = [
        space_of("dot"),
        clustered_space("cosine", count=1999),
        EmbeddedSpace(space.contract, space.items, vectors),
    ]
    for other in others:
        with pytest.raises(StoreError, match="was built for other vectors"):
            AnnIndex.load(tmp_path, other)
    (tmp_path / "ann_index.faiss").write_bytes(b"torn")
    with pytest.raises(StoreError, match="cannot be read"):
        AnnIndex.load(tmp_path, space)


def test_search_parameters_change_without_building() -> None:
    space = embedded_space(*clustered(2000, 32, 5, 40, spread=2.0), "cosine")
    index, graph = (AnnIndex.build(SPECS[n], space, threads=1) for n in ("ivf_flat", "hnsw"))
    truth, _ = top_k(space.documents, queries_of(space), 10, "cosine")
    found = [
        recall(index.with_search_parameter("nprobe", n).search(queries_of(space), 10)[0], truth)
        for n in (1, 4, LISTS)
    ]
    assert found[0] < found[1] < found[2] == 1.0
    narrow = graph.with_search_parameter("ef_search", 10).search(queries_of(space), 10)[0]
    assert recall(narrow, truth) < recall(graph.search(queries_of(space), 10)[0], truth)
    for parameter, value, message in [
        ("nprobe", 17, "nprobe is 17, more than n_clusters"),
        ("nprobe", True, "nprobe is True; it must be an integer"),
        ("n_clusters", 4, "'n_clusters' is no parameter of searching; those are ef_search, nprobe"),
        ("ef_search", 4, "an ivf_flat index has no parameter 'ef_search'"),
    ]:
        with pytest.raises(UsageError, match=message):
            index.with_search_parameter(parameter, value)


def test_faults_are_refused_before_the_engine_is_even_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    space = embedded_space(*clustered(50, 6, 1), "cosine")
    with pytest.raises(UsageError) as refused:
        AnnIndex.build(IvfPq(60, 70, n_subvectors=4, n_bits=9), space)
    message = str(refused.value)
    assert message.startswith("the ivf_pq index of space 's' cannot be built: ")
    for part in ("n_clusters is 60", "nprobe is 70", "n_subvectors is 4", "n_bits is 9"):
        assert part in message
    with pytest.raises(EngineMissing, match="FAISS cannot be imported") as missing:
        AnnIndex.build(IvfFlat(2, 1), space)
    assert "\n" not in str(missing.value)


def test_too_few_training_vectors_are_a_warning_and_stderr_stays_silent(
    capfd: pytest.CaptureFixture[str],
) -> None:
    space = embedded_space(*clustered(300, 16, 1), "cosine")
    spec = IvfPq(10, 2, n_iters=3, n_subvectors=4, n_bits=4, opq=True, refine=Refine())
    index = AnnIndex.build(spec, space)
    index.search(space.documents[:3], 5)
    # 300 / 10 = 30.0 and 300 / 16 = 18.75, both under 39
    assert index.warnings == (
        "the 10 clusters are trained on 300 vectors, 30.0 for each; "
        "below 39 the centroids follow chance",
        "the 16 entries of each codebook (n_bits 4) are trained on 300 vectors, 18.8 for each; "
        "below 39 the centroids follow chance",
    )
    enough = AnnIndex.build(IvfRabitq(7, 2), space)  # 300 / 7 = 42.9
    assert enough.warnings == AnnIndex.build(Hnsw(), space).warnings == ()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_vectors_that_are_not_finite_are_refused(value: float) -> None:
    space, index = space_of("cosine"), built("ivf_flat", "cosine")
    queries = queries_of(space).copy()
    queries[3, 0] = value
    with pytest.raises(UsageError, match="query 3 has norm"):
        index.search(queries, 5)
    documents = space.documents.copy()
    documents[2, 1] = value
    with pytest.raises(UsageError, match="document 2 has norm"):
        AnnIndex.build(IvfFlat(2, 1), embedded_space(documents[:50], [documents[0]], "cosine"))


def test_queries_of_another_shape_and_norms_beyond_float32_are_refused() -> None:
    index = built("ivf_flat", "cosine")
    with pytest.raises(UsageError, match="dimension 32"):
        index.search(np.ones((2, 31), np.float32), 5)
    with pytest.raises(UsageError, match="k is 0"):
        index.search(np.ones((2, 32), np.float32), 0)
    # 1e30 squared is beyond float32's 3.4e38; cosine works on unit vectors
    large = clustered(50, 6, 1)[0] * 1e30
    with pytest.raises(UsageError, match=r"euclidean in float32 .* 1e-15 to 1e\+15"):
        AnnIndex.build(IvfFlat(2, 1), embedded_space(large, large[:1], "euclidean"))
    space = embedded_space(large, large[:1], "cosine")
    assert AnnIndex.build(IvfFlat(2, 2), space).search(large[:1], 1)[0].tolist() == [[0]]
