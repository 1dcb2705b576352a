"""Contract validation of one space's embeddings."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.canonical.corpus import Corpus
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.quality.columns import labels, list_lengths
from rag_assets.quality.report import CheckReport
from rag_assets.quality.rules import rules
from rag_assets.quality.validation import Frame, validate

NORM_TOLERANCE = 1e-6
_BLOCK_ELEMENTS = 1 << 21


def check_embeddings(space: EmbeddedSpace, corpus: Corpus) -> CheckReport:
    """Blocking check `contract_validation` of a space's items and vectors.

    The space must hold exactly the items that the source declares for it. That it holds fewer than
    the canonical items is a warning only: the audit's inventory gate decides about that.
    """
    norms, nonfinite = vector_scalars(space.vectors, len(space.items))
    finite_norms = norms[np.isfinite(norms)]
    frames = (_space(space), _items(space, norms, nonfinite), _membership(space, corpus))
    numbers = {
        "items": float(len(space.items)),
        "nonfinite_vectors": float((nonfinite != 0).sum()),
    }
    if finite_norms.size:
        numbers |= {
            "norm_min": float(finite_norms.min()),
            "norm_median": float(np.median(finite_norms)),
            "norm_max": float(finite_norms.max()),
        }
    return validate("contract_validation", frames, numbers)


def vector_scalars(vectors: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """L2 norms `float64[count]` of the stored components, and non-finite ones `int64[count]`.

    `vectors: float32|float64[n, d]`, read in blocks. A vector that is not finite has norm NaN; for
    a row without a vector (n < count) the norm is NaN and the number of components -1.
    """
    norms = np.full(count, np.nan)
    nonfinite = np.full(count, -1)
    width = max(1, vectors.shape[1])
    step = max(1, _BLOCK_ELEMENTS // width)
    for start in range(0, min(count, len(vectors)), step):
        block = vectors[start : min(start + step, count)].astype(np.float64)
        stop = start + len(block)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", block, block)
        norms[start:stop] = np.sqrt(squares)
        nonfinite[start:stop] = 0
        # Squares may leave the range of float64 though the norm does not.
        odd = np.flatnonzero(~((squares > 1e-280) & (squares < 1e280)))
        largest = np.abs(block[odd]).max(axis=1, initial=0.0)
        scale = np.where(np.isfinite(largest) & (largest > 0), largest, 1.0)
        finite = np.isfinite(block[odd])
        scaled = np.where(finite, block[odd], 0.0) / scale[:, np.newaxis]
        nonfinite[start + odd] = width - finite.sum(axis=1)
        norms[start + odd] = np.where(
            finite.all(axis=1), scale * np.sqrt(np.einsum("ij,ij->i", scaled, scaled)), np.nan
        )
    return norms, nonfinite


def _space(space: EmbeddedSpace) -> Frame:
    """One row: the array against the contract."""
    contract, vectors = space.contract, space.vectors
    data = pd.DataFrame(
        {
            "item_rows": [len(space.items)],
            "vector_rows": [len(vectors)],
            "dimension": [vectors.shape[1]],
            "dtype": [vectors.dtype.name],
        }
    )
    demanded = rules("space", dimension=contract.dimension, dtype=contract.dtype)
    return Frame("space", data, lambda _: contract.space_id, demanded)


def _items(space: EmbeddedSpace, norms: np.ndarray, nonfinite: np.ndarray) -> Frame:
    contract, items = space.contract, space.items
    data = pd.DataFrame(
        {
            "item_id": items["item_id"].to_pandas(),
            "role": items["role"].to_pandas(),
            "acl_count": list_lengths(items["acl"]),
            "content_sha256": items["content_sha256"].to_pandas(),
            "n_nonfinite": nonfinite,
            "l2_norm": norms,
        }
    )
    demanded = rules(
        "items of a space", query_role=contract.query_role, document_role=contract.document_role
    )
    if contract.normalized:
        demanded += rules("normalized", shortest=1 - NORM_TOLERANCE, longest=1 + NORM_TOLERANCE)
    else:
        demanded += rules("not normalized")
    return Frame("items", data, labels(items["item_id"]), demanded)


def _membership(space: EmbeddedSpace, corpus: Corpus) -> Frame:
    """One row per item id that the space, its source or the corpus knows."""
    held = space.items["item_id"]
    declared = corpus.items_of(space.contract.space_id)["item_id"]
    canonical = corpus.items["item_id"]
    chunks = [chunk for column in (held, declared, canonical) for chunk in column.chunks]
    ids = pa.chunked_array(chunks, pa.string()).unique()
    in_space = pc.is_in(ids, held.combine_chunks())
    data = pd.DataFrame(
        {
            "held_and_declared": _place(
                in_space, pc.is_in(ids, declared.combine_chunks()), "not declared", "missing"
            ).to_pandas(),
            "held_and_canonical": _place(
                in_space, pc.is_in(ids, canonical.combine_chunks()), "not canonical", "missing"
            ).to_pandas(),
        }
    )
    return Frame("item set", data, labels(pa.chunked_array([ids])), rules("item set"))


def _place(held: pa.Array, known: pa.Array, only_held: str, only_known: str) -> pa.Array:
    """Where an id stands; null where neither knows it."""
    only = pc.if_else(held, only_held, pc.if_else(known, only_known, None))
    return pc.if_else(pc.and_(held, known), "both", only)
