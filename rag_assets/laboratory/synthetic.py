"""A corpus of random unit vectors: every index can be timed on it, and relevance has no meaning.

Documents are unit Gaussian vectors; queries are documents plus Gaussian noise, normalized again, so
that each query's nearest neighbour is (nearly always) the document it was made from. There are no
judgements: measures of relevance are NULL on this corpus, only the recall of an approximate index
against exact search is defined.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from rag_assets.canonical.contracts import MAX_DIMENSION, SpaceContract
from rag_assets.canonical.corpus import CASES, ITEMS, QRELS, SPACE_ITEMS, Corpus
from rag_assets.canonical.text import content_sha256
from rag_assets.errors import UsageError

SPACE_ID = "synthetic"
NOISE = 0.01
LARGEST_SEED = 2**31 - 1  # FAISS seeds are int32


def synthetic_vectors(
    n_vectors: int, dim: int, n_queries: int, seed: int, noise: float = NOISE
) -> tuple[np.ndarray, np.ndarray]:
    """(documents: float32[n_vectors, dim], queries: float32[n_queries, dim]), all of unit norm.

    One Generator draws, in this order: the documents; which document each query is made from
    (distinct ones as long as there are enough); the noise, of standard deviation `noise` in every
    component. Raises UsageError for impossible arguments.
    """
    check_synthetic(n_vectors, dim, n_queries, seed, noise)
    generator = np.random.default_rng(seed)
    documents = _unit(generator.standard_normal((n_vectors, dim), dtype=np.float32))
    origins = generator.choice(n_vectors, n_queries, replace=n_queries > n_vectors)
    drawn = generator.standard_normal((n_queries, dim), dtype=np.float32)
    return documents, _unit(documents[origins] + np.float32(noise) * drawn)


def check_synthetic(n_vectors: int, dim: int, n_queries: int, seed: int, noise: float) -> None:
    """Raise UsageError, naming the argument, unless `synthetic_vectors` accepts these."""
    for name, value in (("n_vectors", n_vectors), ("dim", dim), ("n_queries", n_queries)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UsageError(f"{name} is {value!r}; it must be a positive integer")
    if dim > MAX_DIMENSION:
        raise UsageError(f"dim is {dim}; it must be at most {MAX_DIMENSION}")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= LARGEST_SEED:
        raise UsageError(f"seed is {seed!r}; it must be an integer from 0 to {LARGEST_SEED}")
    if not (math.isfinite(noise) and noise >= 0):
        raise UsageError(f"noise is {noise!r}; it must be a finite number of at least 0")


def synthetic_corpus(
    n_vectors: int, dim: int, n_queries: int, seed: int, noise: float = NOISE
) -> Corpus:
    """The corpus around `synthetic_vectors`: one space, one public case per query, no judgements.

    Equal arguments give equal corpora. Raises UsageError as `synthetic_vectors` does.
    """
    documents, queries = synthetic_vectors(n_vectors, dim, n_queries, seed, noise)
    parameters = (
        f"n_vectors={n_vectors} dim={dim} n_queries={n_queries} noise={noise!r} seed={seed}"
    )
    contract = SpaceContract(
        space_id=SPACE_ID,
        provider="synthetic",
        model="unit-gaussian",
        revision=parameters,
        dimension=dim,
        metric="cosine",
        normalized=True,
        query_role="query",
        document_role="document",
        dtype="float32",
    )
    document_ids = _ids("doc", n_vectors)
    query_ids = _ids("query", n_queries)
    ids = document_ids + query_ids
    roles = ["document"] * n_vectors + ["query"] * n_queries
    # The id is part of the text, so that no two items have the same content.
    texts = [
        f"Synthetic {role} {item_id}: a random unit vector, no text was embedded."
        for role, item_id in zip(roles, ids, strict=True)
    ]
    columns: dict[str, Sequence[object]] = {
        "space_no": [0] * len(ids),
        "item_no": range(len(ids)),
        "item_id": ids,
        "role": roles,
        "text": texts,
        "acl": [["public"]] * len(ids),
        "source_revision": [parameters] * len(ids),
        "content_sha256": [content_sha256(text) for text in texts],
    }
    cases: dict[str, Sequence[object]] = {
        "case_no": range(n_queries),
        "case_id": _ids("case", n_queries),
        "query_item_no": range(n_vectors, n_vectors + n_queries),
        "query_item_id": query_ids,
        "subject_groups": [["public"]] * n_queries,
        "subgroups": [["synthetic"]] * n_queries,
        "split": [None] * n_queries,
    }
    return Corpus(
        contracts=(contract,),
        items=_table(columns, ITEMS),
        space_items=_table(columns, SPACE_ITEMS),
        cases=_table(cases, CASES),
        qrels=QRELS.empty_table(),
        vectors={SPACE_ID: np.concatenate([documents, queries])},
    )


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Rows divided by their norms in float64, then stored as float32: norms are 1 within 1e-7."""
    exact = vectors.astype(np.float64)
    scaled: np.ndarray = (exact / np.linalg.norm(exact, axis=1, keepdims=True)).astype(np.float32)
    return scaled


def _ids(prefix: str, count: int) -> list[str]:
    """Seven digits, more where needed: ids must ascend as their numbers do."""
    width = max(7, len(str(count - 1)))
    return [f"{prefix}-{number:0{width}}" for number in range(count)]


def _table(columns: Mapping[str, Sequence[object]], schema: pa.Schema) -> pa.Table:
    return pa.table(
        [pa.array(columns[field.name], type=field.type) for field in schema], schema=schema
    )
