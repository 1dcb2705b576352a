"""A space's no-answer threshold: what it cost on dev, what it costs on test, and its use."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.errors import UsageError
from rag_assets.thresholds.top_scores import case_ids, checked_scores, scores_digest, split_scores

CALIBRATED, NOT_CALIBRATED = "calibrated", "not_calibrated"


@dataclass(frozen=True, slots=True)
class Costs:
    """What one mistake costs, in a unit of the user's choice; only their ratio moves a threshold.

    A false answer is given where the documents hold none, a false refusal where they do. UsageError
    unless both are finite and above 0.
    """

    false_answer: float
    false_refusal: float

    def __post_init__(self) -> None:
        for name in ("false_answer", "false_refusal"):
            cost = getattr(self, name)
            is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
            if not is_number or not math.isfinite(cost) or cost <= 0:
                raise UsageError(f"cost of a {name} is {cost!r}; it must be a number above 0")

    def in_whole_numbers(self) -> tuple[int, int, int]:
        """(false answer, false refusal, one unit): the costs as written, without fractions.

        In floats 3 * 0.1 is not 0.3, and a tie of two thresholds would go unseen.
        """
        answer, refusal = Fraction(str(self.false_answer)), Fraction(str(self.false_refusal))
        unit = math.lcm(answer.denominator, refusal.denominator)
        return int(answer * unit), int(refusal * unit), unit


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the queries of one split fared; `expected_cost` is per query."""

    true_answers: int
    false_answers: int
    true_refusals: int
    false_refusals: int
    expected_cost: float

    @property
    def answerable(self) -> int:
        return self.true_answers + self.false_refusals

    @property
    def unanswerable(self) -> int:
        return self.false_answers + self.true_refusals

    @property
    def precision(self) -> float | None:
        """True answers / answers; None where every query is refused."""
        answers = self.true_answers + self.false_answers
        return self.true_answers / answers if answers else None

    @property
    def recall(self) -> float | None:
        """True answers / answerable queries; None where there are none."""
        return self.true_answers / self.answerable if self.answerable else None


@dataclass(frozen=True, slots=True)
class Threshold:
    """Answer where the best score >= `value`; -inf answers every query that found a document.

    `status` is CALIBRATED, or NOT_CALIBRATED with a `reason` and without `value` and `dev`. The
    digests are of the scores of each split. `test` is None until it was evaluated.
    """

    space_id: str
    contract_signature: str
    status: str
    reason: str | None
    value: float | None
    costs: Costs
    dev_split: str
    dev_case_ids: tuple[str, ...]
    dev_digest: str
    dev: Outcome | None
    test_split: str | None = None
    test_digest: str | None = None
    test: Outcome | None = None


def outcome(value: float, scores: pa.Table, costs: Costs) -> Outcome:
    """What a threshold does on checked rows of TOP_SCORES."""
    top, answerable = split_scores(scores)
    answered = top >= value  # NaN, no document found, is never answered
    false_answers = int(np.count_nonzero(answered & ~answerable))
    false_refusals = int(np.count_nonzero(~answered & answerable))
    per_answer, per_refusal, unit = costs.in_whole_numbers()
    total = per_answer * false_answers + per_refusal * false_refusals
    return Outcome(
        true_answers=int(np.count_nonzero(answered & answerable)),
        false_answers=false_answers,
        true_refusals=int(np.count_nonzero(~answered & ~answerable)),
        false_refusals=false_refusals,
        expected_cost=float(Fraction(total, unit * len(scores))),
    )


def usable_value(threshold: Threshold, contract: SpaceContract) -> float:
    """The score to compare with in the present space.

    UsageError if the threshold was calibrated for another signature, or not at all.
    """
    if threshold.contract_signature != contract.signature:
        raise UsageError(
            f"space {contract.space_id}: the threshold was calibrated for the signature "
            f"{threshold.contract_signature[:12]}, the space now has {contract.signature[:12]}; "
            "calibrate again, scores of two contracts are not comparable"
        )
    if threshold.value is None:
        raise UsageError(f"space {contract.space_id}: no threshold: {threshold.reason}")
    return threshold.value


def answers(
    threshold: Threshold, contract: SpaceContract, top_scores: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """`bool[n]`: which queries to answer. `top_scores: float64[n]`, NaN where nothing was found.

    Raises as `usable_value`.
    """
    answered: npt.NDArray[np.bool_] = top_scores >= usable_value(threshold, contract)
    return answered


def evaluate_on_test(
    threshold: Threshold, contract: SpaceContract, scores: pa.Table, *, split: str
) -> Threshold:
    """The threshold with its outcome on the test split, rows of TOP_SCORES.

    UsageError if it was evaluated before, if `split` is the one it was calibrated on or shares a
    query with it, if there is no query, or as `usable_value` and `checked_scores`.
    """
    value = usable_value(threshold, contract)
    place = f"space {contract.space_id}"
    if threshold.test is not None:
        raise UsageError(
            f"{place}: the threshold was evaluated on {threshold.test_split!r} already; a test "
            "split is looked at once, calibrate again on dev to change the threshold"
        )
    if split == threshold.dev_split:
        raise UsageError(f"{place}: {split!r} was used for calibration; evaluate on another split")
    checked = checked_scores(scores)
    shared = sorted(set(threshold.dev_case_ids).intersection(case_ids(checked)))
    if shared:
        raise UsageError(
            f"{place}: {len(shared)} cases of {split!r} were used for calibration, "
            f"{shared[0]!r} among them; no case may be in both splits"
        )
    if len(checked) == 0:
        raise UsageError(f"{place}: split {split!r} has no queries to evaluate a threshold on")
    return replace(
        threshold,
        test_split=split,
        test_digest=scores_digest(checked),
        test=outcome(value, checked, threshold.costs),
    )


def threshold_sentence(threshold: Threshold) -> str:
    """One line: what is answered, and what that did on the test split."""
    if threshold.value is None:
        return f"space {threshold.space_id}: no threshold: {threshold.reason}"
    rule = {math.inf: "refuse every query", -math.inf: "answer every query"}.get(
        threshold.value, f"answer where the best score is at least {threshold.value:.4g}"
    )
    told = f"space {threshold.space_id}: {rule}, chosen on {threshold.dev_split}; "
    test = threshold.test
    if test is None:
        return f"{told}not evaluated on a test split yet"
    return (
        f"{told}on {threshold.test_split} it refused {test.false_refusals} of {test.answerable} "
        f"answerable queries and answered {test.false_answers} of {test.unanswerable} unanswerable"
    )
