"""A space's threshold in the life of a suite: calibrated once, shown, refused after a change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.errors import InputError, StoreError, UsageError
from rag_assets.thresholds.choice import calibrate_space, threshold_tables
from rag_assets.thresholds.threshold import Costs
from rag_assets.warehouse.release import publish

CONTRACT = SpaceContract(
    space_id="s",
    provider="p",
    model="m",
    revision="1",
    dimension=2,
    metric="cosine",
    normalized=True,
    query_role="query",
    document_role="document",
    dtype="float32",
)
FIELDS = [name for name in SpaceContract.__dataclass_fields__ if name != "space_id"]
# Six answerable queries score 0.9, six unanswerable ones 0.3, on each split: any threshold between
# makes no mistake, and the midpoint 0.6 is taken.
CASES = [
    (f"{split}-{kind}-{number}", split, kind == "yes", 0.9 if kind == "yes" else 0.3)
    for split in ("dev", "test")
    for kind in ("yes", "no")
    for number in range(6)
]


def released(folder: Path) -> Path:
    def build_into(con: duckdb.DuckDBPyConnection) -> None:
        values = [getattr(CONTRACT, name) for name in FIELDS]
        con.execute(
            "CREATE TABLE spaces AS SELECT 0 AS space_no, 's' AS space_id, 'evaluated' AS status, "
            + ", ".join(f"? AS {name}" for name in FIELDS),
            values,
        )
        con.execute("CREATE TABLE query_cases (case_id VARCHAR, split VARCHAR)")
        con.execute(
            "CREATE TABLE query_results (case_id VARCHAR, space_id VARCHAR, index_name VARCHAR, "
            "rank INTEGER, score DOUBLE)"
        )
        con.execute(
            "CREATE TABLE metric_by_query (case_id VARCHAR, space_id VARCHAR, index_name VARCHAR, "
            "relevant_count INTEGER)"
        )
        for case_id, split, answerable, score in CASES:
            con.execute("INSERT INTO query_cases VALUES (?, ?)", [case_id, split])
            con.execute(
                "INSERT INTO query_results VALUES (?, 's', 'exact', 1, ?)", [case_id, score]
            )
            con.execute(
                "INSERT INTO metric_by_query VALUES (?, 's', 'exact', ?)",
                [case_id, int(answerable)],
            )

    publish(build_into, warehouse=folder, suite="own")
    return folder


def calibrated(folder: Path, **changes: str) -> float | None:
    splits = {"dev": "dev", "test": "test", **changes}
    return calibrate_space(released(folder), "own", folder, "s", Costs(2, 1), **splits).value


def test_a_threshold_is_calibrated_once_and_shown_with_its_curve(tmp_path: Path) -> None:
    assert calibrated(tmp_path) == pytest.approx(0.6)
    tables = threshold_tables(tmp_path, [CONTRACT])
    [row] = tables["thresholds"].to_pylist()
    assert (row["threshold"], row["refusal"]) == (pytest.approx(0.6), None)
    assert (row["test_false_answers"], row["test_false_refusals"]) == (0, 0)
    # -inf, the one midpoint, inf.
    assert len(tables["threshold_curve"]) == 3
    with pytest.raises(UsageError, match="looked at once"):
        calibrated(tmp_path)


def test_a_threshold_of_another_signature_is_refused_and_may_be_replaced(tmp_path: Path) -> None:
    calibrated(tmp_path)
    [row] = threshold_tables(tmp_path, [replace(CONTRACT, revision="2")])["thresholds"].to_pylist()
    assert "calibrate again" in row["refusal"]


def test_the_test_split_must_not_be_the_one_calibrated_on(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="used for calibration"):
        calibrated(tmp_path, test="dev")
    assert not (tmp_path / "thresholds").exists()


def test_unknown_spaces_and_old_releases_are_named(tmp_path: Path) -> None:
    released(tmp_path)
    costs = Costs(1, 1)
    with pytest.raises(UsageError, match="no space 'x'; it has s"):
        calibrate_space(tmp_path, "own", tmp_path, "x", costs, dev="dev", test="test")
    publish(lambda con: None, warehouse=tmp_path, suite="old")
    with pytest.raises(StoreError, match="earlier version"):
        calibrate_space(tmp_path, "old", tmp_path, "s", costs, dev="dev", test="test")


def test_a_threshold_edited_by_hand_is_refused(tmp_path: Path) -> None:
    calibrated(tmp_path)
    file = tmp_path / "thresholds" / "s.json"
    file.write_text(file.read_text("utf-8").replace("0.6", "0.5"), "utf-8")
    with pytest.raises(InputError, match="digest"):
        threshold_tables(tmp_path, [CONTRACT])
