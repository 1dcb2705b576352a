"""Numbers as people read them. Rounding happens here and nowhere earlier.

Every function takes None for an undefined number and shows it as a dash, never as 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeAlias

from markupsafe import Markup

Show: TypeAlias = Callable[[Any], str]

DASH = Markup('<abbr class="dash" title="undefined">\N{EN DASH}</abbr>')
MINUS = "\N{MINUS SIGN}"
_HYPHEN = re.compile(r"(?<= )-(?=[0-9])")  # before a negative number
_DECIMALS = 4  # as on the command line, so that a person can match the two


def plain(value: Any) -> str:
    return DASH if value is None else str(value)


def told(sentence: str) -> str:
    """A finding's words as a sentence: with a capital, a full stop and minus signs."""
    return f"{sentence[:1].upper()}{_HYPHEN.sub(MINUS, sentence[1:])}."


def moment(value: datetime | str | None) -> str:
    """A time to the minute, in UTC: a naive one is in UTC, a text is in ISO 8601."""
    if value is None:
        return DASH
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if value.tzinfo is not None:
        value = value.astimezone(UTC)
    return f"{value:%Y-%m-%d %H:%M} UTC"


def count(value: int | None) -> str:
    """1234567 as 1,234,567."""
    return DASH if value is None else f"{value:,}"


def counted(number: int, one: str, many: str) -> str:
    """1 query, 2 queries."""
    return f"{count(number)} {one if number == 1 else many}"


def measure(value: float | None) -> str:
    """A measure, between 0 and 1."""
    return DASH if value is None else f"{value:.{_DECIMALS}f}"


def change(value: float | None) -> str:
    """A difference with its sign; what rounds to 0 has none."""
    if value is None:
        return DASH
    if direction(value) == 0:
        return f"{0:.{_DECIMALS}f}"
    return f"{'+' if value > 0 else MINUS}{abs(value):.{_DECIMALS}f}"


def interval(low: float | None, high: float | None) -> str:
    """The ends of a mean's interval, to three decimals: they are known less well than it."""
    return DASH if low is None or high is None else f"{low:.3f} to {high:.3f}"


def change_interval(low: float | None, high: float | None) -> str:
    """The ends of a difference's interval, as precise as it: they show on which side of 0 it is."""
    return DASH if low is None or high is None else f"{change(low)} to {change(high)}"


def direction(value: float | None) -> int:
    """-1, 0 or 1, of the number as it is shown; 0 where it is undefined."""
    rounded = round(value or 0.0, _DECIMALS)
    return (rounded > 0) - (rounded < 0)


def probability(value: float | None) -> str:
    return DASH if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def significant(value: float | None) -> str:
    """Three significant digits, all digits before the point: times, ratios and rates."""
    if value is None:
        return DASH
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:#.3g}"


def stated(value: float | None) -> str:
    """A number that a person chose, as it was written."""
    return DASH if value is None else f"{value:,.6g}"


def ratio(value: float | None) -> str:
    return DASH if value is None else f"{significant(value)}\N{MULTIPLICATION SIGN}"


def size(value: int | float | None) -> str:
    """Bytes in decimal units."""
    if value is None:
        return DASH
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= scale:
            return f"{significant(value / scale)} {unit}"
    return f"{value:.0f} B"


def yes_no(value: bool | None) -> str:
    return DASH if value is None else "yes" if value else "no"
