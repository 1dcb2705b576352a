"""Recall of an approximate ranking: small cases by hand, and a plain-set property."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.errors import UsageError
from rag_assets.laboratory.recall import ann_recall, ranking_keys_of


def one(truth: list[int], found: list[int], eligible: int, k: int = 3) -> tuple[float, int, str]:
    """(recall, short_results, status) of a single query."""
    result = ann_recall(
        np.array([truth], dtype=np.int64).reshape(1, -1),
        np.array([found], dtype=np.int64).reshape(1, -1),
        np.array([eligible]),
        k,
    )
    return float(result.recall[0]), int(result.short_results[0]), str(result.status[0])


@pytest.mark.parametrize(
    ("found", "recall", "short"),
    [
        ([1, 2, 3], 1.0, 0),
        ([3, 2, 1], 1.0, 0),  # order within the top k does not count
        ([1, 2, 4], 2 / 3, 0),
        ([1, 1, 1], 1 / 3, 2),  # one distinct answer
        ([7, 8, 9], 0.0, 0),
        ([1, 2], 2 / 3, 1),
        ([1, 2, -1], 2 / 3, 1),
        ([7, 8, 9, 1], 0.0, 0),  # the fourth is beyond k
        ([], 0.0, 3),
    ],
)
def test_recall_is_the_share_of_the_exact_top_k(
    found: list[int], recall: float, short: int
) -> None:
    assert one([1, 2, 3, 4], found, eligible=10) == (pytest.approx(recall), short, "ok")


def test_with_fewer_eligible_documents_than_k_the_exact_list_is_shorter_too() -> None:
    assert one([1, -1, -1], [1, -1, -1], eligible=1) == (1.0, 0, "ok")
    assert one([1, 2, -1], [2, -1, -1], eligible=2) == (0.5, 1, "ok")


@pytest.mark.parametrize("found", [[9, -1, -1], [-1, -1, -1], []])
def test_a_query_that_may_see_nothing_is_undefined_whatever_came_back(found: list[int]) -> None:
    recall, short, status = one([-1, -1, -1], found, eligible=0)
    assert math.isnan(recall)
    assert (short, status) == (0, "empty_eligible")


def test_means_leave_undefined_queries_out() -> None:
    result = ann_recall(
        np.array([[1, 2], [3, 4], [-1, -1]]),
        np.array([[1, 2], [3, 9], [-1, -1]]),
        np.array([5, 5, 0]),
        2,
    )
    assert result.mean == 0.75  # (1 + 0.5) / 2
    assert result.defined == 2
    assert math.isnan(result.tie_aware_mean)


def test_the_tie_aware_form_counts_an_answer_that_ties_with_the_last() -> None:
    # Keys 9 8 7 for the truth. 4 scores 7 as well: exact search left it out for its id alone.
    # 5 scores 6: it is worse. A repeated tie counts once.
    truth, keys = np.array([[1, 2, 3]] * 3), np.array([[9, 8, 7]] * 3)
    found = np.array([[1, 2, 4], [1, 2, 5], [4, 4, 4]])
    found_keys = np.array([[9, 8, 7], [9, 8, 6], [7, 7, 7]])
    result = ann_recall(
        truth, found, np.array([9, 9, 9]), 3, truth_keys=keys, found_keys=found_keys
    )
    assert result.tie_aware is not None
    assert result.recall.tolist() == [2 / 3, 2 / 3, 0.0]
    assert result.tie_aware.tolist() == [1.0, 2 / 3, 1 / 3]
    assert result.tie_aware_mean == pytest.approx(2 / 3)


def test_close_scores_are_no_ties_but_equal_ones_are() -> None:
    # Cosine with (1, 0): parallel vectors of any length tie at 1; one is off by about 5e-7.
    documents = np.array([[1, 0], [3, 0], [1, 1e-3], [0, 1]], dtype=np.float64)
    queries = np.array([[2.0, 0.0]])
    keys = ranking_keys_of(
        documents, queries, np.array([[0, 1, 2, -1]]), "cosine", np.array([3.0])
    )[0]
    assert keys[0] == keys[1] == 2**30
    assert keys[0] - keys[2] == round(2**30 * (1 - 1 / math.sqrt(1 + 1e-6)))
    assert keys[3] < -(2**31)


def test_each_query_has_the_grid_of_its_own_eligible_documents() -> None:
    # dot with |q| = 1: the step is 2^-30 of the largest norm, 1 or 4.
    documents, queries = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 0.0]])
    keys = ranking_keys_of(documents, queries, np.array([[0], [0]]), "dot", np.array([1.0, 4.0]))
    assert keys[:, 0].tolist() == [2**30, 2**28]


def test_a_truth_that_is_too_short_is_refused() -> None:
    with pytest.raises(UsageError, match="query 0 holds 2 distinct documents where 3 are needed"):
        one([1, 2, -1], [1, 2, 3], eligible=9)
    with pytest.raises(UsageError, match="query 0 holds 2 distinct"):
        one([1, 2, 2], [1, 2, 3], eligible=9)
    with pytest.raises(UsageError, match="equal in number"):
        ann_recall(np.zeros((2, 1)), np.zeros((1, 1)), np.array([1, 1]), 1)


@given(
    st.integers(1, 5),
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 9), unique=True, max_size=8),
            st.lists(st.integers(-1, 9), max_size=7),
        ),
        min_size=1,
        max_size=6,
    ),
)
def test_agrees_with_plain_sets(k: int, rows: list[tuple[list[int], list[int]]]) -> None:
    def padded(lists: list[list[int]]) -> np.ndarray:
        return np.array([[*entry, *[-1] * 8][:8] for entry in lists])

    truths, founds = [row[0] for row in rows], [row[1] for row in rows]
    eligible = [len(truth) for truth in truths]
    result = ann_recall(padded(truths), padded(founds), np.array(eligible), k)
    for place, (truth, found) in enumerate(zip(truths, founds, strict=True)):
        size = min(k, len(truth))
        answers = {row for row in found[:k] if row >= 0}
        if size == 0:
            assert math.isnan(result.recall[place])
        else:
            assert result.recall[place] == len(set(truth[:size]) & answers) / size
            assert result.short_results[place] == size - min(size, len(answers))
