"""What a decision refers to: the evaluation, data and contract signatures of a release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from rag_assets.errors import StoreError
from rag_assets.warehouse.release import current_release, reading


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """`signatures` of all spaces by id, `statuses` likewise; `manifest` is all of it. `evaluation`
    and `data_version` are None in a release of a version that did not state them.
    """

    signatures: Mapping[str, str]
    statuses: Mapping[str, str]
    manifest: Mapping[str, str | None]

    @property
    def evaluation(self) -> str | None:
        return self.manifest.get("evaluation_id")

    @property
    def data_version(self) -> str | None:
        return self.manifest.get("data_version")


def facts_of(connection: duckdb.DuckDBPyConnection) -> ReleaseFacts:
    """The facts of a database with its base tables, published or still being built."""
    spaces = connection.sql(
        "SELECT space_id, contract_signature, status FROM base.spaces ORDER BY space_no"
    ).fetchall()
    manifest = dict(connection.sql("SELECT key, value FROM base.manifest").fetchall())
    return ReleaseFacts(
        {space_id: signature for space_id, signature, _ in spaces},
        {space_id: status for space_id, _, status in spaces},
        manifest,
    )


@contextmanager
def decided_on(warehouse: Path, suite: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """The suite's current release, read-only, for a person to decide on.

    StoreError where there is none, or it was made by a version that knew no decisions.
    """
    with reading(current_release(warehouse, suite)) as connection:
        tables = {row[0] for row in connection.sql("SHOW TABLES").fetchall()}
        facts = facts_of(connection) if "release_checklist" in tables else None
        if facts is None or facts.evaluation is None or facts.data_version is None:
            raise StoreError(
                f"the current release of {suite} was made by an older version; "
                f"run: rag-assets run {suite}"
            )
        yield connection
