"""Exact search that proposes on 8-bit integers gives, to the bit, what it gives on float32."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rag_assets.canonical.contracts import METRICS, Metric
from rag_assets.errors import StoreError
from rag_assets.indexes import exact, int8
from rag_assets.indexes.exact import ExactIndex, top_k
from rag_assets.indexes.int8 import Int8Copy, has_native_int8, prepare_copy
from rag_assets.indexes.ranking import norms
from rag_assets.indexes.scan import scan_candidates
from rag_assets_tests.indexes.test_exact import same
from rag_assets_tests.results.spaces import embedded_space

pytestmark = pytest.mark.skipif(not has_native_int8(), reason="no fast 8-bit products here")


@pytest.fixture(autouse=True, scope="module")
def _always_on_int8() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "LEAST_ON_INT8", 0)
        patch.setattr(exact, "LEAST_ON_BFLOAT16", 1 << 62)
        yield


def compare(
    documents: np.ndarray, queries: np.ndarray, k: int, metric: Metric, **options: object
) -> bool:
    """Whether int8 and float32 agree to the bit."""
    lengths = norms(documents)
    copy = prepare_copy(documents, lengths, metric)
    given = {"document_norms": lengths, **options}
    one = top_k(documents, queries, k, metric, copy=copy, **given)  # type: ignore[arg-type]
    two = top_k(documents, queries, k, metric, **given)  # type: ignore[arg-type]
    return same(one, two)


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The types of targets that searches scan from here on."""
    kinds: list[str] = []
    scan = scan_candidates

    def recorded(targets: object, *rest: object, **options: object) -> object:
        kinds.append(type(targets).__name__)
        return scan(targets, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(exact, "scan_candidates", recorded)
    return kinds


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_agrees_with_float32_among_duplicates_and_eligible_documents(
    metric: Metric, dtype: str, shift: float, scanned: list[str]
) -> None:
    rng = np.random.default_rng(21)
    documents = (rng.standard_normal((5000, 48)) + shift).astype(dtype)
    documents[2000:2100] = documents[7]
    documents[-1] = 0.0
    queries = np.concatenate([documents[:30], -documents[30:33], np.zeros((1, 48), dtype)])
    eligible = np.flatnonzero(rng.random(5000) < 0.3)
    for options in ({}, {"threads": 2, "block_rows": 300}, {"eligible": eligible}):
        assert compare(documents, queries, 10, metric, **options)
    assert compare(documents, queries[:3], 1000, metric)
    assert scanned.count("Int8Targets") == 4


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
    chosen=st.integers(0, 2**40),
)
def test_agrees_with_float32_on_any_vectors(
    metric: Metric, documents: np.ndarray, k: int, block_rows: int | None, chosen: int
) -> None:
    eligible = np.array([row for row in range(len(documents)) if chosen >> row & 1], dtype=np.int64)
    queries = documents[: 1 + chosen % 5]
    assert compare(documents, queries, k, metric, block_rows=block_rows)
    assert compare(documents, queries, k, metric, block_rows=block_rows, eligible=eligible)


@pytest.mark.parametrize("metric", METRICS)
def test_norms_beyond_easy_arithmetic_are_left_to_float32(
    metric: Metric, scanned: list[str]
) -> None:
    rng = np.random.default_rng(22)
    documents = rng.standard_normal((300, 8)).astype(np.float32)
    documents[:3] *= np.float32(2.0**60)
    assert compare(documents, documents[:9], 5, metric)
    assert "Int8Targets" not in scanned
    # Documents that nobody may see do not matter, be they ever so long, or not numbers at all.
    documents[0] = np.nan
    eligible = np.arange(3, 300)
    assert compare(documents, documents[3:9], 5, metric, eligible=eligible)
    assert scanned[-2:] == ["Int8Targets", "Proposals"]


