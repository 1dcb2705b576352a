"""One publication's place in the history: which evaluation it is, and what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from rag_assets import clock
from rag_assets.canonical.contracts import canonical_json
from rag_assets.canonical.corpus import digest
from rag_assets.components.suite import CANONICAL, Suite
from rag_assets.evaluation import manifest_rows
from rag_assets.history.evaluations import (
    Evaluation,
    Heartbeat,
    Identity,
    add_heartbeat,
    begun,
    heartbeats,
    record,
    recorded,
)
from rag_assets.history.tables import history_tables, rows_to_keep, snapshot_to_keep
from rag_assets.indexes.specs import parameters
from rag_assets.project import source_version
from rag_assets.quality.report import CheckReport
from rag_assets.regression.baseline import Baseline
from rag_assets.store import Artifact
from rag_assets.warehouse.build import BaseTable
from rag_assets.warehouse.models import Model

CONTENT_CHANGES: tuple[str, ...] = ("content_changes",)
CONTRACT_CHANGES: tuple[str, ...] = ("contract_changes",)
_CODE = (
    "canonical",
    "sources",
    "embeddings",
    "indexes",
    "results",
    "statistics",
    "warehouse",
    "quality",
    "regression",
    "decisions",
    "evaluation.py",
)


def identity(
    suite: Suite,
    checked: Sequence[Artifact],
    models: Sequence[Model],
    baseline: Baseline | None,
) -> Identity:
    """What numbers and gates depend on; `checked` are the versions that a publication reads."""
    data = [a for a in checked if a.asset == CANONICAL or a.asset[-1] == "embeddings"]
    found = [a for a in checked if a.asset[-1].endswith("_results")]
    settings = {
        "k": suite.ks,
        "audits": [(pair.old, pair.new) for pair in suite.pairs],
        "indexes": [
            (index.name, index.spec.kind, parameters(index.spec), index.space_ids)
            for index in suite.indexes
        ],
        "runs": [asdict(run) for run in suite.runs],
        "budgets": [asdict(budget) for budget in suite.budgets],
        "tombstones": suite.tombstones,
        "regression": asdict(suite.regression),
        "baseline": baseline and baseline.digest,
    }
    return Identity(
        data_version=_contents(data),
        code_version=digest(source_version(*_CODE), *(model.sql for model in models)),
        settings=digest(canonical_json(settings)),
        results=_contents(found),
    )


def _contents(artifacts: Sequence[Artifact]) -> str:
    """A digest of what artifacts hold, whichever code wrote them."""
    return digest(*(f"{a.name} {a.content}" for a in artifacts))


@dataclass(frozen=True)
class Recording:
    """A publication that has begun, inside the publisher's lock."""

    folder: Path
    earlier: Sequence[Evaluation]
    evaluation: Evaluation
    run_id: str

    @classmethod
    def begin(
        cls,
        folder: Path,
        identified: Identity,
        base: Mapping[str, BaseTable],
        run_id: str,
    ) -> Recording:
        spaces, facts = base["spaces"], base["manifest"]
        assert isinstance(spaces, pa.Table) and isinstance(facts, pa.Table)
        earlier = recorded(folder)
        evaluation = begun(
            identified,
            earlier,
            run_id=run_id,
            signatures=_mapping(spaces, "space_id", "contract_signature"),
            manifest=_mapping(facts, "key", "value"),
        )
        return cls(folder, earlier, evaluation, run_id)

    @property
    def is_new(self) -> bool:
        """Whether content, code or settings have changed since the latest evaluation."""
        return self.evaluation not in self.earlier

    def with_history(self, base: Mapping[str, BaseTable]) -> dict[str, BaseTable]:
        """The base tables with the history beside them, and which evaluation this is."""
        beats = heartbeats(self.folder) + ([] if self.is_new else [self._heartbeat()])
        facts = {
            "evaluation_id": self.evaluation.evaluation_id,
            "data_version": self.evaluation.data_version,
            "code_version": self.evaluation.code_version,
        }
        return {
            **base,
            **history_tables(self.folder, self.earlier, self.evaluation, beats),
            "manifest": pa.concat_tables([base["manifest"], manifest_rows(facts)]),
        }

    def changes(self, connection: duckdb.DuckDBPyConnection) -> list[tuple[str, CheckReport]]:
        """The checks on what has changed since the last run, with the table each is about."""
        from rag_assets.quality.suites import (
            check_access_changes,
            check_content_changes,
            check_contract_changes,
        )

        shown = None if self.is_new else 0  # nothing has changed since the last run
        content, contracts = (
            connection.sql(f"SELECT * FROM {table}").to_arrow_table().slice(0, shown)
            for table in (CONTENT_CHANGES[0], CONTRACT_CHANGES[0])
        )
        return [
            (CONTENT_CHANGES[0], check_content_changes(content)),
            (CONTENT_CHANGES[0], check_access_changes(content)),
            (CONTRACT_CHANGES[0], check_contract_changes(contracts)),
        ]

    def keep(self, connection: duckdb.DuckDBPyConnection, kept_evaluations: int) -> None:
        """Record the built release, or that everything was as it was."""
        if not self.is_new:
            add_heartbeat(self.folder, self._heartbeat())
            return
        record(
            self.folder,
            self.evaluation,
            rows_to_keep(connection, self.evaluation),
            snapshot_to_keep(connection),
            keep=kept_evaluations,
        )

    def _heartbeat(self) -> Heartbeat:
        return Heartbeat(self.evaluation.evaluation_id, clock.utc_now(), self.run_id)


def _mapping(table: pa.Table, key: str, value: str) -> dict[str, str]:
    return dict(zip(table[key].to_pylist(), table[value].to_pylist(), strict=True))
