"""Releases to report on: one with an approximate index, and the bundled handbook."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from rag_assets.warehouse.base import BASE
from rag_assets.warehouse.build import build
from rag_assets_tests.conftest import ROOT, Tree
from rag_assets_tests.warehouse.examples import DOCUMENTS, MODELS, QUERY, Case, Example, base_tables

_SWEEP = {"sweep": "probes", "space_no": 0, "index_name": "ivf", "parameter": "nprobe"}
_TIMES = {"k": 2, "query_count": 1, "rounds": 5, "threads": 1, "space_no": 0}


def ann_release(default: Mapping[str, Any] | None = None) -> duckdb.DuckDBPyConnection:
    """One space, one query without judgements, an index "ivf" and everything measured of it.

    Exact search returns a, b; the index a, c. A sweep over nprobe 1, 2 stopped at 2.
    """
    example = Example(
        spaces={"s": {**{name: DOCUMENTS[name] for name in "abc"}, **QUERY}},
        cases={"one": Case({})},
        results={(0, "s", "one"): ["a", "b"]},
        ks=(2,),
    )
    tables = base_tables(example)
    exact = tables["results"].to_pylist()
    item_no = {item["item_id"]: item["item_no"] for item in tables["items"].to_pylist()}
    ivf = [{**row, "index_name": "ivf"} for row in exact]
    ivf[1]["item_no"], ivf[1]["exact_score"] = item_no["c"], 0.1
    search = {"space_no": 0, "case_no": 0, "eligible_count": 3, "path": "index", "grid_step": 1e-9}
    runs = [
        {**_SWEEP, "value_no": no, "value": value, "seed": seed, "status": "ok", "query_count": 1}
        | {"defined_count": 1, "mean_recall": recall, "best_p95_ms": p95, "p95_ms": p95}
        for no, value, recall, p95 in ((0, "1", 0.5, 1.0), (1, "2", 0.6, 9.0))
        for seed in (1, 2, 3)
    ]
    values = [
        {**run, "seeds": 3, "failed": 0, "min_recall": 0.4, "max_recall": 0.7}
        | {"mean_p95_ms": run["p95_ms"], "mean_best_p95_ms": run["p95_ms"], "on_pareto_front": True}
        for run in runs[::3]
    ]
    verdict = {"verdict": "not_supported", "reason": "best is 0.6; stopped at 2", "stopped_at": "2"}
    plan = dict.fromkeys(("claim", "stop_rule", "plan"), "{}")
    conditions = (
        ("sweep", "pass", "3 seeds", "3 seeds"),
        ("recall", "fail", "0.5", "0.95"),
        ("judgements", "not_executed", "nobody judged", "loss of 0.01"),
    )
    given: dict[str, list[dict[str, Any]]] = {
        "results": [*exact, *ivf],
        "searches": [{**search, "index_name": name} for name in ("exact", "ivf")],
        "indexes": [{"space_no": 0, "index_name": name} for name in ("exact", "ivf")],
        "index_builds": [
            {"space_no": 0, "index_name": "ivf", "kind": "ivf_pq", "params": '{"nprobe":2}'}
            | {"seed": 1, "status": "built", "build_ms": 12.0, "index_bytes": 96}
        ],
        "benchmarks": [
            {**_TIMES, "index_name": "exact", "p50_ms": 3.0, "p95_ms": 4.0, "p99_ms": 5.0}
            | {"best_p50_ms": 2.0, "queries_per_second": 1000.0},
            {**_TIMES, "index_name": "ivf", "p50_ms": 0.7, "p95_ms": 0.8, "p99_ms": 0.9}
            | {"best_p50_ms": 0.5, "queries_per_second": 2000.0},
        ],
        "sweep_runs": runs,
        "sweep_values": values,
        "sweep_verdicts": [
            {**_SWEEP, **verdict, **plan, "k": 2, "seeds": [1, 2, 3]}
            | {"plan_digest": "d" * 64, "registered_at": "2026-01-01T00:00:00+00:00"}
        ],
        "operating_points": [
            {**_SWEEP, "need": "chat", "need_p95_ms": 5.0, "need_min_recall": 0.9}
            | {"reason": "none reaches it"}
        ],
        "promotion": [
            dict(zip(("condition", "status", "evidence", "threshold"), condition, strict=True))
            | {"space_no": 0, "index_name": "ivf", "condition_no": no, "verdict": "not_eligible"}
            for no, condition in enumerate(conditions)
        ],
        "default_indexes": [{"space_no": 0, "index_name": "exact", **(default or {})}],
    }
    made = {name: pa.Table.from_pylist(rows, schema=BASE[name]) for name, rows in given.items()}
    con = duckdb.connect()
    build(con, {**tables, **made}, MODELS)
    return con


def handbook() -> Tree:
    """The judged queries of the bundled collection and two of its spaces, as a fixture."""
    folder = ROOT / "data" / "handbook"
    documents, queries = (_lines(folder / f"{name}.jsonl") for name in ("corpus", "queries"))
    relevance: dict[str, dict[str, int]] = {}
    for split in ("dev", "test"):
        for line in (folder / "qrels" / f"{split}.tsv").read_text("utf-8").splitlines()[1:]:
            query_id, document_id, grade = line.split("\t")
            relevance.setdefault(query_id, {})[document_id] = int(grade)
    items, contracts = [], []
    for space_id in ("minilm", "wordllama"):
        vectors: dict[str, list[float]] = {}
        for kind in ("doc", "query"):
            ids = (folder / "vectors" / space_id / f"{kind}_ids.txt").read_text("utf-8").split()
            rows = np.load(folder / "vectors" / space_id / f"{kind}_vectors.npy").round(4).tolist()
            vectors |= dict(zip(ids, rows, strict=True))
        contracts.append(
            {"space_id": space_id, "provider": "given", "model": space_id, "revision": "1"}
            | {"dimension": len(next(iter(vectors.values()))), "metric": "cosine"}
            | {"normalized": False, "query_role": "query", "document_role": "document"}
            | {"dtype": "float32"}
        )
        items += [
            {"item_id": record["_id"], "space_id": space_id, "role": role, "text": record["text"]}
            | {"vector": vectors[record["_id"]], "source_revision": "1"}
            | {"acl": record["metadata"]["groups" if role == "document" else "subject_groups"]}
            for role, records in (("document", documents), ("query", queries))
            for record in records
        ]
    cases = [
        {"case_id": f"case-{record['_id']}", "query_item_id": record["_id"]}
        | {name: record["metadata"][name] for name in ("subject_groups", "subgroups")}
        | {"relevance": relevance[record["_id"]]}
        for record in queries
        if record["_id"] in relevance  # a fixture judges every case
    ]
    return {"contracts": contracts, "items": items, "queries": cases}


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]
