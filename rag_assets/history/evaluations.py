"""Evaluations: what identifies one, and the append-only record of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rag_assets import clock
from rag_assets.canonical.corpus import digest
from rag_assets.canonical.files import write_parquet
from rag_assets.errors import StoreError
from rag_assets.whole_files import DRAFT, remove, replace_text, write_folder

KEPT_SNAPSHOTS = 3
KEPT_HEARTBEATS = 1000
_HEADER = "evaluation.json"


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes an evaluation that evaluation: equal identities give equal numbers.

    `data_version`: SHA-256 over canonical content and vectors; `code_version`: over the code and
    the SQL models; `settings`: over everything of the suite's YAML that moves a number or a gate;
    `results`: over what every index returned.
    """

    data_version: str
    code_version: str
    settings: str
    results: str

    @property
    def fingerprint(self) -> str:
        return digest(self.data_version, self.code_version, self.settings, self.results)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation. `evaluated_at` is UTC; `signatures` maps spaces to contract signatures."""

    evaluation_id: str
    evaluated_at: datetime
    run_id: str
    fingerprint: str
    data_version: str
    code_version: str
    signatures: Mapping[str, str]
    manifest: Mapping[str, str]


def history_folder(warehouse: Path, suite: str) -> Path:
    return warehouse / "history" / suite


def recorded(folder: Path) -> list[Evaluation]:
    """Every kept evaluation, oldest first. StoreError for one that cannot be read."""
    return [_read(home) for home in _homes(folder)]


def begun(
    identity: Identity,
    earlier: Sequence[Evaluation],
    *,
    run_id: str,
    signatures: Mapping[str, str],
    manifest: Mapping[str, str],
) -> Evaluation:
    """This run's evaluation: the latest of `earlier` if nothing has changed since, else a new one.

    Going back to what was evaluated before is a change, and makes a new evaluation.
    """
    fingerprint = identity.fingerprint
    if earlier and earlier[-1].fingerprint == fingerprint:
        return earlier[-1]
    now = clock.utc_now()
    return Evaluation(
        evaluation_id=f"{now:%Y%m%dT%H%M%S.%fZ}-{fingerprint[:8]}",
        evaluated_at=now,
        run_id=run_id,
        fingerprint=fingerprint,
        data_version=identity.data_version,
        code_version=identity.code_version,
        signatures=dict(signatures),
        manifest=dict(manifest),
    )


def record(
    folder: Path,
    evaluation: Evaluation,
    rows: Mapping[str, pa.Table],
    snapshot: Mapping[str, pa.Table],
    *,
    keep: int,
) -> None:
    """Add an evaluation, with `rows` to keep and the `snapshot` of what it looked at.

    Keeps the last `keep` evaluations and fewer snapshots. An evaluation is there with everything
    that belongs to it, or not at all.
    """
    name = evaluation.evaluation_id
    header = {**asdict(evaluation), "evaluated_at": evaluation.evaluated_at.isoformat()}

    def write_rows(home: Path) -> None:
        for table, content in rows.items():
            write_parquet(content, home / f"{table}.parquet")
        (home / _HEADER).write_text(json.dumps(header, indent=1) + "\n", "utf-8")

    def write_snapshot(home: Path) -> None:
        for table, content in snapshot.items():
            write_parquet(content, home / f"{table}.parquet")

    write_folder(folder / "snapshots" / name, write_snapshot)
    write_folder(folder / "evaluations" / name, write_rows)
    _prune(folder / "snapshots", KEPT_SNAPSHOTS)
    _prune(folder / "evaluations", keep)


def rows_of_earlier(
    folder: Path, earlier: Sequence[Evaluation], table: str, schema: pa.Schema
) -> pa.Table:
    """The rows that `earlier` evaluations keep of one table, in the columns of `schema`.

    A column that an older version did not record is NULL.
    """
    homes = [folder / "evaluations" / evaluation.evaluation_id for evaluation in earlier]
    if not homes:
        return schema.empty_table()
    from pyarrow import dataset  # a third of a second

    files = [str(home / f"{table}.parquet") for home in homes]
    try:
        # Many small files: one by one they take ten times as long.
        return dataset.dataset(files, schema=schema, format="parquet").to_table()
    except (OSError, pa.ArrowException):
        for home in homes:
            _table(home / f"{table}.parquet")  # says which one
        raise


def snapshot_of(folder: Path, evaluation: Evaluation, table: str, schema: pa.Schema) -> pa.Table:
    """What an evaluation looked at; without rows where its snapshot is no longer kept."""
    file = folder / "snapshots" / evaluation.evaluation_id / f"{table}.parquet"
    if not file.parent.is_dir():
        return schema.empty_table()
    return _in_schema(_table(file), schema)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A run that found everything as it was. `seen_at` is UTC."""

    evaluation_id: str
    seen_at: datetime
    run_id: str


def heartbeats(folder: Path) -> list[Heartbeat]:
    """The last heartbeats, oldest first."""
    try:
        lines = (folder / "heartbeats.jsonl").read_text("utf-8").splitlines()
    except FileNotFoundError:
        return []
    records = map(json.loads, lines)
    return [
        Heartbeat(**{**record, "seen_at": datetime.fromisoformat(record["seen_at"])})
        for record in records
    ]


def add_heartbeat(folder: Path, beat: Heartbeat) -> None:
    beats = [*heartbeats(folder), beat][-KEPT_HEARTBEATS:]
    lines = [json.dumps({**asdict(one), "seen_at": one.seen_at.isoformat()}) for one in beats]
    folder.mkdir(parents=True, exist_ok=True)
    replace_text(folder / "heartbeats.jsonl", "\n".join(lines) + "\n")


def _homes(folder: Path) -> list[Path]:
    return sorted((folder / "evaluations").glob("[!.]*"))


def _read(home: Path) -> Evaluation:
    try:
        tree = json.loads((home / _HEADER).read_text("utf-8"))
        return Evaluation(**{**tree, "evaluated_at": datetime.fromisoformat(tree["evaluated_at"])})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise _unreadable(home, error) from None


def _table(file: Path) -> pa.Table:
    try:
        return pq.read_table(file)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(file.parent, error) from None


def _unreadable(home: Path, error: Exception) -> StoreError:
    return StoreError(
        f"history: {home.parent.name}/{home.name} cannot be read ({type(error).__name__}); restore "
        "the folder from a backup, or move it out of the history to go on without it"
    )


def _in_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _prune(folder: Path, keep: int) -> None:
    """Remove all but the last `keep`, and what killed publishers left."""
    for stale in (*sorted(folder.glob("[!.]*"))[:-keep], *folder.glob(f"{DRAFT}*")):
        remove(stale)
