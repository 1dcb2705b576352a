from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.quality.embeddings import vector_scalars
from rag_assets.quality.suites import check_embeddings
from rag_assets_tests.quality.examples import (
    bad,
    corpus,
    only,
    space,
    with_cell,
    with_component,
    with_row,
    without_row,
)


def spoilt(row: int, **values: object) -> EmbeddedSpace:
    return replace(space(), items=with_cell(space().items, row, **values))


@pytest.mark.parametrize("space_id", ["plain", "unit"])
def test_healthy_embeddings_pass(space_id: str) -> None:
    report = check_embeddings(space(space_id), corpus())
    assert report.passed
    # plain: norms 2, 1, sqrt 2, 1, 3
    if space_id == "plain":
        assert report.numbers["norm_min"] == 1
        assert report.numbers["norm_median"] == pytest.approx(2**0.5)
        assert report.numbers["norm_max"] == 3


@pytest.mark.parametrize(
    ("found", "column", "sample"),
    [
        (lambda: spoilt(1, role="picture"), "role", ("d2",)),
        (lambda: spoilt(1, role=None), "role", ("d2",)),
        (lambda: spoilt(1, acl=[]), "acl_count", ("d2",)),
        (lambda: spoilt(1, acl=None), "acl_count", ("d2",)),
        (lambda: spoilt(1, content_sha256=None), "content_sha256", ("d2",)),
        (lambda: spoilt(1, content_sha256="0" * 63), "content_sha256", ("d2",)),
        (lambda: spoilt(1, content_sha256="F" * 64), "content_sha256", ("d2",)),
        # d2 is (0, 1): with a first component of 0.01 its norm is off by 5e-5
        (lambda: with_component(space("unit"), 1, 0.01), "l2_norm", ("d2",)),
        # d1 is (2, 0)
        (lambda: with_component(space(), 0, 0.0), "l2_norm", ("d1",)),
        (lambda: replace(space(), vectors=np.ones((5, 3), np.float32)), "dimension", ("plain",)),
        (lambda: replace(space(), vectors=np.ones((5, 2))), "dtype", ("plain",)),
    ],
)
def test_one_fault_fails_one_expectation_and_names_the_record(
    found: Callable[[], EmbeddedSpace], column: str, sample: tuple[str, ...]
) -> None:
    report = check_embeddings(found(), corpus())
    outcome = only(report)
    assert (outcome.status, outcome.column, outcome.sample) == ("failed", column, sample)
    assert report.blocks


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_component_that_is_not_finite_fails_and_so_does_its_norm(value: float) -> None:
    failing = bad(check_embeddings(with_component(space(), 2, value), corpus()))
    assert set(failing) == {
        ("items", "n_nonfinite", "column_values_to_be_in_set"),
        ("items", "l2_norm", "column_values_to_not_be_null"),
    }
    assert {outcome.sample for outcome in failing.values()} == {("d3",)}


def test_a_norm_within_the_tolerance_passes() -> None:
    # (0.6 + 1e-6, 0.8) has norm 1 + 0.6e-6
    assert check_embeddings(with_component(space("unit"), 2, 0.6 + 1e-6), corpus()).passed
    # (0.6 + 2e-6, 0.8) has norm 1 + 1.2e-6
    assert not check_embeddings(with_component(space("unit"), 2, 0.6 + 2e-6), corpus()).passed


def test_an_item_without_a_vector_fails_the_row_count() -> None:
    failing = bad(check_embeddings(replace(space(), vectors=space().vectors[:4]), corpus()))
    assert failing["space", "item_rows, vector_rows", "column_pair_values_to_be_equal"].sample == (
        "plain",
    )
    assert failing["items", "l2_norm", "column_values_to_not_be_null"].sample == ("q2",)


def test_a_missing_item_blocks_where_the_source_declares_it() -> None:
    whole = space()
    lacking = EmbeddedSpace(
        whole.contract, without_row(whole.items, 1), whole.vectors[[0, 2, 3, 4]]
    )
    report = check_embeddings(lacking, corpus())
    failing = bad(report)
    assert report.blocks
    assert {column for _, column, _ in failing} == {"held_and_declared", "held_and_canonical"}
    assert {outcome.sample for outcome in failing.values()} == {("d2",)}
    assert {outcome.observed for outcome in failing.values()} == {"missing"}


def test_a_space_whose_source_holds_fewer_items_only_warns() -> None:
    # Row 1 of space_items is d2 in the space `plain`.
    declared = replace(corpus(), space_items=without_row(corpus().space_items, 1))
    whole = space()
    held = EmbeddedSpace(whole.contract, without_row(whole.items, 1), whole.vectors[[0, 2, 3, 4]])
    report = check_embeddings(held, declared)
    assert only(report).column == "held_and_canonical"
    assert not report.passed
    assert report.severity == "warn"
    assert not report.blocks
    assert "**warning**" in report.markdown()


def test_an_item_held_twice_fails() -> None:
    whole = space()
    doubled = EmbeddedSpace(
        whole.contract, with_row(whole.items, 0), whole.vectors[[0, 1, 2, 3, 4, 0]]
    )
    assert only(check_embeddings(doubled, corpus())).sample == ("d1",)


def test_an_item_that_no_source_declares_fails() -> None:
    failing = bad(check_embeddings(spoilt(1, item_id="d9"), corpus()))
    outcome = failing["item set", "held_and_declared", "column_values_to_be_in_set"]
    assert set(outcome.sample) == {"d2", "d9"}
    assert set(outcome.observed.split(", ")) == {"missing", "not declared"}


def test_an_empty_space_fails() -> None:
    empty = EmbeddedSpace(space().contract, space().items[:0], space().vectors[:0])
    failing = bad(check_embeddings(empty, corpus()))
    assert ("items", None, "table_row_count_to_be_between") in failing


def test_norms_are_those_of_stored_components_whatever_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_assets.quality.embeddings._BLOCK_ELEMENTS", 8)
    # 3-4-5 triangles at the ends of the range of float64, where squares leave it.
    vectors = np.array([[3, 4], [3e200, 4e200], [3e-200, 4e-200], [0, 0], [np.nan, np.inf]])
    np.save(tmp_path / "vectors.npy", vectors)
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    norms, nonfinite = vector_scalars(mapped, 6)
    np.testing.assert_allclose(norms[:4], [5, 5e200, 5e-200, 0], rtol=1e-15)
    assert np.isnan(norms[4:]).all()
    assert nonfinite.tolist() == [0, 0, 0, 0, 2, -1]
