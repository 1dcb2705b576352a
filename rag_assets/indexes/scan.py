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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np

from rag_assets.indexes.proposals import Proposals

# Targets computed at once, float32: 4 MiB, near a core's cache and large enough for BLAS.
_TILE = 1 << 20
_SMALLEST_BLOCK = 1024
_LARGEST_BLOCK = 8192
# Documents whose largest target is compared before their single ones.
_GROUP = 16
# Pairs kept, beyond a few per result, before they are thinned out.
_PENDING = 1 << 21

Narrow = Callable[[np.ndarray, np.ndarray], np.ndarray]


def scan_candidates(
    proposals: Proposals,
    count: int,
    k: int,
    narrow: Narrow,
    *,
    block_rows: int | None = None,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Every pair that may be in a top k: (query rows: int64[p], places: int64[p]).

    A place is a position among the `count` eligible documents; `k` is at most `count`.
    `narrow(query_rows, places)` returns the positions of the pairs that are the exact top k among
    those given; it is called only where very many documents stand too close to tell apart.
    """
    threads = threads or available_cores()
    query_count = len(proposals.queries)
    if block_rows is None:
        block_rows = min(max(_TILE // query_count, _SMALLEST_BLOCK), _LARGEST_BLOCK)
    running = _Running(proposals.margin, k, narrow)
    starts = iter(range(0, count, block_rows))

    def work() -> None:
        size = min(query_count, max(1, _TILE // block_rows))
        tiles = np.empty(size * min(block_rows, count), dtype=np.float32)
        for start in starts:
            stop = min(start + block_rows, count)
            block = proposals.block(start, stop)
            repeats = _Repeats(proposals, start, stop, k)
            for first in range(0, query_count, size):
                queries = proposals.queries[first : first + size]
                # Documents along the rows: OpenBLAS is faster that way round for few queries.
                tile = tiles[: len(block) * len(queries)].reshape(len(block), len(queries))
                np.matmul(block, queries.T, out=tile)
                if proposals.biases is not None:
                    tile += proposals.biases[start:stop, np.newaxis]
                running.take(tile, first, start, repeats)

    threads = min(threads, -(-count // block_rows))
    with _one_blas_thread():
        if threads == 1:
            work()
        else:
            starts = _Shared(starts)
            with ThreadPoolExecutor(threads) as pool:
                for done in [pool.submit(work) for _ in range(threads)]:
                    done.result()
    return running.finish()


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Running:
    """The running top k of each query: computed targets, thresholds and pairs that reach them."""

    def __init__(self, margin: np.ndarray, k: int, narrow: Narrow) -> None:
        self._margin = margin
        self._k = k
        self._narrow = narrow
        self._top = np.full((len(margin), k), -np.inf, dtype=np.float32)
        self._threshold = np.full(len(margin), -np.inf, dtype=np.float32)
        self._pending: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._pending_count = 0
        self._limit = max(_PENDING, 4 * len(margin) * k)
        self._lock = threading.Lock()

    def take(self, tile: np.ndarray, first_query: int, first_place: int, repeats: _Repeats) -> None:
        """Account for the targets `tile: float32[b, q]` of a run of documents and queries."""
        queries = slice(first_query, first_query + tile.shape[1])
        unbound = self._threshold[queries] == -np.inf
        if unbound.any():
            with self._lock:
                self._raise(first_query + np.flatnonzero(unbound), tile[:, unbound].T)
        places, columns = _reached(tile, self._threshold[queries].copy())
        if len(places) > 4 * self._k * tile.shape[1]:
            kept = ~repeats.dispensable[places]
            places, columns = places[kept], columns[kept]
        if len(places) == 0:
            return
        values = tile[places, columns]
        query_rows = first_query + columns
        with self._lock:
            bound = ~unbound[columns]
            self._raise_by(query_rows[bound], values[bound])
            self._pending.append((query_rows, first_place + places, values))
            self._pending_count += len(query_rows)
            if self._pending_count > self._limit:
                self._thin()

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        query_rows, places, _ = self._reaching()
        return query_rows, places

    def _raise_by(self, query_rows: np.ndarray, values: np.ndarray) -> None:
        """Raise thresholds by single values, of documents not yet accounted for."""
        if len(query_rows) == 0:
            return
        order = np.argsort(query_rows, kind="stable")
        ordered = query_rows[order]
        first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        counts = np.diff(np.append(first, len(ordered)))
        padded = np.full((len(first), counts.max()), -np.inf, dtype=np.float32)
        across = np.arange(len(ordered)) - np.repeat(first, counts)
        padded[np.repeat(np.arange(len(first)), counts), across] = values[order]
        self._raise(ordered[first], padded)

    def _raise(self, query_rows: np.ndarray, values: np.ndarray) -> None:
        """Take `values: float32[r, w]` of documents not yet accounted for into the top k."""
        joined = np.concatenate([self._top[query_rows], values], axis=1)
        cut = joined.shape[1] - self._k
        joined.partition(cut, axis=1)
        self._top[query_rows] = joined[:, cut:]
        exact = joined[:, cut].astype(np.float64) - self._margin[query_rows]
        self._threshold[query_rows] = np.nextafter(exact.astype(np.float32), np.float32(-np.inf))

    def _reaching(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if not self._pending:
            nothing = np.empty(0, dtype=np.int64)
            return nothing, nothing, np.empty(0, dtype=np.float32)
        columns = zip(*self._pending, strict=True)
        query_rows, places, values = (np.concatenate(column) for column in columns)
        kept = values >= self._threshold[query_rows]
        return query_rows[kept], places[kept], values[kept]

    def _thin(self) -> None:
        """Drop pairs below the thresholds; if that is not enough, all but the exact top k."""
        query_rows, places, values = self._reaching()
        if len(query_rows) > self._limit // 2:
            kept = self._narrow(query_rows, places)
            query_rows, places, values = query_rows[kept], places[kept], values[kept]
        self._pending = [(query_rows, places, values)]
        self._pending_count = len(query_rows)


def _reached(tile: np.ndarray, threshold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where `tile: float32[b, q]` reaches `threshold: float32[q]`: (rows, columns).

    Almost nothing does, so groups of documents are ruled out by their largest target first.
    """
    groups = len(tile) // _GROUP
    whole = groups * _GROUP
    grouped = tile[:whole].reshape(groups, _GROUP, tile.shape[1])
    group, column = np.nonzero(grouped.max(axis=1) >= threshold)
    at, within = np.nonzero(grouped[group, :, column] >= threshold[column, np.newaxis])
    last, last_column = np.nonzero(tile[whole:] >= threshold)
    rows = np.concatenate([group[at] * _GROUP + within, whole + last])
    return rows, np.concatenate([column[at], last_column])


class _Repeats:
    """Documents of one block that k equal documents of smaller row precede: never in a top k."""

    def __init__(self, proposals: Proposals, start: int, stop: int, k: int) -> None:
        self._proposals, self._start, self._stop, self._k = proposals, start, stop, k
        self._dispensable: np.ndarray | None = None

    @property
    def dispensable(self) -> np.ndarray:
        """bool[b], found when first asked for."""
        if self._dispensable is None:
            stored = np.ascontiguousarray(self._proposals.stored(self._start, self._stop))
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
