"""Stage one of exact search on int8: coarser targets than `proposals`, several times as fast.

Prepared once for a space: each document's direction or vector u(x) as 8-bit integers,
u(x) = c + s·xi(x) + r(x), with one centre c (it shifts all of a query's targets alike and so drops
out of the ranking) and one scale s for all, and a bound R(x) >= |r(x)| for each. Of a query q'
(`proposals`), q' = z·qi + p with its own scale z. Then, with Cauchy-Schwarz,

    |q'·(u(x) - c) - z s (qi·xi)| <= |q'| |r(x)| + |p| |s xi(x)|

and qi·xi is an integer, exact in int32. What is left after this stage is scored in float32 and
then in float64 as if stage one had been float32, so the result is the same to the bit.

The products are those of the library numkong (an optional dependency), used where the processor
multiplies 8-bit integers natively: without that, float32 is faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rag_assets.canonical.contracts import Metric
from rag_assets.indexes.numkong_engine import native_numkong
from rag_assets.indexes.proposals import Proposals, Tiles, target_slack
from rag_assets.indexes.ranking import grid_steps, norms
from rag_assets.indexes.scan import Sharpen

_LARGEST = 127
# Norms for which float32 arithmetic on the components neither over- nor underflows noticeably.
_EASY_NORMS = (2.0**-40, 2.0**40)
# Documents of one block while preparing: its float32 copies stay in a core's cache.
_BLOCK = 1024
# What numkong calls the instruction sets with native products of 8-bit integers.
_NATIVE = {"alder", "sierra", "icelake", "sapphireamx", "graniteamx", "neonsdot", "svesdot", "sme"}


@lru_cache(maxsize=1)
def _numkong() -> Any:
    return native_numkong(_NATIVE)


def has_native_int8() -> bool:
    """Whether searching on int8 is possible here, and faster."""
    return _numkong() is not None


@dataclass(frozen=True)
class Int8Copy:
    """A space's documents as 8-bit integers.

    `codes: int8[n, d]`; `residuals: float32[n]`, R of the module, inf where a document cannot be
    coded; `scale`: s; `centre: float32[d]`; `longest`: at least |s xi| of every document.
    """

    codes: np.ndarray
    residuals: np.ndarray
    centre: np.ndarray
    scale: float
    longest: float

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.residuals.nbytes + self.centre.nbytes

    def holds(
        self, documents: np.ndarray, document_norms: np.ndarray, rows: np.ndarray, metric: Metric
    ) -> bool:
        """Whether this is a copy of these documents, judged by some of their rows, int64[s]."""
        shapes = (documents.shape, documents.shape[:1], documents.shape[1:])
        if (self.codes.shape, self.residuals.shape, self.centre.shape) != shapes:
            return False
        vectors = documents[rows].astype(np.float64)
        if metric == "cosine":
            vectors *= _inverse(document_norms[rows])[:, np.newaxis]
        vectors -= self.centre + self.scale * self.codes[rows].astype(np.float64)
        return bool((norms(vectors) <= self.residuals[rows]).all())


def prepare_copy(documents: np.ndarray, document_norms: np.ndarray, metric: Metric) -> Int8Copy:
    """Code `documents: float32|float64[n, d]` with norms float64[n]."""
    count, dimension = documents.shape
    lengths = document_norms
    codable = (lengths == 0) | ((lengths >= _EASY_NORMS[0]) & (lengths <= _EASY_NORMS[1]))
    weights = _inverse(lengths) if metric == "cosine" else np.ones(count)

    def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(rows, u(x): float32[b, d]) of the documents that can be coded."""
        for start in range(0, count, _BLOCK):
            rows = start + np.flatnonzero(codable[start : start + _BLOCK])
            if len(rows) > 0:
                part = documents[rows].astype(np.float32)
                part *= weights[rows, np.newaxis].astype(np.float32)
                yield rows, part

    low, high = np.full(dimension, np.inf), np.full(dimension, -np.inf)
    sums = np.zeros(dimension)
    for _, part in blocks():
        np.minimum(low, part.min(axis=0), out=low)
        np.maximum(high, part.max(axis=0), out=high)
        sums += part.sum(axis=0)
    centre = (sums / max(int(codable.sum()), 1)).astype(np.float32)
    reach = np.maximum(high - centre, centre - low).max(initial=0.0) if codable.any() else 0.0
    scale = np.float32(reach / _LARGEST) if reach > 0 else np.float32(1.0)

    codes = np.zeros((count, dimension), dtype=np.int8)
    residuals = np.full(count, np.inf, dtype=np.float32)
    centre_norm = float(np.linalg.norm(centre.astype(np.float64)))
    longest = 0.0
    for rows, part in blocks():
        reached = lengths[rows] * weights[rows]
        part -= centre
        whole = np.rint(part * np.float32(1.0 / scale))
        np.clip(whole, -_LARGEST, _LARGEST, out=whole)
        codes[rows] = whole
        whole *= scale
        part -= whole
        computed = np.sqrt(np.einsum("ij,ij->i", part, part).astype(np.float64))
        # Roundings: at most 3 of u, 1 of u - c, 1 of s·xi, 1 of the difference, each 2^-24 of what
        # it rounds and all within 8·2^-24 of |u| + |c| + |r|; d + 2 of the norm.
        bound = computed * (1.0 + (dimension + 16) * 2.0**-23)
        bound += 2.0**-21 * (reached + centre_norm) + 2.0**-100
        residuals[rows] = np.nextafter(bound.astype(np.float32), np.float32(np.inf))
        longest = max(longest, float((reached + bound).max()) + centre_norm)
    return Int8Copy(codes, residuals, centre, float(scale), longest * (1.0 + 2.0**-20))


