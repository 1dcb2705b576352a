"""Data checks on a collection as its source holds it, before it becomes a corpus."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.errors import InputError, Problem
from rag_assets.measures import MAX_GRADE, MIN_GRADE
from rag_assets.quality.columns import labels, list_lengths, outer_whitespace
from rag_assets.quality.readability import hidden_pairs, set_column
from rag_assets.quality.report import CheckReport, Severity
from rag_assets.quality.rules import between, in_set, row_count
from rag_assets.quality.validation import Frame, Rule, validate
from rag_assets.sources.collection import Collection

_WORTH_A_WARNING = ("unjudged_queries", "blank_documents", "orphan_judgements")


def sound_collection(collection: Collection, shown: str) -> CheckReport:
    """The report of `check_collection`. InputError, listing every blocking outcome with sample ids,
    where there is one; `shown` names the source."""
    report = check_collection(collection)
    if report.blocks:
        raise InputError(
            Problem(
                "data_checks",
                shown,
                outcome.column or outcome.table,
                f"{outcome.observed} ({', '.join(outcome.sample[:3])})",
                outcome.meaning,
            )
            for outcome in report.outcomes
            if outcome.blocks
        )
    return report


def check_collection(collection: Collection) -> CheckReport:
    """Blocking check `data_checks`: what is wrong or odd in a source, with sample ids.

    Errors: orphan and unreadable judgements, grades out of range, blank texts, ids that could
    not be joined or shown. Warnings: what is kept and measured all the same. Faults after which
    a source cannot be read at all (repeated ids, wrong columns) never get here: readers refuse
    them.
    """
    frames = (
        _items(collection, queries=False),
        _items(collection, queries=True),
        _judgements(collection),
        _orphans(collection),
        _files(collection),
        _left_out(collection),
    )
    grades = collection.qrels["grade"].to_numpy()
    numbers = {
        "documents": collection.document_count,
        "queries": len(collection.cases),
        "judgements": len(collection.qrels),
        "orphan_judgements": len(collection.orphans),
        "not_relevant_judgements": int((grades <= 0).sum()),
        **{f"left_out_{name}": count for name, count in collection.left_out.items()},
    }
    return validate("data_checks", frames, {name: float(n) for name, n in numbers.items()})


def _items(collection: Collection, *, queries: bool) -> Frame:
    count = collection.document_count
    items = collection.items.slice(count) if queries else collection.items.slice(0, count)
    ids = collection.cases["case_id"] if queries else items["item_id"]
    normal = pc.utf8_normalize(ids, "NFC")
    columns = {
        "id_has_outer_whitespace": outer_whitespace(ids) > 0,
        "id_has_control_character": _booleans(pc.match_substring_regex(ids, r"\p{Cc}")),
        "id_has_inner_whitespace": _booleans(
            pc.match_substring_regex(pc.utf8_trim_whitespace(ids), r"[\s\p{Z}]")
        ),
        "id_is_not_nfc": _booleans(pc.not_equal(ids, normal)),
        "id_looks_like_another": _repeats(normal),
        "text_is_blank": _booleans(items["is_blank"]),
        "no_group": list_lengths(items["acl"]) == 0,
        "text_repeats": _repeats(items["content_sha256"]),
        "text_was_not_nfc": ~_booleans(items["was_nfc"]),
        "text_had_carriage_returns": ~_booleans(items["was_lf"]),
        "text_has_control_characters": _booleans(items["has_controls"]),
    }
    rules = [
        row_count("Without documents and queries nothing is measured.", min_value=1),
        _never("id_has_outer_whitespace", "An id with white space at its ends never joins."),
        _never("id_has_control_character", "Such an id can be neither typed nor shown."),
        _never("text_is_blank", "A blank text cannot be embedded; fill it or leave it out."),
        _never("no_group", "Without a group nobody may read it; name its groups."),
        _seldom("id_has_inner_whitespace", "TREC files cannot hold such an id."),
        _seldom("id_is_not_nfc", "An id is kept as spelled; others may spell it in NFC."),
        _seldom("id_looks_like_another", "Two ids differ in their Unicode form only."),
        _seldom("text_repeats", "Equal texts tie in every search; judge all or keep one."),
        _seldom("text_was_not_nfc", "The text was brought into Unicode form NFC."),
        _seldom("text_had_carriage_returns", "Line ends within the text were turned into LF."),
        _seldom("text_has_control_characters", "Models may treat them as words; remove them."),
    ]
    if queries:
        judged = np.bincount(collection.qrels["case_row"].to_numpy(), minlength=len(ids)) > 0
        relevant = collection.qrels.filter(pc.greater(collection.qrels["grade"], 0))
        found = np.bincount(relevant["case_row"].to_numpy(), minlength=len(ids)) > 0
        documents = collection.items["item_id"].slice(0, count).combine_chunks()
        columns |= {
            "is_unjudged": ~judged,
            "has_only_irrelevant": judged & ~found,
            "id_is_a_document_id": _booleans(pc.is_in(ids, value_set=documents)),
        }
        undefined = "Its measures are undefined and not averaged; judge a relevant document."
        rules += [
            _seldom("is_unjudged", undefined),
            _seldom("has_only_irrelevant", undefined),
            _seldom("id_is_a_document_id", "Query and document share an id: check they are two."),
        ]
    name = "queries" if queries else "documents"
    return Frame(name, pd.DataFrame(columns), labels(ids), tuple(rules))


def _judgements(collection: Collection) -> Frame:
    cases, items = (collection.qrels[name].to_numpy() for name in ("case_row", "item_row"))
    grades = collection.qrels["grade"].to_numpy()
    data = pd.DataFrame(
        {
            "grade": grades,
            "unreadable": hidden_pairs(
                set_column(collection.cases["subject_groups"]).at(cases),
                set_column(collection.items["acl"]).at(items),
            ),
            "is_about_a_query": items >= collection.document_count,
            "is_zero_or_negative": grades <= 0,
        }
    )
    rules = (
        between(
            "grade",
            "Grades outside this range have no exact gain; correct the judgement.",
            min_value=MIN_GRADE,
            max_value=MAX_GRADE,
        ),
        _never(
            "unreadable",
            "A judged document that the subject may not read can never be found, so recall would "
            "be wrong; correct the access list or the judgement.",
        ),
        _never("is_about_a_query", "Only documents are judged; correct the judgement."),
        _seldom("is_zero_or_negative", "Judged and not relevant: counts as unjudged in measures."),
    )

    def label(row: int) -> str:
        case_id = collection.cases["case_id"][int(cases[row])].as_py()
        return f"query {case_id}: {collection.items['item_id'][int(items[row])].as_py()}"

    return Frame("judgements", data, label, rules)


def _orphans(collection: Collection) -> Frame:
    data = pd.DataFrame({"unknown": collection.orphans["unknown"].to_pandas()})
    meaning = "The source does not hold what is judged, so recall would be wrong; add it or leave"
    rule = in_set("unknown", ["nothing"], f"{meaning} the judgement out.")

    def label(row: int) -> str:
        at = collection.orphans.slice(row, 1).to_pylist()[0]
        return f"{at['file']} {at['place']}: query {at['query_id']}, document {at['document_id']}"

    return Frame("orphan_judgements", data, label, (rule,))


def _files(collection: Collection) -> Frame:
    files = collection.files
    data = pd.DataFrame(
        {
            "has_byte_order_mark": _booleans(files["byte_order_mark"]),
            "mixes_line_ends": (files["lf_ends"].to_numpy() > 0)
            & (files["crlf_ends"].to_numpy() > 0),
            "ends_in_blank_lines": files["blank_at_end"].to_numpy() > 0,
        }
    )
    rules = (
        _seldom("has_byte_order_mark", "It was skipped; other tools take it for a character."),
        _seldom("mixes_line_ends", "LF and CRLF in one file: parts of it come from elsewhere."),
        _seldom("ends_in_blank_lines", "They were skipped; other tools take them for records."),
    )
    return Frame("files", data, labels(files["file"]), rules)


def _left_out(collection: Collection) -> Frame:
    names = (*_WORTH_A_WARNING, "repeated_judgements")
    counts = [collection.left_out[name] for name in names]
    data = pd.DataFrame({"something_left_out": [count > 0 for count in counts]})
    meaning = "Measures are over what was kept; repeated judgements agree and were merged."
    shown = pa.chunked_array([[f"{n} {name}" for n, name in zip(counts, names, strict=True)]])
    rules = (_seldom("something_left_out", meaning),)
    return Frame("left_out", data, labels(shown), rules)


def _never(column: str, meaning: str) -> Rule:
    return _false(column, meaning, "error")


def _seldom(column: str, meaning: str) -> Rule:
    return _false(column, meaning, "warn")


def _false(column: str, meaning: str, severity: Severity) -> Rule:
    return in_set(column, [False], meaning, severity=severity)


def _booleans(column: pa.ChunkedArray) -> np.ndarray:
    values: np.ndarray = pc.fill_null(column, False).to_numpy().astype(bool)
    return values


def _repeats(column: pa.ChunkedArray) -> np.ndarray:
    """bool[n]: the value stands in an earlier or a later row too."""
    codes = pc.dictionary_encode(column.combine_chunks()).indices.to_numpy()
    repeats: np.ndarray = (np.bincount(codes) > 1)[codes] if len(codes) else np.zeros(0, bool)
    return repeats
