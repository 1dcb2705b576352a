"""Paired differences: checked against scipy, by enumeration and by simulation."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rag_assets.statistics import paired

Values = npt.NDArray[np.float64]


def found(differences: Values | list[float]) -> paired.Differences:
    """Differences between values around 0.5."""
    half = np.asarray(differences, np.float64) / 2
    return paired.differences(0.5 - half, 0.5 + half)


def sparse(generator: np.random.Generator, count: int, share: float) -> Values:
    """A change of reciprocal rank in `share` of the queries, none in the others."""
    steps = generator.choice([-0.5, -2 / 3, -0.25, 0.5, 1 / 3], count)
    return np.where(generator.random(count) < share, steps, 0.0)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_interval_is_scipys_percentile_bootstrap_at_the_expanded_level(seed: int) -> None:
    # Hesterberg's level for n = 60 by scipy's own distributions; both intervals carry Monte Carlo
    # noise of about 1.5% of the width at each end.
    values = sparse(np.random.default_rng(3), 60, 0.4)
    tail = stats.norm.cdf(-np.sqrt(60 / 59) * stats.t.ppf(0.975, 59))
    theirs = stats.bootstrap(
        (values,),
        np.mean,
        confidence_level=1 - 2 * tail,
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(9),
    ).confidence_interval
    ours = paired.bootstrap_interval(found(values), seed)
    assert ours == pytest.approx(theirs, abs=0.03 * (theirs.high - theirs.low))


@pytest.mark.parametrize("freedom", [19, 20, 47, 500])
@pytest.mark.parametrize("probability", [0.8, 0.975])
def test_students_quantiles_are_scipys(freedom: int, probability: float) -> None:
    expected = stats.t.ppf(probability, freedom)
    assert paired.student_quantile(probability, freedom) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("count", [20, 50, 400])
def test_the_smallest_detectable_effect_has_80_percent_power_by_the_noncentral_t(
    count: int,
) -> None:
    values = sparse(np.random.default_rng(count), count, 0.5)
    smallest = paired.smallest_detectable(found(values))
    assert smallest is not None
    shift = smallest / (np.std(values, ddof=1) / np.sqrt(count))
    power = stats.nct.sf(stats.t.ppf(0.975, count - 1), count - 1, shift)
    assert power == pytest.approx(0.8, abs=0.004)


def test_sign_flips_are_enumerated_by_hand() -> None:
    # 0.1, 0.2, -0.1 (and zeros): the sum is 0.2. Under the 8 sign patterns |sum| is 0.4, 0.2, 0,
    # 0.2 and the same once more: 6 of 8 reach 0.2.
    test = paired.sign_flip_test(found([0.1, 0, 0.2, 0, -0.1]), seed=0)
    assert test == paired.SignFlip(0.75, "exact")
    # Five losses and no gain: only "all minus" and "all plus" of 32 are as far from 0.
    assert paired.sign_flip_test(found([-0.3] * 5), seed=0) == paired.SignFlip(2 / 32, "exact")
    # 1/3 + 1/3 - 2/3 = 0 = 2/3 - 1/3 - 1/3, though none of them is a binary fraction: all 8
    # patterns reach 0. |2/3 + 1/3 - 1/3| = 2/3 is reached by all but the two that give 0.
    thirds = [1 / 3, 1 / 3, -2 / 3]
    assert paired.sign_flip_test(found(thirds), seed=0).p_value == 1
    assert paired.sign_flip_test(found([2 / 3, 1 / 3, -1 / 3]), seed=0).p_value == 6 / 8


def test_the_exact_test_is_scipys() -> None:
    values = sparse(np.random.default_rng(5), 30, 0.4)
    changed = values[values != 0]
    assert 8 <= len(changed) <= 16
    theirs = stats.permutation_test(
        (changed, np.zeros_like(changed)),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    test = paired.sign_flip_test(found(values), seed=0)
    assert test.method == "exact"
    assert test.p_value == pytest.approx(theirs.pvalue, abs=1e-12)


@pytest.mark.parametrize("count", [17, 19])
def test_random_sign_flips_agree_with_all_of_them(count: int) -> None:
    # One or three more than are enumerated. With 100,000 flips the standard error is below 0.0016.
    values = np.random.default_rng(count).normal(0.03, 0.1, count).clip(-0.5, 0.5)
    signs = np.array(list(product([-1, 1], repeat=count)), np.int8)
    every = np.mean(np.abs(signs @ values) >= abs(values.sum()) - 1e-9)
    assert 0.02 < every < 0.9
    test = paired.sign_flip_test(found(values), seed=2)
    assert test.method == "monte_carlo"
    assert test.p_value == pytest.approx(every, abs=0.005)
    assert test != paired.sign_flip_test(found(values), seed=3)


def test_a_monte_carlo_p_value_is_never_0() -> None:
    # 40 gains: two of 2^40 patterns are as extreme; none of 100,000 random ones will be.
    test = paired.sign_flip_test(found([0.25] * 40), seed=0)
    assert test.p_value == 1 / (paired.FLIPS + 1)


def test_equal_differences_leave_nothing_to_resample() -> None:
    assert paired.bootstrap_interval(found([-0.25] * 25), seed=0) == (-0.25, -0.25)


def test_no_difference_is_no_effect() -> None:
    nothing = found([0.0] * 25)
    assert paired.bootstrap_interval(nothing, seed=0) == (0, 0)
    assert paired.sign_flip_test(nothing, seed=0) == paired.SignFlip(1.0, "exact")
    assert paired.smallest_detectable(nothing) is None


def test_rounding_is_no_difference() -> None:
    # 0.1 + 0.2 is 0.30000000000000004.
    assert paired.differences(np.array([0.3]), np.array([0.1 + 0.2])).tolist() == [0]
    assert paired.differences(np.array([0.3]), np.array([0.3 + 1e-11])).tolist() == [11]


tenths = st.lists(st.integers(-10, 10).map(lambda n: n / 10), min_size=20, max_size=40)


@settings(max_examples=15, deadline=None)
@given(tenths, st.randoms(use_true_random=False))
def test_the_order_of_queries_and_the_direction_do_not_matter(
    values: list[float], random: object
) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = found(values), found(shuffled)
    interval = paired.bootstrap_interval(one, seed=7)
    assert interval == paired.bootstrap_interval(other, seed=7)
    assert min(values) - 1e-9 <= interval[0] <= interval[1] <= max(values) + 1e-9
    test = paired.sign_flip_test(one, seed=7)
    assert test == paired.sign_flip_test(other, seed=7)
    assert test == paired.sign_flip_test(found([-value for value in values]), seed=7)
    assert paired.mean(one) == pytest.approx(np.mean(values), abs=1e-9)
    assert paired.standard_deviation(one) == pytest.approx(np.std(values, ddof=1), abs=1e-8)


def test_the_interval_covers_the_truth_at_its_level(monkeypatch: pytest.MonkeyPatch) -> None:
    # 500 samples of 40 queries, 500 resamples each: the share has a standard error of 1.0%. Dense
    # differences are symmetric; sparse ones change 30% of the queries, mostly down, and are covered
    # in 94.1% of 3,000 samples.
    monkeypatch.setattr(paired, "RESAMPLES", 500)
    generator = np.random.default_rng(1)
    sparse_mean = 0.3 * np.mean([-0.5, -2 / 3, -0.25, 0.5, 1 / 3])
    covered = {"dense": 0, "sparse": 0}
    for seed in range(500):
        dense = generator.normal(0.05, 0.15, 40).clip(-0.9, 0.9)
        for name, values, truth in (
            ("dense", dense, 0.05),
            ("sparse", sparse(generator, 40, 0.3), sparse_mean),
        ):
            low, high = paired.bootstrap_interval(found(values), seed)
            covered[name] += int(low <= truth <= high)
    assert covered["dense"] / 500 == pytest.approx(0.95, abs=0.02)
    assert covered["sparse"] / 500 == pytest.approx(0.941, abs=0.03)


def test_small_samples_are_covered_too_by_the_expanded_percentiles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # At n = 20 the plain percentile interval covers 92.8% (worked out: 2 Phi-like tails of
    # t(19) at 1.96 sqrt(19/20) = 1.91, which leave 7.1%); this one 95%.
    monkeypatch.setattr(paired, "RESAMPLES", 500)
    generator = np.random.default_rng(2)
    covered = 0
    for seed in range(1_200):
        low, high = paired.bootstrap_interval(found(generator.normal(0, 0.15, 20)), seed)
        covered += low <= 0 <= high
    assert 0.937 < covered / 1_200 < 0.963


def test_false_alarms_are_as_rare_as_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    # Old and new are exchangeable: 1,000 sets of 50 queries, 30% changed by chance. At 5% the
    # share of alarms has a standard error of 0.7%.
    monkeypatch.setattr(paired, "FLIPS", 999)
    generator = np.random.default_rng(3)
    alarms = 0
    for seed in range(1_000):
        values = sparse(generator, 50, 0.5) * generator.choice([-1, 1], 50)
        alarms += paired.sign_flip_test(found(values), seed).p_value <= 0.05
    assert 0.03 < alarms / 1_000 < 0.07
