"""The append-only record itself: retention, equal content, and what a killed publisher leaves."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from rag_assets import clock
from rag_assets.history import evaluations
from rag_assets.history.evaluations import (
    Evaluation,
    Heartbeat,
    Identity,
    add_heartbeat,
    begun,
    heartbeats,
    record,
    recorded,
    rows_of_earlier,
    snapshot_of,
)

ROWS = pa.schema([("value", pa.int64())])


def rows(value: int) -> dict[str, pa.Table]:
    return {"metrics": pa.table({"value": [value]}, schema=ROWS)}


def evaluated(folder: Path, content: str, *, keep: int = 100, value: int = 0) -> Evaluation:
    evaluation = begun(
        Identity(content, "code", "settings", "results"),
        recorded(folder),
        run_id="run",
        signatures={"a": "1"},
        manifest={"commit": "c"},
    )
    if evaluation not in recorded(folder):
        record(folder, evaluation, rows(value), rows(value), keep=keep)
    return evaluation


@pytest.fixture(autouse=True)
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock is a second later."""
    moments = (datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=n) for n in range(10_000))
    monkeypatch.setattr(clock, "utc_now", lambda: next(moments))


def test_equal_content_is_the_same_evaluation_until_something_came_between(tmp_path: Path) -> None:
    first = evaluated(tmp_path, "x")
    assert evaluated(tmp_path, "x") == first
    second = evaluated(tmp_path, "y")
    third = evaluated(tmp_path, "x")
    assert [one.evaluation_id for one in recorded(tmp_path)] == [
        first.evaluation_id,
        second.evaluation_id,
        third.evaluation_id,
    ]
    assert third.fingerprint == first.fingerprint != second.fingerprint


@pytest.mark.parametrize("part", ["data_version", "code_version", "settings", "results"])
def test_each_part_of_the_identity_counts(part: str) -> None:
    whole = dict.fromkeys(Identity.__dataclass_fields__, "same")
    assert Identity(**whole).fingerprint != Identity(**{**whole, part: "other"}).fingerprint


def test_rows_come_back_oldest_first_and_an_unrecorded_column_is_null(tmp_path: Path) -> None:
    for number in range(3):
        evaluated(tmp_path, str(number), value=number)
    wanted = pa.schema([("value", pa.int32()), ("later", pa.string())])
    table = rows_of_earlier(tmp_path, recorded(tmp_path), "metrics", wanted)
    assert table.to_pylist() == [{"value": n, "later": None} for n in range(3)]


def test_retention_keeps_the_last_evaluations_and_fewer_snapshots(tmp_path: Path) -> None:
    made = [evaluated(tmp_path, str(number), keep=5) for number in range(8)]
    assert recorded(tmp_path) == made[-5:]
    kept = [len(snapshot_of(tmp_path, one, "metrics", ROWS)) for one in made]
    assert kept == [0] * 5 + [1] * evaluations.KEPT_SNAPSHOTS


def test_what_a_killed_publisher_left_is_no_evaluation_and_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = evaluated(tmp_path, "x")
    killed = KeyboardInterrupt("killed")

    def dies(*_: object) -> None:
        raise killed

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", dies)
        patch.setattr("shutil.rmtree", lambda *_, **__: None)
        with pytest.raises(KeyboardInterrupt):
            evaluated(tmp_path, "y")
    assert recorded(tmp_path) == [first]
    second = evaluated(tmp_path, "z")
    assert recorded(tmp_path) == [first, second]
    left = [path for path in tmp_path.rglob("*") if path.name.startswith(".draft-")]
    assert left == []


def test_the_last_heartbeats_are_kept_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluations, "KEPT_HEARTBEATS", 3)
    beats = [Heartbeat("e", clock.utc_now(), f"run-{number}") for number in range(5)]
    for beat in beats:
        add_heartbeat(tmp_path / "history", beat)
    assert heartbeats(tmp_path / "history") == beats[-3:]
