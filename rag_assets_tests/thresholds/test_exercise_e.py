"""Exercise E of the teaching lab: calibrate a threshold, say beforehand what it does, check.

By hand, from DEV in examples.py, in order of score (a: answerable, u: unanswerable):

    .91a .84a .77a .70a .66u .62a .55a .48u .41a .35u .20u and one u without a score

    answer from   false answers   false refusals   cost 3 : 1   cost 1 : 1
    -inf          4               0                12           4
    .275          3               0                 9           3
    .38           2               0                 6           2
    .445          2               1                 7           3
    .515          1               1                 4           2
    .585          1               2                 5           3
    .64           1               3                 6           4
    .68           0               3                 3           3
    .735          0               4                 4           4
    .805          0               5                 5           5
    .875          0               6                 6           6
    inf           0               7                 7           7
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from rag_assets.errors import UsageError
from rag_assets.thresholds.calibration import calibrate
from rag_assets.thresholds.files import read_threshold, write_threshold
from rag_assets.thresholds.threshold import (
    Costs,
    Outcome,
    answers,
    evaluate_on_test,
    threshold_sentence,
)
from rag_assets_tests.thresholds.examples import DEV, TEST, contract

THREE_TO_ONE = Costs(false_answer=3, false_refusal=1)


def test_e_the_curve_is_the_table_worked_out_by_hand() -> None:
    curve = calibrate(contract(), DEV, THREE_TO_ONE).curve.to_pydict()
    bounds = [0.275, 0.38, 0.445, 0.515, 0.585, 0.64, 0.68, 0.735, 0.805, 0.875]
    assert curve["threshold"] == pytest.approx([-math.inf, *bounds, math.inf])
    assert curve["false_answers"] == [4, 3, 2, 2, 1, 1, 1, 0, 0, 0, 0, 0]
    assert curve["false_refusals"] == [0, 0, 0, 1, 1, 2, 3, 3, 4, 5, 6, 7]
    costs = [12, 9, 6, 7, 4, 5, 6, 3, 4, 5, 6, 7]
    assert curve["expected_cost"] == pytest.approx([cost / 12 for cost in costs])
    # At -inf 7 of 11 answers are right; at .515 6 of 7; from .68 on all; at inf there are none.
    assert curve["precision"][0] == 7 / 11
    assert curve["precision"][4] == 6 / 7
    assert curve["precision"][7:] == [1, 1, 1, 1, None]
    assert curve["recall"] == pytest.approx([n / 7 for n in [7, 7, 7, 6, 6, 5, 4, 4, 3, 2, 1, 0]])
    assert [at for at, chosen in enumerate(curve["chosen"]) if chosen] == [7]
    assert set(curve["space_id"]) == {"space"}


def test_e_dear_false_answers_give_a_high_threshold_and_a_tie_the_higher() -> None:
    dear = calibrate(contract(), DEV, THREE_TO_ONE).threshold
    assert dear.value == pytest.approx(0.68)
    assert dear.dev == Outcome(4, 0, 5, 3, expected_cost=3 / 12)
    equal = calibrate(contract(), DEV, Costs(1, 1)).threshold  # 2 at .38 and at .515
    assert equal.value == pytest.approx(0.515)
    assert equal.dev == Outcome(6, 1, 4, 1, expected_cost=2 / 12)
    assert (equal.dev.precision, equal.dev.recall) == (6 / 7, 6 / 7)


def test_e_the_test_split_is_predicted_once(tmp_path: Path) -> None:
    # From .68 on: .80 and .69 are answered of five answerable queries, .72 of five unanswerable.
    # Cost 3 * 1 + 1 * 3 = 6 over 10 queries: more than twice what dev promised.
    calibrated = calibrate(contract(), DEV, THREE_TO_ONE).threshold
    tested = evaluate_on_test(calibrated, contract(), TEST, split="test")
    assert tested.test == Outcome(2, 1, 4, 3, expected_cost=0.6)
    assert (tested.test.precision, tested.test.recall) == (2 / 3, 2 / 5)
    assert tested.dev == calibrated.dev
    assert threshold_sentence(tested) == (
        "space space: answer where the best score is at least 0.68, chosen on dev; on test it "
        "refused 3 of 5 answerable queries and answered 1 of 5 unanswerable"
    )
    write_threshold(tested, tmp_path / "threshold.json")
    with pytest.raises(UsageError, match="evaluated on 'test' already"):
        evaluate_on_test(
            read_threshold(tmp_path / "threshold.json"), contract(), TEST, split="later"
        )


def test_e_new_queries_are_answered_from_the_threshold_on() -> None:
    calibrated = calibrate(contract(), DEV, THREE_TO_ONE).threshold
    assert calibrated.value is not None
    scores = np.array([0.9, calibrated.value, np.nextafter(calibrated.value, 0), -1, np.nan])
    assert answers(calibrated, contract(), scores).tolist() == [True, True, False, False, False]


def test_e_another_revision_of_the_model_needs_its_own_threshold() -> None:
    calibrated = calibrate(contract(), DEV, THREE_TO_ONE).threshold
    with pytest.raises(UsageError, match="calibrate again"):
        answers(calibrated, contract(revision="2"), np.array([0.9]))
    with pytest.raises(UsageError, match="calibrate again"):
        evaluate_on_test(calibrated, contract(revision="2"), TEST, split="test")
    # An alias is not part of the contract.
    assert answers(calibrated, contract(space_id="alias"), np.array([0.9])).all()
