"""The chain as plain functions: what is searched, what the SQL models read, and the notice.

The Dagster assets and `rag-assets evaluate` both call these, so that a number in the UI and a
number on the command line are the same number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.canonical.corpus import RESULTS, Corpus
from rag_assets.canonical.files import write_parquet
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.errors import UsageError
from rag_assets.indexes.builds import BUILT, IndexBuild
from rag_assets.indexes.exact import ExactIndex
from rag_assets.indexes.ranking import norms
from rag_assets.quality.report import CheckReport, merged
from rag_assets.results.search import ApproximateIndex, search_cases
from rag_assets.warehouse.base import BASE
from rag_assets.warehouse.build import BaseTable, build, empty_table, rebuild
from rag_assets.warehouse.models import Model

EXACT = "exact"
NOTICE = (
    "Vectors were taken as given from a fixture. Hand-authored vectors exercise the pipeline and "
    "show nothing about the quality of any model."
)


@dataclass(frozen=True, slots=True)
class AuditedPair:
    """An old and a new space. `pair_no` counts from 1 in declared order."""

    pair_no: int
    old: str
    new: str


def audited_pairs(
    declared: Sequence[tuple[str, str]] | None, space_ids: Sequence[str]
) -> tuple[AuditedPair, ...]:
    """The pairs to audit; every pair of neighbouring spaces where none are declared.

    UsageError for an unknown space, a space paired with itself, or a pair named twice.
    """
    if declared is None:
        declared = list(pairwise(space_ids))
    for old, new in declared:
        for space_id in (old, new):
            if space_id not in space_ids:
                raise UsageError(
                    f"audit {old}:{new}: unknown space {space_id!r}; known spaces are "
                    + ", ".join(space_ids)
                )
        if old == new:
            raise UsageError(f"audit {old}:{new}: a space cannot be audited against itself")
    if len(set(declared)) != len(declared):
        raise UsageError("the same pair of spaces is audited twice; name each pair once")
    return tuple(AuditedPair(number, old, new) for number, (old, new) in enumerate(declared, 1))


def check_ks(ks: Sequence[object]) -> tuple[int, ...]:
    """Sorted cut-offs. UsageError unless they are distinct positive integers (True is not one)."""
    if not ks:
        raise UsageError("at least one k is needed")
    checked: list[int] = []
    for k in ks:
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MAX_K:
            raise UsageError(f"k must be an integer from 1 to {MAX_K}, not {k!r}")
        checked.append(k)
    if len(set(checked)) != len(checked):
        raise UsageError("the same k is given twice")
    return tuple(sorted(checked))


MAX_K = 10_000


@dataclass(frozen=True, slots=True)
class SpaceResults:
    """What one index found in one space: rows of base.results and of base.searches."""

    results: pa.Table
    searches: pa.Table


def space_results(
    space: EmbeddedSpace,
    exact: ExactIndex,
    corpus: Corpus,
    ks: Sequence[int],
    pairs: Iterable[AuditedPair],
    *,
    index_name: str = EXACT,
    index: ApproximateIndex | None = None,
) -> SpaceResults:
    """Every case searched in one space, by exact search or by `index`.

    Scope 0 is the whole space. Where an audited pair's spaces hold different documents, the cases
    are searched once more among the documents both hold (scope = pair_no), so that the pair's
    quality is compared on equal ground.
    """
    space_id = space.contract.space_id
    scopes: list[tuple[int, np.ndarray | None]] = [(0, None)]
    for pair in pairs:
        shared = shared_documents(corpus, pair) if space_id in (pair.old, pair.new) else None
        if shared is not None:
            scopes.append((pair.pair_no, shared))
    where = {"space_no": corpus.space_no(space_id), "index_name": index_name}
    tables = []
    for scope, among in scopes:
        found, did = search_cases(
            space, corpus.items, corpus.cases, max(ks), exact=exact, index=index, among=among
        )
        tables.append(_with_constants(BASE["results"], found, scope=scope, **where))
        if scope == 0:
            searches = _with_constants(BASE["searches"], did, **where)
    return SpaceResults(pa.concat_tables(tables), searches)


def external_results(
    ranked: pa.Table, corpus: Corpus, space_id: str, index_name: str, depth: int
) -> SpaceResults:
    """A run from elsewhere (SCORED) as results of a space, cut at `depth`; we searched nothing."""
    where = {"scope": 0, "space_no": corpus.space_no(space_id), "index_name": index_name}
    cut = ranked.filter(pc.less_equal(ranked["rank"], depth))
    results = _with_constants(BASE["results"], cut, **where)
    return SpaceResults(results, BASE["searches"].empty_table())


RESULTS_FILE, SEARCHES_FILE = "results.parquet", "searches.parquet"


def write_results(found: SpaceResults, folder: Path) -> None:
    write_parquet(found.results, folder / RESULTS_FILE)
    write_parquet(found.searches, folder / SEARCHES_FILE)


def shared_documents(corpus: Corpus, pair: AuditedPair) -> np.ndarray | None:
    """`int32[n]`: the item_no of documents that both spaces hold; None if they hold the same."""
    old, new = _document_numbers(corpus, pair.old), _document_numbers(corpus, pair.new)
    return None if np.array_equal(old, new) else np.intersect1d(old, new)


def _document_numbers(corpus: Corpus, space_id: str) -> np.ndarray:
    items = corpus.items_of(space_id)
    is_document = np.array(items["role"].to_pylist()) == corpus.contract(space_id).document_role
    numbers: np.ndarray = items["item_no"].to_numpy()[is_document]
    return numbers


def _with_constants(schema: pa.Schema, table: pa.Table, **constants: object) -> pa.Table:
    """`table` with constant columns added, in the columns and types of `schema`."""
    columns = []
    for column in schema:
        if column.name in constants:
            values = pa.repeat(pa.scalar(constants[column.name], column.type), len(table))
        else:
            values = table[column.name].cast(column.type)
        columns.append(values)
    return pa.table(columns, schema=schema)


def space_item_rows(space: EmbeddedSpace, space_no: int) -> pa.Table:
    """Rows of base.space_items: what one space really holds, with the norm of each vector."""
    with_norms = space.items.append_column("l2_norm", pa.array(norms(space.vectors)))
    return _with_constants(BASE["space_items"], with_norms, space_no=space_no)


@dataclass(frozen=True, slots=True)
class SpaceStatus:
    """A space as it was embedded; `reason` says why it was not executed, if it was not."""

    contract: SpaceContract
    reason: str | None = None


MEASURED = (
    "benchmarks",
    "sweep_runs",
    "sweep_values",
    "sweep_verdicts",
    "operating_points",
    "promotion",
    "default_indexes",
    "comparisons",
    "baseline",
    "baseline_by_query",
    "regression_gates",
    "metric_intervals",
    "thresholds",
    "threshold_curve",
    "budgets",
    "tombstones",
    "decisions",
    "checklist",
    "space_switches",
)
# What came before; see rag_assets.history.
HISTORY = (
    "evaluations",
    "heartbeats",
    "history_metrics",
    "history_audits",
    "history_checks",
    "previous_items",
    "previous_cases",
    "previous_spaces",
)


def base_tables(
    corpus: Corpus,
    *,
    space_items: Sequence[pa.Table],
    results: BaseTable,
    searches: BaseTable,
    ks: Sequence[int],
    pairs: Sequence[AuditedPair],
    reports: Iterable[tuple[str, CheckReport]],
    index_builds: Sequence[IndexBuild] = (),
    external: Sequence[tuple[str, str]] = (),
    measured: Mapping[str, pa.Table] | None = None,
    spaces: Sequence[SpaceStatus] | None = None,
    manifest: Mapping[str, str],
) -> dict[str, BaseTable]:
    """The inputs of the SQL models.

    `spaces` tells which spaces were evaluated, all of them if it is absent; `reports` pairs an
    asset's name with a check on it; `external` names runs from elsewhere as (space, index name);
    `measured` holds those of the tables MEASURED that a laboratory run has filled.
    """
    stated = spaces or [SpaceStatus(contract) for contract in corpus.contracts]
    space_rows = [
        {
            **asdict(space.contract),
            "space_no": number,
            "contract_signature": space.contract.signature,
            "status": "not_executed" if space.reason else "evaluated",
            "status_reason": space.reason,
        }
        for number, space in enumerate(stated)
    ]
    numbered_pairs = [
        {
            "pair_no": pair.pair_no,
            "old_space_no": corpus.space_no(pair.old),
            "new_space_no": corpus.space_no(pair.new),
        }
        for pair in pairs
    ]
    indexes = [
        {"space_no": number, "index_name": EXACT}
        for number, space in enumerate(stated)
        if space.reason is None
    ]
    builds = [
        {**asdict(build), "space_no": corpus.space_no(build.space_id)} for build in index_builds
    ]
    indexes += [
        {"space_no": build["space_no"], "index_name": build["index_name"]}
        for build in builds
        if build["status"] == BUILT
    ]
    indexes += [
        {"space_no": corpus.space_no(space_id), "index_name": name} for space_id, name in external
    ]
    return {
        "spaces": _rows("spaces", space_rows),
        "items": corpus.items,
        "space_items": pa.concat_tables([BASE["space_items"].empty_table(), *space_items]),
        "cases": corpus.cases,
        "qrels": corpus.qrels,
        "results": results,
        "searches": searches,
        "indexes": _rows("indexes", indexes),
        "index_builds": _rows("index_builds", builds),
        "evaluated_k": _rows("evaluated_k", [{"k": k} for k in ks]),
        "audited_pairs": _rows("audited_pairs", numbered_pairs),
        "checks": check_rows(reports),
        "manifest": manifest_rows(manifest),
        **{name: (measured or {}).get(name, empty_table(name)) for name in MEASURED},
        **{name: empty_table(name) for name in HISTORY},
    }


def check_rows(reports: Iterable[tuple[str, CheckReport]]) -> pa.Table:
    """Rows of base.checks; `evaluated_at` is UTC."""
    rows = [
        {
            "check_name": report.check_name,
            "asset": asset,
            "passed": report.passed,
            "severity": report.severity,
            "evaluated_at": report.evaluated_at.replace(tzinfo=None),
            "details": report.to_json(),
        }
        for asset, report in reports
    ]
    return _rows("checks", rows)


def manifest_rows(manifest: Mapping[str, str]) -> pa.Table:
    return _rows("manifest", [{"key": key, "value": value} for key, value in manifest.items()])


def _rows(name: str, rows: Sequence[Mapping[str, object]]) -> pa.Table:
    schema = BASE[name]
    return pa.Table.from_pylist(
        [{column: row[column] for column in schema.names} for row in rows], schema=schema
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """What a look at the built tables adds: rows of base tables, and reports by their table."""

    rows: Mapping[str, pa.Table]
    reports: Sequence[tuple[str, CheckReport]] = ()


def build_checked(
    connection: duckdb.DuckDBPyConnection,
    base: Mapping[str, BaseTable],
    models: Sequence[Model],
    *,
    suite: str,
    pairs: int,
    judge: Callable[[duckdb.DuckDBPyConnection], Judged] | None = None,
) -> list[tuple[str, CheckReport]]:
    """Build all tables, check the mechanical gates, and record every outcome in the tables.

    Returns every report with the name of its table: the gates first, then the reports of `judge`,
    which looks at the built tables. In check_results they are filed under `suite` and that name.
    """
    build(connection, base, models)
    from rag_assets.quality.suites import check_mechanical_gates

    audit = connection.sql("SELECT * FROM migration_audit").to_arrow_table()
    gates = check_mechanical_gates(audit, pairs)
    outcome = {"mechanical_gates": "passed" if gates.passed else "failed"}
    judged = judge(connection) if judge else Judged({})
    reports = [("migration_audit", gates), *judged.reports]
    filed = [(f"{suite}/{table}", report) for table, report in reports]
    added = {"checks": check_rows(filed), "manifest": manifest_rows(outcome)}
    rebuild(connection, {**added, **judged.rows}, models)
    return reports


def check_scoped_results(
    results: pa.Table,
    space: EmbeddedSpace,
    corpus: Corpus,
    ks: Sequence[int],
    pairs: Iterable[AuditedPair],
    *,
    complete: bool = True,
) -> CheckReport:
    """The result validation of every scope that was searched, as one report.

    `complete`: every case must have as many results as its subject may read, up to k, which exact
    search promises and approximate indexes do not.
    """
    from rag_assets.quality.suites import check_results

    scopes: dict[int, np.ndarray | None] = {0: None}
    scopes |= {pair.pair_no: shared_documents(corpus, pair) for pair in pairs}
    reports = []
    for scope, among in scopes.items():
        rows = results.filter(pc.equal(results["scope"], scope))
        if scope == 0 or len(rows) > 0:
            ranked = rows.select(RESULTS.names)
            reports.append(
                check_results(ranked, space, corpus, max(ks), complete=complete, among=among)
            )
    return merged(reports)
