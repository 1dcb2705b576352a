"""The command line. Heavy imports happen inside the commands, so that --help is instant.

Exit status: 0 done; 1 a gate or check failed, the output is complete all the same; 2 bad input or
usage, with nothing on stdout.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from rag_assets.errors import InputError, RagAssetsError


@contextmanager
def _errors_on_stderr() -> Iterator[None]:
    try:
        yield
    except InputError as error:
        for line in error.lines():
            click.echo(f"error: {_one_line(line)}", err=True)
        sys.exit(2)
    except RagAssetsError as error:
        click.echo(f"error: {_one_line(str(error))}", err=True)
        sys.exit(2)


def _one_line(text: str) -> str:
    return " ".join(text.split())


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rag-assets")
def main() -> None:
    """Decide on evidence whether an embedding space or a vector index may serve your users."""
    for stream in (sys.stdout, sys.stderr):
        # Ids and texts are Unicode whatever the locale says.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _pair(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> Any:
    pairs = []
    for value in values:
        old, colon, new = value.partition(":")
        if not (old and colon and new):
            raise click.BadParameter(f"{value!r} is not of the form OLD:NEW")
        pairs.append((old, new))
    return pairs or None


@main.command()
@click.argument("fixture", type=click.Path(path_type=Path))
@click.option("--k", "ks", type=int, multiple=True, help="Cut-off; repeatable.  [default: 3]")
@click.option(
    "--audit",
    "audits",
    multiple=True,
    callback=_pair,
    metavar="OLD:NEW",
    help="Pair of spaces to audit; repeatable.  [default: neighbouring spaces in file order]",
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
@click.option(
    "--db",
    type=click.Path(path_type=Path),
    help="Also write every table to this new DuckDB file, with the checks' results.",
)
@click.option(
    "--max-mib",
    type=click.FloatRange(min=0, min_open=True),
    default=5,
    show_default=True,
    help="Refuse a larger file.",
)
def evaluate(
    fixture: Path,
    ks: tuple[int, ...],
    audits: list[tuple[str, str]] | None,
    form: str,
    db: Path | None,
    max_mib: float,
) -> None:
    """Evaluate every space of a JSON fixture, and audit migrations between them."""
    with _errors_on_stderr():
        from rag_assets.evaluation_output import as_json, as_tables
        from rag_assets.fixture_evaluation import evaluate_fixture

        passed, connection = evaluate_fixture(
            fixture, ks=ks or (3,), audits=audits, max_bytes=int(max_mib * 2**20), db=db
        )
        click.echo(as_json(connection) if form == "json" else as_tables(connection))
    sys.exit(0 if passed else 1)


@main.command()
@click.argument("suite")
def run(suite: str) -> None:
    """Materialize a suite in this process, checks included, and print its results."""
    with _errors_on_stderr():
        from rag_assets.run import run_suite

        passed = run_suite(suite, echo=click.echo)
    sys.exit(0 if passed else 1)


@main.command()
@click.argument("suite")
@click.argument("statement", metavar="'SELECT ...'")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
)
def sql(suite: str, statement: str, form: str) -> None:
    """Query the current release of a suite, read-only."""
    with _errors_on_stderr():
        from rag_assets.project import warehouse_root
        from rag_assets.tabular import FORMATS
        from rag_assets.warehouse.release import current_release, query

        rows = query(current_release(warehouse_root(), suite), statement)
        render: Callable[[Any], str] = FORMATS[form]
        click.echo(render(rows), nl=form == "table")


if __name__ == "__main__":
    main()
