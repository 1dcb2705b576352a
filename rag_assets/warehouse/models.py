"""The SQL models: one file is one table. What a file reads is derived from its SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_assets.errors import InputError, Problem
from rag_assets.warehouse.base import BASE

_NAME = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Model:
    """One table and the statement that makes it.

    `sql` is the whole file; `description` is its header comment without the dashes;
    `depends_on` names other models and `reads` base tables (without "base."), both sorted.
    """

    name: str
    sql: str
    description: str
    depends_on: tuple[str, ...]
    reads: tuple[str, ...]


def load_models(folder: Path) -> tuple[Model, ...]:
    """Every `*.sql` file of a folder, each after the models it reads, otherwise by name.

    InputError, naming the file, for: a file name that is not a lower-case identifier, a file
    without a header comment, other than one SELECT statement, a table that is neither a model nor
    a base table, and models that read each other in a circle.
    """
    files = sorted(folder.glob("*.sql"))
    if not files:
        raise InputError(
            [Problem("no_models", str(folder), "folder", "no .sql file", "add one file per table")]
        )
    known = {file.stem for file in files}
    models: dict[str, Model] = {}
    problems: list[Problem] = []
    for file in files:
        try:
            models[file.stem] = _read_model(file, known)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return _in_dependency_order(models)


def _read_model(file: Path, known: set[str]) -> Model:
    if not _NAME.fullmatch(file.stem):
        raise _refused(
            file, "model_name", "file name", repr(file.stem), "use [a-z_][a-z0-9_]* and .sql"
        )
    sql = file.read_text("utf-8")
    description = header_comment(sql)
    if not description:
        raise _refused(
            file, "no_header", "line 1", "no comment", "start with '-- One row: ...' lines"
        )
    models: set[str] = set()
    base: set[str] = set()
    for schema, table in _tables_read(file, sql):
        if schema == "base" and table in BASE:
            base.add(table)
        elif not schema and table in known:
            models.add(table)
        else:
            name = f"{schema}.{table}" if schema else table
            raise _refused(
                file,
                "unknown_table",
                "FROM",
                repr(name),
                "read a model by its plain name, or base." + ", base.".join(BASE),
            )
    return Model(file.stem, sql, description, tuple(sorted(models)), tuple(sorted(base)))


def header_comment(sql: str) -> str:
    """The `--` lines that a file starts with, without dashes; "" if it starts otherwise."""
    lines: list[str] = []
    for line in sql.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line.removeprefix("--").removeprefix(" ").rstrip())
    return "\n".join(lines).strip()


def _tables_read(file: Path, sql: str) -> set[tuple[str, str]]:
    """(schema, table) of everything the one statement of a file reads, in lower case."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError
    from sqlglot.optimizer.scope import traverse_scope

    try:
        # A file's last comment may come back as an empty statement.
        statements = [s for s in sqlglot.parse(sql, dialect="duckdb") if s is not None]
        statements = [s for s in statements if not isinstance(s, exp.Semicolon)]
        if len(statements) != 1 or not isinstance(statements[0], exp.Query):
            found = ", ".join(s.key.upper() for s in statements) or "no statement"
            raise _refused(file, "not_one_select", "statement", found, "write one SELECT or WITH")
        # A scope's sources tell a table from a CTE of the same name.
        sources = [s for scope in traverse_scope(statements[0]) for s in scope.sources.values()]
    except SqlglotError as error:
        raise _refused(file, "not_sql", *_syntax_error(error), "write DuckDB SQL") from None
    return {
        (source.db.lower(), (source.name or source.sql(dialect="duckdb")).lower())
        for source in sources
        if isinstance(source, exp.Table)
    }


def _syntax_error(error: Any) -> tuple[str, str]:
    details = getattr(error, "errors", None)
    if details:
        first = details[0]
        return f"line {first['line']}:{first['col']}", repr(first["highlight"])
    return "statement", " ".join(str(error).split())


def _in_dependency_order(models: Mapping[str, Model]) -> tuple[Model, ...]:
    ordered: dict[str, Model] = {}
    waiting = dict(models)
    while waiting:
        ready = [m for m in waiting.values() if all(d in ordered for d in m.depends_on)]
        if not ready:
            circle = _circle(waiting)
            raise InputError(
                [
                    Problem(
                        "circle",
                        f"{name}.sql",
                        "FROM",
                        " reads ".join((*circle[i:], *circle[: i + 1])),
                        "a model may not read itself, not even through others",
                    )
                    for i, name in enumerate(circle)
                ]
            )
        for model in ready:
            ordered[model.name] = waiting.pop(model.name)
    return tuple(ordered.values())


def _circle(waiting: Mapping[str, Model]) -> list[str]:
    """Names of models that read each other in a circle, each reading the next."""
    path = [min(waiting)]
    while True:
        following = next(d for d in waiting[path[-1]].depends_on if d in waiting)
        if following in path:
            return path[path.index(following) :]
        path.append(following)


def _refused(file: Path, code: str, place: str, found: str, remedy: str) -> InputError:
    return InputError([Problem(code, file.name, place, found, remedy)])
