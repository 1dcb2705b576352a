"""The rules of the checks as rules.yaml declares them, in the terms of Great Expectations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rag_assets.quality.report import Severity
from rag_assets.quality.validation import Rule


def rules(frame: str, **values: object) -> tuple[Rule, ...]:
    """The rules on a frame, in the order of rules.yaml, whose $names and {names} are `values`."""
    tables = _tables()
    names = {**tables["texts"], **values}
    found: list[Rule] = []
    for kind, *columns, meaning in tables[frame]:
        arguments = [_filled(argument, values) for argument in columns]
        options = arguments.pop() if isinstance(arguments[-1], dict) else {}
        made = KINDS[kind](*arguments, meaning.format_map(names), **options)
        found += [made] if isinstance(made, Rule) else made
    return tuple(found)


@cache
def _tables() -> Mapping[str, Any]:
    text = Path(__file__).with_suffix(".yaml").read_text("utf-8")
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # type: ignore[no-any-return]


def _filled(argument: Any, values: Mapping[str, object]) -> Any:
    """An argument with the check's values in place of their $names."""
    if isinstance(argument, dict):
        return {name: _filled(part, values) for name, part in argument.items()}
    if isinstance(argument, list):
        return [_filled(part, values) for part in argument]
    named = isinstance(argument, str) and argument.startswith("$")
    return values[argument[1:]] if named else argument


def not_null(column: str, meaning: str) -> Rule:
    return Rule("expect_column_values_to_not_be_null", {"column": column}, meaning)


def unique(columns: str | list[str], meaning: str) -> Rule:
    """Values of a column, or combinations of several, occur once."""
    if isinstance(columns, str):
        return Rule("expect_column_values_to_be_unique", {"column": columns}, meaning)
    return Rule("expect_compound_columns_to_be_unique", {"column_list": columns}, meaning)


def distinct(column: str, count: int, meaning: str) -> Rule:
    """A column holds that many distinct values."""
    kwargs = {"column": column, "min_value": count, "max_value": count}
    return Rule("expect_column_unique_value_count_to_be_between", kwargs, meaning)


def in_set(
    column: str,
    allowed: Sequence[object],
    meaning: str,
    *,
    severity: Severity = "error",
    evidence: Sequence[str] = (),
) -> Rule:
    """Values are among `allowed` (a few JSON values); nulls pass."""
    kwargs = {"column": column, "value_set": list(allowed)}
    return Rule("expect_column_values_to_be_in_set", kwargs, meaning, severity, tuple(evidence))


def between(column: str, meaning: str, **bounds: float | bool) -> Rule:
    """`min_value`, `max_value`, `strict_min`, `strict_max`; NaN passes."""
    return Rule("expect_column_values_to_be_between", {"column": column, **bounds}, meaning)


def columns_equal(left: str, right: str, meaning: str) -> Rule:
    """Two columns agree row by row; rows where both are null pass."""
    kwargs = {"column_A": left, "column_B": right}
    return Rule("expect_column_pair_values_to_be_equal", kwargs, meaning)


def row_count(meaning: str, **bounds: int) -> Rule:
    """The number of rows is within `min_value`, `max_value`."""
    return Rule("expect_table_row_count_to_be_between", bounds, meaning)


def sha256_form(column: str, meaning: str) -> tuple[Rule, Rule]:
    """64 characters, none of them outside 0-9a-f.

    Two rules, because the regex engines that pandas may use disagree about `$` before a line end.
    """
    return (
        Rule("expect_column_value_lengths_to_equal", {"column": column, "value": 64}, meaning),
        Rule(
            "expect_column_values_to_not_match_regex",
            {"column": column, "regex": "[^0-9a-f]"},
            meaning,
        ),
    )


_KINDS = (not_null, unique, distinct, in_set, between, columns_equal, row_count, sha256_form)
KINDS: Mapping[str, Callable[..., Rule | tuple[Rule, ...]]] = {
    kind.__name__: kind for kind in _KINDS
}
