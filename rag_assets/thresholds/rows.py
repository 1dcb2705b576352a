"""Thresholds as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

import pyarrow as pa

from rag_assets.thresholds.threshold import Outcome, Threshold, threshold_sentence

_COUNTS = ("answerable", "unanswerable", "false_answers", "false_refusals")
_RATES = ("precision", "recall", "expected_cost")

# One row: the threshold of one space. Numbers of a split are NULL where it was not looked at.
THRESHOLDS = pa.schema(
    [
        ("space_id", pa.string()),
        ("contract_signature", pa.string()),
        ("status", pa.string()),  # 'calibrated' or 'not_calibrated'
        ("reason", pa.string()),
        ("threshold", pa.float64()),
        ("false_answer_cost", pa.float64()),
        ("false_refusal_cost", pa.float64()),
        *(
            column
            for split in ("dev", "test")
            for column in (
                (f"{split}_split", pa.string()),
                (f"{split}_digest", pa.string()),
                *((f"{split}_{name}", pa.int32()) for name in _COUNTS),
                *((f"{split}_{name}", pa.float64()) for name in _RATES),
            )
        ),
        ("sentence", pa.string()),
    ]
)


def threshold_rows(thresholds: Iterable[Threshold]) -> pa.Table:
    """Rows of THRESHOLDS."""
    rows = []
    for threshold in thresholds:
        row = {
            **asdict(threshold),
            "threshold": threshold.value,
            "false_answer_cost": threshold.costs.false_answer,
            "false_refusal_cost": threshold.costs.false_refusal,
            "sentence": threshold_sentence(threshold),
            **_numbers("dev", threshold.dev),
            **_numbers("test", threshold.test),
        }
        rows.append({name: row[name] for name in THRESHOLDS.names})
    return pa.Table.from_pylist(rows, schema=THRESHOLDS)


def _numbers(split: str, found: Outcome | None) -> dict[str, float | None]:
    names = (*_COUNTS, *_RATES)
    return {f"{split}_{name}": getattr(found, name) if found else None for name in names}
