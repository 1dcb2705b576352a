"""Stage one's pass over the documents: which pairs can still belong to a query's top k.

Documents are taken in blocks, by as many threads as asked for (BLAS itself keeps to one thread:
its own threading collapses on a shared machine). Each query keeps its k largest computed targets;
the smallest of them, less the margin of `proposals`, is the threshold that a document must reach.
Thresholds only rise, and what is returned reaches the final ones, so the order in which blocks
are taken shows in the work done and never in the ranking.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from rag_assets.indexes.proposals import Tiles
from rag_assets.indexes.ranking import side_by_side

# Targets computed at once, float32: 4 MiB, near a core's cache and large enough for BLAS.
_TILE = 1 << 20
# The same for so few documents that each thread takes one block of them: thresholds are then found
# once, and that saves more than a cache does.
_ONE_TILE = 1 << 23
_SMALLEST_BLOCK = 1024
_LARGEST_BLOCK = 8192
# Documents whose largest target is compared before their single ones.
_GROUP = 8
# Where more than one group in so many is not ruled out, comparing every target is faster.
_DENSE = 24
# Pairs per result, among those of one block, from which on repeated documents are looked for.
_CROWD = 16
# Pairs kept before they are thinned out: in all, or for each query beyond a few per result.
_PENDING = 1 << 21
_PENDING_EACH = 512

Narrow = Callable[[np.ndarray, np.ndarray], np.ndarray]
Sharpen = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Targets(Protocol):
    """What computes targets of `dtype` (float32 or int32), with a `margin: float64[m]` in them.

    `sharp`: None, or what computes single pairs' targets better, and the margin by which such a
    better k-th target has to exceed an ordinary one: (values: float64[p], margin: float64[m]).
    """

    @property
    def queries(self) -> np.ndarray: ...
    @property
    def margin(self) -> np.ndarray: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def sharp(self) -> tuple[Sharpen, np.ndarray] | None: ...

    def tiles(self, block_rows: int, batch: int) -> Tiles: ...


class TooClose(Exception):
    """So many documents stand too close together that these targets rule out too few."""


def scan_candidates(
    targets: Targets,
    count: int,
    k: int,
    repeats: Callable[[int, int], Repeats],
    narrow: Narrow | None = None,
    *,
    block_rows: int | None = None,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every pair that may be in a top k: (query rows: int64[p], places: int64[p], their targets:
    float32|int32[p]), ascending by query, then place; some are further off than the margin.

    A place is a position among the `count` eligible documents; `k` is at most `count`. `repeats`
    is asked about blocks of places. `narrow(query_rows, places)` returns the positions of the pairs
    that are the exact top k among those given; it is called only where very many documents stand
    too close to tell apart, and without it TooClose is raised there.
    """
    threads = threads or available_cores()
    query_count = len(targets.queries)
    tile = _TILE
    if block_rows is None:
        block_rows = min(max(_TILE // query_count, _SMALLEST_BLOCK), _LARGEST_BLOCK)
        if count <= _LARGEST_BLOCK:
            block_rows, tile = max(_SMALLEST_BLOCK, -(-count // threads)), _ONE_TILE
    block_rows = min(block_rows, count)
    batch = min(query_count, max(1, tile // block_rows))
    running = _Running(targets, count, k, narrow)
    starts = range(0, count, block_rows)
    tiles = targets.tiles(block_rows, batch)

    def work(starts: Iterator[int]) -> None:
        block = tiles()
        for start in starts:
            stop = min(start + block_rows, count)
            repeated = repeats(start, stop)
            for first, tile in block(start, stop):
                running.take(tile, first, start, repeated)

    share(starts, work, min(threads, -(-count // block_rows)))
    return running.finish()


def reaching_pairs(
    query_rows: np.ndarray, values: np.ndarray, margin: np.ndarray, k: int
) -> np.ndarray:
    """Positions, int64[r], of the pairs whose value is at least their query's k-th less the margin.

    `query_rows: int64[p]` ascending, each present at least k times; `values: float32|int32[p]`.
    """
    kth = values[leading_pairs(query_rows, values, k)].min(axis=1)
    return np.flatnonzero(values >= (kth.astype(np.float64) - margin)[query_rows])


def leading_pairs(query_rows: np.ndarray, values: np.ndarray, k: int) -> np.ndarray:
    """Positions, int64[m, k], of each query's k largest values, in no order.

    `query_rows: int64[p]` ascending, each present at least k times; `values: float32|int32[p]`.
    """
    present = side_by_side(query_rows)
    if present is None:
        order = np.lexsort((values, query_rows))
        last = np.flatnonzero(np.diff(query_rows, append=-1))
        positions: np.ndarray = order[last[:, np.newaxis] - np.arange(k)]
        return positions
    counts = present.sum(axis=1)
    first: np.ndarray = (counts.cumsum() - counts)[:, np.newaxis]
    table: np.ndarray = np.full(present.shape, lowest(values.dtype))
    table[present] = values
    cut = table.shape[1] - k
    best: np.ndarray = first + np.argpartition(table, cut, axis=1)[:, cut:]
    return best


def lowest(dtype: np.dtype[Any]) -> Any:
    """The least value of float32 or of an integer type."""
    return dtype.type(-np.inf if dtype.kind == "f" else np.iinfo(dtype).min)


def share(items: Sequence[int], work: Callable[[Iterator[int]], None], threads: int) -> None:
    """Let `threads` threads call `work`, taking items until none is left; BLAS keeps to one."""
    with _one_blas_thread():
        if threads <= 1:
            work(iter(items))
            return
        shared = _Shared(iter(items))
        with ThreadPoolExecutor(threads) as pool:
            for done in [pool.submit(work, shared) for _ in range(threads)]:
                done.result()


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class TopPlaces:
    """The k largest values seen for each query so far, and where they were.

    `values: dtype[m, k]` and `places: int64[m, k]` in no order, the lowest value and -1 where fewer
    were seen; `kth: dtype[m]`, the smallest of them.
    """

    def __init__(self, count: int, k: int, dtype: np.dtype[Any]) -> None:
        self.lowest = lowest(dtype)
        self.values = np.full((count, k), self.lowest, dtype=dtype)
        self.places = np.full((count, k), -1, dtype=np.int64)
        self.kth = np.full(count, self.lowest, dtype=dtype)

    def take(self, query_rows: np.ndarray, places: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Account for pairs (arrays of length p) never seen before; int64[r], the queries met."""
        if len(query_rows) == 0:
            return query_rows
        k = self.values.shape[1]
        order = np.argsort(query_rows, kind="stable")
        ordered = query_rows[order]
        first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        counts = np.diff(np.append(first, len(ordered)))
        met = ordered[first]
        shape = (len(first), k + counts.max())
        joined = np.full(shape, self.lowest, dtype=values.dtype)
        joined_places = np.full(shape, -1, dtype=np.int64)
        joined[:, :k] = self.values[met]
        joined_places[:, :k] = self.places[met]
        at = np.repeat(np.arange(len(first)), counts)
        across = k + np.arange(len(ordered)) - np.repeat(first, counts)
        joined[at, across] = values[order]
        joined_places[at, across] = places[order]
        cut = joined.shape[1] - k
        best = np.argpartition(joined, cut, axis=1)[:, cut:]
        self.values[met] = np.take_along_axis(joined, best, axis=1)
        self.places[met] = np.take_along_axis(joined_places, best, axis=1)
        self.kth[met] = self.values[met, 0]
        return met


class _Running:
    """The running top k of each query: computed targets, thresholds and pairs that reach them."""

    def __init__(self, targets: Targets, places: int, k: int, narrow: Narrow | None) -> None:
        count, dtype = len(targets.margin), targets.dtype
        self._targets = targets
        self._places = places
        self._k = k
        self._narrow = narrow
        self._top = TopPlaces(count, k, dtype)
        self._threshold = self._top.kth.copy()
        self._seen = np.zeros(count, dtype=np.int64)
        self._sharpen_at = np.ones(count, dtype=np.int64)
        self._pending: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._pending_count = 0
        self._limit = max(_PENDING, count * (_PENDING_EACH + 4 * k))
        self._lock = threading.Lock()

    def take(self, tile: np.ndarray, first_query: int, first_place: int, repeats: Repeats) -> None:
        """Account for the targets `tile: dtype[b, q]` of a run of documents and queries."""
        queries = slice(first_query, first_query + tile.shape[1])
        peaks = group_peaks(tile)
        with self._lock:
            unbound = self._threshold[queries] == self._top.lowest
            if unbound.any() and len(tile) >= self._k:
                # The k-th of groups' peaks: k documents reach it, and hardly more do.
                enough = 4 * self._k
                among = _fewer_peaks(peaks if len(peaks) >= enough else tile, enough)
                cut = len(among) - self._k
                least = np.partition(among, cut, axis=0)[cut]
                new = np.flatnonzero(unbound)
                self._bind(first_query + new, least[new], self._targets.margin)
            self._seen[queries] += len(tile)
            if (self._seen[queries] >= self._sharpen_at[queries]).any():
                self._sharpen(queries)
        places, columns = reached(tile, peaks, self._threshold[queries].copy())
        if len(places) > _CROWD * self._k * tile.shape[1]:
            kept = ~repeats.dispensable[places]
            places, columns = places[kept], columns[kept]
        if len(places) == 0:
            return
        values = tile[places, columns]
        query_rows = first_query + columns
        places += first_place
        with self._lock:
            if len(tile) < self._places:  # there are others to be compared
                higher = np.flatnonzero(values > self._top.kth[query_rows])
                self._raise(query_rows[higher], places[higher], values[higher])
            self._pending.append((query_rows, places, values))
            self._pending_count += len(query_rows)
            if self._pending_count > self._limit:
                self._thin()

    def finish(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self._sharpen(slice(0, len(self._threshold)))
        query_rows, places, values = self._reaching()
        order = np.argsort(query_rows * self._places + places)
        return query_rows[order], places[order], values[order]

    def _raise(self, query_rows: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
        """Raise thresholds by single values, of documents not yet accounted for."""
        raised = self._top.take(query_rows, places, values)
        kth = self._top.kth[raised]
        bound = kth != self._top.lowest
        self._bind(raised[bound], kth[bound], self._targets.margin)

    def _sharpen(self, queries: slice) -> None:
        """Raise thresholds by better targets of the documents that seem to be the top k."""
        if self._targets.sharp is None:
            self._sharpen_at[queries] = np.iinfo(np.int64).max
            return
        sharpen, margin = self._targets.sharp
        self._sharpen_at[queries] = 4 * self._seen[queries]
        rows = queries.start + np.flatnonzero(self._top.kth[queries] != self._top.lowest)
        values = sharpen(np.repeat(rows, self._k), self._top.places[rows].ravel())
        self._bind(rows, values.reshape(len(rows), self._k).min(axis=1, initial=np.inf), margin)

    def _bind(self, query_rows: np.ndarray, kth: np.ndarray, margin: np.ndarray) -> None:
        """Raise thresholds to `kth`, known of k documents, less the margin; rounded down."""
        exact = kth.astype(np.float64) - margin[query_rows]
        if self._threshold.dtype.kind == "f":
            threshold = np.nextafter(exact.astype(np.float32), np.float32(-np.inf))
        else:
            threshold = (np.floor(exact) - 1).astype(self._threshold.dtype)
        self._threshold[query_rows] = np.maximum(self._threshold[query_rows], threshold)

    def _reaching(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if not self._pending:
            nothing = np.empty(0, dtype=np.int64)
            return nothing, nothing, np.empty(0, dtype=self._threshold.dtype)
        columns = zip(*self._pending, strict=True)
        query_rows, places, values = (np.concatenate(column) for column in columns)
        kept = values >= self._threshold[query_rows]
        return query_rows[kept], places[kept], values[kept]

    def _thin(self) -> None:
        """Drop pairs below the thresholds; if that is not enough, all but the exact top k."""
        query_rows, places, values = self._reaching()
        if len(query_rows) > self._limit // 2:
            if self._narrow is None:
                raise TooClose
            kept = self._narrow(query_rows, places)
            query_rows, places, values = query_rows[kept], places[kept], values[kept]
        self._pending = [(query_rows, places, values)]
        self._pending_count = len(query_rows)


def group_peaks(tile: np.ndarray) -> np.ndarray:
    """The maxima, [b // _GROUP, q], of the whole groups of the rows of a tile."""
    whole = len(tile) // _GROUP * _GROUP
    peaks: np.ndarray = tile[:whole].reshape(-1, _GROUP, tile.shape[1]).max(axis=1)
    return peaks


def _fewer_peaks(values: np.ndarray, enough: int) -> np.ndarray:
    """The maxima, [>= enough, q], of larger groups of the rows of `values: dtype[g, q]`."""
    while len(values) >= 2 * enough:
        half = len(values) // 2
        merged = np.maximum(values[:half], values[half : 2 * half])
        values = merged if len(values) % 2 == 0 else np.concatenate([merged, values[-1:]])
    return values


def reached(
    tile: np.ndarray, peaks: np.ndarray, threshold: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where `tile: dtype[b, q]`, in one piece, reaches `threshold: dtype[q]`: (rows, columns).

    Mostly almost nothing does, so groups of documents are ruled out by their largest target first:
    `peaks` are those of `group_peaks`.
    """
    width = tile.shape[1]
    hopeful = np.flatnonzero(peaks >= threshold)
    if len(hopeful) * _DENSE > peaks.size:
        flat = np.flatnonzero(tile >= threshold)
    else:
        group = hopeful // width
        column = hopeful - group * width
        members = np.arange(_GROUP) * width + (group * (_GROUP * width) + column)[:, np.newaxis]
        flat = members[tile.ravel().take(members) >= threshold[column, np.newaxis]]
        whole = len(peaks) * _GROUP
        last = np.flatnonzero(tile[whole:] >= threshold)
        flat = np.concatenate([flat, whole * width + last])
    rows = flat // width
    return rows, flat - rows * width


class Repeats:
    """Documents of one block that k equal documents of smaller row precede: never in a top k."""

    def __init__(self, stored: Callable[[], np.ndarray], k: int) -> None:
        """`stored()` gives the block's stored vectors, [b, d]."""
        self._stored, self._k = stored, k
        self._dispensable: np.ndarray | None = None

    @property
    def dispensable(self) -> np.ndarray:
        """bool[b], found when first asked for."""
        if self._dispensable is None:
            stored = np.ascontiguousarray(self._stored())
            whole = stored.view(np.dtype((np.void, stored.dtype.itemsize * stored.shape[1])))
            _, group = np.unique(whole.ravel(), return_inverse=True)
            order = np.argsort(group, kind="stable")
            ordered = group[order]
            occurrence = np.empty(len(group), dtype=np.int64)
            occurrence[order] = np.arange(len(group)) - np.searchsorted(ordered, ordered)
            self._dispensable = occurrence >= self._k
        return self._dispensable


class _Shared:
    """An iterator that threads may share."""

    def __init__(self, items: Iterator[int]) -> None:
        self._items = items
        self._lock = threading.Lock()

    def __iter__(self) -> _Shared:
        return self

    def __next__(self) -> int:
        with self._lock:
            return next(self._items)


@lru_cache(maxsize=1)
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _one_blas_thread() -> Any:
    return _blas().limit(limits=1)
