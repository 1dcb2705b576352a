"""Errors a person can act on: a code, a place, what was found and what is allowed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault in an input.

    `code` is stable and greppable (``duplicate_key``); `file` is the path as the user gave it;
    `place` is a JSON path, a line and column, or a setting's name; `found` quotes the fault in
    brief; `remedy` says what is allowed.
    """

    code: str
    file: str
    place: str
    found: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}: {self.place}: {self.code}: found {self.found}; {self.remedy}"


class RagAssetsError(Exception):
    """Base of every error whose message is meant for a user. The message is one line."""


class InputError(RagAssetsError):
    """An input is refused. `problems` holds every fault found; `truncated` if there are more."""

    def __init__(self, problems: Iterable[Problem], *, truncated: bool = False) -> None:
        self.problems = tuple(problems)
        self.truncated = truncated
        if not self.problems:
            raise ValueError("InputError needs at least one problem")
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """One line per problem, for stderr."""
        lines = [str(problem) for problem in self.problems]
        if self.truncated:
            lines.append(
                f"{self.problems[0].file}: more problems exist; "
                f"the first {len(self.problems)} are shown, fix these and run again"
            )
        return lines


class UsageError(RagAssetsError):
    """A call asks for something that does not exist or makes no sense (unknown space, k = 0)."""


class StoreError(RagAssetsError):
    """The store lacks something that a step needs, or holds pieces that do not belong together."""


class EngineMissing(RagAssetsError):
    """A search engine cannot be imported here. Callers report `not_executed` with this reason."""


class ProviderMissing(RagAssetsError):
    """Vectors cannot be made here: no package, key, network or service. Callers report the space as
    `not_executed` with this reason."""


class GateError(RagAssetsError):
    """A gate keeps something from being done. `lines`: everything that is missing, each with its
    remedy. The input was sound: the command's exit status is 1, not 2."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = list(lines)
        super().__init__("\n".join(self.lines))
