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
from rag_assets.quality.validation import (
    Frame,
    between,
    columns_equal,
    in_set,
    not_null,
    row_count,
    sha256_form,
    unique,
    validate,
)

FIXTURE_GRADES = (1, 3)
_REWRITE = "run the loader again, and if the rule still fails, mend the source"


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
    rules = (
        row_count(f"A corpus without items evaluates nothing; {_REWRITE}.", min_value=1),
        not_null("item_id", f"Every record needs an id; {_REWRITE}."),
        unique("item_id", f"An id names one item; {_REWRITE}."),
        in_set(
            "outer_whitespace",
            [0],
            f"An id that starts or ends in whitespace never joins; {_REWRITE}.",
        ),
        columns_equal(
            "item_no",
            "position_by_id",
            "Ties are broken by item number, so numbers"
            f" must follow the order of ids without gaps; {_REWRITE}.",
        ),
        not_null("role", f"A role decides what is searched; {_REWRITE}."),
        in_set(
            "role",
            sorted(roles),
            "A role must be one that a contract declares; correct the item's role or the contract.",
        ),
        between(
            "text_length",
            "A blank text cannot be embedded or judged; mend the source.",
            min_value=1,
        ),
        between(
            "acl_count",
            "An item without an access list has no readers; name its groups.",
            min_value=1,
        ),
        in_set("acl_repeats", [0], f"An access list names each group once; {_REWRITE}."),
        between(
            "source_revision_length",
            "Without a source revision nobody can tell which text was embedded; mend the source.",
            min_value=1,
        ),
        not_null("content_sha256", f"The hash proves which text was embedded; {_REWRITE}."),
        *sha256_form("content_sha256", f"A hash is 64 lowercase hexadecimal digits; {_REWRITE}."),
        columns_equal(
            "content_sha256",
            "sha256_of_text",
            "The hash must be that of the text, or"
            f" the text was changed after it was hashed; {_REWRITE}.",
        ),
    )
    return Frame("items", data, labels(ids), rules)


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
    rules = [
        row_count(f"Without query cases nothing is measured; {_REWRITE}.", min_value=1),
        columns_equal(
            "case_no",
            "position_in_file",
            f"Results refer to cases by number, which counts from 0 in file order; {_REWRITE}.",
        ),
        not_null("case_id", f"Every case needs an id; {_REWRITE}."),
        unique("case_id", f"An id names one case; {_REWRITE}."),
        in_set(
            "outer_whitespace",
            [0],
            f"An id that starts or ends in whitespace never joins; {_REWRITE}.",
        ),
        not_null(
            "item_id_by_number",
            "A case searches with a canonical item that exists; add the"
            " query item or drop the case.",
        ),
        columns_equal(
            "query_item_id",
            "item_id_by_number",
            f"The query's id and number must name the same item; {_REWRITE}.",
        ),
        in_set(
            "query_role",
            sorted({c.query_role for c in corpus.contracts}),
            "A case searches with an item whose role is that of a query; correct the case.",
        ),
        between(
            "subject_group_count",
            "A subject without groups may read nothing, so the case"
            " measures nothing; name the subject's groups.",
            min_value=1,
        ),
        in_set("subject_group_repeats", [0], f"A subject names each group once; {_REWRITE}."),
    ]
    if judgements_required:
        rules.append(
            between(
                "judgement_count",
                "A case without a judgement has no measure; judge at least one document.",
                min_value=1,
            )
        )
    return Frame("cases", data, labels(cases["case_id"]), tuple(rules))


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
    rules = (
        not_null("case_id", f"A judgement belongs to a case that exists; {_REWRITE}."),
        not_null("item_id", f"A judgement is about an item that exists; {_REWRITE}."),
        unique(["case_id", "item_id"], f"A document has one grade per case; {_REWRITE}."),
        not_null("grade", f"A judgement has a grade; {_REWRITE}."),
        between(
            "grade",
            f"Grades are integers from {lowest} to {highest}; correct the judgement.",
            min_value=lowest,
            max_value=highest,
        ),
        in_set(
            "role",
            sorted({c.document_role for c in corpus.contracts}),
            "Only documents are judged; correct the judgement.",
        ),
        in_set(
            "unreadable",
            [False],
            "A judged document that the subject may not read can never"
            " be found, so recall would be wrong; correct the access list or the judgement.",
        ),
    )
    case, item = labels(case_ids), labels(item_ids)
    return Frame("judgements", data, lambda row: f"case {case(row)}: {item(row)}", rules)


def _judgement_counts(corpus: Corpus) -> np.ndarray:
    """int64[n_cases]: judgements of each case."""
    numbers = integers(corpus.qrels["case_no"])
    known = numbers[(numbers >= 0) & (numbers < len(corpus.cases))]
    return np.bincount(known, minlength=len(corpus.cases))


def _text_hashes(texts: pa.ChunkedArray) -> pd.Series[str]:
    hashes = [None if text is None else content_sha256(text) for text in texts.to_pylist()]
    column: pd.Series[str] = pa.array(hashes, pa.string()).to_pandas()
    return column
