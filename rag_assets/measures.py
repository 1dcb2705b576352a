"""Measures of ranked lists, from Python. The numbers come from dbt_like_sql/case_measures.sql.

Relevant means grade > 0; unjudged documents are not relevant. With no relevant document a measure
is undefined (None, NULL), never 0. A grade is an integer from MIN_GRADE to MAX_GRADE: below zero
counts like zero, and up to MAX_GRADE the gain 2^grade - 1 is exact in float64.
"""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, TypeGuard

import duckdb
import pyarrow as pa

from rag_assets.errors import UsageError
from rag_assets.project import models_folder
from rag_assets.warehouse.base import BASE
from rag_assets.warehouse.build import build, empty_table
from rag_assets.warehouse.models import Model, load_models

MIN_GRADE = -128
MAX_GRADE = 53
MAX_K = 32_767  # a rank is stored as SMALLINT

ScoredIds: TypeAlias = Sequence[tuple[str, float]] | Mapping[str, float]
_EVERYONE = ["everyone"]


def evaluate_run(
    run: Mapping[str, ScoredIds], qrels: Mapping[str, Mapping[str, int]], ks: Sequence[int]
) -> pa.Table:
    """Every measure of every query of a run, at every cut-off.

    `run` gives each query's documents with scores, in any order: they are ranked by score
    descending, then id ascending. A judged query that is absent from the run, or has no documents,
    scores 0; a query of the run without relevant judgements is undefined.

    Columns: query_id, k, relevant_count, recall_at_k, precision_at_k, reciprocal_rank, ndcg_at_k
    (float64, NULL where undefined); rows in order of query_id, then k. UsageError for a repeated
    document, an id that is not text, a score that is not a number, a bad grade or k.
    """
    cutoffs = [_checked_k(k) for k in ks]
    if not cutoffs or len(set(cutoffs)) != len(cutoffs):
        raise UsageError(f"ks must be distinct and not empty, not {list(ks)!r}")
    ranked = {query: _ranked(query, scored) for query, scored in run.items()}
    return _measure(ranked, {q: _checked_grades(q, r) for q, r in qrels.items()}, cutoffs)


def recall_at_k(ranked_ids: Sequence[str], relevance: Mapping[str, int], k: int) -> float | None:
    """|top k and relevant| / |relevant| of one query's documents, best first.

    None if no judged document is relevant. UsageError for a repeated id, no judgements, a grade
    that is not an integer in range, or k that is not a positive integer.
    """
    return _measure_one("recall_at_k", ranked_ids, relevance, k)


def precision_at_k(ranked_ids: Sequence[str], relevance: Mapping[str, int], k: int) -> float | None:
    """|top k and relevant| / k, also when fewer than k are given. Otherwise as recall_at_k."""
    return _measure_one("precision_at_k", ranked_ids, relevance, k)


def reciprocal_rank_at_k(
    ranked_ids: Sequence[str], relevance: Mapping[str, int], k: int
) -> float | None:
    """1 / rank of the first relevant document in the top k, else 0. Otherwise as recall_at_k."""
    return _measure_one("reciprocal_rank", ranked_ids, relevance, k)


def ndcg_at_k(ranked_ids: Sequence[str], relevance: Mapping[str, int], k: int) -> float | None:
    """DCG / ideal DCG, both cut at k; gain 2^grade - 1, discount log2(rank + 1).

    The ideal ranks all judged documents by grade. Otherwise as recall_at_k.
    """
    return _measure_one("ndcg_at_k", ranked_ids, relevance, k)


def _measure_one(
    measure: str, ranked_ids: Sequence[str], relevance: Mapping[str, int], k: int
) -> float | None:
    if isinstance(ranked_ids, str):
        raise UsageError(f"ranked ids must be a list of texts, not the text {ranked_ids!r}")
    query = "query"
    cutoff = _checked_k(k)
    grades = _checked_grades(query, relevance)
    if not grades:
        raise UsageError("at least one judgement is needed to measure a ranked list")
    table = _measure({query: _distinct(query, ranked_ids)}, {query: grades}, [cutoff])
    value: float | None = table[measure][0].as_py()
    return value


def _checked_k(k: object) -> int:
    if not _is_integer(k) or not 1 <= k <= MAX_K:
        raise UsageError(f"k must be an integer from 1 to {MAX_K}, not {k!r}")
    return int(k)


