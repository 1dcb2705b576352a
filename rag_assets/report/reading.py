"""Rows of a release, as the sections of the report read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import duckdb

from rag_assets.warehouse.rows import query_rows

Row: TypeAlias = dict[str, Any]


def rows_of(
    con: duckdb.DuckDBPyConnection, query: str, *values: object, needs: Sequence[str] = ()
) -> list[Row]:
    """The rows of a query. Where the release was built before a table in `needs` existed: none."""
    for table in needs:
        if not con.sql(
            "SELECT 1 FROM duckdb_tables() WHERE schema_name = 'main' AND table_name = ?",
            params=[table],
        ).fetchall():
            return []
    return query_rows(con, query, *values)
