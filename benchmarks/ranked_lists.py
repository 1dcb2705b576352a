"""Measures of ranked lists against ranx and pytrec_eval-terrier.

Counted is everything from the format in which each tool takes a run to the means: ours from
numbered Parquet files, theirs from dictionaries of dictionaries that are already in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.timing import Measurement, compared, times
from rag_assets.project import models_folder
from rag_assets.warehouse.base import BASE
from rag_assets.warehouse.build import build, empty_table
from rag_assets.warehouse.models import load_models

_DEPTH = 100
_K = 10
_RELEVANT = 10
_DOCUMENTS = 100_000


def ranked_lists(query_count: int, rounds: int) -> Iterator[Measurement]:
    """measures-ranx and measures-pytrec-eval for `query_count` queries of 100 results."""
    import pytrec_eval
    import ranx

    rng = np.random.default_rng(2)
    # Consecutive multiples of an odd step modulo the count: distinct without sampling each row.
    first = rng.integers(0, _DOCUMENTS, (query_count, 1))
    found = (first + np.arange(_DEPTH) * 7919) % _DOCUMENTS
    places = np.argsort(rng.random((query_count, _DEPTH + _RELEVANT)), axis=1)[:, :_RELEVANT]
    relevant = (first + places * 7919) % _DOCUMENTS
    grades = rng.integers(1, 4, relevant.shape)
    scores = np.linspace(1.0, 0.01, _DEPTH)

    qrels = {
        f"q{query}": {f"d{row}": int(grade) for row, grade in zip(rows, marks, strict=True)}
        for query, (rows, marks) in enumerate(zip(relevant.tolist(), grades, strict=True))
    }
    listed = scores.tolist()
    run = {
        f"q{query}": {f"d{row}": score for row, score in zip(rows, listed, strict=True)}
        for query, rows in enumerate(found.tolist())
    }
    model = [it for it in load_models(models_folder()) if it.name == "case_measures"]
    means = (
        "SELECT avg(recall_at_k), avg(precision_at_k), avg(reciprocal_rank), avg(ndcg_at_k) "
        "FROM case_measures"
    )
    with tempfile.TemporaryDirectory() as folder:
        base = _files(Path(folder), found, scores, relevant, grades)

        def ours(keep_inputs: bool = False) -> list[float]:
            with duckdb.connect() as con:
                build(con, base, model, keep_inputs=keep_inputs)
                return list(con.sql(means).fetchall()[0])

        def by_ranx() -> list[float]:
            measured = ranx.evaluate(
                ranx.Qrels(qrels),
                ranx.Run(run),
                [f"recall@{_K}", f"precision@{_K}", f"mrr@{_K}", f"ndcg_burges@{_K}"],
            )
            return [float(value) for value in measured.values()]

        def by_pytrec_eval() -> list[float]:
            # Its nDCG takes the grade itself as gain, and its reciprocal rank has no cut-off.
            names = (f"recall.{_K}", f"P.{_K}", "recip_rank", f"ndcg_cut.{_K}")
            evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(names))
            by_query = evaluator.evaluate(run).values()
            reported = [name.replace(".", "_") for name in names]
            return [float(np.mean([row[name] for row in by_query])) for name in reported]

        one, two, three = ours(), by_ranx(), by_pytrec_eval()
        difference = max(
            *(abs(a - b) for a, b in zip(one, two, strict=True)),
            *(abs(a - b) for a, b in zip(one[:2], three[:2], strict=True)),
        )
        if difference > 1e-9:
            raise AssertionError(f"the measures differ by {difference}: {one}, {two}, {three}")
        peers = {"ranx": by_ranx, "pytrec_eval": by_pytrec_eval}
        taken = times({"ours": ours, **peers}, rounds, warm=False)
        kept = times({"kept": lambda: ours(keep_inputs=True)}, 1, warm=False)["kept"]
    settings = {
        "queries": query_count,
        "results_per_query": _DEPTH,
        "k": _K,
        "measures": "recall, precision, reciprocal rank, nDCG",
        "threads": "as many as each likes",
        "counted": "ours from Parquet files, read where they are, the peer from dictionaries in "
        "memory, to the means; parsing text and making the dictionaries is not counted",
        "ours_with_inputs_copied_into_the_database_s": round(kept.wall, 3),
    }
    for name, peer in (("ranx", "ranx"), ("pytrec-eval", "pytrec_eval")):
        yield compared(
            f"measures-{name}", peer, taken["ours"], taken[peer], clock="wall", **settings
        )


def _files(
    folder: Path,
    found: np.ndarray,
    scores: np.ndarray,
    relevant: np.ndarray,
    grades: np.ndarray,
) -> dict[str, pa.Table | Path]:
    """The base tables, large ones as Parquet files."""
    queries, depth = found.shape
    everyone = pa.scalar(["everyone"])
    count = queries * depth
    columns = {
        "results": {
            "scope": np.zeros(count, np.int16),
            "space_no": np.zeros(count, np.int16),
            "index_name": pa.repeat("exact", count),
            "case_no": np.repeat(np.arange(queries, dtype=np.int32), depth),
            "rank": np.tile(np.arange(1, depth + 1, dtype=np.int16), queries),
            "item_no": found.ravel().astype(np.int32),
            "score": np.tile(scores, queries),
            "exact_score": np.tile(scores, queries),
        },
        "qrels": {
            "case_no": np.repeat(np.arange(queries, dtype=np.int32), relevant.shape[1]),
            "item_no": relevant.ravel().astype(np.int32),
            "grade": grades.ravel().astype(np.int32),
        },
        "items": {
            "item_no": np.arange(_DOCUMENTS, dtype=np.int32),
            "item_id": [f"d{row}" for row in range(_DOCUMENTS)],
            "acl": pa.repeat(everyone, _DOCUMENTS),
        },
        "cases": {
            "case_no": np.arange(queries, dtype=np.int32),
            "case_id": [f"q{query}" for query in range(queries)],
            "subject_groups": pa.repeat(everyone, queries),
        },
    }
    base: dict[str, pa.Table | Path] = {name: empty_table(name) for name in BASE}
    for name, given in columns.items():
        table = _filled(name, given)
        base[name] = folder / f"{name}.parquet"
        pq.write_table(table, base[name], compression="zstd")
    base["evaluated_k"] = _filled("evaluated_k", {"k": [_K]})
    base["indexes"] = _filled("indexes", {"space_no": [0], "index_name": ["exact"]})
    return base


def _filled(name: str, columns: dict[str, object]) -> pa.Table:
    """A base table; columns that measures do not read get a constant."""
    count = len(next(iter(columns.values())))  # type: ignore[arg-type]
    arrays = []
    for field in BASE[name]:
        if field.name in columns:
            value = columns[field.name]
            array = value if isinstance(value, pa.Array) else pa.array(value)
            arrays.append(array.cast(field.type))
        elif pa.types.is_list(field.type):
            arrays.append(pa.repeat(pa.scalar([], field.type), count))
        else:
            zero = "" if pa.types.is_string(field.type) else 0
            arrays.append(
                pa.repeat(pa.scalar(zero, pa.string() if zero == "" else pa.int8()), count).cast(
                    field.type
                )
            )
    return pa.table(arrays, schema=BASE[name])
