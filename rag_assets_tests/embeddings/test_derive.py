"""Derived spaces: what they hold, what their contracts say, what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.embeddings.derive import (
    Derivation,
    Float16,
    Int8,
    Truncate,
    derivation_of,
    derive,
)
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.errors import InputError, UsageError
from rag_assets_tests.embeddings.corpora import contract, corpus_of


def space_of(rows: list[list[float]], queries: int = 1, **changes: object) -> EmbeddedSpace:
    """The last `queries` rows are queries."""
    of = contract(**{"dimension": len(rows[0]), "normalized": False, **changes})
    count = len(rows) - queries
    documents = {f"d{n}": f"document {n}" for n in range(count)}
    corpus = corpus_of(documents, {f"q{n}": f"query {n}" for n in range(queries)}, of)
    return EmbeddedSpace(of, corpus.items_of("s"), np.array(rows, dtype=of.numpy_dtype))


# (0.6, 0, 0.8) cut to two is (0.6, 0), of unit length (1, 0); (2, 1, 2) / 3 gives (2, 1) / sqrt 5.
UNIT = [[0.6, 0.0, 0.8], [2 / 3, 1 / 3, 2 / 3]]


def test_truncation_cuts_and_makes_unit_length_again() -> None:
    parent = space_of(UNIT, normalized=True)
    made = derive(parent, Truncate(2), "cut", matryoshka_dimensions=[2])
    np.testing.assert_allclose(
        made.space.vectors, [[1.0, 0.0], [2 / 5**0.5, 1 / 5**0.5]], atol=1e-7
    )
    of = made.space.contract
    assert (of.space_id, of.dimension, of.normalized) == ("cut", 2, True)
    assert of.derivation == "first 2 components and made unit length again"
    assert of.derived_from == parent.contract.signature
    assert made.stored_bytes_per_vector == 8
    assert made.space.vectors.flags.c_contiguous


def test_truncation_of_vectors_without_unit_length_only_cuts() -> None:
    made = derive(space_of([[3, 4, 9], [1, 2, 3]]), Truncate(2), "cut", matryoshka_dimensions=[2])
    np.testing.assert_array_equal(made.space.vectors, [[3, 4], [1, 2]])
    assert not made.space.contract.normalized


@pytest.mark.parametrize(("width", "allowed"), [(2, []), (2, [1]), (3, [3]), (4, [4]), (0, [0])])
def test_truncation_needs_a_dimension_that_the_model_allows(width: int, allowed: list[int]) -> None:
    with pytest.raises(UsageError, match=f"cannot be truncated to {width} of 3 dimensions"):
        derive(space_of(UNIT), Truncate(width), "cut", matryoshka_dimensions=allowed)


def test_float16_rounds_to_half_precision_and_promises_no_unit_length() -> None:
    # Between 1 and 2 half precision has steps of 2^-10 = 0.0009765625.
    made = derive(space_of([[1.0004, 1.0006], [1.0, 0.5]], normalized=True), Float16(), "half")
    np.testing.assert_array_equal(made.space.vectors, [[1.0, 1.0009765625], [1.0, 0.5]])
    assert made.space.vectors.dtype == np.float32
    assert not made.space.contract.normalized
    assert made.stored_bytes_per_vector == 4


def test_int8_by_vector_has_127_steps_of_the_largest_component() -> None:
    # Scale 12.7 / 127 = 0.1: -3.33 is -33.3 steps, so -3.3; scale 254 / 127 = 2: 3 is 1.5, so 2.
    made = derive(space_of([[12.7, -3.33], [254.0, 3.0]]), Int8(), "bytes")
    np.testing.assert_allclose(made.space.vectors, [[12.7, -3.3], [254.0, 4.0]], rtol=1e-6)
    assert made.stored_bytes_per_vector == 2 + 4


def test_int8_by_dimension_fits_documents_and_cuts_queries_off() -> None:
    # Scales 1.27 / 127 = 0.01 and 25.4 / 127 = 0.2 from the documents; the query's 9 is cut to
    # 1.27, its -0.31 is -1.55 steps of 0.2, so -0.4.
    made = derive(space_of([[1.27, 25.4], [0.5, 0.3], [9.0, -0.31]]), Int8("dimension"), "bytes")
    np.testing.assert_allclose(
        made.space.vectors, [[1.27, 25.4], [0.5, 0.4], [1.27, -0.4]], rtol=1e-5
    )
    assert made.stored_bytes_per_vector == 2
    other = derive(space_of([[1.28, 25.4], [0.5, 0.3], [9.0, -0.31]]), Int8("dimension"), "bytes")
    assert made.space.contract.signature != other.space.contract.signature


@settings(max_examples=50, deadline=None)
@given(
    rows=st.lists(
        st.lists(st.floats(-100, 100, width=32), min_size=3, max_size=3).filter(
            lambda row: max(map(abs, row)) > 1e-3
        ),
        min_size=2,
        max_size=6,
    )
)
def test_int8_by_vector_is_never_off_by_more_than_half_a_step(rows: list[list[float]]) -> None:
    parent = space_of(rows)
    made = derive(parent, Int8(), "bytes").space.vectors
    step = np.abs(parent.vectors).max(axis=1, keepdims=True) / 127
    assert (np.abs(made - parent.vectors) <= step * 0.5001).all()


def test_layers_know_what_they_were_made_from() -> None:
    parent = space_of(UNIT, normalized=True)
    cut = derive(parent, Truncate(2), "cut", matryoshka_dimensions=[2]).space
    small = derive(cut, Int8(), "small").space
    assert small.contract.derived_from == cut.contract.signature
    signatures = {space.contract.signature for space in (parent, cut, small)}
    assert len(signatures) == 3
    assert small.items is parent.items


@pytest.mark.parametrize("derivation", [Float16(), Int8(), Int8("dimension")])
def test_a_float64_parent_becomes_float32(derivation: Derivation) -> None:
    made = derive(space_of(UNIT, dtype="float64"), derivation, "small").space
    assert made.vectors.dtype == np.float32
    assert made.contract.dtype == "float32"


def test_vectors_that_a_derivation_would_destroy_are_refused() -> None:
    with pytest.raises(InputError, match="item d0: not_derivable: found a vector of zeros"):
        derive(space_of([[0, 0, 1], [1, 0, 0]]), Truncate(2), "cut", matryoshka_dimensions=[2])
    with pytest.raises(InputError, match="item q0: not_derivable: found a component out of range"):
        derive(space_of([[1.0, 2.0], [70_000.0, 0.0]]), Float16(), "half")


def test_derivations_as_yaml_writes_them() -> None:
    assert derivation_of({"truncate": 128}) == Truncate(128)
    assert derivation_of({"float16": True}) == Float16()
    assert derivation_of({"int8": "dimension"}) == Int8("dimension")
    for wrong in ({}, {"truncate": True}, {"truncate": "9"}, {"float16": False}, {"int8": "x"},
                  {"int8": "vector", "float16": True}):  # fmt: skip
        with pytest.raises(UsageError, match="a derivation is"):
            derivation_of(wrong)
