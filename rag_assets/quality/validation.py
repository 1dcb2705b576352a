"""Runs declared rules on pandas frames with Great Expectations and reports every outcome.

Great Expectations is imported on first use (seconds, 230 MB). Three of its habits shape this
module. NaN passes `between`, and an empty frame passes nearly everything, so suites pair such
rules with not-null and row-count rules. An expectation that raised looks like one that failed; it
is reported as crashed. Asking for failing records by id column walks them one by one in Python
(60 s where a million fail); asking for positions in a RangeIndex does not, so frames are labelled
here, after the fact.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from rag_assets import clock
from rag_assets.quality.report import (
    SAMPLE_SIZE,
    CheckReport,
    ExpectationOutcome,
    Severity,
    Status,
)

if TYPE_CHECKING:
    import pandas as pd

# Great Expectations keeps one current context per process.
_ONE_AT_A_TIME = threading.Lock()
_TEXT_WIDTH = 300
_DETAILS = {
    "result_format": "SUMMARY",
    "partial_unexpected_count": SAMPLE_SIZE,
    "return_unexpected_index_query": False,
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One expectation to hold.

    `type` is a Great Expectations type in snake case and `kwargs` its arguments. `evidence` names
    columns whose values at the failing rows are quoted in the outcome.
    """

    type: str
    kwargs: Mapping[str, Any]
    meaning: str
    severity: Severity = "error"
    evidence: tuple[str, ...] = ()

    @property
    def counts_records(self) -> bool:
        """True for a rule that each record meets or not, false for one about the whole frame."""
        return self.column is not None and "value_count" not in self.type

    @property
    def column(self) -> str | None:
        """The column or columns that the rule reads; None for a rule about the whole frame."""
        if "column" in self.kwargs:
            return str(self.kwargs["column"])
        if "column_A" in self.kwargs:
            return f"{self.kwargs['column_A']}, {self.kwargs['column_B']}"
        return ", ".join(self.kwargs["column_list"]) if "column_list" in self.kwargs else None


@dataclass(frozen=True)
class Frame:
    """A frame of scalar columns with a RangeIndex, and the rules on it.

    `label` turns a row's position into the id a person knows the record by.
    """

    table: str
    data: pd.DataFrame
    label: Callable[[int], str]
    rules: tuple[Rule, ...]


def validate(
    check_name: str, frames: Sequence[Frame], numbers: Mapping[str, float] | None = None
) -> CheckReport:
    """Every rule of every frame, in declared order.

    `numbers` are added to the report's own: `rows`, `failed_expectations`, `crashed_expectations`
    and `failing_records` (summed over the expectations that count them).
    """
    with _ONE_AT_A_TIME:
        outcomes = _run(frames)
    rows = sum(len(frame.data) for frame in frames)
    crashed = sum(outcome.status == "crashed" for outcome in outcomes)
    failed = sum(outcome.status == "failed" for outcome in outcomes)
    return CheckReport(
        check_name=check_name,
        passed=crashed + failed == 0,
        severity="warn"
        if crashed + failed and not any(outcome.blocks for outcome in outcomes)
        else "error",
        evaluated_at=clock.utc_now(),
        rows=rows,
        outcomes=tuple(outcomes),
        numbers={
            "rows": float(rows),
            "failed_expectations": float(failed),
            "crashed_expectations": float(crashed),
            "failing_records": float(sum(outcome.failing_count or 0 for outcome in outcomes)),
            **(numbers or {}),
        },
    )


@cache
def _whole_frame() -> Any:
    """Great Expectations' batch definition that takes a frame as it is; one serves all checks."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    source = context.data_sources.add_pandas("frames")
    return source.add_dataframe_asset("frame").add_batch_definition_whole_dataframe("whole")


def _run(frames: Sequence[Frame]) -> list[ExpectationOutcome]:
    whole_frame = _whole_frame()
    outcomes: list[ExpectationOutcome] = []
    for frame in frames:
        batch = whole_frame.get_batch({"dataframe": frame.data})
        # Verdicts alone take a third of the time that verdicts with details do.
        found = _results(batch, frame, range(len(frame.rules)), {"result_format": "BOOLEAN_ONLY"})
        unmet = [number for number, result in found.items() if not result.success]
        if unmet:
            found |= _results(batch, frame, unmet, _DETAILS)
        outcomes += [
            _outcome(frame, rule, found.get(number)) for number, rule in enumerate(frame.rules)
        ]
    if frames:
        # The current context holds on to the last frame, which may be large.
        whole_frame.get_batch({"dataframe": frames[-1].data.iloc[:0]})
    return outcomes


def _results(
    batch: Any, frame: Frame, numbers: Iterable[int], result_format: Mapping[str, object]
) -> dict[int, Any]:
    """Great Expectations' results of some of a frame's rules, by the rule's number."""
    import great_expectations as gx

    expectations = [_expectation(frame.rules[number], number) for number in numbers]
    suite = gx.ExpectationSuite(name=frame.table, expectations=expectations)
    found = batch.validate(suite, result_format=result_format)
    # Crashed expectations come first in the results, so order says nothing.
    return {result["expectation_config"]["meta"]["rule"]: result for result in found.results}


