"""What keeps a space from becoming the active one: every gate and decision, with its remedy."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import duckdb

from rag_assets.decisions.checklist import checklist, findings_in
from rag_assets.decisions.items import NEEDS_DECISION, NOT_EXECUTED
from rag_assets.decisions.release import ReleaseFacts
from rag_assets.decisions.signed import APPROVE, Judged, last_expired, quality_of, standing
from rag_assets.errors import StoreError
from rag_assets.store import Store

CHECKLIST_CHECK = "release_checklist"
_AGAIN = "run: rag-assets run"
_RUN = "then run: rag-assets run"
DEFINITION = "definition"  # in the manifest: the digest of the suite's YAML


def definition_digest(folder: Path) -> str | None:
    """SHA-256 (hex) of a suite's defs.yaml; None where a suite was declared in another way."""
    path = folder / "defs.yaml"
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def missing_for(
    con: duckdb.DuckDBPyConnection,
    suite: str,
    folder: Path,
    store: Store,
    release: ReleaseFacts,
    decisions: Sequence[Judged],
    space_id: str,
    active: str | None,
) -> list[str]:
    """One line for everything that is missing before `space_id` may take over from `active`."""
    return [
        *_stale(suite, folder, store, release),
        *_not_evaluated(suite, release, space_id),
        *_failing_checks(con),
        *_checklist_gaps(con, suite, decisions),
        *(_audit_gaps(con, suite, active, space_id) if active else []),
        *(_undecided(suite, decisions, active, space_id) if active else []),
    ]


def _stale(suite: str, folder: Path, store: Store, release: ReleaseFacts) -> list[str]:
    """The release must be made of the suite as it is declared and of its newest artifacts."""
    reasons = []
    if definition_digest(folder) != release.manifest.get(DEFINITION):
        reasons.append(f"the release is stale: the suite's YAML changed since; {_AGAIN} {suite}")
    for key, version in release.manifest.items():
        if key.startswith("version "):
            asset = key.removeprefix("version ")
            try:
                current = store.read(tuple(asset.split("/"))).version
            except StoreError:
                current = None
            if current != version:
                reasons.append(
                    f"the release is stale: {asset} has another version now; {_AGAIN} {suite}"
                )
    return reasons


def _not_evaluated(suite: str, release: ReleaseFacts, space_id: str) -> list[str]:
    if release.statuses[space_id] == "evaluated":
        return []
    return [f"space {space_id} was not executed; provide what it needs, {_RUN} {suite}"]


def _failing_checks(con: duckdb.DuckDBPyConnection) -> list[str]:
    """Checks that fail and do not only warn. The checklist's own is listed item by item."""
    rows = con.execute(
        "SELECT check_name, asset FROM check_results "
        "WHERE NOT passed AND severity <> 'warn' AND check_name <> ? ORDER BY ALL",
        [CHECKLIST_CHECK],
    ).fetchall()
    return [
        f"the check {name} failed on {asset}; its details are in check_results, mend what they list"
        for name, asset in rows
    ]


def _checklist_gaps(
    con: duckdb.DuckDBPyConnection, suite: str, decisions: Sequence[Judged]
) -> list[str]:
    return [
        f"checklist item {row.item_no} {row.item}: {row.status}: {row.evidence}; "
        f"{row.how_to_get_it}"
        for row in checklist(suite, findings_in(con), decisions)
        if not row.met
    ]


def _audit_gaps(con: duckdb.DuckDBPyConnection, suite: str, active: str, new: str) -> list[str]:
    rows = con.execute(
        "SELECT mechanical_gates_pass, inventory_match, canonical_match, status, status_reason, "
        "quality_note FROM migration_audit WHERE old_space_id = ? AND new_space_id = ? "
        "ORDER BY status, index_name, k",
        [active, new],
    ).fetchall()
    pair = f"{active} -> {new}"
    if not rows:
        return [
            f"the migration {pair} was not audited; add {{old: {active}, new: {new}}} to audits in "
            f"the suite's YAML, {_RUN} {suite}"
        ]
    passes, inventory, canonical, status, reason, note = rows[-1]
    if None in (inventory, canonical) or status != "evaluated":
        return [f"the audit {pair} was {NOT_EXECUTED}: {reason}; provide it, {_RUN} {suite}"]
    if passes is not True:
        where = "migration_audit and migration_differences say what"
        return [f"the audit {pair}: {note} {where}; bring the sources into line, {_RUN} {suite}"]
    return []


def _undecided(suite: str, decisions: Sequence[Judged], active: str, new: str) -> list[str]:
    item = quality_of(active, new)
    remedy = f"rag-assets sign {suite} {item} --by NAME --why TEXT"
    last = standing(decisions, item)
    if last is None:
        expired = last_expired(decisions, item)
        said = (
            f"what {expired.signed.by} decided expired ({expired.expired})" if expired else "none"
        )
        return [f"{item}: {NEEDS_DECISION}: {said}; read migration_by_query and decide: {remedy}"]
    if last.decision != APPROVE:
        return [f"{item}: refused by {last.by}: {last.why}; a later decision may differ: {remedy}"]
    return []