@pytest.mark.parametrize("metric", METRICS)
def test_where_integers_rule_out_too_little_float32_takes_over(
    metric: Metric, scanned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # One long document makes the scale so coarse that the others cannot be told apart.
    monkeypatch.setattr("rag_assets.indexes.scan._PENDING", 100)
    monkeypatch.setattr("rag_assets.indexes.scan._PENDING_EACH", 0)
    rng = np.random.default_rng(23)
    documents = 1.0 + 1e-4 * rng.standard_normal((3000, 8)).astype(np.float32)
    documents[0] = -1000.0
    assert compare(documents, documents[5:8], 4, metric)
    assert scanned[:2] == ["Int8Targets", "Proposals"]


@pytest.mark.parametrize("metric", METRICS)
def test_residuals_bound_what_the_codes_lose(metric: Metric) -> None:
    rng = np.random.default_rng(24)
    documents = (rng.standard_normal((2000, 33)) * rng.uniform(0, 4, (2000, 1)) + 1).astype("f4")
    lengths = norms(documents)
    copy = prepare_copy(documents, lengths, metric)
    vectors = documents.astype(np.float64)
    if metric == "cosine":
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    coded = copy.scale * copy.codes.astype(np.float64)
    lost = np.linalg.norm(vectors - copy.centre - coded, axis=1)
    assert (lost <= copy.residuals).all()
    assert (copy.residuals <= 1.001 * lost + 1e-5).all()
    assert np.linalg.norm(coded, axis=1).max() <= copy.longest
    assert np.abs(copy.codes).max() == 127


def test_an_index_prepares_keeps_and_uses_the_copy(tmp_path: Path, scanned: list[str]) -> None:
    rng = np.random.default_rng(25)
    space = embedded_space(rng.standard_normal((90, 6)), rng.standard_normal((3, 6)), "cosine")
    queries = space.vectors[90:]
    built = ExactIndex.build(space)
    built.save(tmp_path)
    loaded = ExactIndex.load(tmp_path, space)
    plain = top_k(space.documents, queries, 5, "cosine")
    scanned.clear()
    assert same(built.search(queries, 5), plain)
    assert same(loaded.search(queries, 5), plain)
    assert scanned == ["Int8Targets", "Int8Targets"]
    # norms, codes, residuals and centre
    assert loaded.nbytes == 90 * 8 + 90 * 6 + 90 * 4 + 6 * 4
    codes = np.load(tmp_path / "int8_codes.npy")
    np.save(tmp_path / "int8_codes.npy", codes[::-1])
    with pytest.raises(StoreError, match="build it again"):
        ExactIndex.load(tmp_path, space)
    (tmp_path / "int8_codes.npy").unlink()
    with pytest.raises(StoreError, match="cannot be read"):
        ExactIndex.load(tmp_path, space)


def test_without_the_library_the_same_index_answers_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scanned: list[str]
) -> None:
    rng = np.random.default_rng(26)
    space = embedded_space(rng.standard_normal((90, 6)), rng.standard_normal((3, 6)), "dot")
    queries = space.vectors[90:]
    built = ExactIndex.build(space)
    built.save(tmp_path)
    with_it = built.search(queries, 5)
    monkeypatch.setitem(sys.modules, "numkong", None)
    int8._numkong.cache_clear()
    try:
        assert same(ExactIndex.load(tmp_path, space).search(queries, 5), with_it)
        assert ExactIndex.build(space).copy is None
    finally:
        monkeypatch.undo()
        int8._numkong.cache_clear()
    assert scanned == ["Int8Targets", "Proposals"]


def test_a_copy_of_other_documents_is_noticed() -> None:
    documents = np.random.default_rng(27).standard_normal((50, 6)).astype(np.float32)
    lengths = norms(documents)
    copy: Int8Copy = prepare_copy(documents, lengths, "dot")
    rows = np.arange(50)
    assert copy.holds(documents, lengths, rows, "dot")
    assert not copy.holds(documents + np.float32(0.1), lengths, rows, "dot")
    assert not copy.holds(documents[:40], lengths[:40], rows[:40], "dot")