def _expectation(rule: Rule, number: int) -> Any:
    import great_expectations.expectations as gxe

    name = "".join(part.capitalize() for part in rule.type.split("_"))
    level = "critical" if rule.severity == "error" else "warning"
    return getattr(gxe, name)(**rule.kwargs, meta={"rule": number}, severity=level)


def _outcome(frame: Frame, rule: Rule, result: Any) -> ExpectationOutcome:
    error = _error(result)
    details: Mapping[str, Any] = {} if error else result.result
    positions = [int(position) for position in details.get("partial_unexpected_index_list") or ()]
    status: Status = "crashed" if error else "passed" if result.success is True else "failed"
    failing_count = details.get("unexpected_count")
    if status == "passed":
        failing_count = 0 if rule.counts_records else None
        observed = f"{len(frame.data)} row" + "s" * (len(frame.data) != 1)
    else:
        observed = error or _observed(details)
    if rule.evidence and positions:
        observed += "; " + _evidence(frame, rule, positions)
    return ExpectationOutcome(
        expectation=rule.type,
        column=rule.column,
        expected=_clip(_expected(rule)),
        observed=_clip(observed),
        status=status,
        failing_count=failing_count,
        sample=tuple(dict.fromkeys(frame.label(position) for position in positions)),
        meaning=rule.meaning,
        table=frame.table,
        severity=rule.severity,
    )


def _error(result: Any) -> str | None:
    """The first message of an expectation that raised, which may do so in several metrics."""
    if result is None:
        return "no result"
    info = result.exception_info or {}
    raised = [info] if "raised_exception" in info else list(info.values())
    for entry in raised:
        if entry["raised_exception"]:
            return str(entry["exception_message"]).strip() or "an exception without a message"
    return None


def _expected(rule: Rule) -> str:
    kwargs = rule.kwargs
    low, high = kwargs.get("min_value"), kwargs.get("max_value")
    if low is not None or high is not None:
        if low == high:
            return f"exactly {_text(low)}"
        above = "more than" if kwargs.get("strict_min") else "at least"
        below = "less than" if kwargs.get("strict_max") else "at most"
        bounds = [f"{above} {_text(low)}"] if low is not None else []
        return " and ".join(bounds + ([f"{below} {_text(high)}"] if high is not None else []))
    if "value_set" in kwargs:
        values = ", ".join(_text(value) for value in kwargs["value_set"])
        return f"one of {values}" if len(kwargs["value_set"]) > 1 else f"exactly {values}"
    if "value" in kwargs:
        return f"exactly {_text(kwargs['value'])}"
    if "regex" in kwargs:
        return f"nothing that matches {kwargs['regex']}"
    return rule.type.partition("_to_")[2].replace("_", " ")


def _observed(details: Mapping[str, Any]) -> str:
    """What was found instead: one value, or the distinct values of the failing records."""
    if "observed_value" in details:
        return _text(details["observed_value"])
    values = [_text(value) for value in details.get("partial_unexpected_list") or ()]
    return ", ".join(dict.fromkeys(values))


def _evidence(frame: Frame, rule: Rule, positions: Sequence[int]) -> str:
    quoted = (
        f"{column}: {_text(frame.data[column].iat[position])}"
        for position in positions
        for column in rule.evidence
    )
    return "; ".join(dict.fromkeys(quoted))


def _text(value: Any) -> str:
    """A value as a person would write it, NumPy scalars and tuples of them included."""
    if isinstance(value, dict):
        return " and ".join(f"{name} {_text(part)}" for name, part in value.items())
    if isinstance(value, tuple | list):
        return " and ".join(_text(part) for part in value)
    native = value.item() if hasattr(value, "item") else value
    if native is None or native != native:
        return "null"
    return f"{native:.12g}" if isinstance(native, float) else str(native)


def _clip(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_WIDTH else line[: _TEXT_WIDTH - 1] + "…"
