"""The command line. Heavy imports happen inside the commands, so that --help is instant.

Exit status: 0 done; 1 a gate or check failed: output is complete all the same, a switch was not
made; 2 bad input or usage, with nothing on stdout; 130 interrupted; 141 whoever read the output
went away.
"""

from __future__ import annotations

import gc
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from rag_assets.cli_decisions import activate, calibrate, default_index, roll_back, sign
from rag_assets.cli_import import import_
from rag_assets.cli_regression import check, pin_baseline
from rag_assets.errors import GateError, InputError, RagAssetsError

INTERRUPTED = 130  # 128 + SIGINT, as a shell reports it; 1 would say that the output is complete
READER_GONE = 141  # 128 + SIGPIPE


class _Refused(click.ClickException):
    """Lines for stderr, each one problem."""

    exit_code = 2

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


class _KeptFrom(_Refused):
    """Lines for stderr, each one thing that a gate or a decision is missing."""

    exit_code = 1


@contextmanager
def _in_plain_words() -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise _Refused(error.lines()) from None
    except GateError as error:
        raise _KeptFrom(error.lines) from None
    except RagAssetsError as error:
        raise _Refused([str(error)]) from None
    except BrokenPipeError:
        # What is still buffered has no reader: the interpreter must not try again on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(READER_GONE) from None
    except MemoryError as error:
        raise _Refused([f"there is not enough memory for this: {error}"]) from None
    except OSError as error:
        place = [] if error.filename is None else [os.fspath(error.filename)]
        raise _Refused([": ".join([*place, error.strerror or str(error)])]) from None


