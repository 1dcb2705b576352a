"""Commands by which a person decides: no-answer thresholds and default indexes."""

from __future__ import annotations

import click


@click.command()
@click.argument("suite")
@click.argument("space")
@click.option("--false-answer-cost", type=float, required=True, help="Cost of a false answer.")
@click.option("--false-refusal-cost", type=float, required=True, help="Cost of a false refusal.")
@click.option("--dev", default="dev", show_default=True, help="Split to calibrate on.")
@click.option("--test", default="test", show_default=True, help="Split to evaluate on, once.")
def calibrate(
    suite: str,
    space: str,
    false_answer_cost: float,
    false_refusal_cost: float,
    dev: str,
    test: str,
) -> None:
    """Choose the best score below which a space's queries are not answered.

    From the suite's current release: chosen on one split by what mistakes cost, evaluated once on
    another, kept in the suite's folder with the space's signature.
    """
    from rag_assets.project import suite_folder, warehouse_root
    from rag_assets.thresholds.choice import calibrate_space
    from rag_assets.thresholds.threshold import Costs, threshold_sentence

    threshold = calibrate_space(
        warehouse_root(),
        suite,
        suite_folder(suite),
        space,
        Costs(false_answer_cost, false_refusal_cost),
        dev=dev,
        test=test,
    )
    click.echo(threshold_sentence(threshold))
    click.echo(f"It is shown in the table answer_thresholds after: rag-assets run {suite}")


@click.command("default-index")
@click.argument("suite")
@click.argument("space")
@click.argument("index")
@click.option("--by", required=True, help="Who decides.")
@click.option("--why", required=True, help="The reason, in one line.")
def default_index(suite: str, space: str, index: str, by: str, why: str) -> None:
    """Decide which index serves a space; recorded in the suite's default_index.json.

    An approximate index is refused unless every condition of index_promotion passes in the current
    release. Going back to "exact" is always possible.
    """
    from rag_assets.laboratory.choice import choose_default_index
    from rag_assets.project import suite_folder, warehouse_root

    decision = choose_default_index(
        warehouse_root(), suite, suite_folder(suite), space, index, by=by, why=why
    )
    click.echo(f"{space}: {decision.index_name} from now on, decided {decision.when} by {by}")
