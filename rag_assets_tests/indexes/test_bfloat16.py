"""Exact search that proposes on bfloat16 gives, to the bit, what it gives on float32."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rag_assets.canonical.contracts import METRICS, Metric
from rag_assets.indexes import bfloat16, exact
from rag_assets.indexes.bfloat16 import bfloat16_targets, product_errors, rounded_products
from rag_assets.indexes.exact import top_k
from rag_assets.indexes.proposals import prepare_proposals
from rag_assets.indexes.ranking import norms
from rag_assets_tests.indexes.test_exact import same

native = pytest.mark.skipif(bfloat16._numkong() is None, reason="no fast bfloat16 products here")


def compare(
    documents: np.ndarray, queries: np.ndarray, k: int, metric: Metric, **options: object
) -> bool:
    """Whether bfloat16, float32 and whatever the search picks itself agree to the bit."""
    found = [top_k(documents, queries, k, metric, **options)]  # type: ignore[arg-type]
    for least in (0, 1 << 62):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(exact, "LEAST_ON_BFLOAT16", least)
            found.append(top_k(documents, queries, k, metric, **options))  # type: ignore[arg-type]
    return same(found[0], found[1]) and same(found[1], found[2])


@native
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_agrees_with_float32_among_duplicates_and_eligible_documents(
    metric: Metric, dtype: str, shift: float
) -> None:
    rng = np.random.default_rng(31)
    documents = (rng.standard_normal((4000, 50)) + shift).astype(dtype)
    documents[2000:2100] = documents[7]
    documents[-1] = 0.0
    queries = np.concatenate([documents[:30], -documents[30:33], np.zeros((1, 50), dtype)])
    eligible = np.flatnonzero(rng.random(4000) < 0.3)
    for options in ({}, {"threads": 2, "block_rows": 300}, {"eligible": eligible}):
        assert compare(documents, queries, 10, metric, **options)
    assert compare(documents, queries[:3], 1000, metric)


@native
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("power", [-100, -66, 0, 66, 100])
def test_agrees_with_float32_far_from_one(metric: Metric, power: int) -> None:
    rng = np.random.default_rng(32)
    documents = (rng.standard_normal((600, 24)) * 2.0**power).astype(np.float32)
    assert compare(documents, documents[:20], 7, metric)


@native
@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=30, deadline=None)
@given(
    documents=arrays.arrays(
        np.float32,
        arrays.array_shapes(min_dims=2, max_dims=2, max_side=24),
        elements=st.one_of(st.integers(-3, 3).map(float), st.floats(-9, 9, width=32)),
    ),
    k=st.integers(1, 45),
    block_rows=st.sampled_from([None, 5, 17]),
)
def test_agrees_with_float32_on_any_vectors(
    metric: Metric, documents: np.ndarray, k: int, block_rows: int | None
) -> None:
    assert compare(documents, documents[:4], k, metric, block_rows=block_rows)


@native
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["random", "one sign", "worst rounding"])
@pytest.mark.parametrize("measured", [0, 300])
def test_targets_differ_from_exact_ones_by_less_than_half_the_margin(
    metric: Metric, kind: str, measured: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bfloat16, "_MEASURED", measured)
    rng = np.random.default_rng(33)
    documents = rng.standard_normal((300, 64)).astype(np.float32)
    if kind != "random":
        documents = np.abs(documents)
    if kind == "worst rounding":  # halfway between two bfloat16 values just above a power of two
        documents = (1.0 + 2.0**-8 - 2.0**-20 * rng.random((300, 64))).astype(np.float32)
    queries = documents[:40]
    lengths, query_lengths = norms(documents), norms(queries)
    proposals = prepare_proposals(documents, None, lengths, queries, query_lengths, metric)
    targets = bfloat16_targets(proposals)
    assert targets is not None
    ((_, tile),) = targets.tiles(300, 40)()(0, 300)
    # The targets of the module `proposals`, in float64 from the vectors themselves.
    x, q = documents.astype(np.float64), queries.astype(np.float64)
    exact_targets = x @ q.T
    if metric == "cosine":
        exact_targets /= lengths[:, np.newaxis]
    if metric == "euclidean":
        exact_targets -= lengths[:, np.newaxis] ** 2 / 2
    else:
        exact_targets /= query_lengths
    difference = np.abs(tile - exact_targets * proposals.scale)
    assert (difference <= targets.margin / 2).all()
    if kind == "random":
        assert difference.max() > targets.margin.max() / 50  # the bound is of the right size


@native
@pytest.mark.parametrize("kind", ["random", "one sign", "worst rounding"])
def test_rounded_products_are_wrong_by_less_than_their_bound(kind: str) -> None:
    rng = np.random.default_rng(35)
    documents = rng.standard_normal((200, 48)).astype(np.float32)
    if kind != "random":
        documents = np.abs(documents)
    if kind == "worst rounding":  # halfway between two bfloat16 values just above a power of two
        documents = (1.0 + 2.0**-8 - 2.0**-20 * rng.random((200, 48))).astype(np.float32)
    queries = documents[:30] * np.float32(3.0)
    errors = product_errors(queries)
    assert errors is not None
    x, q = documents.astype(np.float64), queries.astype(np.float64)
    wrong = np.abs(rounded_products(documents, queries) - x @ q.T)
    assert (wrong <= errors * np.linalg.norm(x, axis=1)[:, np.newaxis]).all()


def test_without_the_library_float32_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    bfloat16._numkong.cache_clear()
    monkeypatch.setitem(sys.modules, "numkong", None)
    documents = np.random.default_rng(34).standard_normal((300, 8)).astype(np.float32)
    try:
        arguments = (documents, None, norms(documents), documents, norms(documents))
        assert bfloat16_targets(prepare_proposals(*arguments, "dot")) is None
        assert product_errors(documents) is None
        assert top_k(documents, documents, 1, "cosine")[0][:, 0].tolist() == list(range(300))
    finally:
        bfloat16._numkong.cache_clear()
