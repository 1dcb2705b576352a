"""Contract validation of the canonical items, the query cases and the judgements."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.canonical.corpus import Corpus
from rag_assets.canonical.text import content_sha256
from rag_assets.quality.columns import (
    integers,
    labels,
    list_lengths,
    list_repeats,
    outer_whitespace,
    row_of_number,
    rows_at,
    taken,
    trimmed_length,
)
from rag_assets.quality.readability import hidden_pairs, set_column
from rag_assets.quality.report import CheckReport
from rag_assets.quality.rules import rules
from rag_assets.quality.validation import Frame, validate

FIXTURE_GRADES = (1, 3)


def check_canonical_items(
    corpus: Corpus,
    *,
    judgements_required: bool = True,
    grades: tuple[int, int] = FIXTURE_GRADES,
) -> CheckReport:
    """Blocking check `contract_validation` of a corpus: items, cases and judgements.

    `judgements_required`: every case must have a judgement (fixtures promise it). `grades`: the
    lowest and highest that the source may give (fixtures: 1 to 3; others: all that have a gain).
    """
    judged = _judgement_counts(corpus)
    frames = (
        _items(corpus),
        _cases(corpus, judged, judgements_required),
        _judgements(corpus, *grades),
    )
    return validate(
        "contract_validation",
        frames,
        {
            "items": float(len(corpus.items)),
            "cases": float(len(corpus.cases)),
            "judgements": float(len(corpus.qrels)),
            "unjudged_cases": float((judged == 0).sum()),
        },
    )


def _items(corpus: Corpus) -> Frame:
    items = corpus.items
    ids = items["item_id"]
    position = np.empty(len(items), dtype=np.int64)
    # Arrow orders strings by their UTF-8 bytes, which is the order of code points.
    position[pc.sort_indices(ids).to_numpy()] = np.arange(len(items))
    roles = {c.query_role for c in corpus.contracts} | {c.document_role for c in corpus.contracts}
    data = pd.DataFrame(
        {
            "item_no": items["item_no"].to_pandas(),
            "position_by_id": position,
            "item_id": ids.to_pandas(),
            "outer_whitespace": outer_whitespace(ids),
            "role": items["role"].to_pandas(),
            "text_length": trimmed_length(items["text"]),
            "acl_count": list_lengths(items["acl"]),
            "acl_repeats": list_repeats(items["acl"]),
            "source_revision_length": trimmed_length(items["source_revision"]),
            "content_sha256": items["content_sha256"].to_pandas(),
            "sha256_of_text": _text_hashes(items["text"]),
        }
    )
    return Frame("items", data, labels(ids), rules("items", roles=sorted(roles)))


def _cases(corpus: Corpus, judged: np.ndarray, judgements_required: bool) -> Frame:
    cases, items = corpus.cases, corpus.items
    rows = rows_at(
        row_of_number(integers(items["item_no"]), len(items)), integers(cases["query_item_no"])
    )
    data = pd.DataFrame(
        {
            "case_no": cases["case_no"].to_pandas(),
            "position_in_file": np.arange(len(cases)),
            "case_id": cases["case_id"].to_pandas(),
            "outer_whitespace": outer_whitespace(cases["case_id"]),
            "query_item_id": cases["query_item_id"].to_pandas(),
            "item_id_by_number": taken(items["item_id"], rows).to_pandas(),
            "query_role": taken(items["role"], rows).to_pandas(),
            "subject_group_count": list_lengths(cases["subject_groups"]),
            "subject_group_repeats": list_repeats(cases["subject_groups"]),
            "judgement_count": judged,
        }
    )
    query_roles = sorted({c.query_role for c in corpus.contracts})
    demanded = rules("cases", query_roles=query_roles)
    if judgements_required:
        demanded += rules("cases that must be judged")
    return Frame("cases", data, labels(cases["case_id"]), demanded)


def _judgements(corpus: Corpus, lowest: int, highest: int) -> Frame:
    qrels, cases, items = corpus.qrels, corpus.cases, corpus.items
    case_rows = rows_at(
        row_of_number(integers(cases["case_no"]), len(cases)), integers(qrels["case_no"])
    )
    item_rows = rows_at(
        row_of_number(integers(items["item_no"]), len(items)), integers(qrels["item_no"])
    )
    case_ids = taken(cases["case_id"], case_rows)
    item_ids = taken(items["item_id"], item_rows)
    hidden = hidden_pairs(
        set_column(cases["subject_groups"]).at(case_rows), set_column(items["acl"]).at(item_rows)
    )
    data = pd.DataFrame(
        {
            "case_id": case_ids.to_pandas(),
            "item_id": item_ids.to_pandas(),
            "grade": qrels["grade"].to_pandas(),
            "role": taken(items["role"], item_rows).to_pandas(),
            # An unknown case or item fails its own rule.
            "unreadable": hidden & (case_rows >= 0) & (item_rows >= 0),
        }
    )
    demanded = rules(
        "judgements",
        lowest=lowest,
        highest=highest,
        document_roles=sorted({c.document_role for c in corpus.contracts}),
    )
    case, item = labels(case_ids), labels(item_ids)
    return Frame("judgements", data, lambda row: f"case {case(row)}: {item(row)}", demanded)


def _judgement_counts(corpus: Corpus) -> np.ndarray:
    """int64[n_cases]: judgements of each case."""
    numbers = integers(corpus.qrels["case_no"])
    known = numbers[(numbers >= 0) & (numbers < len(corpus.cases))]
    return np.bincount(known, minlength=len(corpus.cases))


def _text_hashes(texts: pa.ChunkedArray) -> pd.Series[str]:
    hashes = [None if text is None else content_sha256(text) for text in texts.to_pylist()]
    column: pd.Series[str] = pa.array(hashes, pa.string()).to_pandas()
    return column
