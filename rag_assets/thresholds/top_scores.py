"""The best score of each query, and whether the documents hold an answer to it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.canonical.corpus import digest_table
from rag_assets.errors import UsageError

# One row: one query in one space. `top_score` is NULL where the subject may read no document;
# `answerable`: some document that the subject may read is relevant (grade > 0).
TOP_SCORES = pa.schema(
    [("case_id", pa.string()), ("top_score", pa.float64()), ("answerable", pa.bool_())]
)


def checked_scores(scores: pa.Table) -> pa.Table:
    """Rows of TOP_SCORES, by case id.

    UsageError for other columns or types, a case that appears twice, a NULL beside top_score's, or
    a score that is not finite.
    """
    missing = [name for name in TOP_SCORES.names if name not in scores.column_names]
    if missing:
        raise UsageError(f"the scores to calibrate on lack {', '.join(missing)}")
    try:
        checked = scores.select(TOP_SCORES.names).cast(TOP_SCORES).sort_by("case_id")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UsageError(f"the scores to calibrate on have other types: {error}") from None
    for name in ("case_id", "answerable"):
        if checked[name].null_count:
            raise UsageError(f"{name} is NULL in the scores to calibrate on; it must be set")
    names = case_ids(checked)
    for case_id, following in pairwise(names):
        if case_id == following:
            raise UsageError(f"case {case_id!r} has two scores; each case may have one")
    unfit = checked.filter(pc.invert(pc.is_finite(checked["top_score"])))
    if len(unfit):
        [row] = unfit.slice(0, 1).to_pylist()
        raise UsageError(
            f"case {row['case_id']!r}: top_score is {row['top_score']}; it must be finite, or NULL "
            "where no document was found"
        )
    return checked


def case_ids(scores: pa.Table) -> tuple[str, ...]:
    return tuple(scores["case_id"].to_pylist())


def split_scores(scores: pa.Table) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """`float64[n]` with NaN for NULL, and `bool[n]`."""
    top: npt.NDArray[np.float64] = scores["top_score"].to_numpy().astype(np.float64)
    answerable: npt.NDArray[np.bool_] = scores["answerable"].to_numpy()
    return top, answerable


def scores_digest(scores: pa.Table) -> str:
    """SHA-256 (hex) over checked scores."""
    return digest_table(scores)
