"""Builds a database: numbered inputs in schema `base`, then one table per SQL model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import duckdb
import pyarrow as pa

from rag_assets.errors import StoreError
from rag_assets.warehouse.base import BASE, NULLABLE

if TYPE_CHECKING:
    from rag_assets.warehouse.models import Model

BaseTable: TypeAlias = pa.Table | Path | Sequence[Path]


@dataclass(frozen=True, slots=True)
class TableSummary:
    """A table that was built. `columns` are (name, DuckDB type), in order."""

    name: str
    columns: tuple[tuple[str, str], ...]
    row_count: int


def build(
    con: duckdb.DuckDBPyConnection,
    base: Mapping[str, BaseTable],
    models: Iterable[Model],
    *,
    keep_inputs: bool = True,
) -> None:
    """Load base tables (Arrow tables or Parquet files), then create the models in order.

    Columns are matched by name and further ones are ignored; integers are checked to fit. A base
    table that no model reads may be left out. StoreError, naming the table, if one is missing,
    lacks a column, or holds a value of another type or a NULL where none is allowed; and, naming
    the file, if a model fails.

    `keep_inputs` False: Parquet files are read where a model reads them, and only the columns that
    it reads, instead of being copied into the database; NULLs in them are not looked for. For
    measures alone, over results that were checked when they were written.
    """
    models = tuple(models)
    unknown = sorted(base.keys() - BASE.keys())
    if unknown:
        raise StoreError(f"unknown base table {unknown[0]!r}; known: {', '.join(BASE)}")
    needed = {name for model in models for name in model.reads}
    missing = sorted(needed - base.keys())
    if missing:
        raise StoreError(f"base table {missing[0]!r} is missing, and a model reads it")
    con.execute("CREATE SCHEMA base")
    for name, schema in BASE.items():
        if name in base:
            _load(con, name, schema, base[name], keep_inputs)
    for model in models:
        _create(con, model)


def empty_table(name: str) -> pa.Table:
    """The base table `name` without rows."""
    return BASE[name].empty_table()


def summarize(con: duckdb.DuckDBPyConnection) -> dict[str, TableSummary]:
    """Columns and row counts of every model's table, in order of name (base tables left out)."""
    columns: dict[str, list[tuple[str, str]]] = {}
    for table, column, type_name in con.sql(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE database_name = current_database() AND schema_name = 'main' AND NOT internal "
        "ORDER BY table_name, column_index"
    ).fetchall():
        columns.setdefault(table, []).append((column, type_name))
    return {
        table: TableSummary(
            table,
            tuple(described),
            con.sql(f'SELECT count(*) FROM main."{table}"').fetchall()[0][0],
        )
        for table, described in columns.items()
    }


def _load(
    con: duckdb.DuckDBPyConnection, name: str, schema: pa.Schema, source: BaseTable, keep: bool
) -> None:
    declared = _column_types(con.from_arrow(schema.empty_table()))
    body = ", ".join(
        f'"{column}" {type_name}' + ("" if (name, column) in NULLABLE else " NOT NULL")
        for column, type_name in declared.items()
    )
    files = () if isinstance(source, pa.Table) else _files(source)
    viewed = bool(files) and not keep
    if not viewed:
        con.execute(f"CREATE TABLE base.{name} ({body})")
    if not isinstance(source, pa.Table) and not files:
        return
    try:
        if isinstance(source, pa.Table):
            arriving = con.from_arrow(source)
        else:
            arriving = con.read_parquet(files, hive_partitioning=False)
        found = _column_types(arriving)
        for column, type_name in declared.items():
            if column not in found:
                raise StoreError(
                    f"base table {name!r} has no column {column!r}; found {', '.join(found)}"
                )
            if found[column] not in _ACCEPTED.get(type_name, {type_name, '"NULL"'}):
                raise StoreError(
                    f"base table {name!r}: column {column!r} is {found[column]}, not {type_name}"
                )
        if viewed:
            columns = ", ".join(
                f'"{column}"::{kind} AS "{column}"' for column, kind in declared.items()
            )
            listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
            con.execute(
                f"CREATE VIEW base.{name} AS SELECT {columns} "
                f"FROM read_parquet([{listed}], hive_partitioning = false)"
            )
            return
        arriving.project(", ".join(f'"{column}"' for column in declared)).insert_into(
            f"base.{name}"
        )
    except duckdb.Error as error:
        raise StoreError(f"base table {name!r}: {in_one_line(error)}") from None


def _files(source: Path | Sequence[Path]) -> list[str]:
    return [str(file) for file in ([source] if isinstance(source, Path) else source)]


_INTEGERS = {f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG")}
_INTEGERS |= {"INTEGER", "UINTEGER"}
# Types that arrive for a declared one without loss; an integer that does not fit is refused.
_ACCEPTED: Mapping[str, set[str]] = {
    "TINYINT": _INTEGERS,
    "SMALLINT": _INTEGERS,
    "INTEGER": _INTEGERS,
    "DOUBLE": {"DOUBLE", "FLOAT", '"NULL"'},
    "VARCHAR[]": {"VARCHAR[]", '"NULL"[]'},
    "TIMESTAMP": {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"},
}


def _column_types(relation: duckdb.DuckDBPyRelation) -> dict[str, str]:
    return dict(zip(relation.columns, map(str, relation.types), strict=True))


def _create(con: duckdb.DuckDBPyConnection, model: Model) -> None:
    comment = model.description.replace("'", "''")
    try:
        con.execute(f'CREATE TABLE "{model.name}" AS\n{model.sql}')
        con.execute(f"COMMENT ON TABLE \"{model.name}\" IS '{comment}'")
    except duckdb.Error as error:
        raise StoreError(f"{model.name}.sql: {in_one_line(error)}") from None


def in_one_line(error: duckdb.Error) -> str:
    """DuckDB's message with its suggestion, without the drawing of the SQL that follows."""
    message = str(error).strip().split("\n\n")[0]
    return " ".join(message.split())


def rebuild(
    con: duckdb.DuckDBPyConnection, added: Mapping[str, pa.Table], models: Iterable[Model]
) -> None:
    """Add rows to base tables, and make again the models that read them directly."""
    for name, rows in added.items():
        con.from_arrow(rows).insert_into(f"base.{name}")
    for model in models:
        if not added.keys().isdisjoint(model.reads):
            con.execute(f'DROP TABLE "{model.name}"')
            _create(con, model)


def table_digest(con: duckdb.DuckDBPyConnection, name: str) -> str:
    """A digest of a table's rows, independent of their order."""
    ((count, total),) = con.sql(
        f'SELECT count(*), sum(md5_number_lower(CAST(t AS VARCHAR))::HUGEINT) FROM "{name}" AS t'
    ).fetchall()
    return f"{count}-{total:x}" if count else "empty"
