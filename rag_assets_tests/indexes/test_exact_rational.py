"""Exact search against exact rational arithmetic: small-integer vectors full of ties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.canonical.contracts import METRICS, Metric
from rag_assets.indexes.exact import top_k
from rag_assets_tests.indexes.rational import rational_ranking

GROUPS = ("a", "b", "c")


@st.composite
def integer_spaces(draw: st.DrawFn) -> tuple[list[list[int]], list[list[int]], list[list[str]]]:
    """(documents, queries, the groups that may see each document)."""
    dimension = draw(st.integers(1, 6))
    vector = st.lists(st.integers(-3, 3), min_size=dimension, max_size=dimension)
    bases = draw(st.lists(vector, min_size=1, max_size=6))
    scaled = st.builds(
        lambda base, factor: [factor * component for component in base],
        st.sampled_from(bases),
        st.integers(1, 5),
    )
    documents = draw(st.lists(st.one_of(scaled, vector), min_size=1, max_size=40))
    queries = draw(st.lists(st.one_of(scaled, vector), min_size=1, max_size=5))
    acl = st.lists(st.sampled_from(GROUPS), unique=True, max_size=3)
    acls = draw(st.lists(acl, min_size=len(documents), max_size=len(documents)))
    return documents, queries, acls


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=100, deadline=None)
@given(
    space=integer_spaces(),
    k=st.integers(1, 45),
    group=st.sampled_from(GROUPS),
    dtype=st.sampled_from(["float32", "float64"]),
    block_rows=st.sampled_from([None, 1, 3, 7]),
    threads=st.sampled_from([1, 2, 3]),
)
def test_rankings_equal_those_of_rational_arithmetic(
    metric: Metric,
    space: tuple[list[list[int]], list[list[int]], list[list[str]]],
    k: int,
    group: str,
    dtype: str,
    block_rows: int | None,
    threads: int,
) -> None:
    documents, queries, acls = space
    eligible = [row for row, acl in enumerate(acls) if group in acl]
    rows, scores = top_k(
        np.array(documents, dtype=dtype),
        np.array(queries, dtype=dtype),
        k,
        metric,
        eligible=np.array(eligible, dtype=np.int64),
        block_rows=block_rows,
        threads=threads,
    )
    for query, found, score in zip(queries, rows, scores, strict=True):
        wanted = rational_ranking(metric, query, documents, eligible, k)
        assert found.tolist() == wanted + [-1] * (k - len(wanted))
        assert np.isnan(score).tolist() == (found < 0).tolist()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_hundreds_of_parallel_vectors_are_one_tie_under_cosine(metric: Metric, dtype: str) -> None:
    # 600 multiples 1..7 of two directions, in an order that no norm follows.
    rng = np.random.default_rng(7)
    directions = np.array([[1, 2, 3], [3, 1, 2]])
    documents = directions[rng.integers(0, 2, 600)] * rng.integers(1, 8, 600)[:, np.newaxis]
    query = [2, 3, 5]
    rows, _ = top_k(documents.astype(dtype), np.array([query], dtype=dtype), 500, metric)
    wanted = rational_ranking(metric, query, documents.tolist(), list(range(600)), 500)
    assert rows[0].tolist() == wanted
