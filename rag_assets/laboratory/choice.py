"""A person's decision which index serves a space, on the evidence of the current release."""

from __future__ import annotations

from pathlib import Path

import duckdb

from rag_assets.canonical.corpus import digest_table
from rag_assets.errors import StoreError, UsageError
from rag_assets.laboratory.defaults import EXACT, Decision, set_default_index
from rag_assets.laboratory.promotion import ELIGIBLE
from rag_assets.warehouse.release import current_release, reading


def choose_default_index(
    warehouse: Path, suite: str, folder: Path, space_id: str, index_name: str, *, by: str, why: str
) -> Decision:
    """Record in the suite's `folder` that `index_name` serves `space_id` from now on.

    StoreError without a release; UsageError for an unknown space or index, and for an index that
    the release's promotion gate does not find eligible ("exact" always is).
    """
    try:
        with reading(current_release(warehouse, suite)) as connection:
            spaces = [row[0] for row in connection.sql("SELECT space_id FROM spaces").fetchall()]
            gate = connection.sql(
                "SELECT * FROM index_promotion WHERE space_id = ? AND index_name = ?",
                params=[space_id, index_name],
            ).to_arrow_table()
    except duckdb.CatalogException:
        raise StoreError(
            f"the current release of {suite} was made by an earlier version and holds no promotion "
            f"gate; run: rag-assets run {suite}"
        ) from None
    if space_id not in spaces:
        raise UsageError(f"suite {suite} has no space {space_id!r}; it has {', '.join(spaces)}")
    if index_name != EXACT and len(gate) == 0:
        raise UsageError(f"the current release knows no index {index_name!r} of {space_id!r}")
    return set_default_index(
        folder,
        space_id,
        index_name,
        by=by,
        why=why,
        evidence_digest=None if index_name == EXACT else digest_table(gate),
        eligible=set(gate["verdict"].to_pylist()) == {ELIGIBLE},
    )
