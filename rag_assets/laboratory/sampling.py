"""Queries drawn at random, and the interval that a mean over them leaves open."""

from __future__ import annotations

import numpy as np

from rag_assets.errors import UsageError

RESAMPLES = 2_000
LEVEL = 0.95


def sample_queries(count: int, size: int | None, seed: int) -> np.ndarray:
    """int64[min(size, count)], ascending: rows drawn without replacement, or all if size is None.

    Raises UsageError for a size below 1.
    """
    if size is None or size >= count:
        return np.arange(count)
    if size < 1:
        raise UsageError(f"query_sample is {size}; it must be at least 1")
    return np.sort(np.random.default_rng(seed).choice(count, size, replace=False))


def bootstrap_interval(values: np.ndarray, seed: int) -> tuple[float, float] | None:
    """The percentile bootstrap interval (Efron 1979) of the mean of `values: float64[n]`.

    95%, 2,000 resamples, seeded. A mean of fractions is no binomial proportion, so Wilson's
    interval does not apply. NaN values are left out; None where fewer than two remain. That the
    population is finite is not taken into account: the interval is on the wide side.
    """
    defined = values[~np.isnan(values)]
    if defined.size < 2:
        return None
    generator = np.random.default_rng(seed)
    means = np.empty(RESAMPLES)
    for number in range(RESAMPLES):
        means[number] = defined[generator.integers(defined.size, size=defined.size)].mean()
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
