"""A table of the report: which columns of which rows, and how each value is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_assets.report.numbers import Show, plain
from rag_assets.report.reading import Row

_LONG = 40  # characters


@dataclass(frozen=True, slots=True)
class Column:
    """`name` is a key of the rows. `numeric` columns stand right, `whole` ones are not broken into
    lines; `means` explains the title.
    """

    title: str
    name: str
    show: Show = plain
    numeric: bool = False
    whole: bool = False
    means: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """`long` texts get room."""

    text: str
    numeric: bool
    whole: bool
    long: bool


@dataclass(frozen=True, slots=True)
class Table:
    """`undefined` says what a dash means here; it is read where the table has one."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    undefined: str = ""
    note: str = ""

    @property
    def body(self) -> Iterator[list[Cell]]:
        for row in self.rows:
            yield [_cell(column, row) for column in self.columns]

    @property
    def has_undefined(self) -> bool:
        return any(row[column.name] is None for row in self.rows for column in self.columns)


def _cell(column: Column, row: Row) -> Cell:
    text = column.show(row[column.name])
    return Cell(
        text, column.numeric, column.whole, row[column.name] is not None and len(text) > _LONG
    )
