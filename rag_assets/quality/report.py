"""What a check found: one outcome per expectation, as data, JSON and a Markdown table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from rag_assets.canonical.contracts import canonical_json

Status = Literal["passed", "failed", "crashed"]
Severity = Literal["error", "warn"]
SAMPLE_SIZE = 20
_CELL_WIDTH = 90
_COLUMNS = ("result", "expectation", "column", "expected", "observed", "failing", "sample")


@dataclass(frozen=True, slots=True)
class ExpectationOutcome:
    """How one expectation fared.

    `expectation` is the Great Expectations type in snake case; `table` names the frame it ran on
    and `column` the column, or None for a rule about the whole frame. `failing_count` is None
    where nothing is counted (whole-frame rules, and expectations that crashed). `sample` holds the
    ids of at most SAMPLE_SIZE failing records. `meaning` says what the rule protects and what to
    do when it fails. A failed outcome of severity "warn" does not block.
    """

    expectation: str
    column: str | None
    expected: str
    observed: str
    status: Status
    failing_count: int | None
    sample: tuple[str, ...]
    meaning: str
    table: str
    severity: Severity

    @property
    def blocks(self) -> bool:
        """True where this outcome alone stops what depends on the data."""
        return self.status == "crashed" or (self.status == "failed" and self.severity == "error")


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The outcomes of one check.

    `passed` is true only if every expectation passed. When some did not, `severity` is "error" if
    any of them blocks and "warn" otherwise. `evaluated_at` is an aware UTC time, `rows` the number
    of records looked at, `numbers` are worth plotting over time. `note`, if there is one, tells
    what was found better than a list of expectations does.
    """

    check_name: str
    passed: bool
    severity: Severity
    evaluated_at: datetime
    rows: int
    outcomes: tuple[ExpectationOutcome, ...]
    numbers: Mapping[str, float]
    note: str = ""

    def __post_init__(self) -> None:
        if self.evaluated_at.utcoffset() is None:
            raise ValueError("evaluated_at must carry a time zone")

    @property
    def blocks(self) -> bool:
        """True where downstream work must not use the data."""
        return any(outcome.blocks for outcome in self.outcomes)

    def to_json(self) -> str:
        """Canonical JSON: equal reports give equal bytes."""
        body = asdict(self)
        body["evaluated_at"] = self.evaluated_at.astimezone(UTC).isoformat()
        body["numbers"] = {name: float(value) for name, value in self.numbers.items()}
        return canonical_json(body)

    @classmethod
    def from_json(cls, text: str) -> CheckReport:
        """The report that `to_json` wrote."""
        body: dict[str, Any] = json.loads(text)
        outcomes = tuple(
            ExpectationOutcome(**{**outcome, "sample": tuple(outcome["sample"])})
            for outcome in body.pop("outcomes")
        )
        evaluated_at = datetime.fromisoformat(body.pop("evaluated_at"))
        return cls(outcomes=outcomes, evaluated_at=evaluated_at, **body)

    def markdown(self) -> str:
        """A table with one row per expectation; below it, what to do about each that failed."""
        lines = [
            "| " + " | ".join(_COLUMNS) + " |",
            "|" + " --- |" * len(_COLUMNS),
            *(_table_row(outcome) for outcome in self.outcomes),
        ]
        advice = [
            f"- **{_column(outcome)}**: {_cell(outcome.meaning, width=400)}"
            for outcome in self.outcomes
            if outcome.status != "passed"
        ]
        return "\n".join([*lines, "", *advice] if advice else lines)


def _table_row(outcome: ExpectationOutcome) -> str:
    result = "warning" if outcome.status == "failed" and not outcome.blocks else outcome.status
    cells = (
        result if outcome.status == "passed" else f"**{result}**",
        _cell(outcome.expectation),
        _column(outcome),
        _cell(outcome.expected),
        _cell(outcome.observed),
        "" if outcome.failing_count is None else str(outcome.failing_count),
        _cell(", ".join(outcome.sample)),
    )
    return "| " + " | ".join(cells) + " |"


def _column(outcome: ExpectationOutcome) -> str:
    return _cell(f"{outcome.table}.{outcome.column}" if outcome.column else outcome.table)


def _cell(text: str, width: int = _CELL_WIDTH) -> str:
    """`text` on one line, cut to `width` characters, with what would break a table escaped."""
    line = " ".join(text.split())
    if len(line) > width:
        line = line[: width - 1] + "…"
    return line.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def summary(report: CheckReport) -> str:
    """The report's note; else how many expectations hold, and what the first failing ones found."""
    if report.note:
        return report.note
    failing = [outcome for outcome in report.outcomes if outcome.status != "passed"]
    if not failing:
        return f"all {len(report.outcomes)} expectations hold"
    named = []
    for outcome in failing[:3]:
        column = f" of {outcome.column}" if outcome.column else ""
        sample = f", e.g. {', '.join(outcome.sample[:3])}" if outcome.sample else ""
        named.append(f"{outcome.expectation}{column} ({outcome.observed}{sample})")
    more = f" and {len(failing) - 3} more" if len(failing) > 3 else ""
    return (
        f"{len(failing)} of {len(report.outcomes)} expectations do not hold: "
        + "; ".join(named)
        + more
    )


def merged(reports: Sequence[CheckReport]) -> CheckReport:
    """Several evaluations of one check as one report: outcomes in order, numbers added up."""
    first, *others = reports
    if not others:
        return first
    numbers: dict[str, float] = {}
    for report in reports:
        for name, value in report.numbers.items():
            numbers[name] = numbers.get(name, 0.0) + value
    passed = all(report.passed for report in reports)
    blocks = any(report.blocks for report in reports)
    return replace(
        first,
        passed=passed,
        severity="error" if passed or blocks else "warn",
        rows=sum(report.rows for report in reports),
        outcomes=tuple(outcome for report in reports for outcome in report.outcomes),
        numbers=numbers,
    )
