"""Intervals of means: checked against scipy, and independent of what must not matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rag_assets.statistics.means import INTERVALS, VALUES, bootstrap_means, mean_intervals

Row = dict[str, Any]


def intervals(*values: Sequence[float], seed: int = 0) -> list[Row]:
    """One row per list of values, with one undefined query besides."""
    rows = [
        {"space_no": 0, "index_name": "exact", "subgroup": None, "measure": "ndcg_at_k", "k": 10}
        | {"query_count": len(one) + 1, "values": one}
        for one in values
    ]
    result = mean_intervals(pa.Table.from_pylist(rows, schema=VALUES), seed=seed)
    assert result.schema == INTERVALS
    found: list[Row] = result.to_pylist()
    return found


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("count", [20, 150, 900])
def test_the_interval_is_scipys_percentile_bootstrap_at_the_expanded_level(
    count: int, seed: int
) -> None:
    # Reciprocal ranks, skewed as those of a good index are. Hesterberg's level by scipy's own
    # distributions; both intervals carry Monte Carlo noise of about 1.5% of the width at each end.
    values = np.random.default_rng(count).choice([1, 1, 1, 1 / 2, 1 / 3, 0], count)
    tail = stats.norm.cdf(-np.sqrt(count / (count - 1)) * stats.t.ppf(0.975, count - 1))
    theirs = stats.bootstrap(
        (values,),
        np.mean,
        confidence_level=1 - 2 * tail,
        n_resamples=20_000,
        batch=1_000,
        method="percentile",
        rng=np.random.default_rng(9),
    ).confidence_interval
    [ours] = bootstrap_means(values[np.newaxis], seed)
    assert ours == pytest.approx(theirs, abs=0.03 * (theirs.high - theirs.low))


def test_half_the_queries_right_is_known_to_a_binomial_s_width() -> None:
    # 200 of 400 found: the mean of a resample is binomial, 0.5 with a deviation of 0.025.
    [row] = intervals([0.0, 1.0] * 200)
    assert (row["query_count"], row["defined_count"], row["mean"]) == (401, 400, 0.5)
    assert row["interval_low"] == pytest.approx(0.5 - 1.966 * 0.025, abs=0.003)
    assert row["interval_high"] == pytest.approx(0.5 + 1.966 * 0.025, abs=0.003)


def test_fewer_than_twenty_queries_have_a_mean_and_no_interval() -> None:
    none, few, enough = intervals([], [0.25] * 19, [0.25] * 20)
    shown = ("defined_count", "mean", "interval_low", "interval_high")
    assert [none[name] for name in shown] == [0, None, None, None]
    assert [few[name] for name in shown] == [19, 0.25, None, None]
    assert [enough[name] for name in shown] == [20, 0.25, 0.25, 0.25]


def test_no_values_give_no_rows() -> None:
    assert intervals() == []


measured = st.lists(st.integers(0, 7).map(lambda n: n / 7), min_size=20, max_size=40)


@settings(max_examples=15, deadline=None)
@given(measured, measured, st.randoms(use_true_random=False))
def test_a_row_depends_on_its_own_values_and_the_seed_alone(
    values: list[float], others: list[float], random: Any
) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)
    [alone] = intervals(values, seed=3)
    same_count = (others * 2)[: len(values)]
    assert intervals(same_count, others, shuffled, seed=3)[2] == alone
    assert min(values) - 1e-8 <= alone["interval_low"] <= alone["mean"] + 1e-8
    assert alone["mean"] - 1e-8 <= alone["interval_high"] <= max(values) + 1e-8


def test_another_seed_draws_other_resamples() -> None:
    values = np.random.default_rng(5).random(50).tolist()
    [one], [other] = intervals(values, seed=0), intervals(values, seed=1)
    assert one["interval_low"] != other["interval_low"]
    assert one["interval_low"] == pytest.approx(other["interval_low"], abs=0.01)


def test_the_interval_covers_the_true_mean_at_its_level() -> None:
    # 400 samples of 40 skewed values: the share covered has a standard error of 1.1%. Skewness
    # costs a little.
    generator = np.random.default_rng(6)
    samples = generator.choice([1, 1, 1 / 2, 1 / 3, 0], (400, 40))
    truth = np.mean([1, 1, 1 / 2, 1 / 3, 0])
    covered = [
        low <= truth <= high
        for seed, sample in enumerate(samples)
        for low, high in bootstrap_means(sample[np.newaxis], seed)
    ]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.03)
