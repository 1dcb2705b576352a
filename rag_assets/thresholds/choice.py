"""Thresholds of a suite: calibrated from its release, kept in its folder, shown as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.canonical.files import write_parquet
from rag_assets.errors import StoreError, UsageError
from rag_assets.thresholds.calibration import CURVE, calibrate
from rag_assets.thresholds.files import read_threshold, write_threshold
from rag_assets.thresholds.rows import threshold_rows
from rag_assets.thresholds.threshold import (
    CALIBRATED,
    Costs,
    Threshold,
    evaluate_on_test,
    usable_value,
)
from rag_assets.warehouse.release import current_release, reading

_TOP_SCORES = """
SELECT
    cases.case_id,
    best.score AS top_score,
    coalesce(measured.relevant_count > 0, FALSE) AS answerable
FROM query_cases AS cases
LEFT JOIN query_results AS best
    ON best.case_id = cases.case_id
    AND best.space_id = $1 AND best.index_name = 'exact' AND best.rank = 1
LEFT JOIN (
    SELECT DISTINCT case_id, relevant_count
    FROM metric_by_query
    WHERE space_id = $1 AND index_name = 'exact'
) AS measured ON measured.case_id = cases.case_id
WHERE cases.split = $2
"""


def calibrate_space(
    warehouse: Path,
    suite: str,
    folder: Path,
    space_id: str,
    costs: Costs,
    *,
    dev: str,
    test: str,
) -> Threshold:
    """Calibrate a space on the dev split of the current release, evaluate it once on the test
    split, and keep both in the suite's `folder`.

    StoreError without a usable release; UsageError for an unknown space, splits that cannot serve,
    and a space that has a threshold for its present signature already: a test split is looked at
    once.
    """
    try:
        with reading(current_release(warehouse, suite)) as connection:
            contract = _contract(connection, suite, space_id)
            dev_scores, test_scores = (
                connection.sql(_TOP_SCORES, params=[space_id, split]).to_arrow_table()
                for split in (dev, test)
            )
    except duckdb.Error:
        raise StoreError(
            f"the current release of {suite} was made by an earlier version; "
            f"run: rag-assets run {suite}"
        ) from None
    path = _path(folder, space_id)
    if path.exists() and read_threshold(path).contract_signature == contract.signature:
        raise UsageError(
            f"space {space_id} has a threshold for its present contract; a test split is looked at "
            f"once. To begin anew, with another test split, remove thresholds/{path.name}"
        )
    calibration = calibrate(contract, dev_scores, costs, split=dev)
    threshold = calibration.threshold
    if threshold.status == CALIBRATED:
        threshold = evaluate_on_test(threshold, contract, test_scores, split=test)
    path.parent.mkdir(exist_ok=True)
    write_parquet(calibration.curve, path.with_suffix(".curve.parquet"))
    write_threshold(threshold, path)
    return threshold


def threshold_tables(folder: Path, contracts: Sequence[SpaceContract]) -> dict[str, pa.Table]:
    """Rows of base.thresholds and base.threshold_curve, for spaces that have a threshold.

    A threshold whose space has another signature by now is shown as refused, with the reason.
    InputError for a file that was edited by hand.
    """
    thresholds: list[Threshold] = []
    refusals: list[str | None] = []
    curves = [CURVE.empty_table()]
    for contract in contracts:
        path = _path(folder, contract.space_id)
        if not path.exists():
            continue
        threshold = read_threshold(path)
        try:
            usable_value(threshold, contract)
            refusals.append(None)
        except UsageError as refusal:
            refusals.append(str(refusal))
        thresholds.append(threshold)
        curves.append(pq.read_table(path.with_suffix(".curve.parquet")))
    rows = threshold_rows(thresholds).append_column("refusal", pa.array(refusals, pa.string()))
    return {"thresholds": rows, "threshold_curve": pa.concat_tables(curves)}


def calibrated_cases(folder: Path, space_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The ids of the cases that each space's threshold was chosen on, for spaces that have one."""
    paths = {space_id: _path(folder, space_id) for space_id in space_ids}
    return {
        space_id: read_threshold(path).dev_case_ids
        for space_id, path in paths.items()
        if path.exists()
    }


def _path(folder: Path, space_id: str) -> Path:
    return folder / "thresholds" / f"{space_id}.json"


def _contract(connection: duckdb.DuckDBPyConnection, suite: str, space_id: str) -> SpaceContract:
    found = connection.sql("SELECT * FROM spaces ORDER BY space_no").to_arrow_table().to_pylist()
    for row in found:
        if row["space_id"] == space_id:
            if row["status"] != "evaluated":
                raise UsageError(f"space {space_id} was not executed: {row['status_reason']}")
            return SpaceContract(**{field.name: row[field.name] for field in fields(SpaceContract)})
    known = ", ".join(row["space_id"] for row in found)
    raise UsageError(f"suite {suite} has no space {space_id!r}; it has {known}")
