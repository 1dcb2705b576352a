"""Stage one of exact search on bfloat16: the stand-ins of `proposals`, rounded to fewer bits.

On processors with matrix units this is several times as fast as float32 and, unlike `int8`, needs
no prepared copy and can tell almost as many documents apart as float32. With q~, x~ the rounded
stand-ins of q', x', Cauchy-Schwarz bounds what rounding changes:

    |q~·x~ - q'·x'| <= |q~ - q'| |x'| + |q~| |x~ - x'|,   |x~ - x'| <= 2^-8 |x'|

Products are summed up in float32; the roundings are counted as in `proposals`, whose bound is
taken twice, since |q~| |x~| may be above |q'| |x'| by a hundredth. What is left is scored in
float32 and then in float64, so the result is the same to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rag_assets.indexes.numkong_engine import native_numkong
from rag_assets.indexes.proposals import Proposals, Tiles

# Up to so many documents, what rounding takes from them is measured: it is less than the bound.
_MEASURED = 1 << 11
# What numkong calls the instruction sets that multiply bfloat16 matrices.
_NATIVE = {"sapphireamx", "graniteamx"}


@lru_cache(maxsize=1)
def _numkong() -> Any:
    return native_numkong(_NATIVE)


@dataclass(frozen=True)
class Bfloat16Targets:
    """Stage one on bfloat16 for a batch of queries; targets are float32, as in `proposals`."""

    proposals: Proposals
    margin: np.ndarray

    @property
    def queries(self) -> np.ndarray:
        return self.proposals.queries

    @property
    def one_sided(self) -> np.ndarray:
        """The margin below a target that is not itself computed on bfloat16: float64[m]."""
        return 0.5 * self.margin

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float32)

    @property
    def sharp(self) -> None:
        return None

    def tiles(self, block_rows: int, batch: int) -> Tiles:
        """As `Proposals.tiles`."""
        numkong = _numkong()
        biases = self.proposals.biases
        packed = []
        for first in range(0, len(self.queries), batch):
            rounded = numkong.astype(self.queries[first : first + batch], "bf16")
            packed.append((first, rounded.shape[0], numkong.dots_pack(rounded)))

        def per_thread() -> Callable[[int, int], Iterator[tuple[int, np.ndarray]]]:
            outputs: dict[tuple[int, int], Any] = {}

            def block(start: int, stop: int) -> Iterator[tuple[int, np.ndarray]]:
                rounded = numkong.astype(self.proposals.block(start, stop), "bf16")
                for first, width, columns in packed:
                    shape = (stop - start, width)
                    if shape not in outputs:
                        outputs[shape] = numkong.empty(shape, dtype="float32")
                    numkong.dots_packed(rounded, columns, out=outputs[shape])
                    tile = np.asarray(outputs[shape])
                    if biases is not None:
                        tile += biases[start:stop, np.newaxis]
                    yield first, tile

            return block

        return per_thread


def bfloat16_targets(proposals: Proposals) -> Bfloat16Targets | None:
    """The targets of `prepare_proposals` on bfloat16, or None where float32 is faster."""
    if _numkong() is None:
        return None
    lengths, lost = _rounded(proposals.queries)
    document_lost = 2.0**-8 * proposals.span
    count = len(proposals.documents if proposals.rows is None else proposals.rows)
    if count <= _MEASURED:
        document_lost = min(document_lost, float(_rounded(proposals.block(0, count))[1].max()))
    extra = (1.0 + 2.0**-8) * (lost * proposals.span + document_lost * lengths)
    return Bfloat16Targets(proposals, 2.0 * (proposals.margin + extra))


def product_errors(queries: np.ndarray) -> np.ndarray | None:
    """What `rounded_products` may be wrong by, relative to |x|: float32[q].

    `queries: float32[q, d]`; None where float32 products are faster. Counts in as many roundings
    again as a float32 product has.
    """
    if _numkong() is None:
        return None
    lengths, lost = _rounded(queries)
    errors: np.ndarray = lost + lengths * np.float32(2.0**-8 + (queries.shape[1] + 8) * 2.0**-22)
    return errors


def rounded_products(documents: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """x~·q~ of every pair, float32[b, q]: `documents: float32[b, d]`, `queries: float32[q, d]`."""
    numkong = _numkong()
    columns = numkong.dots_pack(numkong.astype(queries, "bf16"))
    return np.asarray(numkong.dots_packed(numkong.astype(documents, "bf16"), columns))


def _rounded(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At least |v~| and |v~ - v|, float32[n] each, of `vectors: float32[n, d]`."""
    bits = np.asarray(_numkong().astype(vectors, "bf16")).view(np.uint16)
    rounded = (bits.astype(np.uint32) << 16).view(np.float32)
    slack = 1.0 + (vectors.shape[1] + 2) * 2.0**-23  # for the norms, computed in float32
    lengths, lost = (
        slack * np.sqrt(np.vecdot(part, part)) + 2.0**-60 for part in (rounded, rounded - vectors)
    )
    return lengths, lost
