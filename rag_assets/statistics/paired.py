"""The differences of one measure over the same queries: interval, test, smallest visible effect.

Differences are held as int64 in units of GRID, so that sums are exact and no result depends on the
order of summation or the processor. What remains is NumPy's own promise: PCG64 and bounded integers
give one stream on all machines for one version of NumPy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

GRID = 2.0**-40  # about 1e-12; a smaller difference between two measures is rounding
RESAMPLES = 10_000
FLIPS = 100_000
ENUMERATED = 16  # up to 2^16 sign patterns are all looked at
LEVEL = 0.95
POWER = 0.80
EXACT, MONTE_CARLO = "exact", "monte_carlo"
_NORMAL = NormalDist()

Differences = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SignFlip:
    """A two-sided p-value; `method` tells whether all sign patterns were enumerated."""

    p_value: float
    method: str


def differences(old: npt.NDArray[np.float64], new: npt.NDArray[np.float64]) -> Differences:
    """`int64[n]`: new - old in units of GRID, ascending. `old`, `new`: float64[n] in 0..1.

    Sorted, because nothing below may depend on the order in which queries are listed.
    """
    return np.sort(np.rint((new - old) / GRID).astype(np.int64))


def mean(found: Differences) -> float:
    """The mean difference of n >= 1 queries."""
    return int(found.sum()) / len(found) * GRID


def standard_deviation(found: Differences) -> float:
    """With n - 1 degrees of freedom; n >= 2."""
    centre = int(found.sum()) / len(found)
    squares = math.fsum((found - centre) ** 2)
    return math.sqrt(squares / (len(found) - 1)) * GRID


def bootstrap_interval(found: Differences, seed: int) -> tuple[float, float]:
    """The 95% interval of the mean difference: paired percentile bootstrap, 10,000 resamples.

    Queries are resampled, not values (Efron 1979), and the percentiles are taken further out, at
    Phi(-sqrt(n / (n - 1)) t) instead of 2.5%, t being Student's quantile (Hesterberg, The American
    Statistician 69, 2015, section 3.3): the plain interval covers 93% at n = 20, this one 95% for
    symmetric differences. BCa (Efron 1987) corrects skewness instead, but covers less where few
    queries changed (71% against 78% at n = 20 with 12% changed). No interval keeps its level there,
    because a sample may show none of the change: this one covers 94% at n = 40 with 30% changed,
    93% at n = 100 with 12%, 89% at n = 100 with 5%.
    """
    count = len(found)
    if found[0] == found[-1]:  # all equal, as where nothing changed since a baseline
        return float(found[0]) * GRID, float(found[0]) * GRID
    tail = expanded_tail(count)
    generator = np.random.default_rng([seed, 0])
    sums = np.zeros(RESAMPLES, np.int64)
    for _ in range(count):  # one draw of every resample at a time: nothing large is ever held
        sums += found[generator.integers(count, size=RESAMPLES, dtype=np.uint32)]
    low, high = np.quantile(sums, [tail, 1 - tail]) / count * GRID
    return float(low), float(high)


def expanded_tail(count: int) -> float:
    """The share of resamples below a percentile interval for `count` >= 2 queries, see above."""
    t = student_quantile((1 + LEVEL) / 2, count - 1)
    return _NORMAL.cdf(-math.sqrt(count / (count - 1)) * t)


def sign_flip_test(found: Differences, seed: int) -> SignFlip:
    """Fisher's paired randomization test of the mean difference, two-sided.

    If old and new were interchangeable, each difference would be as likely with the other sign. The
    p-value is the share of sign patterns whose sum is at least as far from 0 as the observed one:
    all 2^m patterns for m <= 16 differences that are not 0; else 100,000 random ones, as
    (hits + 1) / (patterns + 1), which keeps the test valid (Phipson and Smyth, Statistical
    Applications in Genetics and Molecular Biology 9, 2010). Recommended for measures of ranked
    lists by Smucker, Allan and Carterette, CIKM 2007.
    """
    sizes = np.sort(np.abs(found[found != 0]))
    # A third is not on the grid, so that equal sums may be apart by a step for each difference.
    reached = abs(int(found.sum())) - len(sizes)
    if len(sizes) <= ENUMERATED:
        return SignFlip(float(np.mean(np.abs(_signed_sums(sizes)) >= reached)), EXACT)
    # Eight differences share one table of their 256 signed sums: one random byte flips all eight.
    generator = np.random.default_rng([seed, 1])
    sums = np.zeros(FLIPS, np.int64)
    for start in range(0, len(sizes), 8):
        table = _signed_sums(sizes[start : start + 8])
        sums += table[generator.integers(len(table), size=FLIPS, dtype=np.uint8)]
    hits = int(np.count_nonzero(np.abs(sums) >= reached))
    return SignFlip((hits + 1) / (FLIPS + 1), MONTE_CARLO)


def _signed_sums(sizes: Differences) -> Differences:
    """`int64[2^m]`: the sum of `sizes: int64[m]` under every pattern of signs."""
    sums = np.zeros(1, np.int64)
    for size in sizes:
        sums = np.concatenate([sums - size, sums + size])
    return sums


def smallest_detectable(found: Differences) -> float | None:
    """The smallest true mean difference that n queries like these show with 80% power.

    (t(0.975, n - 1) + t(0.80, n - 1)) s / sqrt(n), for a two-sided paired t test at 5%; s is the
    standard deviation of the differences (Cohen, Statistical Power Analysis, 1988; for n >= 20 it
    is within 0.2% of the noncentral t). For one test: a correction for several makes it larger.
    None where all differences are equal, since s = 0 says nothing about the next queries.
    """
    deviation = standard_deviation(found)
    if deviation == 0:
        return None
    freedom = len(found) - 1
    reach = student_quantile((1 + LEVEL) / 2, freedom) + student_quantile(POWER, freedom)
    return reach * deviation / math.sqrt(len(found))


def student_quantile(probability: float, freedom: int) -> float:
    """Student's t quantile, from the normal one (Abramowitz and Stegun 1964, 26.7.5).

    Within 0.0001 for `freedom` >= 19 and the probabilities used here.
    """
    z = _NORMAL.inv_cdf(probability)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return math.fsum(term / freedom**power for power, term in enumerate(terms))
