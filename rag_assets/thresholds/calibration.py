"""Choosing a no-answer threshold on the dev split, by what its mistakes cost."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.thresholds.threshold import (
    CALIBRATED,
    NOT_CALIBRATED,
    Costs,
    Threshold,
    outcome,
)
from rag_assets.thresholds.top_scores import (
    case_ids,
    checked_scores,
    scores_digest,
    split_scores,
)

MIN_OF_EACH = 5

# One row: what one candidate threshold does on the dev split, ascending; the first answers every
# query that found a document (-inf), the last none (inf). precision = true answers / answers, NULL
# where none is given; recall = true answers / answerable queries; expected_cost is per query.
CURVE = pa.schema(
    [
        ("space_id", pa.string()),
        ("threshold", pa.float64()),
        ("true_answers", pa.int32()),
        ("false_answers", pa.int32()),
        ("true_refusals", pa.int32()),
        ("false_refusals", pa.int32()),
        ("precision", pa.float64()),
        ("recall", pa.float64()),
        ("expected_cost", pa.float64()),
        ("chosen", pa.bool_()),
    ]
)


@dataclass(frozen=True, slots=True)
class Calibration:
    """A threshold, and the rows of CURVE it was chosen from (none if it was not calibrated)."""

    threshold: Threshold
    curve: pa.Table


def calibrate(
    contract: SpaceContract, scores: pa.Table, costs: Costs, *, split: str = "dev"
) -> Calibration:
    """The threshold of least expected cost on the rows of TOP_SCORES of one split.

    Candidates are -inf, the midpoints between neighbouring distinct scores, and inf; of equally
    cheap ones the highest is taken. The cost assumes that answerable and unanswerable queries come
    in the shares they have in the split. With fewer than 5 queries of either kind the threshold is
    NOT_CALIBRATED and says why. Raises UsageError as `checked_scores`.
    """
    checked = checked_scores(scores)
    top, answerable = split_scores(checked)
    reason = _too_few(answerable, split)
    value, dev, curve = None, None, CURVE.empty_table()
    if reason is None:
        curve, value = _curve(contract.space_id, top, answerable, costs)
        dev = outcome(value, checked, costs)
    threshold = Threshold(
        space_id=contract.space_id,
        contract_signature=contract.signature,
        status=CALIBRATED if reason is None else NOT_CALIBRATED,
        reason=reason,
        value=value,
        costs=costs,
        dev_split=split,
        dev_case_ids=case_ids(checked),
        dev_digest=scores_digest(checked),
        dev=dev,
    )
    return Calibration(threshold, curve)


def _too_few(answerable: npt.NDArray[np.bool_], split: str) -> str | None:
    with_answer = int(np.count_nonzero(answerable))
    without = len(answerable) - with_answer
    if min(with_answer, without) >= MIN_OF_EACH:
        return None
    return (
        f"split {split!r} has {with_answer} answerable and {without} unanswerable queries; "
        f"at least {MIN_OF_EACH} of each are needed"
    )


def candidates(top: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """`float64[m]` ascending, for `top: float64[n]` with NaN where nothing was found."""
    distinct = np.unique(top[~np.isnan(top)])
    lower, upper = distinct[:-1], distinct[1:]
    between = lower / 2 + upper / 2
    # Between neighbouring floats there is nothing: the upper one separates them just as well.
    separates = (lower < between) & (between <= upper)
    return np.concatenate([[-np.inf], np.where(separates, between, upper), [np.inf]])


def _curve(
    space_id: str,
    top: npt.NDArray[np.float64],
    answerable: npt.NDArray[np.bool_],
    costs: Costs,
) -> tuple[pa.Table, float]:
    """Rows of CURVE, and the threshold chosen from them."""
    values = candidates(top)
    scored = ~np.isnan(top)
    with_answer, without = np.sort(top[scored & answerable]), np.sort(top[scored & ~answerable])
    true_answers = len(with_answer) - np.searchsorted(with_answer, values)
    false_answers = len(without) - np.searchsorted(without, values)
    false_refusals = np.count_nonzero(answerable) - true_answers
    true_refusals = np.count_nonzero(~answerable) - false_answers
    per_answer, per_refusal, unit = costs.in_whole_numbers()
    totals = [
        per_answer * wrong + per_refusal * missed
        for wrong, missed in zip(false_answers.tolist(), false_refusals.tolist(), strict=True)
    ]
    least = min(totals)
    chosen = max(number for number, total in enumerate(totals) if total == least)
    answered = true_answers + false_answers
    curve = pa.table(
        {
            "space_id": [space_id] * len(values),
            "threshold": values,
            "true_answers": true_answers,
            "false_answers": false_answers,
            "true_refusals": true_refusals,
            "false_refusals": false_refusals,
            "precision": pa.array(
                true_answers / np.maximum(answered, 1), mask=np.asarray(answered == 0)
            ),
            "recall": true_answers / np.count_nonzero(answerable),
            "expected_cost": [float(Fraction(total, unit * len(top))) for total in totals],
            "chosen": np.arange(len(values)) == chosen,
        }
    ).cast(CURVE)
    return curve, float(values[chosen])
