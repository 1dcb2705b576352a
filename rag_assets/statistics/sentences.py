"""What a comparison showed, in one plain sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass

TOO_FEW, UNCHANGED, BETTER, WORSE, INCONCLUSIVE = VERDICTS = (
    "too_few",
    "unchanged",
    "better",
    "worse",
    "inconclusive",
)
MIN_QUERIES = 20
MIN_CHANGED = 6  # 2 / 2^6 = 0.03 is the least possible p; 2 / 2^5 is above 5%
_NOTHING = 1e-9  # a smaller mean is rounding

_LABELS = {
    "recall_at_k": "recall@{k}",
    "precision_at_k": "P@{k}",
    "reciprocal_rank": "RR@{k}",
    "ndcg_at_k": "nDCG@{k}",
    "ann_recall_at_k": "ANN recall@{k}",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What a sentence tells. Numbers are None where the verdict is TOO_FEW.

    `p_adjusted` is corrected for `family_size` tests, None where too few queries changed for one;
    `smallest_detectable` is None also where all differences are equal.
    """

    subgroup: str | None
    measure: str
    k: int
    defined_count: int
    changed_count: int
    mean_difference: float | None
    interval: tuple[float, float] | None
    p_adjusted: float | None
    family_size: int | None
    smallest_detectable: float | None
    verdict: str


def sentence(finding: Finding) -> str:
    """One line, without a full stop: "12 of 100 queries changed; mean nDCG@10 fell by 0.021, ..."

    An inconclusive finding says so, with the effect that would have been seen.
    """
    where = "" if finding.subgroup is None else f"subgroup {finding.subgroup}: "
    label = measure_label(finding.measure, finding.k)
    changed = f"{finding.changed_count} of {counted_queries(finding.defined_count)} changed"
    if finding.verdict == TOO_FEW:
        seen = f" ({changed})" if finding.defined_count else ""
        return (
            f"{where}nothing can be concluded about {label} from "
            f"{counted_queries(finding.defined_count)}, at least {MIN_QUERIES} are needed{seen}"
        )
    assert finding.mean_difference is not None and finding.interval is not None
    moved = f"{where}{changed}; mean {label} {movement(finding.mean_difference)}"
    if finding.verdict == UNCHANGED:
        return moved
    low, high = (number_beside(bound, finding.mean_difference) for bound in finding.interval)
    told = f"{moved}, 95% interval {low} to {high}"
    if finding.verdict != INCONCLUSIVE:
        return told
    assert finding.p_adjusted is not None
    told += f"; this may be chance ({corrected_p(finding.p_adjusted, finding.family_size)})"
    if finding.smallest_detectable is None:
        return told
    unseen = number_beside(finding.smallest_detectable, finding.smallest_detectable)
    return f"{told}, and a change below {unseen} would often go unseen"


def corrected_p(p_adjusted: float, family_size: int | None) -> str:
    """The p-value in words; with no family, why there is none."""
    if family_size is None:
        return f"fewer than {MIN_CHANGED} queries changed"
    p_value = f"p = {p_adjusted:.{3 if p_adjusted < 0.1 else 2}f}"
    if p_adjusted < 0.0005:
        p_value = "p < 0.001"
    return p_value if family_size == 1 else f"{p_value} corrected for {family_size} tests"


def measure_label(measure: str, k: int) -> str:
    """The notation people write: nDCG@10."""
    return _LABELS.get(measure, f"{measure}@{{k}}").format(k=k)


def counted_queries(count: int) -> str:
    """ "1 query", "2 queries"."""
    return "1 query" if count == 1 else f"{count} queries"


def movement(difference: float, beside: float | None = None) -> str:
    """ "fell by 0.021"; to as many decimals as `beside` needs, by default the difference itself."""
    if abs(difference) < _NOTHING:
        return "stayed the same"
    direction = "rose" if difference > 0 else "fell"
    shown = number_beside(abs(difference), difference if beside is None else beside)
    return f"{direction} by {shown}"


def number_beside(value: float, beside: float) -> str:
    """`value` to three decimals, or as many more as the number beside it needs to show."""
    size = abs(beside)
    decimals = 3 if size >= 0.0005 or size < _NOTHING else math.ceil(-math.log10(size))
    return f"{value:z.{decimals}f}"
