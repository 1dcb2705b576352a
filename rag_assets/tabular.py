"""Arrow tables as text: for a terminal, as CSV and as JSON."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from itertools import count

import pyarrow as pa

WIDEST_CELL = 60
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def text_table(table: pa.Table, *, title: str | None = None, decimals: int = 4) -> str:
    """Aligned columns; numbers are rounded to `decimals` here and nowhere earlier."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for field in table.schema:
        numeric = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        # Text, not str: brackets in a name are no markup.
        shown.add_column(Text(field.name), justify="right" if numeric else "left", no_wrap=True)
    for row in _rows(table):
        shown.add_row(*(Text(_cell(value, decimals)) for value in row))
    # Wide enough for every column: a pipe or a pager must not lose any.
    console = Console(file=io.StringIO(), width=10_000, color_system=None)
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _rows(table: pa.Table) -> Iterator[tuple[object, ...]]:
    """Values by position: a query may give two columns the same name."""
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _cell(value: object, decimals: int) -> str:
    text = _in_words(value, decimals)
    # A control character, an escape sequence say, would act on the terminal.
    text = _CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode(), text)
    return text if len(text) <= WIDEST_CELL else text[: WIDEST_CELL - 1] + "…"


def _in_words(value: object, decimals: int) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:.{decimals}f}"
    if isinstance(value, list):
        return "[" + ", ".join(_in_words(entry, decimals) for entry in value) + "]"
    return str(value)


def csv_text(table: pa.Table) -> str:
    """RFC 4180 with a header; NULL is an empty field, lists and structures are JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.column_names)
    for row in _rows(table):
        writer.writerow(_plain(value) for value in row)
    return out.getvalue()


def _plain(value: object) -> object:
    if isinstance(value, (list, dict, bool)):
        return json.dumps(_jsonable(value), ensure_ascii=False)
    return value


def json_text(table: pa.Table) -> str:
    """A list of objects, one per row; NULL is null. A repeated column name gets a number."""
    names: list[str] = []
    for name in table.column_names:
        numbered = (f"{name}_{n}" if n else name for n in count())
        names.append(next(each for each in numbered if each not in names))
    rows = [dict(zip(names, map(_jsonable, row), strict=True)) for row in _rows(table)]
    return json.dumps(rows, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _jsonable(value: object) -> object:
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):  # JSON has no word for NaN and infinity
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): _jsonable(entry) for key, entry in value.items()}
    if type(value) in (list, tuple):
        return [_jsonable(entry) for entry in value]  # type: ignore[attr-defined]
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):  # a sum of integers is one, of any length
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)


FORMATS = {"table": text_table, "csv": csv_text, "json": json_text}


def joined(parts: Sequence[str]) -> str:
    return "\n\n".join(part for part in parts if part)
