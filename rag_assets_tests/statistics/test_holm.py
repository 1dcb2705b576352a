"""Holm's correction."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.statistics.holm import holm


def test_the_smallest_p_is_multiplied_by_the_number_of_tests_the_next_by_one_less() -> None:
    # 0.005 * 4 = 0.02; 0.01 * 3 = 0.03; 0.03 * 2 = 0.06; 0.04 * 1 = 0.04, raised to 0.06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_one_test_stays_as_it_is_and_nothing_exceeds_1() -> None:
    assert holm([]) == []
    assert holm([0.03]) == [0.03]
    assert holm([0.7, 0.6]) == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_it_is_the_closed_test_of_bonferroni(p_values: list[float]) -> None:
    # A hypothesis is rejected if Bonferroni rejects every set of hypotheses that holds it (Marcus,
    # Peritz and Gabriel, Biometrika 63, 1976): its adjusted p is the largest of those sets.
    numbers = range(len(p_values))
    sets = [s for size in numbers for s in combinations(numbers, size + 1)]
    expected = [
        max(min(1.0, len(s) * min(p_values[i] for i in s)) for s in sets if number in s)
        for number in numbers
    ]
    assert holm(p_values) == pytest.approx(expected)
