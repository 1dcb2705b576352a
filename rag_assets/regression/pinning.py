"""A person's decision which evaluation later ones are compared with."""

from __future__ import annotations

from pathlib import Path

from rag_assets import clock
from rag_assets.decisions.chained_log import one_line
from rag_assets.errors import StoreError
from rag_assets.regression.baseline import Baseline, Header, write_baseline
from rag_assets.regression.evidence import measured_queries
from rag_assets.regression.rows import REGRESSION_GATES
from rag_assets.warehouse.release import current_release, reading

_KEYS = ("evaluation_id", "evaluated_at", "data_version", "code_version")


def pin_baseline(
    warehouse: Path, suite: str, folder: Path, *, by: str, why: str
) -> tuple[Path, Baseline]:
    """Put the current release's evaluation into the suite's folder; the file and what it holds.

    StoreError without a release, for one that an older version made, that holds no results, or
    whose checks failed with severity "error". The gates themselves may have failed: pinning is how
    a person accepts a drop, and says why. UsageError without saying who and why.
    """
    for name, text in (("by", by), ("why", why)):
        one_line(name, text)
    with reading(current_release(warehouse, suite)) as connection:
        facts = dict(connection.sql("SELECT key, value FROM manifest").fetchall())
        failed = connection.sql(
            "SELECT asset || ' ' || check_name FROM check_results "
            "WHERE NOT passed AND severity = 'error' AND check_name <> ? ORDER BY ALL",
            params=[REGRESSION_GATES],
        ).fetchall()
        signatures = dict(
            connection.sql("SELECT space_id, contract_signature FROM spaces").fetchall()
        )
        rows = measured_queries(connection)
    if any(facts.get(key) is None for key in _KEYS):
        raise StoreError(
            f"the current release of {suite} was made by an older version and does not say which "
            f"evaluation it is; run: rag-assets run {suite}"
        )
    if failed:
        raise StoreError(
            f"the current release of {suite} is no baseline, because checks failed in it: "
            f"{', '.join(name for (name,) in failed)}; mend what they name and run: "
            f"rag-assets run {suite}"
        )
    if len(rows) == 0:
        raise StoreError(f"the current release of {suite} holds no results to compare with")
    header = Header(
        suite=suite,
        **{key: facts[key] for key in _KEYS},
        contract_signatures=signatures,
        pinned_by=by.strip(),
        pinned_at=clock.utc_now().isoformat(timespec="seconds"),
        why=why.strip(),
    )
    baseline = Baseline(header, rows)
    return write_baseline(baseline, folder), baseline
