"""Spaces made from another space's vectors, so that an audit can change one thing at a time.

Queries and documents are derived alike. What a derivation stores in fewer bytes is kept here as the
float32 values it stands for, so that every metric and index works on it unchanged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.embeddings.inputs import SHOWN_PROBLEMS
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.errors import InputError, Problem, UsageError

_BLOCK_ROWS = 8_192
_INT8_STEPS = 127


@dataclass(frozen=True, slots=True)
class Truncate:
    """The first `dimension` components, of unit length again where the parent's vectors are.

    Only for models trained so that a beginning of a vector is a vector (Matryoshka)."""

    dimension: int


@dataclass(frozen=True, slots=True)
class Float16:
    """Every component rounded to IEEE half precision."""


@dataclass(frozen=True, slots=True)
class Int8:
    """Symmetric scalar quantization: round(x / s) in -127..127, with s = largest |x| / 127 of each
    vector, or of each dimension over all documents. In the latter case a query's component beyond
    that range is cut off, and the scales are part of the space."""

    scale: Literal["vector", "dimension"] = "vector"


Derivation: TypeAlias = Truncate | Float16 | Int8


@dataclass(frozen=True, slots=True)
class DerivedSpace:
    """`stored_bytes_per_vector`: what an index would store, with a float32 scale per int8 vector;
    scales per dimension (4 bytes each, once per space) are not counted."""

    space: EmbeddedSpace
    stored_bytes_per_vector: int


def derivation_of(settings: Mapping[str, object]) -> Derivation:
    """From YAML: {truncate: 128}, {float16: true}, {int8: vector} or {int8: dimension}."""
    match dict(settings):
        case {"truncate": int(dimension), **rest} if not rest and type(dimension) is int:
            return Truncate(dimension)
        case {"float16": True, **rest} if not rest:
            return Float16()
        case {"int8": "vector" | "dimension" as scale, **rest} if not rest:
            return Int8(scale)
    raise UsageError(
        f"a derivation is {dict(settings)!r}; it must be one of {{truncate: DIMENSION}}, "
        "{float16: true}, {int8: vector}, {int8: dimension}"
    )


def derive(
    parent: EmbeddedSpace,
    derivation: Derivation,
    space_id: str,
    *,
    matryoshka_dimensions: Collection[int] = (),
) -> DerivedSpace:
    """The derived space; its contract names the derivation and the parent's signature.

    `matryoshka_dimensions` are those that the parent's model was trained to be cut to; UsageError
    for any other. InputError if a derived vector is zero or out of range. int8 and float16 no
    longer promise unit length.
    """
    if isinstance(derivation, Truncate):
        _check_truncation(parent, derivation.dimension, matryoshka_dimensions)
    scales = None
    if isinstance(derivation, Int8) and derivation.scale == "dimension":
        scales = _document_scales(parent)
    contract, stored = _derived_contract(parent.contract, derivation, space_id, scales)
    vectors = np.empty((len(parent.vectors), contract.dimension), contract.numpy_dtype)
    for start in range(0, len(vectors), _BLOCK_ROWS):
        block = parent.vectors[start : start + _BLOCK_ROWS]
        if isinstance(derivation, Truncate):
            made = _truncated(block[:, : contract.dimension], contract.normalized)
        elif isinstance(derivation, Float16):
            with np.errstate(over="ignore"):
                made = block.astype(np.float16)
        else:
            made = _int8(block, _vector_scales(block) if scales is None else scales)
        vectors[start : start + len(block)] = made
    _check_usable(parent, vectors, space_id)
    return DerivedSpace(EmbeddedSpace(contract, parent.items, vectors), stored)


def _derived_contract(
    parent: SpaceContract, derivation: Derivation, space_id: str, scales: np.ndarray | None
) -> tuple[SpaceContract, int]:
    """The contract, and the bytes that a vector would take in an index."""
    contract = replace(parent, space_id=space_id, derived_from=parent.signature)
    width = parent.dimension
    if isinstance(derivation, Truncate):
        width = derivation.dimension
        unit = " and made unit length again" if parent.normalized else ""
        text = f"first {width} components{unit}"
        stored = width * parent.numpy_dtype.itemsize
        return replace(contract, derivation=text, dimension=width), stored
    contract = replace(contract, dtype="float32", normalized=False)
    if isinstance(derivation, Float16):
        return replace(contract, derivation="rounded to float16"), width * 2
    if scales is None:
        return replace(contract, derivation="int8 with one scale per vector"), width + 4
    digest = hashlib.sha256(scales.astype("<f4").tobytes()).hexdigest()
    text = f"int8 with one scale per dimension, fitted on documents, scales sha256:{digest}"
    return replace(contract, derivation=text), width


def _check_truncation(parent: EmbeddedSpace, width: int, allowed: Collection[int]) -> None:
    contract = parent.contract
    if width not in allowed or not 1 <= width < contract.dimension:
        fitting = sorted(number for number in allowed if 1 <= number < contract.dimension)
        raise UsageError(
            f"space {contract.space_id!r} cannot be truncated to {width!r} of "
            f"{contract.dimension} dimensions; the dimensions it allows are "
            + (", ".join(map(str, fitting)) or "none: its model is not declared a Matryoshka model")
        )


def _truncated(block: np.ndarray, normalized: bool) -> np.ndarray:
    if not normalized:
        return block
    wide = block.astype(np.float64)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    unit: np.ndarray = np.divide(wide, norms, out=np.zeros_like(wide), where=norms > 0)
    return unit


def _vector_scales(block: np.ndarray) -> np.ndarray:
    """float32[n, 1]."""
    scales: np.ndarray = np.abs(block).max(axis=1, keepdims=True) / _INT8_STEPS
    return scales.astype(np.float32)


def _document_scales(parent: EmbeddedSpace) -> np.ndarray:
    """float32[d]."""
    documents = parent.documents
    largest = np.zeros(parent.contract.dimension)
    for start in range(0, len(documents), _BLOCK_ROWS):
        block = np.abs(documents[start : start + _BLOCK_ROWS])
        np.maximum(largest, block.max(axis=0), out=largest)
    return (largest / _INT8_STEPS).astype(np.float32)


def _int8(block: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """float32[n, d]: the values that the int8 codes stand for."""
    wide = scales.astype(np.float64)
    codes = np.divide(block, wide, out=np.zeros(block.shape), where=wide > 0)
    codes = np.clip(np.rint(codes), -_INT8_STEPS, _INT8_STEPS)
    values: np.ndarray = codes.astype(np.float32) * scales
    return values


def _check_usable(parent: EmbeddedSpace, vectors: np.ndarray, space_id: str) -> None:
    finite = np.isfinite(vectors).all(axis=1)
    faults = np.flatnonzero(~(finite & vectors.any(axis=1)))
    if faults.size:
        problems = [
            Problem(
                "not_derivable",
                f"space {space_id}",
                f"item {parent.items['item_id'][int(row)].as_py()}",
                "a vector of zeros" if finite[row] else "a component out of range",
                "this derivation does not suit the parent's vectors",
            )
            for row in faults[:SHOWN_PROBLEMS]
        ]
        raise InputError(problems, truncated=faults.size > SHOWN_PROBLEMS)