def _is_integer(value: object) -> TypeGuard[int]:
    """Python's and NumPy's integers; a bool is not one."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _checked_id(query: str, document: object) -> str:
    if not isinstance(document, str):
        raise UsageError(f"{query}: a document id must be text, not {document!r}")
    return document


def _checked_grades(query: str, relevance: Mapping[str, object]) -> dict[str, int]:
    grades: dict[str, int] = {}
    for document, grade in relevance.items():
        if not _is_integer(grade) or not MIN_GRADE <= grade <= MAX_GRADE:
            raise UsageError(
                f"{query}: the grade of {document!r} must be an integer from {MIN_GRADE} to "
                f"{MAX_GRADE}, not {grade!r}"
            )
        grades[_checked_id(query, document)] = int(grade)
    return grades


def _distinct(query: str, documents: Iterable[object]) -> list[str]:
    seen: dict[str, None] = {}
    for document in documents:
        checked = _checked_id(query, document)
        if checked in seen:
            raise UsageError(f"{query}: document {document!r} is ranked more than once")
        seen[checked] = None
    return list(seen)


def _is_number(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    return not math.isnan(value)


def _ranked(query: str, scored: ScoredIds) -> list[str]:
    """Ids by score descending, then id ascending."""
    pairs = list(scored.items() if isinstance(scored, Mapping) else scored)
    _distinct(query, (document for document, _ in pairs))
    for document, score in pairs:
        if not _is_number(score):
            raise UsageError(f"{query}: the score of {document!r} must be a number, not {score!r}")
    return [document for document, _ in sorted(pairs, key=lambda pair: (-pair[1], pair[0]))]


def _measure(
    ranked: Mapping[str, Sequence[str]],
    qrels: Mapping[str, Mapping[str, int]],
    ks: Sequence[int],
) -> pa.Table:
    """The model case_measures over one space that everybody may read."""
    queries = sorted({*ranked, *qrels})
    depth = max(ks)
    cut = {query: documents[:depth] for query, documents in ranked.items()}
    documents = sorted({d for listed in (*cut.values(), *qrels.values()) for d in listed})
    item_no = {document: number for number, document in enumerate(documents)}
    judgements = [
        (number, item_no[document], grade)
        for number, query in enumerate(queries)
        for document, grade in qrels.get(query, {}).items()
    ]
    results = [
        (number, rank, item_no[document])
        for number, query in enumerate(queries)
        for rank, document in enumerate(cut.get(query, ()), 1)
    ]
    base = {
        **{name: empty_table(name) for name in BASE},
        "items": _table("items", ("item_no", "item_id"), enumerate(documents), acl=_EVERYONE),
        "cases": _table(
            "cases", ("case_no", "case_id"), enumerate(queries), subject_groups=_EVERYONE
        ),
        "qrels": _table("qrels", ("case_no", "item_no", "grade"), judgements),
        "results": _table("results", ("case_no", "rank", "item_no"), results),
        "evaluated_k": _table("evaluated_k", ("k",), ((k,) for k in ks)),
        "indexes": _table("indexes", (), [()]),
    }
    with duckdb.connect() as con:
        build(con, base, [_case_measures()])
        return con.sql(
            """
            SELECT
                cases.case_id AS query_id, k, relevant_count,
                recall_at_k, precision_at_k, reciprocal_rank, ndcg_at_k
            FROM case_measures
            JOIN base.cases AS cases USING (case_no)
            ORDER BY case_no, k
            """
        ).to_arrow_table()


def _table(
    name: str, columns: Sequence[str], rows: Iterable[Sequence[object]], **constants: object
) -> pa.Table:
    """A base table of `rows`; columns that are not given are the same in all rows, or blank."""
    given = list(rows)
    values = dict(zip(columns, zip(*given, strict=True), strict=True)) if given else {}
    arrays = []
    for field in BASE[name]:
        repeated = [constants.get(field.name, _blank(field.type))] * len(given)
        arrays.append(pa.array(values.get(field.name, repeated), field.type))
    return pa.table(arrays, schema=BASE[name])


def _blank(data_type: pa.DataType) -> object:
    if pa.types.is_list(data_type):
        return []
    return "" if pa.types.is_string(data_type) else 0


@functools.cache
def _case_measures() -> Model:
    models = {model.name: model for model in load_models(models_folder())}
    return models["case_measures"]
