"""Tables and SQL headers as the Markdown that the Dagster UI renders.

The UI shows Markdown of fewer than 1000 characters in the page and puts longer texts behind a link,
and the page has room for about 35 characters: so tables are narrow and written without padding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa

Row = Mapping[str, object]
_HASH = re.compile(r"[0-9a-f]{64}")
_SHOWN_HASH = 12
# A line such as "recall_at_k    : ..." or "delta_x = ..." defines the columns that it starts with.
_DEFINITION = re.compile(r"([a-z0-9_]+(?:, [a-z0-9_]+)*)\s*([:=])\s+(.+)")
_HEADWORD = re.compile(r"[A-Z][a-z]+: ")
_CODE = re.compile(r"'[a-z0-9_]+'|(?<!\w)[a-z0-9]+(?:_[a-z0-9]+)+(?!\w)")


def markdown_table(
    table: pa.Table, labels: Mapping[str, str] | None = None, *, above: Sequence[str] = ()
) -> str:
    """One line per row. `labels` (column -> heading) chooses and names the columns.

    Rows that agree in the columns `above` share a table, under a line with these values.
    """
    names = labels or {name: name for name in table.column_names}

    def lines(rows: Sequence[Row]) -> str:
        return _lines(list(names.values()), ([row[name] for name in names] for row in rows))

    return _grouped(table, above, lines)


def markdown_fields(
    table: pa.Table,
    headings: Sequence[str],
    labels: Mapping[str, str] | None = None,
    *,
    above: Sequence[str] = (),
) -> str:
    """One line per column that is not a heading, one column per row: for few, wide rows.

    The heading of a row is its values in the columns `headings`, such as "toy-v1 exact".
    `labels` (column -> name of its line) chooses and names the lines; without it, all are shown.
    Rows that agree in the columns `above` share a table, under a line with these values.
    """
    # Spaces let the page break long names, and leave room for the values.
    fields = [name for name in table.column_names if name not in (*headings, *above)]
    names = labels or {name: name.replace("_", " ") for name in fields}

    def lines(rows: Sequence[Row]) -> str:
        return _lines(
            ["", *(_title(row, headings) for row in rows)],
            ([label, *(row[name] for row in rows)] for name, label in names.items()),
        )

    return _grouped(table, above, lines)


def shown(value: object) -> str:
    """A value on one line: NULL is a dash, floats have four decimals, hashes are cut short."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, list):
        return ", ".join(map(shown, value)) or "none"
    text = str(value)
    return text[:_SHOWN_HASH] + "…" if _HASH.fullmatch(text) else text


def markdown_header(header: str) -> str:
    """The header comment of a SQL model, with its definitions as a list and its names as code."""
    written: list[str] = []
    for text, defined in _paragraphs(header):
        item = _CODE.sub(r"`\g<0>`", text)
        if defined and written and written[-1].startswith("- "):
            written[-1] += f"\n- {item}"
        else:
            written.append(f"- {item}" if defined else item)
    return "\n\n".join(written)


def column_meanings(header: str) -> dict[str, str]:
    """Column -> what the header comment says it is, for the columns that it defines."""
    meanings: dict[str, str] = {}
    for text, defined in _paragraphs(header):
        if defined:
            names, meaning = re.split(r" = |: ", text, maxsplit=1)
            meanings |= dict.fromkeys(names.split(", "), meaning)
    return meanings


def _paragraphs(header: str) -> list[tuple[str, bool]]:
    """(text on one line, whether it defines columns) of each paragraph of a header comment.

    A paragraph ends at an empty line, at a line that ends a sentence, and before a definition or
    a head word such as "Undefined:".
    """
    paragraphs: list[tuple[str, bool]] = []
    ended = True
    for line in header.splitlines():
        text = " ".join(line.split())
        definition = _DEFINITION.fullmatch(text)
        if definition:
            names, sign, meaning = definition.groups()
            text = f"{names}{' =' if sign == '=' else ':'} {meaning}"
        if definition or (text and (ended or _HEADWORD.match(text))):
            paragraphs.append((text, definition is not None))
        elif text:
            before, defined = paragraphs[-1]
            paragraphs[-1] = (f"{before} {text}", defined)
        ended = not text or text.endswith(".")
    return paragraphs


def _grouped(table: pa.Table, above: Sequence[str], lines: Callable[[Sequence[Row]], str]) -> str:
    groups: dict[str, list[Row]] = {}
    for row in table.to_pylist():
        groups.setdefault(_title(row, above), []).append(row)
    tables = [(f"**{title}**\n\n" if title else "") + lines(rows) for title, rows in groups.items()]
    return "\n\n".join(tables) or lines([])


def _title(row: Row, names: Sequence[str]) -> str:
    return " ".join(("k=" if name == "k" else "") + shown(row[name]) for name in names)


def _lines(heading: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    def line(cells: Iterable[str]) -> str:
        return "|" + "|".join(cells) + "|"

    def cell(value: object) -> str:
        return shown(value).replace("|", "\\|").replace("\n", " ")

    return "\n".join(
        [
            line(map(cell, heading)),
            line("---" for _ in heading),
            *(line(map(cell, row)) for row in rows),
        ]
    )
