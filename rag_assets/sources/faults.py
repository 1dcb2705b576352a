"""Problems gathered while a source is read, so that a person sees many of them at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from rag_assets.errors import InputError, Problem

MAX_PROBLEMS = 100


@dataclass(slots=True)
class Faults:
    """What one reading of a source has found so far, in the order in which it was found."""

    max_problems: int = MAX_PROBLEMS
    problems: list[Problem] = field(default_factory=list)

    @property
    def full(self) -> bool:
        """One more problem than may be shown is known: looking further is of no use."""
        return len(self.problems) > self.max_problems

    def add(self, code: str, file: str, place: str, found: str, remedy: str) -> None:
        if not self.full:
            self.problems.append(Problem(code, file, place, found, remedy))

    def raise_if_any(self) -> None:
        """Raises InputError with the problems, if there are any."""
        if self.problems:
            raise InputError(self.problems[: self.max_problems], truncated=self.full)


def refuse(code: str, file: str, place: str, found: str, remedy: str) -> NoReturn:
    """Raises InputError for a fault after which reading on makes no sense."""
    raise InputError([Problem(code, file, place, found, remedy)])
