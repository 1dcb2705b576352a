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


@click.command()
@click.argument("suite")
@click.argument("item", nargs=-1, required=True)
@click.option("--by", required=True, help="Who decides.")
@click.option("--why", required=True, help="The reason, in one line.")
@click.option("--refuse", is_flag=True, help="Decide against it.")
def sign(suite: str, item: tuple[str, ...], by: str, why: str, refuse: bool) -> None:
    """Sign a decision about a suite's current release.

    ITEM is `quality OLD:NEW` (whether an audited migration is good enough), `shadow_and_rollback`,
    `approvals`, or `accept ITEM` for an item of release_checklist that was not executed. The
    decision is appended to decisions.yaml in the suite's folder, where it may also be written by
    hand, and expires when the data or a contract signature changes.
    """
    from rag_assets.decisions.commands import sign_item
    from rag_assets.decisions.signed import APPROVE, REFUSE
    from rag_assets.project import suite_folder, warehouse_root

    signed = sign_item(
        warehouse_root(),
        suite,
        suite_folder(suite),
        " ".join(item),
        REFUSE if refuse else APPROVE,
        by=by,
        why=why,
    )
    click.echo(
        f"{signed.item}: {signed.decision}d by {signed.by} {signed.when} for evaluation "
        f"{signed.evaluation}"
    )
    click.echo(f"It is shown in the table decisions after: rag-assets run {suite}")


@click.command()
@click.argument("suite")
@click.argument("space")
@click.option("--by", required=True, help="Who decides.")
@click.option("--why", required=True, help="The reason, in one line.")
def activate(suite: str, space: str, by: str, why: str) -> None:
    """Make a space the one that serves: the alias in the suite's active_space.json.

    Exit status 1, and nothing changes, while a gate fails or a decision is missing in the current
    release; every reason is listed with its remedy. The switch is one rename, and logged.
    """
    from rag_assets.decisions.commands import activate_space
    from rag_assets.project import suite_folder, warehouse_root

    switch = activate_space(warehouse_root(), suite, suite_folder(suite), space, by=by, why=why)
    click.echo(f"{suite}: {switch.space_id} is active from now on, decided {switch.when} by {by}")


@click.command("roll-back")
@click.argument("suite")
@click.option("--by", required=True, help="Who decides.")
@click.option("--why", required=True, help="The reason, in one line.")
@click.option(
    "--force",
    is_flag=True,
    help="Go back although the space has another contract signature by now; the log says so.",
)
def roll_back(suite: str, by: str, why: str, force: bool) -> None:
    """Return to the space that was active before; again, to the one before that.

    No gate is asked. Exit status 1, and nothing changes, where the space no longer has the contract
    signature that it was activated with: its index may hold other vectors now.
    """
    from rag_assets.decisions.commands import roll_back_space
    from rag_assets.project import suite_folder, warehouse_root

    switch = roll_back_space(
        warehouse_root(), suite, suite_folder(suite), by=by, why=why, force=force
    )
    click.echo(f"{suite}: {switch.space_id} is active again, decided {switch.when} by {by}")
