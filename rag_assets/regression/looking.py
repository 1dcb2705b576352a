"""One question of a regression gate, asked of today's queries and of those of a baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from rag_assets.regression.gates import FLOOR, Question
from rag_assets.statistics import paired
from rag_assets.statistics.sentences import MIN_CHANGED, MIN_QUERIES

Query: TypeAlias = dict[str, Any]
Arm: TypeAlias = tuple[str, str, int]  # space, index, k
Arms: TypeAlias = Mapping[Arm, Mapping[str, Query]]


@dataclass(frozen=True)
class Today:
    """What a release measured. `rows` has the schema BY_QUERY; `reasons` says why a space, or an
    index of one, was not executed."""

    rows: pa.Table
    reasons: Mapping[tuple[str, str | None], str]


@dataclass(frozen=True, slots=True)
class Look:
    """What was found for one question. `not_executed` is the reason, if it could not be asked.

    Of a floor: `value` over the `defined_count` queries of today. Of a drop: `value` and
    `baseline_value` over those defined in both; `only_baseline` and `only_today` count queries that
    are defined in one of them; `test` is None below MIN_QUERIES, `in_family` False also where too
    few queries changed for any test. `worse` is None where there is nothing to compare with.
    """

    question: Question
    not_executed: str | None = None
    value: float | None = None
    baseline_value: float | None = None
    difference: float | None = None
    defined_count: int | None = None
    changed_count: int | None = None
    only_baseline: int = 0
    only_today: int = 0
    test: paired.SignFlip | None = None
    smallest_detectable: float | None = None
    worse: tuple[str, ...] | None = None

    @property
    def in_family(self) -> bool:
        return self.test is not None and (self.changed_count or 0) >= MIN_CHANGED


def by_arm(rows: pa.Table) -> Arms:
    """Rows of BY_QUERY by space, index and k, and there by case."""
    arms: dict[Arm, dict[str, Query]] = {}
    for row in rows.to_pylist():
        arm = (row["space_id"], row["index_name"], row["k"])
        arms.setdefault(arm, {})[row["case_id"]] = row
    return arms


def arm_of(question: Question) -> Arm:
    """Whose queries a question is about."""
    return question.space_id, question.index_name, question.k


def look_at(
    question: Question,
    now: Arms,
    before: Arms | None,
    reasons: Mapping[tuple[str, str | None], str],
) -> Look:
    """`before` None: no baseline is pinned. `reasons`: as in Today."""
    arm = arm_of(question)
    where = f"{question.index_name} of {question.space_id} at k = {question.k}"
    if arm not in now:
        key = (question.space_id, question.index_name)
        reason = reasons.get((question.space_id, None)) or reasons.get(key)
        return Look(question, reason or f"the release holds no results of {where}")
    today = _members(now[arm], question.subgroup)
    if not today:
        return Look(question, "no query is in this subgroup today")
    if question.rule == FLOOR:
        return _floor(question, today, (before or {}).get(arm))
    if before is None:
        return Look(question, "no baseline is pinned; see rag-assets pin-baseline")
    if arm not in before:
        return Look(question, f"the baseline holds no results of {where}; pin another")
    return _drop(question, today, before[arm])


def _members(queries: Mapping[str, Query], subgroup: str | None) -> dict[str, Query]:
    return {
        case_id: query
        for case_id, query in queries.items()
        if subgroup is None or subgroup in query["subgroups"]
    }


def _defined(queries: Mapping[str, Query], measure: str) -> dict[str, float]:
    return {
        case_id: query[measure] for case_id, query in queries.items() if query[measure] is not None
    }


def _floor(
    question: Question, today: Mapping[str, Query], before: Mapping[str, Query] | None
) -> Look:
    new = _defined(today, question.measure)
    if not new:
        return Look(question, "the measure is undefined for every query", defined_count=0)
    return Look(
        question,
        value=math.fsum(new.values()) / len(new),
        defined_count=len(new),
        worse=None if before is None else _worse(_defined(before, question.measure), new),
    )


def _drop(question: Question, today: Mapping[str, Query], before: Mapping[str, Query]) -> Look:
    new = _defined(today, question.measure)
    # Compared are the queries that are in the subgroup today, whatever their labels were then.
    still = {case_id: query for case_id, query in before.items() if case_id in today}
    gone = {case_id: query for case_id, query in before.items() if case_id not in today}
    old = _defined(still, question.measure)
    lost = _defined(_members(gone, question.subgroup), question.measure)
    both = [case_id for case_id in new if case_id in old]
    counted = Look(
        question,
        defined_count=len(both),
        only_baseline=len(old) - len(both) + len(lost),
        only_today=len(new) - len(both),
    )
    if not both:
        reason = "no query is defined both today and in the baseline"
        return replace(counted, not_executed=reason)
    found = paired.differences(
        np.array([old[case_id] for case_id in both]), np.array([new[case_id] for case_id in both])
    )
    enough = len(both) >= MIN_QUERIES
    return replace(
        counted,
        value=math.fsum(new[case_id] for case_id in both) / len(both),
        baseline_value=math.fsum(old[case_id] for case_id in both) / len(both),
        difference=paired.mean(found),
        changed_count=int(np.count_nonzero(found)),
        test=paired.sign_flip_test(found, seed=0) if enough else None,
        smallest_detectable=paired.smallest_detectable(found) if enough else None,
        worse=_worse(old, new),
    )


def _worse(old: Mapping[str, float], new: Mapping[str, float]) -> tuple[str, ...]:
    """The queries whose measure fell, by loss and then by id."""
    losses = {case_id: old[case_id] - new[case_id] for case_id in new if case_id in old}
    fell = [case_id for case_id, loss in losses.items() if loss > paired.GRID / 2]
    return tuple(sorted(fell, key=lambda case_id: (-losses[case_id], case_id)))