class _Commands(click.Group):
    """Turns every error meant for a user into one line per problem, without a traceback."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _in_plain_words():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _in_plain_words():
            return super().invoke(ctx)

    def main(self, *args: Any, **extra: Any) -> Any:
        for stream in (sys.stdout, sys.stderr):
            # Ids and texts are Unicode whatever the locale says.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        try:
            status = super().main(*args, **{**extra, "standalone_mode": False})
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            status = error.exit_code
        except click.UsageError as error:
            where = error.ctx.command_path if error.ctx else "rag-assets"
            _say_error(f"{error.format_message()} Help: {where} --help")
            status = error.exit_code
        except click.ClickException as error:
            for line in error.lines if isinstance(error, _Refused) else [error.format_message()]:
                _say_error(line)
            status = error.exit_code
        except click.Abort:
            _say_error("interrupted")
            status = INTERRUPTED
        sys.exit(status)


def _say_error(text: str) -> None:
    # A path's bytes that were no text in this locale are shown as the UTF-8 that they are.
    readable = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    click.echo(f"error: {' '.join(readable.split())}", err=True)


def _text(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """An argument as Unicode, also where the locale is not UTF-8."""
    if value.isascii():
        return value
    try:
        return value.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeDecodeError:
        raise click.BadParameter("it is not UTF-8 text.") from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rag-assets")
def main() -> None:
    """Decide on evidence whether an embedding space or a vector index may serve your users."""


def _pairs(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    for value in values:
        if ":" not in value[1:-1]:
            raise click.BadParameter(f"{value!r} is not of the form OLD:NEW.")
    return tuple(_text(context, parameter, value) for value in values)


def _finite(context: click.Context, parameter: click.Parameter, value: float) -> float:
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a finite number.")
    return value


@main.command()
@click.argument("fixture", type=click.Path(path_type=Path))
@click.option("--k", "ks", type=int, multiple=True, help="Cut-off; repeatable.  [default: 3]")
@click.option(
    "--audit",
    "audits",
    multiple=True,
    callback=_pairs,
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
    callback=_finite,
    default=5,
    show_default=True,
    help="Refuse a larger file.",
)
def evaluate(
    fixture: Path,
    ks: tuple[int, ...],
    audits: tuple[str, ...],
    form: str,
    db: Path | None,
    max_mib: float,
) -> None:
    """Evaluate every space of a JSON fixture, and audit migrations between them."""
    from rag_assets.evaluation_output import as_json, as_tables
    from rag_assets.fixture_evaluation import evaluate_fixture

    passed, connection = evaluate_fixture(
        fixture, ks=ks or (3,), audits=audits or None, max_bytes=int(max_mib * 2**20), db=db
    )
    click.echo(as_json(connection) if form == "json" else as_tables(connection))
    sys.exit(0 if passed else 1)


@main.command()
@click.argument("suite", callback=_text)
def run(suite: str) -> None:
    """Materialize a suite in this process, checks included, and print its results."""
    # Libraries make half a million objects that stay: collecting less often saves a second.
    gc.set_threshold(50_000, 20, 50)
    from rag_assets.run import run_suite

    sys.exit(run_suite(suite, echo=click.echo, complain=_say_error))


@main.command()
@click.argument("suite", callback=_text)
@click.argument("statement", callback=_text, metavar="'SELECT ...'")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
)
def sql(suite: str, statement: str, form: str) -> None:
    """Query the current release of a suite, read-only."""
    from rag_assets.project import warehouse_root
    from rag_assets.tabular import FORMATS
    from rag_assets.warehouse.release import current_release, query

    rows = query(current_release(warehouse_root(), suite), statement)
    render: Callable[[Any], str] = FORMATS[form]
    click.echo(render(rows), nl=form == "table")


@main.command()
@click.argument("suite", callback=_text)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="The HTML file; an earlier report there is replaced.  "
    "[default: reports/SUITE.html in the warehouse]",
)
@click.option("--redact", is_flag=True, help="Leave out every text of queries and documents.")
def report(suite: str, output: Path | None, redact: bool) -> None:
    """Write the current release of a suite as one HTML file that opens from disk.

    Exit status 1 says that a gate or check failed in the release; the report is complete.
    """
    from rag_assets.project import shown_path, warehouse_root
    from rag_assets.report.files import write_report

    written = write_report(warehouse_root(), suite, output=output, redact=redact)
    click.echo(f"Report: {shown_path(written.path.absolute())}")
    sys.exit(0 if written.report.passed else 1)


# Name, default and meaning of each option of `benchmark`; BenchmarkOptions holds the same defaults.
_BENCHMARK = (
    ("n-vectors", 5000, "Documents: unit Gaussian vectors."),
    ("dim", 64, "Dimension."),
    ("n-queries", 100, "Queries: documents with noise of 0.01, normalized again."),
    ("top-k", 10, "Results a query."),
    ("n-clusters", 64, "Inverted lists."),
    ("nprobe", 8, "Lists searched a query."),
    ("n-subvectors", 8, "Parts of a vector, each with its own codebook."),
    ("n-bits", 4, "Bits of a code, 1 to 8."),
    ("n-iters", 8, "Iterations of k-means."),
    ("seed", 42, "Of the vectors and of training."),
)


def _benchmark_options(command: Callable[..., None]) -> Callable[..., None]:
    for name, default, meaning in reversed(_BENCHMARK):
        option = click.option(
            f"--{name}", type=int, default=default, show_default=True, help=meaning
        )
        command = option(command)
    return command


@main.command()
@_benchmark_options
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a new CSV file, or add rows to an earlier benchmark's.  [default: stdout]",
)
def benchmark(output: Path | None, **options: int) -> None:
    """Compare exact search with IVF-PQ on synthetic vectors: CSV, one row per backend."""
    from rag_assets.laboratory import benchmark as laboratory

    if output is not None:
        laboratory.check_output(output)
    rows = laboratory.run_benchmark(laboratory.BenchmarkOptions(**options))
    if output is None:
        click.echo(laboratory.csv_rows(rows), nl=False)
    else:
        laboratory.write_rows(output, rows)


main.add_command(import_)
main.add_command(calibrate)
main.add_command(default_index)
main.add_command(sign)
main.add_command(activate)
main.add_command(roll_back)
main.add_command(pin_baseline)
main.add_command(check)


if __name__ == "__main__":
    main()
