"""Judgement files: BEIR's (three columns, tabs, a header) and TREC's (four columns, white space).

Nothing is cast: ids stay text, a grade is an integer. 5 million lines are columns, not objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.measures import MAX_GRADE, MIN_GRADE
from rag_assets.sources.faults import Faults, refuse
from rag_assets.sources.strict_json import excerpt
from rag_assets.sources.text_lines import TextFile

Form = Literal["beir", "trec"]
BEIR_HEADER = "query-id\tcorpus-id\tscore"
GRADE_REMEDY = f"a grade is an integer from {MIN_GRADE} to {MAX_GRADE}"
_INTEGER = r"^-?[0-9]{1,9}$"


@dataclass(frozen=True)
class JudgedLines:
    """Sound judgements of one file, in order. `grades: int8[n]`, `places: int64[n]` from 1."""

    query_ids: pa.Array
    document_ids: pa.Array
    grades: np.ndarray
    places: np.ndarray


def read_judgements(text: TextFile, form: Form, faults: Faults) -> Iterator[JudgedLines]:
    """The judgements of a file in batches. Raises InputError for another header than BEIR's."""
    for lines in text.batches():
        if faults.full:
            return
        rows, first = lines.text, lines.first
        if form == "beir" and first == 1:
            _check_header(rows[0].as_py(), text.shown)
            rows, first = rows.slice(1), 2
        places = np.arange(first, first + len(rows))
        if form == "beir":
            wanted = "query id, document id, grade, with one tab between"
            (queries, documents, grades), places = split_columns(
                pc.split_pattern(rows, "\t"), rows, places, 3, wanted, text.shown, faults
            )
        else:
            rows, places = without_comments(rows, places, text, 4, _INTEGER, 3, faults)
            wanted = "query id, iteration, document id, grade, with white space between"
            (queries, _, documents, grades), places = split_columns(
                white_space_split(rows), rows, places, 4, wanted, text.shown, faults
            )
        yield _judged(queries, documents, grades, places, text.shown, faults)


def white_space_split(rows: pa.StringArray) -> pa.ListArray:
    """Columns with any ASCII white space between them, as TREC's tools read them."""
    return pc.ascii_split_whitespace(pc.ascii_trim_whitespace(rows))


def split_columns(
    parts: pa.ListArray,
    rows: pa.StringArray,
    places: np.ndarray,
    width: int,
    wanted: str,
    file: str,
    faults: Faults,
) -> tuple[list[pa.Array], np.ndarray]:
    """The columns of rows that have `width` of them, and their places; other rows are faults."""
    counts = pc.list_value_length(parts).to_numpy()
    wrong = np.flatnonzero(counts != width)
    for row in wrong[: faults.max_problems + 1]:
        found = f"{counts[row]} of them in {excerpt(rows[row].as_py())}"
        faults.add(
            "wrong_columns", file, f"line {places[row]}", found, f"{width} columns: {wanted}"
        )
    if len(wrong):
        kept = np.flatnonzero(counts == width)
        parts, places = parts.take(pa.array(kept)), places[kept]
    return [pc.list_element(parts, column) for column in range(width)], places


def without_comments(
    rows: pa.StringArray,
    places: np.ndarray,
    text: TextFile,
    width: int,
    value: str,
    value_column: int,
    faults: Faults,
) -> tuple[pa.StringArray, np.ndarray]:
    """Rows that do not begin with "#": such a line is a comment, as in trec_eval 10.

    One that would be a sound row (`width` columns, the pattern `value` in `value_column`) could be
    data, and is a fault: nothing is lost in silence.
    """
    commented = pc.starts_with(rows, "#").to_numpy(zero_copy_only=False)
    if not commented.any():
        return rows, places
    at = np.flatnonzero(commented)
    text.comments += len(at)
    for row in at:
        parts = rows[int(row)].as_py().split()
        if len(parts) == width and pc.match_substring_regex(parts[value_column], value).as_py():
            remedy = "a line that begins with # is a comment; rename the id or mend the comment"
            found = f"a row or a comment: {excerpt(rows[int(row)].as_py())}"
            faults.add("ambiguous_comment", text.shown, f"line {places[row]}", found, remedy)
    kept = np.flatnonzero(~commented)
    return rows.take(pa.array(kept)), places[kept]


def _check_header(line: str, file: str) -> None:
    if line == BEIR_HEADER:
        return
    remedy = (
        "the first line is query-id, corpus-id, score with one tab between; "
        "without it the first judgement would be taken for the header and lost"
    )
    refuse("wrong_header", file, "line 1", excerpt(line), remedy)


def _judged(
    queries: pa.Array,
    documents: pa.Array,
    grades: pa.Array,
    places: np.ndarray,
    file: str,
    faults: Faults,
) -> JudgedLines:
    sound = pc.match_substring_regex(grades, _INTEGER).to_numpy(zero_copy_only=False)
    numbers = pc.if_else(pa.array(sound), grades, "0").cast(pa.int64()).to_numpy()
    sound &= (numbers >= MIN_GRADE) & (numbers <= MAX_GRADE)
    for row in np.flatnonzero(~sound)[: faults.max_problems + 1]:
        found = excerpt(grades[int(row)].as_py())
        faults.add("bad_grade", file, f"line {places[row]}", found, GRADE_REMEDY)
    for name, ids in (("query id", queries), ("document id", documents)):
        blank = pc.equal(pc.utf8_trim_whitespace(ids), "").to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(blank)[: faults.max_problems + 1]:
            remedy = "visible characters are needed"
            faults.add("blank_identifier", file, f"line {places[row]}", f"a blank {name}", remedy)
        sound &= ~blank
    if not sound.all():
        kept = np.flatnonzero(sound)
        queries, documents = queries.take(pa.array(kept)), documents.take(pa.array(kept))
        numbers, places = numbers[kept], places[kept]
    return JudgedLines(queries, documents, numbers.astype(np.int8), places)
