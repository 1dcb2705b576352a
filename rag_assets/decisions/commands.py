"""What the commands `sign`, `activate` and `roll-back` do, on the suite's current release."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import duckdb

from rag_assets.decisions.active_space import Switch, activate, roll_back
from rag_assets.decisions.checklist import findings_in
from rag_assets.decisions.gates import missing_for
from rag_assets.decisions.items import NOT_EXECUTED
from rag_assets.decisions.release import decided_on, facts_of
from rag_assets.decisions.signed import (
    Signed,
    acceptance_of,
    check_item,
    judged,
    quality_of,
    read_signed,
    sign,
)
from rag_assets.errors import StoreError, UsageError
from rag_assets.store import Store


def sign_item(
    warehouse: Path, suite: str, folder: Path, item: str, decision: str, *, by: str, why: str
) -> Signed:
    """Sign a decision about the suite's current release.

    UsageError for an unknown item, a migration that the release did not audit, and an acceptance of
    a checklist item that is not `not_executed`; StoreError without a release.
    """
    check_item(item)
    with decided_on(warehouse, suite) as connection:
        if item.startswith("quality "):
            pairs = connection.sql(
                "SELECT DISTINCT old_space_id, new_space_id FROM migration_audit ORDER BY ALL"
            ).fetchall()
            audited = [quality_of(old, new) for old, new in pairs]
            if item not in audited:
                known = ", ".join(audited) or "no migration"
                raise UsageError(f"the release has no audit for {item!r}; it has {known}")
        if item.startswith("accept "):
            findings = findings_in(connection)
            open_items = [
                acceptance_of(finding.item)
                for finding in findings
                if finding.status == NOT_EXECUTED
            ]
            if item not in open_items:
                known = ", ".join(open_items) or "nothing"
                raise UsageError(
                    f"{item!r}: only what was not executed can be accepted; here: {known}"
                )
        release = facts_of(connection)
    return sign(folder, item, decision, release, by=by, why=why)


def activate_space(
    warehouse: Path, suite: str, folder: Path, space_id: str, *, by: str, why: str
) -> Switch:
    """Make a space of the current release the active one.

    GateError with everything that is missing; UsageError for an unknown space; StoreError without
    a release; InputError for a faulty decisions.yaml or an edited log.
    """
    with decided_on(warehouse, suite) as connection:
        release = facts_of(connection)
        if space_id not in release.signatures:
            known = ", ".join(release.signatures)
            raise UsageError(f"suite {suite} has no space {space_id!r}; it has {known}")
        evaluation = release.evaluation
        assert evaluation is not None  # decided_on looked

        def missing(active: str | None) -> list[str]:
            decisions = judged(read_signed(folder), release)
            store = Store(warehouse, suite)
            return missing_for(
                connection, suite, folder, store, release, decisions, space_id, active
            )

        return activate(
            folder,
            space_id,
            release.signatures[space_id],
            evaluation,
            by=by,
            why=why,
            missing=missing,
        )


def roll_back_space(
    warehouse: Path, suite: str, folder: Path, *, by: str, why: str, force: bool
) -> Switch:
    """Return to the space that was active before; a release is used if there is one.

    GateError where the space has another contract signature now and `force` is not set.
    """
    signatures: Mapping[str, str] = {}
    evaluation = None
    with ExitStack() as stack:
        try:
            release = facts_of(stack.enter_context(decided_on(warehouse, suite)))
            signatures, evaluation = release.signatures, release.evaluation
        except (StoreError, duckdb.Error):
            pass  # unknown signatures, which only --force passes over
    return roll_back(folder, signatures, evaluation, by=by, why=why, force=force)
