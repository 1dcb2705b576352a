"""The synthetic benchmark: exact search and IVF-PQ over random unit vectors, one row a backend.

Published for the defaults: exact recall 1.0 and 1,280,000 bytes, IVF-PQ recall 0.23 and 80,480
bytes. Exact search is the ground truth, so its recall is 1 by definition. Times are those of single
queries on one thread, both backends in one run (`latency`): `query_avg_ms` is the mean over queries
of each one's fastest call, `query_total_ms` that times the number of queries.
"""

from __future__ import annotations

import csv
import io
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rag_assets import clock
from rag_assets.canonical.corpus import Corpus
from rag_assets.embeddings.space import declared_embeddings
from rag_assets.errors import EngineMissing, UsageError
from rag_assets.indexes.builds import timed_build
from rag_assets.indexes.exact import ExactIndex
from rag_assets.indexes.specs import IvfPq, faults
from rag_assets.laboratory.latency import Arm, ArmLatency, measure_latency
from rag_assets.laboratory.queries import Queries, SearchIndex, case_queries, search_all
from rag_assets.laboratory.recall import ann_recall
from rag_assets.laboratory.sweep_runs import search_arm
from rag_assets.laboratory.synthetic import NOISE, SPACE_ID, check_synthetic, synthetic_corpus
from rag_assets.whole_files import replace_text

EXACT, IVF_PQ = "exact", "ivf_pq"
BUDGET_S = 120.0


@dataclass(frozen=True, slots=True)
class BenchmarkOptions:
    """Names and defaults of the published configuration."""

    n_vectors: int = 5000
    dim: int = 64
    n_queries: int = 100
    top_k: int = 10
    n_clusters: int = 64
    nprobe: int = 8
    n_subvectors: int = 8
    n_bits: int = 4
    n_iters: int = 8
    seed: int = 42

    @property
    def spec(self) -> IvfPq:
        return IvfPq(
            n_clusters=self.n_clusters,
            nprobe=self.nprobe,
            n_iters=self.n_iters,
            seed=self.seed,
            n_subvectors=self.n_subvectors,
            n_bits=self.n_bits,
        )


_FIRST = ("timestamp", "python", "platform", "seed")
_PARAMETERS = tuple(name for name in BenchmarkOptions.__dataclass_fields__ if name != "seed")
_MEASURED = (
    "build_ms",
    "query_total_ms",
    "query_avg_ms",
    "queries_per_second",
    "recall_at_k",
    "index_data_bytes",
)
COLUMNS = (*_FIRST, *_PARAMETERS, "backend", "status", "status_reason", *_MEASURED)

Row = dict[str, Any]


def run_benchmark(options: BenchmarkOptions, *, budget_s: float = BUDGET_S) -> list[Row]:
    """Two rows with the keys COLUMNS: exact, then ivf_pq. None stands for what was not measured.

    `status` is "ok", or "not_executed" where the engine cannot be imported; `status_reason` says
    why, or what the engine warned of, or what the time budget cut short. Raises UsageError for
    parameters that cannot be run, before any work.
    """
    corpus = _checked_corpus(options)
    space = declared_embeddings(corpus, SPACE_ID)
    queries = case_queries(space, corpus)
    exact, exact_build_ms = _timed(lambda: ExactIndex.build(space))
    indexes: dict[str, SearchIndex] = {EXACT: exact}
    approximate, missing = None, None
    try:
        approximate, build_ms = timed_build(options.spec, space)
        indexes[IVF_PQ] = approximate
    except EngineMissing as error:
        missing = " ".join(str(error).split())
    arms: list[Arm] = [
        search_arm(name, index, queries, options.top_k) for name, index in indexes.items()
    ]
    report = measure_latency(arms, len(queries), budget_s=budget_s)
    truth, _ = search_all(exact, queries, options.top_k)

    def measured(
        name: str, index: SearchIndex, build_ms: float, size: int, said: Sequence[str]
    ) -> Row:
        reasons = [*said, report.cut_short] if report.cut_short else said
        return {
            "backend": name,
            "status": "ok",
            "status_reason": "; ".join(reasons) or None,
            "build_ms": build_ms,
            **_speed(report.arm(name), len(queries)),
            "recall_at_k": _mean_recall(truth, index, queries, options, space.document_count),
            "index_data_bytes": size,
        }

    facts = _facts(options)
    rows = [measured(EXACT, exact, exact_build_ms, space.documents.nbytes, ())]
    if approximate is None:
        rows.append({"backend": IVF_PQ, "status": "not_executed", "status_reason": missing})
    else:
        rows.append(
            measured(IVF_PQ, approximate, build_ms, approximate.nbytes, approximate.warnings)
        )
    return [{name: {**facts, **row}.get(name) for name in COLUMNS} for row in rows]


def csv_rows(rows: Sequence[Mapping[str, Any]], *, header: bool = True) -> str:
    """RFC 4180 with line feeds; an empty field is what was not measured."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def check_output(path: Path) -> None:
    """Raise UsageError unless `write_rows` could write to `path`: a new file in an existing folder,
    or one that an earlier benchmark wrote.
    """
    if not path.parent.is_dir():
        raise UsageError(f"{path}: its folder does not exist; create it first")
    if path.exists():
        _earlier_rows(path)


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a new CSV file, or add the rows to one that an earlier benchmark wrote.

    Rows carry their time and parameters, so that several seeds make one table. The file is replaced
    as a whole. Raises UsageError as `check_output` does: no other file is ever overwritten.
    """
    check_output(path)
    earlier = _earlier_rows(path) if path.exists() else csv_rows([])
    replace_text(path, earlier + csv_rows(rows, header=False))


def _earlier_rows(path: Path) -> str:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    if not text.startswith(csv_rows([])) or not text.endswith("\n"):
        raise UsageError(
            f"{path} exists and is not a benchmark's CSV with these columns; name another file"
        )
    return text


def _checked_corpus(options: BenchmarkOptions) -> Corpus:
    shape = (options.n_vectors, options.dim, options.n_queries, options.seed)
    check_synthetic(*shape, NOISE)
    if not 1 <= options.top_k <= options.n_vectors:
        raise UsageError(
            f"top_k is {options.top_k}; it must be from 1 to the {options.n_vectors} vectors"
        )
    found = faults(options.spec, options.dim, options.n_vectors)
    if found:
        raise UsageError("; ".join(found))
    return synthetic_corpus(*shape)


def _facts(options: BenchmarkOptions) -> Row:
    now = clock.utc_now()
    return {
        "timestamp": now.isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        **asdict(options),
    }


def _speed(timed: ArmLatency, n_queries: int) -> Row:
    if not timed.calls:
        return {}
    average = timed.best_mean_ms
    return {
        "query_total_ms": average * n_queries,
        "query_avg_ms": average,
        "queries_per_second": 1000 / average,
    }


def _mean_recall(
    truth: Any, index: SearchIndex, queries: Queries, options: BenchmarkOptions, documents: int
) -> float:
    if isinstance(index, ExactIndex):
        return 1.0
    found, _ = search_all(index, queries, options.top_k)
    return ann_recall(truth, found, queries.eligible_counts(documents), options.top_k).mean


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter_ns()
    result = work()
    return result, (time.perf_counter_ns() - start) / 1e6