def _inverse(lengths: np.ndarray) -> np.ndarray:
    inverse: np.ndarray = np.divide(1.0, lengths, out=np.zeros(len(lengths)), where=lengths > 0)
    return inverse


@dataclass(frozen=True)
class Int8Targets:
    """Stage one on int8 for a batch of queries; targets are int32, in units of z s.

    `queries: int8[m, d]`; `margin: float64[m]`, as in `proposals`, in the same units; `biases`:
    None or int32[n_eligible]; `sharp`: float32 targets of single pairs, in the same units.
    """

    copy: Int8Copy
    rows: np.ndarray | None
    queries: np.ndarray
    margin: np.ndarray
    biases: np.ndarray | None
    sharp: tuple[Sharpen, np.ndarray] | None

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.int32)

    def tiles(self, block_rows: int, batch: int) -> Tiles:
        """As `Proposals.tiles`."""
        numkong = _numkong()
        count = len(self.queries)
        packed = [
            (
                first,
                min(batch, count - first),
                numkong.dots_pack(self.queries[first : first + batch]),
            )
            for first in range(0, count, batch)
        ]

        def per_thread() -> Callable[[int, int], Iterator[tuple[int, np.ndarray]]]:
            outputs: dict[tuple[int, int], Any] = {}

            def block(start: int, stop: int) -> Iterator[tuple[int, np.ndarray]]:
                wanted: slice | np.ndarray = slice(start, stop)
                if self.rows is not None:
                    wanted = self.rows[start:stop]
                codes = self.copy.codes[wanted]
                for first, width, columns in packed:
                    shape = (stop - start, width)
                    if shape not in outputs:
                        outputs[shape] = numkong.empty(shape, dtype="int32")
                    numkong.dots_packed(codes, columns, out=outputs[shape])
                    tile = np.asarray(outputs[shape])
                    if self.biases is not None:
                        tile += self.biases[start:stop, np.newaxis]
                    yield first, tile

            return block

        return per_thread


def int8_targets(
    copy: Int8Copy,
    eligible_norms: np.ndarray,
    queries: np.ndarray,
    query_norms: np.ndarray,
    metric: Metric,
    proposals: Proposals,
) -> Int8Targets | None:
    """Targets and margins, or None where int8 cannot serve.

    `proposals` are those of `prepare_proposals` for the same arguments.
    """
    rows = proposals.rows
    residual = float((copy.residuals if rows is None else copy.residuals[rows]).max())
    if _numkong() is None or not np.isfinite(residual):
        return None
    largest = float(eligible_norms.max())
    vectors = queries.astype(np.float64)
    lengths = query_norms
    if metric != "euclidean":
        positive = query_norms > 0
        np.divide(vectors, query_norms[:, np.newaxis], out=vectors, where=positive[:, np.newaxis])
        lengths = positive.astype(np.float64)
    peaks = np.abs(vectors).max(axis=1)
    if metric == "euclidean":  # one unit, for the documents' biases are in it
        peaks = np.full(len(peaks), peaks.max())
    scales = np.where(peaks > 0, peaks, 1.0)[:, np.newaxis] / _LARGEST
    offsets = vectors @ copy.centre.astype(np.float64)
    codes = np.rint(vectors / scales)
    vectors -= codes * scales
    lost = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    units = scales[:, 0] * copy.scale

    bounds = lengths * residual + lost * copy.longest
    bounds += 2.0**-40 * (lengths * (residual + copy.longest) + 2.0**-100)  # float64 roundings
    steps = grid_steps(metric, query_norms, largest)
    biases = None
    margin = (2.0 * bounds + target_slack(metric, steps, query_norms, largest)) / units
    sharp_margin = (bounds + proposals.margin / proposals.scale) / units
    if metric == "euclidean":
        exact = -0.5 * eligible_norms**2 / units[0]
        if not np.abs(exact).max() < 2.0**29:
            return None
        biases = np.rint(exact).astype(np.int32)
        margin += 1.0
        sharp_margin += 1.0

    def sharpen(query_rows: np.ndarray, places: np.ndarray) -> np.ndarray:
        targets = proposals.pair_targets(query_rows, places) / np.float64(proposals.scale)
        values: np.ndarray = (targets - offsets[query_rows]) / units[query_rows]
        return values

    if not (margin < 2.0**29).all() or queries.shape[1] * _LARGEST**2 >= 2**29:
        return None
    sharp = (sharpen, sharp_margin)
    return Int8Targets(copy, rows, codes.astype(np.int8), margin, biases, sharp)
