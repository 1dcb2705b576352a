"""What a pass over documents picks out, against plain comparisons and sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.canonical.contracts import METRICS, Metric
from rag_assets.indexes import exact
from rag_assets.indexes.exact import top_k
from rag_assets.indexes.scan import group_peaks, reached, reaching_pairs
from rag_assets_tests.indexes.test_exact import same


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 400),
    columns=st.integers(1, 9),
    dtype=st.sampled_from(["float32", "int32"]),
    share=st.sampled_from([0.0, 0.01, 0.5, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_target_that_reaches_its_threshold_is_found_once(
    rows: int, columns: int, dtype: str, share: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    tile = rng.integers(-1000, 1000, (rows, columns)).astype(dtype)
    threshold = np.quantile(tile, 1.0 - share, axis=0, method="higher").astype(dtype)
    if share == 0.0:
        threshold += 1
    if rows > 100:  # few targets in all reach theirs
        threshold[1:] = 2000
    found = reached(tile, group_peaks(tile), threshold)
    wanted = [
        (row, column)
        for row in range(rows)
        for column in range(columns)
        if tile[row, column] >= threshold[column]
    ]
    assert sorted(zip(*(part.tolist() for part in found), strict=True)) == wanted


@pytest.mark.parametrize("counts", [[3, 3, 4], [2, 60, 2, 2, 2, 2]])  # a table, and too empty a one
def test_pairs_within_the_margin_of_the_kth_are_kept(counts: list[int]) -> None:
    rng = np.random.default_rng(41)
    query_rows = np.repeat(np.arange(len(counts)), counts)
    values = rng.integers(0, 30, len(query_rows)).astype(np.float32)
    margin = np.arange(len(counts)) + 0.5
    wanted = [
        at
        for at, query in enumerate(query_rows)
        if values[at] >= sorted(values[query_rows == query])[-2] - margin[query]
    ]
    assert reaching_pairs(query_rows, values, margin, 2).tolist() == wanted


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gathering_the_eligible_documents_first_changes_nothing(
    metric: Metric, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(42)
    documents = rng.standard_normal((2000, 40)).astype(dtype)
    documents[900:1000] = documents[3]
    queries = np.concatenate([documents[:20], rng.standard_normal((30, 40)).astype(dtype)])
    eligible = np.flatnonzero(rng.random(2000) < 0.7)
    found = top_k(documents, queries, 12, metric, eligible=eligible)
    monkeypatch.setattr(exact, "_GATHERED", 0)
    for threads, block_rows in ((1, None), (2, None), (2, 100)):
        options = {"threads": threads, "block_rows": block_rows}
        other = top_k(documents, queries, 12, metric, eligible=eligible, **options)  # type: ignore[arg-type]
        assert same(found, other)
