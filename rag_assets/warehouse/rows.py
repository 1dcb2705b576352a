"""The rows of a query as plain dictionaries."""

from __future__ import annotations

from typing import Any

import duckdb


def query_rows(
    connection: duckdb.DuckDBPyConnection, query: str, *values: object
) -> list[dict[str, Any]]:
    """Every row, by column name; `values` fill the query's question marks in order."""
    rows: list[dict[str, Any]] = (
        connection.sql(query, params=list(values)).to_arrow_table().to_pylist()
    )
    return rows
