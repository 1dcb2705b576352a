"""How well a mean over queries is known: its 95% interval, by resampling the queries.

The values are held on a grid of 2^-30 as float64, so that every sum of up to 2^23 of them is exact
and no result depends on the order of summation or the processor.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rag_assets.statistics.paired import RESAMPLES, expanded_tail
from rag_assets.statistics.sentences import MIN_QUERIES

# One row: one measure of one index in one space, over all queries (`subgroup` NULL) or a subgroup.
# `values` are those of the queries where the measure is defined, each from 0 to 1, in any order.
VALUES = pa.schema(
    [
        ("space_no", pa.int16()),
        ("index_name", pa.string()),
        ("subgroup", pa.string()),
        ("measure", pa.string()),
        ("k", pa.int32()),
        ("query_count", pa.int32()),
        ("values", pa.list_(pa.float64())),
    ]
)
# The same rows; `mean` is NULL without a defined query, the interval with fewer than MIN_QUERIES.
INTERVALS = pa.schema(
    [
        *(field for field in VALUES if field.name != "values"),
        ("defined_count", pa.int32()),
        ("mean", pa.float64()),
        ("interval_low", pa.float64()),
        ("interval_high", pa.float64()),
        ("seed", pa.int64()),
    ]
)
_GRID = 2.0**-30
_DRAWS = 2_000_000  # held at a time

Values = npt.NDArray[np.float64]


def mean_intervals(values: pa.Table, *, seed: int = 0) -> pa.Table:
    """Rows of INTERVALS for rows of VALUES, in their order.

    An interval depends on its own values and on `seed` only. Rows over equally many queries share
    their resamples, which makes 24 rows of 10,000 queries a matter of some 5 seconds.
    """
    rows: list[dict[str, Any]] = values.select(VALUES.names).to_pylist()
    found = [np.sort(np.array(row.pop("values"), np.float64)) for row in rows]
    by_count: dict[int, list[int]] = {}
    for number, (row, defined) in enumerate(zip(rows, found, strict=True)):
        count = len(defined)
        row |= {
            "defined_count": count,
            "mean": math.fsum(defined) / count if count else None,
            "interval_low": None,
            "interval_high": None,
            "seed": seed,
        }
        if count >= MIN_QUERIES:
            by_count.setdefault(count, []).append(number)
    for numbers in by_count.values():
        intervals = bootstrap_means(np.stack([found[number] for number in numbers]), seed)
        for number, (low, high) in zip(numbers, intervals.tolist(), strict=True):
            rows[number] |= {"interval_low": low, "interval_high": high}
    return pa.Table.from_pylist(rows, schema=INTERVALS)


def bootstrap_means(values: Values, seed: int) -> Values:
    """`float64[m, 2]`: the 95% interval of the mean of each of m rows of `values: float64[m, n]`.

    Percentile bootstrap, 10,000 resamples of n >= 2 queries (Efron 1979), the percentiles taken
    further out as in `paired.bootstrap_interval` (Hesterberg 2015), which says how well it covers.
    """
    rows, count = values.shape
    scaled = np.rint(values / _GRID)
    generator = np.random.default_rng([seed, 2])
    sums = np.empty((rows, RESAMPLES))
    step = max(1, _DRAWS // count)
    for start in range(0, RESAMPLES, step):
        size = min(step, RESAMPLES - start)
        draws = generator.integers(count, size=(size, count), dtype=np.uint32)
        # How often each resample draws each query; the sums are then one product for all rows.
        drawn = draws + np.arange(0, size * count, count)[:, np.newaxis]
        times = np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count)
        sums[:, start : start + size] = scaled @ times.T.astype(np.float64)
    tail = expanded_tail(count)
    quantiles: Values = np.quantile(sums, [tail, 1 - tail], axis=1).T / count * _GRID
    return quantiles
