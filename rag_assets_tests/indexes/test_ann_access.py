"""Approximate search among eligible documents: what is hidden stays hidden, and what it costs."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.canonical.contracts import METRICS, Metric
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.indexes.ann import AnnIndex
from rag_assets.indexes.exact import top_k
from rag_assets.indexes.specs import FilterPolicy, Hnsw, IvfFlat, varied
from rag_assets_tests.indexes.ann_examples import LISTS, SPECS, clustered
from rag_assets_tests.results.spaces import embedded_space

COUNT = 1200


@cache
def twins_space(metric: Metric) -> EmbeddedSpace:
    """Documents 0 to 599 each have an exact twin 600 further on; queries are the first 30."""
    documents, _ = clustered(COUNT // 2, 24, 4)
    return embedded_space(np.concatenate([documents, documents]), documents[:30], metric)


@cache
def built(name: str, metric: Metric) -> AnnIndex:
    return AnnIndex.build(SPECS[name], twins_space(metric), threads=1)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", SPECS)
def test_an_unauthorized_twin_of_the_query_never_comes_back(name: str, metric: Metric) -> None:
    space, index = twins_space(metric), built(name, metric)
    queries = space.vectors[COUNT:]
    eligible = np.arange(COUNT // 2, COUNT)  # the twins of the queries' own documents
    for value in range(1, LISTS + 1) if hasattr(index.spec, "nprobe") else [1, 5, 200]:
        parameter = "nprobe" if hasattr(index.spec, "nprobe") else "ef_search"
        hits = index.with_search_parameter(parameter, value).search_detailed(queries, 8, eligible)
        found = hits.rows[hits.rows >= 0]
        assert np.isin(found, eligible).all()
        assert len(found)
        if value == LISTS or value == 200:  # all is visited: the eligible twin is first
            blurred = name in ("ivf_pq", "ivf_rabitq") or metric == "dot"
            assert blurred or (hits.rows[:, 0] == np.arange(30) + COUNT // 2).mean() > 0.9


@settings(max_examples=120, deadline=None)
@given(
    name=st.sampled_from(sorted(SPECS)),
    metric=st.sampled_from(METRICS),
    share=st.sampled_from([0.001, 0.005, 0.05, 0.5, 0.99]),
    seed=st.integers(0, 10_000),
    k=st.integers(1, 40),
    value=st.integers(1, LISTS),
    policy=st.none() | st.builds(FilterPolicy, st.integers(0, 80), st.integers(1, 400)),
)
def test_results_are_eligible_distinct_and_padded_for_any_rights(
    name: str,
    metric: Metric,
    share: float,
    seed: int,
    k: int,
    value: int,
    policy: FilterPolicy | None,
) -> None:
    index = built(name, metric).with_search_parameter("policy", policy)
    if hasattr(index.spec, "nprobe"):
        index = index.with_search_parameter("nprobe", value)
    eligible = np.flatnonzero(np.random.default_rng(seed).random(COUNT) < share)
    queries = twins_space(metric).vectors[COUNT:][:5]
    hits = index.search_detailed(queries, k, eligible, threads=1)
    assert hits.rows.shape == hits.scores.shape == (5, k)
    for row, score in zip(hits.rows, hits.scores, strict=True):
        found = row[row >= 0]
        assert len(set(found)) == len(found) <= len(eligible)
        assert np.isin(found, eligible).all()
        # padding comes last, and only padding has no score
        assert (row[: len(found)] >= 0).all()
        assert np.array_equal(np.isnan(score), row < 0)
        assert (np.abs(score[: len(found)]) < 1e6).all()
    limit = -1 if policy is None else policy.exact_below
    assert hits.path == (
        "empty" if len(eligible) == 0 else "exact" if len(eligible) <= limit else "index"
    )
    if hits.path == "exact":
        assert ((hits.rows >= 0).sum(axis=1) == min(k, len(eligible))).all()


@pytest.mark.parametrize("name", SPECS)
def test_no_rights_means_nothing_and_no_call_of_the_engine(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the engine was called")

    index = built(name, "cosine")
    monkeypatch.setattr(type(index.engine.outer), "search", refuse)
    hits = index.search_detailed(twins_space("cosine").vectors[:3], 4, np.empty(0, np.int64))
    assert hits.path == "empty"
    assert (hits.rows == -1).all()
    assert np.isnan(hits.scores).all()
    assert hits.nprobe.tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", SPECS)
def test_all_rights_are_the_same_as_no_filter(name: str) -> None:
    queries = twins_space("cosine").vectors[COUNT:]
    everything = built(name, "cosine").search_detailed(queries, 7, np.arange(COUNT))
    unfiltered = built(name, "cosine").search_detailed(queries, 7)
    assert np.array_equal(everything.rows, unfiltered.rows)
    assert everything.path == unfiltered.path


def test_few_eligible_documents_are_searched_exactly_under_the_policy() -> None:
    queries = twins_space("cosine").vectors[COUNT:]
    for name in ("ivf_pq policy", "hnsw policy"):  # exact below 50
        for size, path in [(50, "exact"), (51, "index")]:
            eligible = np.arange(7, 7 + size)
            hits = built(name, "cosine").search_detailed(queries, 10, eligible)
            assert hits.path == path
            if path == "exact":
                truth = top_k(
                    twins_space("cosine").documents, queries, 10, "cosine", eligible=eligible
                )
                assert np.array_equal(hits.rows, truth[0])
                assert np.array_equal(hits.scores, truth[1])
                assert (hits.nprobe == 0).all()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", ["ivf_flat", "ivf_pq opq sq8", "ivf_rabitq"])
def test_the_policy_probes_the_smallest_prefix_of_lists_that_holds_enough(
    name: str, metric: Metric
) -> None:
    """At most 15 of these 16 lists are probed in steps of one, so that nothing is rounded."""
    index = built(name, metric)
    queries = twins_space(metric).vectors[COUNT:].astype(np.float32)
    eligible = np.flatnonzero(np.random.default_rng(8).random(COUNT) < 0.2)
    least = 100
    nearby = index.with_search_parameter("nprobe", 2).with_search_parameter(
        "policy", FilterPolicy(exact_below=0, least_candidates=least)
    )
    hits = nearby.search_detailed(queries, 5, eligible)
    assert len(set(hits.nprobe)) > 1

    # by hand: order the lists of each query by distance to the centroids, count the eligible
    lists, seen = index.engine.lists, queries.astype(np.float64)
    if metric == "cosine":
        seen /= np.linalg.norm(seen, axis=1, keepdims=True)
    if index.engine.rotation is not None:
        seen = index.engine.rotation.apply(seen.astype(np.float32)).astype(np.float64)
    centroids = lists.quantizer.reconstruct_n(0, LISTS).astype(np.float64)
    assert index.engine.list_no is not None
    held = np.bincount(index.engine.list_no[eligible], minlength=LISTS)
    for query, nprobe in zip(seen, hits.nprobe, strict=True):
        far = -(centroids @ query) if metric == "dot" else ((centroids - query) ** 2).sum(axis=1)
        counts = held[np.argsort(far)].cumsum()
        assert nprobe == max(2, 1 + np.argmax(counts >= least))

    # with so many lists, each query answers as if nprobe had been set to that number
    for value in set(hits.nprobe.tolist()):
        fixed = index.with_search_parameter("nprobe", value)
        chosen = hits.nprobe == value
        rows, _ = fixed.search(queries[chosen], 5, eligible)
        assert np.array_equal(rows, hits.rows[chosen])


def test_the_number_of_probes_is_rounded_up_by_an_eighth_at_most() -> None:
    documents, queries = clustered(3000, 12, 6, 200)
    space = embedded_space(documents, queries, "cosine")
    spec = IvfFlat(200, 3, n_iters=2, policy=FilterPolicy(exact_below=10, least_candidates=150))
    index = AnnIndex.build(spec, space, threads=1)
    eligible = np.flatnonzero(np.random.default_rng(2).random(3000) < 0.1)
    hits = index.search_detailed(space.vectors[3000:], 10, eligible)
    held = np.bincount(index.engine.list_no[eligible], minlength=200)  # type: ignore[index]
    unit = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    centroids = index.engine.lists.quantizer.reconstruct_n(0, 200)
    far = ((centroids[np.newaxis] - unit[:, np.newaxis]) ** 2).sum(axis=2)
    needed = 1 + (held[np.argsort(far, axis=1)].cumsum(axis=1) < 150).sum(axis=1)
    assert needed.min() > 16
    assert (hits.nprobe >= needed).all()
    assert (hits.nprobe <= needed * 9 / 8).all()
    assert len(set(hits.nprobe)) < len(set(needed))


def test_the_policy_wins_back_the_recall_that_a_narrow_filter_costs() -> None:
    documents, queries = clustered(4000, 24, 6, 60, spread=1.0)
    space = embedded_space(documents, queries, "cosine")
    plain = AnnIndex.build(varied(SPECS["ivf_pq sq8"], "nprobe", 1), space, threads=1)
    eligible = np.flatnonzero(np.random.default_rng(2).random(4000) < 0.05)
    truth, _ = top_k(space.documents, space.vectors[4000:], 10, "cosine", eligible=eligible)

    def recall(policy: FilterPolicy | None) -> float:
        index = plain.with_search_parameter("policy", policy)
        found, _ = index.search(space.vectors[4000:], 10, eligible)
        return float(np.mean([np.isin(a, b).mean() for a, b in zip(truth, found, strict=True)]))

    without, wider, exact = recall(None), recall(FilterPolicy(10, 150)), recall(FilterPolicy())
    assert without < 0.6 < 0.85 < wider <= exact == 1.0


def test_an_eligible_set_can_be_prepared_once() -> None:
    index, queries = built("ivf_pq policy", "cosine"), twins_space("cosine").vectors[COUNT:]
    rows = np.arange(0, COUNT, 3)
    prepared = index.eligible_set(rows)
    one = index.search_detailed(queries, 5, prepared)
    two = index.search_detailed(queries, 5, rows)
    assert np.array_equal(one.rows, two.rows)
    assert np.array_equal(one.nprobe, two.nprobe)


def test_graphs_take_no_lists_into_account() -> None:
    index = built("hnsw", "cosine").with_search_parameter("policy", FilterPolicy(10, 10**6))
    hits = index.search_detailed(twins_space("cosine").vectors[:4], 5, np.arange(0, COUNT, 2))
    assert hits.path == "index"
    assert hits.nprobe.tolist() == [0] * 4
    assert isinstance(index.spec, Hnsw)
