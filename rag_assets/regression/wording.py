"""What a regression gate says, in one sentence without a full stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_assets.regression.gates import Question
from rag_assets.regression.looking import Look
from rag_assets.regression.rows import FAIL, INCONCLUSIVE, NOT_EXECUTED, PASS
from rag_assets.statistics.sentences import (
    MIN_QUERIES,
    corrected_p,
    counted_queries,
    measure_label,
    movement,
    number_beside,
)

NAMED = 5


def not_executed_sentence(question: Question, reason: str) -> str:
    return f"{_what(question)} was not examined: {reason}"


def floor_sentence(question: Question, value: float, defined_count: int, status: str) -> str:
    """ "mean nDCG@10 of subgroup chinese is 0.120 over 28 queries, below the floor of 0.15"."""
    bound = f"{question.bound:g}"
    verdict = f"below the floor of {bound}" if status == FAIL else f"at least {bound} as required"
    shown = number_beside(value, value - question.bound)
    return f"{_what(question)} is {shown} over {counted_queries(defined_count)}, {verdict}"


def drop_sentence(
    look: Look, status: str, p_adjusted: float | None, family_size: int | None
) -> str:
    """How far the mean moved, what is allowed, and whether chance would do.

    `family_size` None: the question is not in the family, since too few queries changed.
    """
    assert look.difference is not None and look.defined_count is not None
    bound = f"{look.question.bound:g}"
    allowed = f"; a drop of {bound} is" if status == PASS else f", more than the {bound}"
    told = f"{_moved(look)}{allowed} allowed"
    if status == FAIL:
        assert p_adjusted is not None
        told += f" ({corrected_p(p_adjusted, family_size)})"
    elif status != PASS:
        told += f"; {_unclear(look, p_adjusted, family_size)}"
    unpaired = [
        f"{count} only {where}"
        for count, where in ((look.only_baseline, "in the baseline"), (look.only_today, "today"))
        if count
    ]
    if unpaired:
        told += f"; left out, because defined in one of the two: {', '.join(unpaired)}"
    return told


def worse_sentence(worse: Sequence[str] | None) -> str:
    """ "worse: q7, q2 and 3 more", the first NAMED queries of a gate's list."""
    if worse is None:
        return "worse: unknown, there is no baseline to compare with"
    if not worse:
        return "worse: no query, compared with the baseline"
    more = f" and {len(worse) - NAMED} more" if len(worse) > NAMED else ""
    return f"worse: {', '.join(worse[:NAMED])}{more}"


def gate_sentence(gate: Mapping[str, Any]) -> str:
    """A row of GATES with whose results it is about: "minilm, exact: mean nDCG@10 fell by ..."."""
    return f"{gate['space_id']}, {gate['index_name']}: {gate['sentence']}"


def gates_sentence(gates: Sequence[Mapping[str, Any]]) -> str:
    """How many rows of GATES passed, then the first of those that did not, failed ones first."""
    if not gates:
        return "no regression gates are declared"
    by_status = {
        status: [gate for gate in gates if gate["status"] == status]
        for status in (FAIL, INCONCLUSIVE, NOT_EXECUTED)
    }
    passed = len(gates) - sum(map(len, by_status.values()))
    counts = [f"{passed} of {len(gates)} gates pass"]
    counts += [
        f"{len(found)} {status.replace('_', ' ')}" for status, found in by_status.items() if found
    ]
    said = [
        gate_sentence(gate)
        + (f"; {worse_sentence(gate['worse_queries'])}" if status == FAIL else "")
        for status, found in by_status.items()
        for gate in found
    ]
    more = [f"and {len(said) - NAMED} more"] if len(said) > NAMED else []
    return ". ".join([", ".join(counts), *said[:NAMED], *more])


def _what(question: Question) -> str:
    whose = "" if question.subgroup is None else f" of subgroup {question.subgroup}"
    return f"mean {measure_label(question.measure, question.k)}{whose}"


def _moved(look: Look) -> str:
    assert look.difference is not None and look.defined_count is not None
    # As many decimals as tell the drop from the bound.
    nearest = min(abs(look.difference), abs(abs(look.difference) - look.question.bound))
    changed = f"{look.changed_count} of {counted_queries(look.defined_count)} changed"
    return f"{_what(look.question)} {movement(look.difference, nearest)} ({changed})"


def _unclear(look: Look, p_adjusted: float | None, family_size: int | None) -> str:
    assert look.defined_count is not None
    if look.test is None or p_adjusted is None:
        return (
            f"nothing can be concluded from {counted_queries(look.defined_count)}, at least "
            f"{MIN_QUERIES} are needed"
        )
    told = f"this may be chance ({corrected_p(p_adjusted, family_size)})"
    if look.smallest_detectable is None:
        return told
    unseen = number_beside(look.smallest_detectable, look.smallest_detectable)
    return f"{told}, and a change below {unseen} would often go unseen"
