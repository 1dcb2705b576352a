"""A whole sweep over nprobe in one pass over the inverted lists.

A query that probes its p nearest lists has looked at everything that it looks at with fewer. So
each list is decoded once for all queries that ever probe it, which are scored by one matrix
product, and each query keeps a top k per step of the sweep: of the lists that a value adds to the
value before. The answer for a value is the best k of its step and of all steps before. (FAISS
searches the few nearest lists of each query first, for the k-th score in them rules out most of
what is in the others.) Where `bfloat16` is faster, products of rounded vectors rule out what cannot
count, and only the rest is scored in float32.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rag_assets.errors import UsageError
from rag_assets.indexes.ann import AnnIndex
from rag_assets.indexes.bfloat16 import product_errors, rounded_products
from rag_assets.indexes.exact import positive_k
from rag_assets.indexes.faiss_build import check_range, engine_vectors
from rag_assets.indexes.faiss_engine import Engine, engine_threads, load_faiss
from rag_assets.indexes.faiss_search import EligibleSet, ordered, scores_of
from rag_assets.indexes.ranking import check_norms, grid_steps, norms
from rag_assets.indexes.scan import TopPlaces, available_cores, group_peaks, reached, share
from rag_assets.indexes.specs import IvfFlat, IvfPq

# Lists of each query that are searched before all others.
_FIRST = 4
# By how much FAISS's targets and those here may differ, relative to |q|² + |x|² of the largest x:
# several times what float32 takes from either.
_APART = 2.0**-16
# Where more than one target in so many is left after bfloat16, all are computed in float32.
_FEW = 32

Found = tuple[np.ndarray, np.ndarray]


def sweep_nprobe(
    index: AnnIndex,
    queries: np.ndarray,
    k: int,
    nprobes: Sequence[int],
    eligible: np.ndarray | EligibleSet | None = None,
    *,
    threads: int | None = None,
) -> dict[int, Found]:
    """For each value of nprobe what `index.search` would give: (rows: int64[m, k], scores:
    float64[m, k]).

    Scores come from float32 products in another order of additions than FAISS's, so documents that
    differ by less than that (about 1e-6 of |q|² + |x|²) may change places. Indexes that re-rank,
    follow a filter policy or hold other codes than vectors or products are searched once per value.
    Raises UsageError as `index.search` and for values that are not within the index's lists.
    """
    k = positive_k(k)
    values = sorted({positive_k(value) for value in nprobes})
    if not isinstance(eligible, EligibleSet):
        eligible = index.eligible_set(eligible)
    searches = {value: index.with_search_parameter("nprobe", value) for value in values}
    spec = index.spec
    one_pass = isinstance(spec, IvfFlat) or (isinstance(spec, IvfPq) and spec.refine is None)
    if not one_pass or spec.policy is not None or len(queries) == 0 or len(eligible) == 0:
        return {
            value: search.search(queries, k, eligible, threads=threads)
            for value, search in searches.items()
        }
    if queries.ndim != 2 or queries.shape[1] != index.documents.shape[1]:
        raise UsageError(
            f"queries have shape {queries.shape}; the index needs two axes and dimension "
            f"{index.documents.shape[1]}"
        )
    metric = index.contract.metric
    lengths = norms(queries)
    check_norms(lengths, "query")
    check_range(lengths, metric, "query")
    vectors = engine_vectors(queries, lengths, metric)
    if index.engine.rotation is not None:
        vectors = index.engine.rotation.apply(vectors)
    squared = metric != "dot"
    reach = 1.0 if metric == "cosine" else eligible.largest_norm
    best = _scan_lists(index.engine, vectors, k, values, eligible, reach, squared, threads)

    steps = grid_steps(metric, lengths, eligible.largest_norm)
    own = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)[:, np.newaxis]
    zero = index.document_norms == 0
    answers: dict[int, Found] = {}
    for step, value in enumerate(values):
        # [m, (step + 1) k] -> [m, k]
        targets = best.values.reshape(len(queries), -1)[:, : (step + 1) * k]
        places = best.places.reshape(len(queries), -1)[:, : (step + 1) * k]
        order = np.argsort(-targets, axis=1, kind="stable")[:, :k]
        targets = np.take_along_axis(targets, order, axis=1).astype(np.float64)
        rows = np.take_along_axis(places, order, axis=1)
        scores = scores_of(
            np.where(rows >= 0, own - 2.0 * targets if squared else targets, 0.0), metric
        )
        if metric == "cosine":
            scores[lengths == 0] = 0.0
            scores[zero[rows]] = 0.0
        answers[value] = ordered(rows, scores, steps)
    return answers


def _scan_lists(
    engine: Engine,
    vectors: np.ndarray,
    k: int,
    values: list[int],
    eligible: EligibleSet,
    reach: float,
    squared: bool,
    threads: int | None,
) -> TopPlaces:
    """The top k of every query at every step of the sweep; row = query · len(values) + step.

    Targets, float32, are q·x, less |x|²/2 where distances are `squared`; places are documents.
    `reach`: the largest |x|.
    """
    faiss = load_faiss()
    lists = engine.lists
    stored = lists.invlists
    count = len(vectors)
    first = min(_FIRST, values[-1])
    with engine_threads(threads):
        _, nearest = lists.quantizer.search(vectors, values[-1])
        known = _reached_in_first(lists, vectors, k, first, eligible, reach, squared)
    step_of_rank = np.searchsorted(values, np.arange(values[-1]), side="right")
    order = np.argsort(nearest.ravel(), kind="stable")
    starts = np.searchsorted(nearest.ravel()[order], np.arange(lists.nlist + 1))
    query_of, rank_of = np.divmod(order, values[-1])
    step_of = step_of_rank[rank_of]

    allowed = None
    if eligible.bits is not None:
        allowed = np.zeros(eligible.total, dtype=bool)
        allowed[eligible.rows] = True
    top = TopPlaces(count * len(values), k, np.dtype(np.float32))
    # float32[m, steps]: at a step nothing counts that is below the k-th of the answer so far.
    bars = np.full((count, len(values)), top.lowest)
    bars[:, np.searchsorted(values, first, side="right") :] = known[:, np.newaxis]
    errors = product_errors(vectors)
    if squared:  # the last term of a product is -|x|²/2
        vectors = np.column_stack([vectors, np.full(count, -0.5, dtype=np.float32)])
    lock = threading.Lock()

    def work(numbers: Iterator[int]) -> None:
        for number in numbers:
            probes = slice(starts[number], starts[number + 1])
            size = stored.list_size(number)
            if size == 0 or probes.start == probes.stop:
                continue
            rows = faiss.rev_swig_ptr(stored.get_ids(number), size)
            codes = faiss.rev_swig_ptr(stored.get_codes(number), size * lists.code_size)
            codes = codes.reshape(size, lists.code_size)
            if allowed is not None:
                seen = allowed[rows]
                rows, codes = rows[seen], codes[seen]
                if len(rows) == 0:
                    continue
            query_rows, steps = query_of[probes], step_of[probes]
            places, columns, targets = _reaching(
                _decode(lists, number, codes),
                vectors[query_rows],
                None if errors is None else errors[query_rows],
                bars[query_rows, steps],
                k,
            )
            take(query_rows[columns], steps[columns], rows[places], targets)

    def take(
        query_rows: np.ndarray, steps: np.ndarray, rows: np.ndarray, targets: np.ndarray
    ) -> None:
        with lock:
            keys = query_rows * len(values) + steps
            met = top.take(keys, rows, targets) // len(values)
            kth = np.maximum.accumulate(top.kth.reshape(bars.shape)[met], axis=1)
            bars[met] = np.maximum(bars[met], kth)

    share(range(lists.nlist), work, threads or available_cores())
    return top


def _reached_in_first(
    lists: Any,
    vectors: np.ndarray,
    k: int,
    nprobe: int,
    eligible: EligibleSet,
    reach: float,
    squared: bool,
) -> np.ndarray:
    """Targets, float32[m], that k documents of each query's `nprobe` nearest lists reach.

    -inf where the lists hold fewer. Arguments as those of `_scan_lists`.
    """
    faiss = load_faiss()
    parameters = faiss.SearchParametersIVF(nprobe=nprobe)
    # The selector must outlive the search: FAISS only borrows it.
    selector = None if eligible.bits is None else faiss.IDSelectorBitmap(eligible.bits)
    if selector is not None:
        parameters.sel = selector
    distances, rows = lists.search(vectors, k, params=parameters)
    own = np.vecdot(vectors, vectors).astype(np.float64)
    kth: np.ndarray = distances[:, -1].astype(np.float64)
    if squared:
        kth = 0.5 * (own - kth)
    kth -= _APART * (own + reach**2)
    kth[rows[:, -1] < 0] = -np.inf
    return kth.astype(np.float32)


def _reaching(
    decoded: np.ndarray,
    queries: np.ndarray,
    errors: np.ndarray | None,
    least: np.ndarray,
    k: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Targets that reach `least: float32[q]`: (rows of `decoded`, rows of `queries`, float32[p]).

    Where `least` is -inf, at least the k largest. `decoded: float32[b, d]`; `queries: float32[q,
    d]`, or with -1/2 as one more component where |x|²/2 is to be taken from q·x. `errors`: those of
    `product_errors`, or None.
    """
    dimension = decoded.shape[1]
    squares = np.vecdot(decoded, decoded)
    squared = queries.shape[1] > dimension
    whole = np.column_stack([decoded, squares]) if squared else decoded
    if errors is not None:
        tile = rounded_products(decoded, queries[:, :dimension])
        if squared:
            tile -= 0.5 * squares[:, np.newaxis]
        longest = np.sqrt(squares.max())
        # The second term: what float32 takes from |x|²/2, in both computations.
        margin = errors * longest + np.float32((dimension + 8) * 2.0**-22) * longest**2
        places, columns = _hopeful(tile, least, margin, k)
        if len(places) * _FEW < tile.size:
            targets = np.vecdot(whole[places], queries[columns])
            kept = targets >= least[columns]
            return places[kept], columns[kept], targets[kept]
    tile = whole @ queries.T
    places, columns = _hopeful(tile, least, np.zeros_like(least), k)
    return places, columns, tile[places, columns]


def _hopeful(
    tile: np.ndarray, least: np.ndarray, margin: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Where targets, wrong by up to `margin: float32[q]`, may reach `least`: (rows, columns)."""
    peaks = group_peaks(tile)
    fresh = np.isneginf(least)
    if fresh.any() and len(peaks) >= k:
        cut = len(peaks) - k
        least = least.copy()
        least[fresh] = np.partition(peaks[:, fresh], cut, axis=0)[cut] - margin[fresh]
    return reached(tile, peaks, least - margin)


def _decode(lists: object, number: int, codes: np.ndarray) -> np.ndarray:
    """The vectors, float32[b, d], that codes of one list stand for."""
    faiss = load_faiss()
    if isinstance(lists, faiss.IndexIVFFlat):
        return codes.view(np.float32)
    decoded: np.ndarray = lists.pq.decode(np.ascontiguousarray(codes))  # type: ignore[attr-defined]
    decoded += lists.quantizer.reconstruct(number)  # type: ignore[attr-defined]
    return decoded
