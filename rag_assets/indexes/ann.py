"""Approximate indexes: inverted lists with or without compression, and graphs, through FAISS.

An index answers as `exact.ExactIndex.search` does, among eligible documents only, in the same
order. FAISS computes in float32, so float64 vectors are converted; cosine is searched as squared L2
distance d² between unit vectors (score 1 - d²/2, and 0 where either vector is zero), euclidean as
d² (score -d), dot as inner product. Scores are those of what the index compared: of codes, of the
8-bit copy, or with `Refine(vectors="exact")` of the stored vectors in float64, like exact search.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from rag_assets.canonical.contracts import SpaceContract, canonical_json
from rag_assets.canonical.corpus import digest_array
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.errors import StoreError, UsageError
from rag_assets.indexes.exact import positive_k, top_k
from rag_assets.indexes.faiss_build import (
    build_engine,
    check_range,
    engine_vectors,
    training_warnings,
)
from rag_assets.indexes.faiss_engine import Engine, engine_threads, load_faiss
from rag_assets.indexes.faiss_search import EligibleSet, ordered, scores_of, search_engine
from rag_assets.indexes.ranking import (
    check_norms,
    grid_steps,
    norms,
    pair_scores,
    rank_pairs,
    ranking_keys,
)
from rag_assets.indexes.specs import (
    SEARCH_PARAMETERS,
    IndexSpec,
    Refine,
    faults,
    parameters,
    spec_from,
    varied,
)

_FORMAT = 1
# Rows whose vectors are compared on loading, to notice a space that has changed.
_SAMPLE = 64

SearchPath = Literal["empty", "exact", "index"]


class Stages(Protocol):
    """What is told where the time of a search goes; `laboratory.stages.StageClock` is one."""

    def stage(self, name: str) -> AbstractContextManager[None]: ...


class _Untimed:
    def stage(self, name: str) -> AbstractContextManager[None]:
        return _NOTHING


_NOTHING: AbstractContextManager[None] = nullcontext()
_UNTIMED = _Untimed()


@dataclass(frozen=True, eq=False)
class AnnHits:
    """What one search found, and how.

    `rows: int64[m, k]` (-1 beyond what was found), `scores: float64[m, k]` (NaN there), `nprobe:
    int32[m]`: lists probed, 0 where none were. `path`: "empty" (nobody may see anything), "exact"
    (every eligible document was scored, as the policy asks) or "index".
    """

    rows: np.ndarray
    scores: np.ndarray
    nprobe: np.ndarray
    path: SearchPath


@dataclass(frozen=True, eq=False)
class AnnIndex:
    """An approximate index over the documents of one space.

    `documents: dtype[n, d]`, possibly memory-mapped, ascending by item id; `document_norms:
    float64[n]`; `warnings`: what training lacked, one line each. `nbytes` counts the serialized
    index: codes, ids, centroids, codebooks, graph, and the 8-bit copy where there is one; `digest`
    is its SHA-256 (hex).
    """

    spec: IndexSpec
    contract: SpaceContract
    documents: np.ndarray
    document_norms: np.ndarray
    warnings: tuple[str, ...]
    engine: Engine
    nbytes: int
    digest: str

    @classmethod
    def build(
        cls, spec: IndexSpec, space: EmbeddedSpace, *, threads: int | None = None
    ) -> AnnIndex:
        """Train and fill an index; equal spec and vectors give equal bytes on any thread count.

        Raises UsageError, before any work, listing everything that keeps the spec from these
        vectors; and for vectors that are not finite. Raises EngineMissing without FAISS.
        """
        documents = space.documents
        found = faults(spec, space.contract.dimension, len(documents))
        if found:
            raise UsageError(
                f"the {spec.kind} index of space {space.contract.space_id!r} cannot be built: "
                + "; ".join(found)
            )
        load_faiss()
        lengths = norms(documents)
        check_norms(lengths, "document")
        check_range(lengths, space.contract.metric, "document")
        engine = build_engine(spec, documents, lengths, space.contract.metric, threads=threads)
        warnings = training_warnings(spec, len(documents))
        return cls(spec, space.contract, documents, lengths, warnings, engine, *engine.measure())

    @property
    def memory_bytes(self) -> int:
        """`nbytes`, and what searching needs in memory beside it: product quantization's
        precomputed table, each document's norm and its list, and the space's own vectors where
        they are re-ranked with or searched exactly under narrow filters."""
        lists = self.engine.list_no
        beside = self.document_norms.nbytes + (0 if lists is None else lists.nbytes)
        exact_below = 0 if self.spec.policy is None else self.spec.policy.exact_below
        if self._exact_refine is not None or exact_below > 0:
            beside += self.documents.nbytes
        return self.nbytes + self.engine.table_bytes + beside

    @property
    def _exact_refine(self) -> Refine | None:
        """How candidates are re-ranked with the space's own vectors, if they are."""
        refine: Refine | None = getattr(self.spec, "refine", None)
        return refine if refine is not None and refine.vectors == "exact" else None

    def with_search_parameter(self, parameter: str, value: Any) -> AnnIndex:
        """The same index searched otherwise (see SEARCH_PARAMETERS); nothing is built again."""
        if parameter not in SEARCH_PARAMETERS:
            known = ", ".join(sorted(SEARCH_PARAMETERS))
            raise UsageError(f"{parameter!r} is no parameter of searching; those are {known}")
        spec = varied(self.spec, parameter, value)
        found = faults(spec, self.contract.dimension, len(self.documents))
        if found:
            raise UsageError(f"the {spec.kind} index cannot be searched so: {'; '.join(found)}")
        return replace(self, spec=spec)

    def eligible_set(self, eligible: np.ndarray | None) -> EligibleSet:
        """`eligible` (rows, int64, ascending; None for all) prepared for several searches."""
        if eligible is None:
            return self._everything
        return EligibleSet(eligible, len(self.documents), self.engine.list_no, self.document_norms)

    @cached_property
    def _everything(self) -> EligibleSet:
        count = len(self.documents)
        return EligibleSet(np.arange(count), count, self.engine.list_no, self.document_norms)

    @cached_property
    def _holds_zero(self) -> bool:
        return bool((self.document_norms == 0).any())

    def search(
        self,
        queries: np.ndarray,
        k: int,
        eligible: np.ndarray | EligibleSet | None = None,
        *,
        threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """(rows: int64[m, k], scores: float64[m, k]), as `ExactIndex.search`."""
        hits = self.search_detailed(queries, k, eligible, threads=threads)
        return hits.rows, hits.scores

    def search_detailed(
        self,
        queries: np.ndarray,
        k: int,
        eligible: np.ndarray | EligibleSet | None = None,
        *,
        threads: int | None = None,
        stages: Stages | None = None,
    ) -> AnnHits:
        """The best `k` eligible documents that the index finds for each query.

        `queries: float32|float64[m, d]`; `eligible`: rows, int64 ascending and distinct, None for
        all, or `eligible_set` of them. Raises UsageError for a k that is not a positive integer
        and for queries that are not finite or of another dimension. `stages` is told when the
        stages "filter", "search" and "rerank" begin and end.
        """
        timed = stages or _UNTIMED
        k = positive_k(k)
        if queries.ndim != 2 or queries.shape[1] != self.documents.shape[1]:
            raise UsageError(
                f"queries have shape {queries.shape}; the index needs two axes and dimension "
                f"{self.documents.shape[1]}"
            )
        lengths = norms(queries)
        check_norms(lengths, "query")
        check_range(lengths, self.contract.metric, "query")
        with timed.stage("filter"):
            if not isinstance(eligible, EligibleSet):
                eligible = self.eligible_set(eligible)
            filtered = eligible.bits is not None
        policy = self.spec.policy
        no_probes = np.zeros(len(queries), dtype=np.int32)
        if len(eligible) == 0 or len(queries) == 0:
            return AnnHits(*_padding(len(queries), k), no_probes, "empty")
        if policy is not None and len(eligible) <= policy.exact_below:
            with timed.stage("search"):
                found = top_k(
                    self.documents,
                    queries,
                    k,
                    self.contract.metric,
                    eligible=eligible.rows if filtered else None,
                    document_norms=self.document_norms,
                    threads=threads,
                )
            return AnnHits(*found, no_probes, "exact")
        width = min(k, len(eligible))
        rows, scores, nprobe = self._from_engine(queries, lengths, width, eligible, threads, timed)
        if width < k:
            more_rows, more_scores = _padding(len(queries), k - width)
            rows, scores = np.hstack([rows, more_rows]), np.hstack([scores, more_scores])
        return AnnHits(rows, scores, nprobe, "index")

    def _from_engine(
        self,
        queries: np.ndarray,
        lengths: np.ndarray,
        k: int,
        eligible: EligibleSet,
        threads: int | None,
        timed: Stages,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(rows: int64[m, k], scores: float64[m, k], nprobe: int32[m]) from the index."""
        metric = self.contract.metric
        refine = self._exact_refine
        wanted = k if refine is None else min(k * refine.factor, len(eligible))
        vectors = engine_vectors(queries, lengths, metric)
        with timed.stage("search"), engine_threads(threads):
            distances, rows, nprobe = search_engine(
                self.engine, self.spec, vectors, wanted, eligible
            )
        steps = grid_steps(metric, lengths, eligible.largest_norm)
        if refine is not None:
            with timed.stage("rerank"):
                return *self._rescored(queries, lengths, rows, steps, k), nprobe
        scores = scores_of(distances, metric)
        if metric == "cosine":
            scores[lengths == 0] = 0.0
            if self._holds_zero:
                scores[self.document_norms[rows] == 0] = 0.0
        return *ordered(rows, scores, steps), nprobe

    def _rescored(
        self,
        queries: np.ndarray,
        lengths: np.ndarray,
        candidates: np.ndarray,
        steps: np.ndarray,
        k: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best `k` of `candidates: int64[m, c]` by the stored vectors, as in exact search."""
        query_rows, columns = np.nonzero(candidates >= 0)
        pairs = (query_rows, candidates[query_rows, columns])
        exact = pair_scores(
            self.documents, queries, pairs, self.contract.metric, self.document_norms, lengths
        )
        kept, ranks = rank_pairs(*pairs, ranking_keys(exact, steps[query_rows]), k)
        rows, scores = _padding(len(queries), k)
        at = (query_rows[kept], ranks)
        rows[at], scores[at] = pairs[1][kept], exact[kept]
        return rows, scores

    def save(self, folder: Path) -> None:
        """Write `ann_index.faiss`, `document_norms.npy` and `ann_index.json` into a folder."""
        load_faiss().write_index(self.engine.outer, str(folder / "ann_index.faiss"))
        np.save(folder / "document_norms.npy", self.document_norms)
        header = {
            **_belongs_to(self.contract, self.documents),
            "spec": parameters(self.spec),
            "warnings": list(self.warnings),
            "nbytes": self.nbytes,
            "digest": self.digest,
        }
        (folder / "ann_index.json").write_text(canonical_json(header) + "\n", "utf-8")

    @classmethod
    def load(cls, folder: Path, space: EmbeddedSpace) -> AnnIndex:
        """The saved index of `space`. Raises StoreError where it belongs to other vectors."""
        faiss = load_faiss()
        name = repr(space.contract.space_id)
        documents = space.documents
        try:
            header = json.loads((folder / "ann_index.json").read_text("utf-8"))
            described, warnings = header.pop("spec"), tuple(header.pop("warnings"))
            spec = spec_from(described.pop("kind"), described)
            nbytes, digest = header.pop("nbytes"), header.pop("digest")
            lengths = np.load(folder / "document_norms.npy", mmap_mode="r")
            engine = Engine(faiss.read_index(str(folder / "ann_index.faiss")))
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, UsageError) as error:
            raise StoreError(
                f"the approximate index of space {name} cannot be read "
                f"({type(error).__name__}); build it again"
            ) from error
        held = (engine.outer.ntotal, engine.outer.d)
        if (
            header != _belongs_to(space.contract, documents)
            or held != documents.shape
            or lengths.shape != documents.shape[:1]
        ):
            raise StoreError(
                f"the approximate index of space {name} was built for other vectors than the "
                "space holds now; build it again"
            )
        return cls(spec, space.contract, documents, lengths, warnings, engine, nbytes, digest)


def _padding(count: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Places without a result: (rows of -1: int64[count, width], scores of NaN: float64)."""
    return np.full((count, width), -1, dtype=np.int64), np.full((count, width), np.nan)


def _belongs_to(contract: SpaceContract, documents: np.ndarray) -> dict[str, object]:
    """What tells the vectors of an index from others: contract, shape, and a sample of rows."""
    count = len(documents)
    sample = np.unique(np.linspace(0, count - 1, min(count, _SAMPLE)).astype(np.int64))
    return {
        "format": _FORMAT,
        "signature": contract.signature,
        "documents": list(documents.shape),
        "sample": digest_array(documents[sample]),
    }
