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
from rag_assets.quality.validation import (
    Frame,
    Rule,
    between,
    columns_equal,
    in_set,
    not_null,
    row_count,
    sha256_form,
    unique,
    validate,
)

NORM_TOLERANCE = 1e-6
_BLOCK_ELEMENTS = 1 << 21
_EMBED = "embed the space again, and if the rule still fails, mend the provider"


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
    rules = (
        columns_equal("item_rows", "vector_rows", f"Every item has one vector; {_EMBED}."),
        in_set(
            "dimension",
            [contract.dimension],
            "Vectors have the dimension that the contract"
            " states, or the contract describes another model; correct one of the two.",
        ),
        in_set(
            "dtype",
            [contract.dtype],
            "Vectors are stored in the dtype that the contract"
            f" states, or scores differ from what was declared; {_EMBED}.",
        ),
    )
    return Frame("space", data, lambda _: contract.space_id, rules)


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
    rules = (
        row_count("A space without vectors finds nothing; embed it again.", min_value=1),
        not_null("item_id", f"Every vector belongs to an item; {_EMBED}."),
        unique("item_id", f"An item has one vector in a space; {_EMBED}."),
        not_null("role", f"A role decides what is searched; {_EMBED}."),
        in_set(
            "role",
            [contract.query_role, contract.document_role],
            "A role must be one of the contract's two; correct the item's role or the contract.",
        ),
        between(
            "acl_count",
            "An item without an access list has no readers; name its groups in the source.",
            min_value=1,
        ),
        not_null("content_sha256", f"The hash proves which text was embedded; {_EMBED}."),
        *sha256_form("content_sha256", f"A hash is 64 lowercase hexadecimal digits; {_EMBED}."),
        in_set(
            "n_nonfinite",
            [0],
            f"NaN and infinity make every score of the vector meaningless; {_EMBED}.",
        ),
        not_null("l2_norm", f"A vector that is not finite has no length; {_EMBED}."),
        _length_rule(contract.normalized),
    )
    return Frame("items", data, labels(items["item_id"]), rules)


def _length_rule(normalized: bool) -> Rule:
    if normalized:
        return between(
            "l2_norm",
            "The contract promises unit length, and rankings by dot product depend on it;"
            " normalize the vectors or correct the contract.",
            min_value=1 - NORM_TOLERANCE,
            max_value=1 + NORM_TOLERANCE,
        )
    return between(
        "l2_norm",
        f"A zero vector is equally near to everything; {_EMBED}.",
        min_value=0.0,
        strict_min=True,
    )


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
    rules = (
        in_set(
            "held_and_declared",
            ["both"],
            "The space holds exactly the items that the source"
            " declares for it; embed the missing items and drop the others.",
        ),
        in_set(
            "held_and_canonical",
            ["both"],
            "A space that lacks canonical items is audited on"
            " what it shares with others, and the inventory gate fails; add the items to the"
            " source if they belong to this space.",
            severity="warn",
        ),
    )
    return Frame("item set", data, labels(pa.chunked_array([ids])), rules)


def _place(held: pa.Array, known: pa.Array, only_held: str, only_known: str) -> pa.Array:
    """Where an id stands; null where neither knows it."""
    only = pc.if_else(held, only_held, pc.if_else(known, only_known, None))
    return pc.if_else(pc.and_(held, known), "both", only)
