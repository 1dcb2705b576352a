"""Commands that guard a change: pin a baseline, and check the current release against it."""

from __future__ import annotations

import sys

import click


@click.command("pin-baseline")
@click.argument("suite")
@click.option("--by", required=True, help="Who decides.")
@click.option("--why", required=True, help="The reason, in one line.")
def pin_baseline(suite: str, by: str, why: str) -> None:
    """Compare later evaluations with the suite's current release.

    Its measures of every query go into the suite's baseline.parquet, in place of an earlier one;
    commit the file. A release in which checks failed is refused, unless only regression gates did:
    pinning is how a drop is accepted.
    """
    from rag_assets.project import shown_path, suite_folder, warehouse_root
    from rag_assets.regression.pinning import pin_baseline

    path, baseline = pin_baseline(warehouse_root(), suite, suite_folder(suite), by=by, why=why)
    click.echo(
        f"Baseline of {suite}: evaluation {baseline.header.evaluation_id}, "
        f"{len(baseline.rows)} rows, in {shown_path(path)}"
    )
    click.echo("Commit this file, so that every clone is compared with it.")


@click.command()
@click.argument("suite")
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True
)
@click.option("--strict", is_flag=True, help="Exit 1 also where a gate was not executed.")
def check(suite: str, form: str, strict: bool) -> None:
    """Check a suite's current release: its regression gates, and what failed when it was made.

    Bounds and baseline are taken as they are now. Exit status 1 says that a gate or check failed;
    2 that there is no release, or that the source holds other content than it was made from.
    """
    from rag_assets.components.loading import check_current, load_suite
    from rag_assets.project import warehouse_root
    from rag_assets.regression.baseline import read_baseline
    from rag_assets.regression.checking import as_json, as_text, check_release

    declared = load_suite(suite)
    release = check_current(declared, warehouse_root())
    baseline = read_baseline(declared.folder, suite)
    found = check_release(release, declared.regression, baseline, suite, strict=strict)
    click.echo(as_json(found) if form == "json" else as_text(found))
    sys.exit(0 if found.passed else 1)
