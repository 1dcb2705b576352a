"""The mechanical gates of the migration audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from rag_assets.quality.report import CheckReport
from rag_assets.quality.rules import rules
from rag_assets.quality.validation import Frame, validate

_SHOWN_IDS = 10


def check_mechanical_gates(audit: pa.Table | pd.DataFrame, pair_count: int) -> CheckReport:
    """Blocking check `mechanical_gates` of the table migration_audit.

    `pair_count`: how many pairs of spaces were declared for the audit.
    """
    if isinstance(audit, pd.DataFrame):
        audit = pa.Table.from_pandas(audit, preserve_index=False)
    audited = audit.to_pylist()
    rows = [row for row in audited if not _unknown(row)]
    names, all_names = _names(rows), _names(audited)
    data = pd.DataFrame(
        {
            **{
                column: pd.Series([row[column] for row in rows], dtype=object)
                for column in (
                    "vectors_directly_comparable",
                    "inventory_match",
                    "canonical_match",
                    "mechanical_gates_pass",
                    "quality_decision_required",
                )
            },
            **{
                column: pa.array([_id_list(row[column]) for row in rows]).to_pandas()
                for column in ("only_old", "only_new", "canonical_mismatches")
            },
            "both_gates": pd.Series(
                [row["inventory_match"] and row["canonical_match"] for row in rows], dtype=object
            ),
        }
    )
    pairs = pd.DataFrame(
        {
            "pair": pa.array(map(_pair, audited), pa.string()).to_pandas(),
            "gates": pa.array(
                ["not_executed" if _unknown(row) else "evaluated" for row in audited], pa.string()
            ).to_pandas(),
            "reason": pa.array(
                [row.get("status_reason") or "" for row in audited], pa.string()
            ).to_pandas(),
        }
    )
    # One pair has a row per index and k, all with the same ids.
    by_pair = {_pair(row): row for row in rows}.values()
    frames = (
        Frame(
            "audited pairs",
            pairs,
            lambda row: all_names[row],
            rules("audited pairs", pair_count=pair_count),
        ),
        Frame("migration_audit", data, lambda row: names[row], rules("migration_audit")),
    )
    return validate(
        "mechanical_gates",
        frames,
        {
            "audited_pairs": float(len({_pair(row) for row in audited})),
            "pairs_not_executed": float(len({_pair(row) for row in audited if _unknown(row)})),
            "pairs_failing": float(
                sum(row["mechanical_gates_pass"] is not True for row in by_pair)
            ),
            **{
                column: float(sum(len(row[column] or ()) for row in by_pair))
                for column in ("only_old", "only_new", "canonical_mismatches")
            },
        },
    )


def _unknown(row: Mapping[str, Any]) -> bool:
    """Whether gates could not be evaluated, because a space was not executed."""
    return row.get("status") == "not_executed" and row["inventory_match"] is None


def _pair(row: Mapping[str, Any]) -> str:
    return f"{row['old_space_id']} -> {row['new_space_id']}"


def _names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [f"{_pair(row)} ({row['index_name']}, k={row['k']})" for row in rows]


def _id_list(ids: Sequence[str] | None) -> str:
    """The first ids, and how many more there are."""
    if ids is None:
        return "unknown"
    more = len(ids) - _SHOWN_IDS
    shown = ", ".join(ids[:_SHOWN_IDS]) or "none"
    return f"{shown} and {more} more" if more > 0 else shown
