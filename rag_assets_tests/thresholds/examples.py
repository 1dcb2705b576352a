"""Scores and contracts for thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.thresholds.top_scores import TOP_SCORES

Scores = Sequence[float | None]


def contract(**changes: Any) -> SpaceContract:
    stated: dict[str, Any] = {
        "space_id": "space",
        "provider": "p",
        "model": "m",
        "revision": "1",
        "dimension": 2,
        "metric": "cosine",
        "normalized": True,
        "query_role": "query",
        "document_role": "document",
        "dtype": "float32",
    }
    return SpaceContract(**{**stated, **changes})


def top_scores(answerable: Scores, unanswerable: Scores, prefix: str = "dev") -> pa.Table:
    """Cases named `<prefix>-a0` and so on where there is an answer, `<prefix>-u0` where none is."""
    rows = [
        {"case_id": f"{prefix}-{kind}{number}", "top_score": score, "answerable": kind == "a"}
        for kind, scores in (("a", answerable), ("u", unanswerable))
        for number, score in enumerate(scores)
    ]
    return pa.Table.from_pylist(rows, schema=TOP_SCORES)


# Twelve dev queries: seven have an answer that their subject may read, five have none, one of these
# because its subject may read no document at all.
DEV = top_scores([0.91, 0.84, 0.77, 0.70, 0.62, 0.55, 0.41], [0.66, 0.48, 0.35, 0.20, None])
TEST = top_scores([0.80, 0.69, 0.60, 0.50, 0.30], [0.72, 0.65, 0.40, 0.10, None], prefix="test")
