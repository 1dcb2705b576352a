"""Searching FAISS indexes: who is eligible, how many lists each query probes, what scores mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rag_assets.canonical.contracts import Metric
from rag_assets.indexes.faiss_engine import Engine, load_faiss
from rag_assets.indexes.ranking import ranking_keys
from rag_assets.indexes.specs import Hnsw, IndexSpec, IvfPq, IvfRabitq

# Elements of a block of coarse distances (queries x lists): 16 MiB of float32.
_BLOCK_ELEMENTS = 1 << 22
_BEHIND = -(2**62)  # a key below every score's


@dataclass(frozen=True, eq=False)
class EligibleSet:
    """Documents that may be returned, with what each search among them needs.

    `rows: int64[n_eligible]`, ascending and distinct, among `total` documents; `list_no: int32[n]`
    as in `Engine`; `document_norms: float64[n]`.
    """

    rows: np.ndarray
    total: int
    list_no: np.ndarray | None
    document_norms: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def bits(self) -> np.ndarray | None:
        """uint8[ceil(n / 8)], one bit a document, lowest first; None where all are eligible."""
        if len(self) == self.total:
            return None
        mask = np.zeros(self.total, dtype=bool)
        mask[self.rows] = True
        return np.packbits(mask, bitorder="little")

    @cached_property
    def per_list(self) -> np.ndarray:
        """int64[n_clusters or less]: eligible documents in each list."""
        if self.list_no is None:
            raise ValueError("a graph has no lists")
        return np.bincount(self.list_no[self.rows])

    @cached_property
    def largest_norm(self) -> float:
        norms = self.document_norms if len(self) == self.total else self.document_norms[self.rows]
        return float(norms.max())


def search_engine(
    engine: Engine,
    spec: IndexSpec,
    vectors: np.ndarray,
    k: int,
    eligible: EligibleSet,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What FAISS finds: (distances: float32[m, k], rows: int64[m, k] or -1, nprobe: int32[m]).

    `vectors: float32[m, d]` as `faiss_build.engine_vectors` makes them. Documents outside
    `eligible` are left out before they are scored. nprobe is 0 for a graph.
    """
    nprobe = _probes(engine, spec, vectors, k, eligible)
    distances = np.empty((len(vectors), k), dtype=np.float32)
    rows = np.empty((len(vectors), k), dtype=np.int64)
    # The objects that parameters point to must outlive the search: FAISS only borrows them.
    selector = None
    bits = eligible.bits
    if bits is not None:
        selector = load_faiss().IDSelectorBitmap(bits)
    first = nprobe[:1]
    for value in first if (nprobe == first).all() else np.unique(nprobe):
        chain = _search_parameters(engine, spec, int(value), selector)
        together = nprobe == value
        if together.all():
            engine.outer.search(vectors, k, params=chain[-1], D=distances, I=rows)
        else:
            found = engine.outer.search(vectors[together], k, params=chain[-1])
            distances[together], rows[together] = found
    return distances, rows, nprobe


def _search_parameters(engine: Engine, spec: IndexSpec, nprobe: int, selector: Any) -> list[Any]:
    """FAISS's parameter objects, innermost first; the last one is to be passed.

    The selector belongs to the innermost: re-ranking ignores its own.
    """
    faiss = load_faiss()
    if isinstance(spec, Hnsw):
        inner = faiss.SearchParametersHNSW(efSearch=spec.ef_search)
    else:
        inner = faiss.SearchParametersIVF(nprobe=nprobe)
    if selector is not None:
        inner.sel = selector
    chain = [inner]
    if engine.rotation is not None:
        chain.append(faiss.SearchParametersPreTransform(index_params=chain[-1]))
    if engine.refines:
        factor = spec.refine.factor if isinstance(spec, IvfPq | IvfRabitq) and spec.refine else 1
        chain.append(
            faiss.IndexRefineSearchParameters(k_factor=factor, base_index_params=chain[-1])
        )
    return chain


def _probes(
    engine: Engine, spec: IndexSpec, vectors: np.ndarray, k: int, eligible: EligibleSet
) -> np.ndarray:
    """int32[m]: how many lists each query probes.

    Under a policy the smallest prefix of lists, nearest first, that holds enough eligible
    documents, rounded up to 1 + 1/8 of it at most so that queries can be searched together.
    """
    if isinstance(spec, Hnsw):
        return np.zeros(len(vectors), dtype=np.int32)
    nprobe = np.full(len(vectors), spec.nprobe, dtype=np.int32)
    if spec.policy is None:
        return nprobe
    wanted = min(max(spec.policy.least_candidates, k), len(eligible))
    per_list = np.zeros(spec.n_clusters, dtype=np.int64)
    per_list[: len(eligible.per_list)] = eligible.per_list
    if engine.rotation is not None:
        vectors = engine.rotation.apply(vectors)
    short, width = np.arange(len(vectors)), spec.nprobe
    while len(short):
        longer = []
        for part in _parts(short, width):
            _, nearest = engine.lists.quantizer.search(vectors[part], width)
            held = per_list[nearest].cumsum(axis=1)
            needed = 1 + (held < wanted).sum(axis=1)
            enough = needed <= width
            nprobe[part[enough]] = np.maximum(needed[enough], spec.nprobe)
            longer.append(part[~enough])
        short = np.concatenate(longer)
        width = min(2 * width, spec.n_clusters)
    return _rounded_up(nprobe, spec.nprobe, spec.n_clusters)


def _parts(places: np.ndarray, width: int) -> Iterator[np.ndarray]:
    size = max(1, _BLOCK_ELEMENTS // width)
    for start in range(0, len(places), size):
        yield places[start : start + size]


def _rounded_up(values: np.ndarray, least: int, most: int) -> np.ndarray:
    """`values: int32[m]` above `least`, rounded up to four significant bits, at most `most`."""
    unit = 1 << np.maximum(np.frexp(values)[1] - 4, 0)
    rounded = np.minimum(-(-values // unit) * unit, most)
    result: np.ndarray = np.where(values > least, rounded, values).astype(np.int32)
    return result


def scores_of(distances: np.ndarray, metric: Metric) -> np.ndarray:
    """Scores, float64, of FAISS's distances (squared L2, or inner products for dot)."""
    exact = distances.astype(np.float64)
    if metric == "dot":
        return exact
    if metric == "cosine":
        return 1.0 - exact / 2.0
    return -np.sqrt(np.maximum(exact, 0.0)) + 0.0


def ordered(
    rows: np.ndarray, scores: np.ndarray, steps: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Each query's results by the rule of `ranking`, padding (row -1, score NaN) last.

    `rows: int64[m, k]`, `scores: float64[m, k]`, `steps: float64[m]`.
    """
    found = rows >= 0
    keys = ranking_keys(np.where(found, scores, 0.0), steps[:, np.newaxis])
    keys[~found] = _BEHIND
    scores = np.where(found, scores, np.nan)
    before, after = keys[:, :-1], keys[:, 1:]
    if ((before > after) | ((before == after) & (rows[:, :-1] <= rows[:, 1:]))).all():
        return rows, scores  # as engines mostly return them
    order = np.lexsort((rows, -keys))
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)
