"""Arrow tables as text: for a terminal, as CSV and as JSON."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
from collections.abc import Sequence

import pyarrow as pa

WIDEST_CELL = 60


def text_table(table: pa.Table, *, title: str | None = None, decimals: int = 4) -> str:
    """Aligned columns; numbers are rounded to `decimals` here and nowhere earlier."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for field in table.schema:
        numeric = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        shown.add_column(field.name, justify="right" if numeric else "left", no_wrap=True)
    for row in table.to_pylist():
        shown.add_row(*(Text(_cell(value, decimals)) for value in row.values()))
    # Wide enough for every column: a pipe or a pager must not lose any.
    console = Console(file=io.StringIO(), width=10_000, color_system=None)
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _cell(value: object, decimals: int) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:.{decimals}f}"
    if isinstance(value, list):
        value = "[" + ", ".join(map(str, value)) + "]"
    text = str(value).replace("\n", "\\n")
    return text if len(text) <= WIDEST_CELL else text[: WIDEST_CELL - 1] + "…"


def csv_text(table: pa.Table) -> str:
    """RFC 4180 with a header; NULL is an empty field, lists and structures are JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.column_names)
    for row in table.to_pylist():
        writer.writerow(_plain(value) for value in row.values())
    return out.getvalue()


def _plain(value: object) -> object:
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False, default=_jsonable)
    return value


def json_text(table: pa.Table) -> str:
    """A list of objects, one per row; NULL is null."""
    rows = json.dumps(table.to_pylist(), ensure_ascii=False, indent=1, default=_jsonable)
    return rows + "\n"


def _jsonable(value: object) -> object:
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return float(value)
    return str(value)


FORMATS = {"table": text_table, "csv": csv_text, "json": json_text}


def joined(parts: Sequence[str]) -> str:
    return "\n\n".join(part for part in parts if part)
