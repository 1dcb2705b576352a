"""Samples of queries, and the interval of a mean over them."""

from __future__ import annotations

import numpy as np
import pytest

from rag_assets.errors import UsageError
from rag_assets.laboratory.sampling import bootstrap_interval, sample_queries


def test_a_sample_is_distinct_ascending_and_fixed_by_its_seed() -> None:
    rows = sample_queries(1000, 50, seed=4)
    assert len(set(rows.tolist())) == 50
    assert rows.tolist() == sorted(rows.tolist())
    assert rows.max() < 1000
    assert np.array_equal(rows, sample_queries(1000, 50, seed=4))
    assert not np.array_equal(rows, sample_queries(1000, 50, seed=5))


@pytest.mark.parametrize("size", [None, 7, 8])
def test_all_queries_are_taken_where_the_sample_is_no_smaller(size: int | None) -> None:
    assert sample_queries(7, size, seed=0).tolist() == list(range(7))


def test_an_empty_sample_is_refused() -> None:
    with pytest.raises(UsageError, match="query_sample is 0"):
        sample_queries(7, 0, seed=0)


def test_the_interval_agrees_with_the_normal_approximation_on_many_values() -> None:
    # 400 values, 0.2 and 0.8 in equal parts: the mean is 0.5, its standard error 0.3 / 20 = 0.015,
    # so that 95% lie within 1.96 * 0.015 = 0.0294.
    values = np.tile([0.2, 0.8], 200)
    interval = bootstrap_interval(np.append(values, np.nan), seed=1)
    assert interval == pytest.approx((0.5 - 0.0294, 0.5 + 0.0294), abs=0.003)
    assert interval == bootstrap_interval(values, seed=1)
    assert interval != bootstrap_interval(values, seed=2)


def test_equal_values_leave_nothing_open_and_one_value_leaves_everything() -> None:
    assert bootstrap_interval(np.full(9, 0.25), seed=1) == (0.25, 0.25)
    assert bootstrap_interval(np.array([0.5, np.nan]), seed=1) is None
