"""What each regression gate says of today's queries, beside those of a baseline.

A floor is hard: the mean over today's defined queries is below it, or not. A drop is tested: over
the queries that are defined in both, the mean fell by more than is allowed, and the paired
randomization test tells the fall from chance after Holm's correction over every drop of the suite,
in one family. If nothing but chance separates today from the baseline, the probability that any
gate of the suite fails by its drop is then at most the suite's level, however many gates there are.
The test is two-sided, as in comparison_statistics, and only falls fail: half of the level would do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa

from rag_assets.regression.baseline import Baseline
from rag_assets.regression.gates import EACH, FLOOR, Question, Regression
from rag_assets.regression.looking import Arms, Look, Today, arm_of, by_arm, look_at
from rag_assets.regression.rows import FAIL, GATES, INCONCLUSIVE, NOT_EXECUTED, PASS
from rag_assets.regression.wording import drop_sentence, floor_sentence, not_executed_sentence
from rag_assets.statistics.holm import holm

MOST_WORSE = 1_000
_ROUNDING = 1e-9  # a mean is off by its last bits


def judge_gates(regression: Regression, today: Today, baseline: Baseline | None) -> pa.Table:
    """Rows of GATES, in declared order. EACH becomes the subgroups in which the measure is defined
    for any query, today or in the baseline, but for those that another gate names.
    """
    now = by_arm(today.rows)
    before = None if baseline is None else by_arm(baseline.rows)
    looks = [
        look_at(question, now, before, today.reasons)
        for question in _spelled_out(regression.questions, now, before or {})
    ]
    # Which are in the family depends on how many queries changed and not on the direction.
    family = [number for number, look in enumerate(looks) if look.in_family]
    tests = [test.p_value for number in family if (test := looks[number].test)]
    adjusted = dict(zip(family, holm(tests), strict=True))
    rows = [
        {"gate_no": number + 1} | _row(look, adjusted.get(number), len(family), regression.level)
        for number, look in enumerate(looks)
    ]
    return pa.Table.from_pylist(rows, schema=GATES)


def _spelled_out(questions: Sequence[Question], now: Arms, before: Arms) -> Iterator[Question]:
    named = {question.asked for question in questions}
    for question in questions:
        if question.subgroup != EACH:
            yield question
            continue
        arm = arm_of(question)
        queries = [*now.get(arm, {}).values(), *before.get(arm, {}).values()]
        # Where nobody ever has an answer, no-answer queries say, there is nothing to guard.
        defined = [query for query in queries if query[question.measure] is not None]
        subgroups = sorted({subgroup for query in defined for subgroup in query["subgroups"]})
        for one in (replace(question, subgroup=subgroup) for subgroup in subgroups):
            if one.asked not in named:
                yield one
        if not subgroups:
            yield question  # nothing to ask about, which is said


def _row(look: Look, p_adjusted: float | None, family_size: int, level: float) -> dict[str, Any]:
    question = look.question
    if look.test is not None and p_adjusted is None:
        p_adjusted = 1.0  # outside the family: too few queries changed
    if look.not_executed is not None:
        status, sentence = NOT_EXECUTED, not_executed_sentence(question, look.not_executed)
    elif question.rule == FLOOR:
        assert look.value is not None and look.defined_count is not None
        status = FAIL if look.value < question.bound - _ROUNDING else PASS
        sentence = floor_sentence(question, look.value, look.defined_count, status)
    else:
        status = _drop_status(look, p_adjusted, level)
        sentence = drop_sentence(look, status, p_adjusted, family_size if look.in_family else None)
    return {
        **asdict(question),
        "value": look.value,
        "baseline_value": look.baseline_value,
        "difference": look.difference,
        "defined_count": look.defined_count,
        "changed_count": look.changed_count,
        "p_value": look.test and look.test.p_value,
        "p_adjusted": p_adjusted,
        "status": status,
        "sentence": sentence,
        "worse_queries": None if look.worse is None else look.worse[:MOST_WORSE],
    }


def _drop_status(look: Look, p_adjusted: float | None, level: float) -> str:
    assert look.difference is not None
    if -look.difference <= look.question.bound + _ROUNDING:
        return PASS
    told_from_chance = look.in_family and p_adjusted is not None and p_adjusted <= level
    return FAIL if told_from_chance else INCONCLUSIVE
