"""Calibrating thresholds, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.errors import UsageError
from rag_assets.thresholds.calibration import CURVE, calibrate, candidates
from rag_assets.thresholds.rows import THRESHOLDS, threshold_rows
from rag_assets.thresholds.threshold import (
    Costs,
    Threshold,
    answers,
    evaluate_on_test,
    threshold_sentence,
)
from rag_assets_tests.thresholds.examples import DEV, TEST, Scores, contract, top_scores

EQUAL = Costs(1, 1)
scores = st.lists(
    st.one_of(st.none(), st.integers(-5, 5).map(lambda n: n / 10)), min_size=5, max_size=12
)
tenths = st.integers(1, 9).map(lambda n: n / 10)


@settings(max_examples=60, deadline=None)
@given(scores, scores, tenths, tenths)
def test_no_threshold_costs_less_and_no_higher_one_costs_the_same(
    with_answer: Scores, without: Scores, false_answer: float, false_refusal: float
) -> None:
    def cost(value: float) -> Fraction:
        wrong = sum(score is not None and score >= value for score in without)
        missed = sum(score is None or score < value for score in with_answer)
        tenth = Fraction(1, 10)
        return round(10 * false_answer) * tenth * wrong + round(10 * false_refusal) * tenth * missed

    table = top_scores(with_answer, without)
    found = calibrate(contract(), table, Costs(false_answer, false_refusal))
    chosen = found.threshold.value
    assert chosen is not None and found.threshold.dev is not None
    assert found.threshold.dev.expected_cost == float(cost(chosen) / len(table))
    # Every distinguishable threshold: each score itself, and above all of them.
    scored = {s for s in (*with_answer, *without) if s is not None}
    others = [-math.inf, *scored, math.inf]
    assert all(cost(chosen) <= cost(other) for other in others)
    higher = [other for other in others if any(chosen <= s < other for s in scored)]
    assert all(cost(chosen) < cost(other) for other in higher)
    curve = found.curve.to_pydict()
    assert found.curve.schema == CURVE
    assert curve["threshold"] == sorted(set(curve["threshold"]))
    assert curve["expected_cost"] == [float(cost(v) / len(table)) for v in curve["threshold"]]
    assert curve["false_refusals"] == sorted(curve["false_refusals"])
    assert curve["threshold"][curve["chosen"].index(True)] == chosen
    assert sum(curve["chosen"]) == 1


def test_a_tie_of_decimal_costs_is_seen() -> None:
    # From .6 on three answerable queries are refused, 3 * 0.1 (0.30000000000000004 in floats); from
    # .15 on one unanswerable is answered, 0.3. The higher of two that cost the same is taken.
    table = top_scores([0.9, 0.9, 0.2, 0.2, 0.2], [0.3, 0.1, 0.1, 0.1, 0.1])
    tied = calibrate(contract(), table, Costs(false_answer=0.3, false_refusal=0.1)).threshold
    assert tied.value == pytest.approx(0.6)


def test_neighbouring_scores_are_told_apart() -> None:
    low = 0.5
    high = math.nextafter(low, 1)
    assert candidates(np.array([high, low, np.nan])).tolist() == [-math.inf, high, math.inf]
    found = calibrate(contract(), top_scores([high] * 5, [low] * 5), EQUAL).threshold
    assert found.value == high and found.dev is not None
    assert (found.dev.true_answers, found.dev.false_answers) == (5, 0)
    assert candidates(np.array([1e308, 1.7e308])).tolist() == [-math.inf, 1.35e308, math.inf]
    assert candidates(np.array([np.nan])).tolist() == [-math.inf, math.inf]


@pytest.mark.parametrize(
    ("with_answer", "without", "counted"),
    [(4, 9, "4 answerable and 9 unanswerable"), (9, 4, "9 answerable and 4 unanswerable")],
)
def test_too_few_queries_of_a_kind_calibrate_nothing(
    with_answer: int, without: int, counted: str
) -> None:
    found = calibrate(contract(), top_scores([0.9] * with_answer, [0.1] * without), EQUAL)
    threshold = found.threshold
    assert (threshold.status, threshold.value, threshold.dev) == ("not_calibrated", None, None)
    reason = f"split 'dev' has {counted} queries; at least 5 of each are needed"
    assert threshold.reason == reason
    assert found.curve == CURVE.empty_table()
    with pytest.raises(UsageError, match="no threshold: split 'dev' has"):
        answers(threshold, contract(), np.array([0.9]))
    with pytest.raises(UsageError, match="no threshold"):
        evaluate_on_test(threshold, contract(), TEST, split="test")
    assert threshold_sentence(threshold) == f"space space: no threshold: {reason}"


def test_five_of_each_are_enough() -> None:
    found = calibrate(contract(), top_scores([0.9] * 5, [0.1] * 5), EQUAL)
    assert (found.threshold.status, found.threshold.value) == ("calibrated", 0.5)


def test_extreme_costs_answer_or_refuse_every_query() -> None:
    mixed = top_scores([0.1, 0.5, 0.5, 0.5, 0.5], [0.9, 0.5, 0.5, 0.5, None])
    refuse = calibrate(contract(), mixed, Costs(100, 1)).threshold
    assert refuse.value == math.inf
    assert "refuse every query, chosen on dev; not evaluated" in threshold_sentence(refuse)
    answer = calibrate(contract(), mixed, Costs(1, 100)).threshold
    # Nothing is gained by a threshold between 0.1 and the rest, it would refuse an answerable one.
    assert answer.value == -math.inf
    assert answer.dev is not None
    assert (answer.dev.false_answers, answer.dev.true_refusals) == (4, 1)
    assert answers(answer, contract(), np.array([-9.0, np.nan])).tolist() == [True, False]


@pytest.fixture
def calibrated() -> Threshold:
    return calibrate(contract(), DEV, EQUAL).threshold


def test_a_split_used_for_calibration_is_refused_as_test_split(calibrated: Threshold) -> None:
    with pytest.raises(UsageError, match="'dev' was used for calibration"):
        evaluate_on_test(calibrated, contract(), TEST, split="dev")
    leaked = pa.concat_tables([TEST, DEV.slice(2, 2)])
    with pytest.raises(UsageError, match="2 cases of 'test' were used for calibration, 'dev-a2'"):
        evaluate_on_test(calibrated, contract(), leaked, split="test")
    with pytest.raises(UsageError, match="split 'test' has no queries"):
        evaluate_on_test(calibrated, contract(), TEST.slice(0, 0), split="test")


def test_equal_scores_in_any_order_calibrate_to_the_same(calibrated: Threshold) -> None:
    reordered = DEV.take(list(range(len(DEV)))[::-1])
    assert calibrate(contract(), reordered, EQUAL).threshold == calibrated
    other = calibrate(contract(), top_scores([0.9] * 5, [0.1] * 5), EQUAL).threshold
    assert other.dev_digest != calibrated.dev_digest


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"case_id": "x", "top_score": math.nan, "answerable": True}], "'x': top_score is nan"),
        ([{"case_id": "x", "top_score": math.inf, "answerable": True}], "top_score is inf"),
        ([{"case_id": "x", "top_score": 1.0, "answerable": None}], "answerable is NULL"),
        ([{"case_id": "x", "top_score": 1.0, "answerable": True}] * 2, "'x' has two scores"),
        ([{"case_id": "x", "top_score": 1.0}], "lack answerable"),
        ([{"case_id": "x", "top_score": "high", "answerable": True}], "have other types"),
    ],
)
def test_scores_that_make_no_sense_are_refused(rows: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        calibrate(contract(), pa.Table.from_pylist(rows), EQUAL)


@pytest.mark.parametrize("cost", [0, -1, math.inf, math.nan, True, "1"])
def test_costs_are_numbers_above_0(cost: Any) -> None:
    with pytest.raises(UsageError, match="cost of a false_answer is"):
        Costs(false_answer=cost, false_refusal=1)
    with pytest.raises(UsageError, match="cost of a false_refusal is"):
        Costs(false_answer=1, false_refusal=cost)


def test_thresholds_are_rows_of_a_table(calibrated: Threshold) -> None:
    tested = evaluate_on_test(calibrated, contract(), TEST, split="test")
    too_few = calibrate(contract(space_id="other"), DEV.slice(0, 3), EQUAL).threshold
    table = threshold_rows([tested, calibrated, too_few])
    assert table.schema == THRESHOLDS
    first, second, third = table.to_pylist()
    assert first["contract_signature"] == contract().signature
    # From .515 on, dev as in exercise E; on test .80, .69, .60 of five and .72, .65 of five.
    assert first["threshold"] == pytest.approx(0.515)
    assert [first[f"dev_{name}"] for name in ("answerable", "unanswerable")] == [7, 5]
    assert (first["dev_precision"], first["dev_false_answers"]) == (6 / 7, 1)
    assert (first["test_split"], first["test_precision"], first["test_recall"]) == (
        "test",
        3 / 5,
        3 / 5,
    )
    assert (first["test_expected_cost"], first["false_answer_cost"]) == (4 / 10, 1)
    assert (second["test_split"], second["test_precision"]) == (None, None)
    assert (third["status"], third["threshold"], third["dev_answerable"]) == (
        "not_calibrated",
        None,
        None,
    )
