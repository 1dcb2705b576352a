"""Regression gates as a suite declares them, checked and spelled out as single questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_assets.errors import UsageError
from rag_assets.regression.rows import MEASURES

EACH = "each"  # in place of a subgroup: every one that no other gate names
FLOOR, MAX_DROP = "floor", "max_drop"
LEVEL = 0.05
LOWEST_LEVEL, HIGHEST_LEVEL = 0.001, 0.5


@dataclass(frozen=True, slots=True)
class Gate:
    """One entry of the YAML. `space_ids` None: every space; `subgroup` None: all queries."""

    measure: str
    k: int
    floor: float | None
    max_drop: float | None
    subgroup: str | None
    space_ids: tuple[str, ...] | None
    index_name: str


@dataclass(frozen=True, slots=True)
class Question:
    """One rule (FLOOR or MAX_DROP) with its bound, for one measure of one index in one space."""

    space_id: str
    index_name: str
    subgroup: str | None
    measure: str
    k: int
    rule: str
    bound: float

    @property
    def asked(self) -> tuple[str | int | None, ...]:
        """What is asked, without its bound: no two questions of a suite may agree in this."""
        return (
            self.space_id,
            self.index_name,
            self.subgroup,
            self.measure,
            self.k,
            self.rule,
        )


@dataclass(frozen=True, slots=True)
class Regression:
    """A suite's gates. `level`: chance at most of any false alarm among all its drops."""

    level: float = LEVEL
    questions: tuple[Question, ...] = ()


def declared_regression(
    level: float,
    gates: Sequence[Gate],
    *,
    ks: Sequence[int],
    index_names: Mapping[str, Sequence[str]],
) -> Regression:
    """The gates as questions, in declared order. `index_names`: of each space of the suite.

    UsageError for an unknown measure, space or index, a k that is not evaluated, a gate without
    bounds, a bound or level out of range, and a question that is asked twice.
    """
    if not LOWEST_LEVEL <= level <= HIGHEST_LEVEL:
        raise UsageError(
            f"regression: level is {level}; it must be from {LOWEST_LEVEL} to {HIGHEST_LEVEL}"
        )
    questions: dict[tuple[str | int | None, ...], Question] = {}
    for number, gate in enumerate(gates, 1):
        where = f"regression: gate {number}"
        for question in _questions(gate, where, ks, index_names):
            if question.asked in questions:
                whose = "all queries" if gate.subgroup is None else f"subgroup {gate.subgroup}"
                raise UsageError(
                    f"{where}: {question.rule} of {gate.measure} at k = {gate.k} for {whose} of "
                    f"{question.space_id}, {gate.index_name} is stated twice; state it once"
                )
            questions[question.asked] = question
    return Regression(level, tuple(questions.values()))


def _questions(
    gate: Gate, where: str, ks: Sequence[int], index_names: Mapping[str, Sequence[str]]
) -> list[Question]:
    if gate.measure not in MEASURES:
        raise UsageError(
            f"{where}: unknown measure {gate.measure!r}; known are {', '.join(MEASURES)}"
        )
    if gate.k not in ks:
        raise UsageError(
            f"{where}: k = {gate.k} is not evaluated; the suite's k are {', '.join(map(str, ks))}"
        )
    if gate.subgroup is not None and not gate.subgroup.strip():
        raise UsageError(f"{where}: the subgroup has no name; leave it out to mean all queries")
    if gate.floor is None and gate.max_drop is None:
        raise UsageError(f"{where}: it has no bound; state a floor, a max_drop or both")
    if gate.floor is not None and not 0 < gate.floor <= 1:
        raise UsageError(f"{where}: floor is {gate.floor}; it must be above 0 and at most 1")
    if gate.max_drop is not None and not 0 <= gate.max_drop < 1:
        raise UsageError(f"{where}: max_drop is {gate.max_drop}; it must be at least 0 and below 1")
    if gate.space_ids is not None and not gate.space_ids:
        raise UsageError(f"{where}: spaces is empty; leave it out to mean every space")
    bounds = ((FLOOR, gate.floor), (MAX_DROP, gate.max_drop))
    found = []
    for space_id in index_names if gate.space_ids is None else gate.space_ids:
        if space_id not in index_names:
            raise UsageError(
                f"{where}: unknown space {space_id!r}; known are {', '.join(index_names)}"
            )
        if gate.index_name not in index_names[space_id]:
            raise UsageError(
                f"{where}: the space {space_id!r} has no index {gate.index_name!r}; it has "
                f"{', '.join(index_names[space_id])}"
            )
        found += [
            Question(
                space_id, gate.index_name, gate.subgroup, gate.measure, gate.k, rule, float(bound)
            )
            for rule, bound in bounds
            if bound is not None
        ]
    return found
