"""The SQL models of a suite as one multi-asset that ends in a published release."""

# Dagster reads annotations at run time, so they are not postponed here.

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import duckdb
import pyarrow as pa
from markupsafe import Markup

from rag_assets.canonical.contracts import SpaceContract, canonical_json
from rag_assets.canonical.corpus import Corpus, digest
from rag_assets.canonical.files import read_corpus
from rag_assets.components.checks import (
    CONTRACT_VALIDATION,
    MECHANICAL_GATES,
    RESULT_VALIDATION,
    built_on,
    check_result,
    check_spec,
    guarded,
)
from rag_assets.components.markdown import column_meanings, markdown_header
from rag_assets.components.report import (
    report_link,
    report_spec,
    shown_pictures,
    written_report,
)
from rag_assets.components.shown_tables import plotted_numbers, shown_table
from rag_assets.components.suite import (
    CANONICAL,
    DeclaredIndex,
    StoreResource,
    Suite,
    asset_group,
    benchmark_path,
    embeddings_path,
    failures_in_plain_words,
    index_path,
    results_path,
    sweep_path,
)
from rag_assets.embeddings.files import read_embeddings
from rag_assets.evaluation import (
    RESULTS_FILE,
    SEARCHES_FILE,
    SpaceStatus,
    base_tables,
    build_checked,
    space_item_rows,
)
from rag_assets.indexes.builds import NOT_EXECUTED, IndexBuild, read_index_build
from rag_assets.indexes.specs import parameters
from rag_assets.laboratory.defaults import default_decisions, default_index
from rag_assets.laboratory.evidence import judge_indexes
from rag_assets.laboratory.records import SWEEP_TABLES, promotion_rows, read_tables, rows_of
from rag_assets.project import models_folder, project_root, shown_path, source_version
from rag_assets.provenance import manifest
from rag_assets.quality.report import CheckReport
from rag_assets.report.page import report_of
from rag_assets.statistics.evidence import compare_tables, interval_tables
from rag_assets.store import Artifact, AssetPath, Store
from rag_assets.thresholds.choice import threshold_tables
from rag_assets.warehouse.build import BaseTable, TableSummary, summarize, table_digest
from rag_assets.warehouse.models import Model
from rag_assets.warehouse.release import Release, publish, reading

AUDIT: AssetPath = ("migration_audit",)
# Grouped with the audits: what people decide on, after what is measured.
DECISIVE = ("check_results", "default_index", "index_promotion", "manifest")


def upstream_assets(suite: Suite, base_table: str) -> list[dg.AssetKey]:
    """The assets that fill a base table."""
    embeddings = [suite.key(*embeddings_path(space_id)) for space_id in suite.space_ids]
    results = [
        suite.key(*results_path(space_id, name))
        for space_id in suite.space_ids
        for name in suite.result_names(space_id)
    ]
    canonical = [suite.key(*CANONICAL)]
    if base_table in SWEEP_TABLES:
        return [suite.key(*sweep_path(sweep)) for sweep in suite.sweeps]
    return {
        "space_items": embeddings,
        "spaces": canonical + embeddings,
        "results": results,
        "searches": results,
        "indexes": results,
        "index_builds": [
            suite.key(*index_path(space_id, index.name))
            for space_id in suite.space_ids
            for index in suite.indexes_of(space_id)
        ],
        "benchmarks": [
            suite.key(*benchmark_path(space_id))
            for space_id in suite.space_ids
            if suite.indexes_of(space_id)
        ],
        "checks": canonical + embeddings + results,
        "manifest": results,
    }.get(base_table, canonical)


def tables_asset(suite: Suite, models: Sequence[Model]) -> dg.AssetsDefinition:
    """One asset per SQL model, and the report on them.

    The table canonical_items belongs to the asset of that name.
    """
    code = source_version("evaluation.py", "warehouse", "quality")
    shown = [model for model in models if (model.name,) != CANONICAL]
    specs = [_spec(suite, model, code) for model in shown]
    about_them = report_spec(suite, [spec.key for spec in specs])

    # The report belongs to the step that publishes: a failed gate would stop a step of its own.
    @dg.multi_asset(
        specs=[*specs, about_them],
        check_specs=[check_spec(suite, AUDIT, MECHANICAL_GATES)],
        name=f"{asset_group(suite.name)}__tables",
    )
    def tables(
        context: dg.AssetExecutionContext, store: StoreResource
    ) -> Iterator[dg.MaterializeResult[None]]:
        with failures_in_plain_words():
            artifacts = store.of(suite, context.run.run_id)
            base = _base(suite, artifacts, context.run.run_id)
            gates: list[CheckReport] = []
            audit_name = f"{suite.name}/{AUDIT[0]}"

            def build_into(connection: duckdb.DuckDBPyConnection) -> None:
                gates.append(
                    build_checked(
                        connection,
                        base,
                        models,
                        audit_name=audit_name,
                        pairs=len(suite.pairs),
                        judge=lambda built: _judged(suite, built),
                    )
                )

            release = publish(
                build_into, warehouse=store.warehouse, suite=suite.name, keep=suite.kept_releases
            )
            context.log.info(f"published {shown_path(release.path)}")
            with reading(release.path) as connection:
                built = summarize(connection)
                report = report_of(connection, suite.name, release.release_id, redact=False)
                results = [
                    _materialized(
                        suite,
                        model,
                        built[model.name],
                        connection,
                        release,
                        store.warehouse,
                        report.pictures.get(model.name, {}),
                        [check_result(suite, AUDIT, gates[0])] if (model.name,) == AUDIT else [],
                    )
                    for model in shown
                ]
        yield from results
        with failures_in_plain_words():
            yield written_report(suite, store.warehouse, report)

    return tables


def _spec(suite: Suite, model: Model, code: str) -> dg.AssetSpec:
    upstream = [suite.key(name) for name in model.depends_on]
    for base_table in model.reads:
        upstream += upstream_assets(suite, base_table)
    audit = model.name.startswith("migration") or model.name in DECISIVE
    return dg.AssetSpec(
        suite.key(model.name),
        deps=sorted(set(upstream)),
        group_name=asset_group(suite.name, "audits" if audit else "measures"),
        description=f"{markdown_header(model.description)}\n\n"
        f"Defined in `{models_folder().name}/{model.name}.sql`.",
        kinds={"duckdb", "sql"},
        metadata={"sql": dg.MetadataValue.md(f"```sql\n{model.sql}\n```")},
        owners=list(suite.owners),
        code_version=f"{code}-{digest(model.sql)[:12]}",
    )


def _judged(suite: Suite, connection: duckdb.DuckDBPyConnection) -> dict[str, pa.Table]:
    """The promotion gate of every approximate index, and the statistics of measures and changes."""
    [[data]] = connection.sql(
        "SELECT value FROM base.manifest WHERE key = 'version canonical_items'"
    ).fetchall()
    promotions = judge_indexes(connection, suite.thresholds, data)
    space_nos = {space_id: number for number, space_id in enumerate(suite.space_ids)}
    return {
        "promotion": promotion_rows(promotions, space_nos),
        "comparisons": compare_tables(connection),
        "metric_intervals": interval_tables(connection),
    }


def _index_build(space_id: str, index: DeclaredIndex, stored: Artifact) -> IndexBuild:
    if stored.not_executed is None:
        return read_index_build(stored.folder)
    return IndexBuild(
        space_id,
        index.name,
        index.spec.kind,
        canonical_json(parameters(index.spec)),
        index.spec.seed,
        NOT_EXECUTED,
        stored.not_executed,
    )


def _measured(
    suite: Suite,
    store: Store,
    corpus: Corpus,
    embeddings: Mapping[str, Artifact],
    contracts: Sequence[SpaceContract],
) -> dict[str, pa.Table]:
    """What the laboratory found, and which index serves each space."""
    parts: dict[str, list[pa.Table]] = {}
    for space_id in suite.space_ids:
        if suite.indexes_of(space_id):
            times = store.read(benchmark_path(space_id))
            built_on(times, embeddings[space_id])
            if times.not_executed:
                continue
            parts.setdefault("benchmarks", []).append(
                read_tables(times.folder, ["benchmarks"])["benchmarks"]
            )
    for sweep in suite.sweeps:
        found = store.read(sweep_path(sweep))
        built_on(found, embeddings[sweep.space_id])
        if found.not_executed:
            continue
        for name, table in read_tables(found.folder, SWEEP_TABLES).items():
            parts.setdefault(name, []).append(table)
    tables = {name: pa.concat_tables(found) for name, found in parts.items()}
    decided = {decision.space_id: decision for decision in default_decisions(suite.folder)}
    chosen = default_index(suite.folder, suite.space_ids)
    rows = []
    for space_id, index_name in chosen.items():
        decision = decided.get(space_id)
        rows.append(
            {
                "space_no": corpus.space_no(space_id),
                "index_name": index_name,
                "decided_by": decision and decision.by,
                "decided_at": decision and decision.when,
                "why": decision and decision.why,
                "evidence": decision and decision.evidence,
            }
        )
    return {
        **tables,
        "default_indexes": rows_of("default_indexes", rows),
        **threshold_tables(suite.folder, contracts),
    }


def _base(suite: Suite, store: Store, run_id: str) -> dict[str, BaseTable]:
    """The base tables, from versions that passed their checks and belong together."""
    canonical = guarded(store, CANONICAL, CONTRACT_VALIDATION)
    corpus = read_corpus(canonical.folder)
    space_items = []
    spaces = []
    results = []
    builds = []
    embedded = {}
    checked = [canonical]
    for space_id in suite.space_ids:
        embeddings = guarded(store, embeddings_path(space_id), CONTRACT_VALIDATION)
        built_on(embeddings, canonical)
        embedded[space_id] = embeddings
        checked.append(embeddings)
        if embeddings.not_executed:
            contract = corpus.contract(space_id)
            spaces.append(SpaceStatus(contract, embeddings.not_executed))
        else:
            space = read_embeddings(embeddings.folder)
            spaces.append(SpaceStatus(space.contract))
            space_items.append(space_item_rows(space, corpus.space_no(space_id)))
        for name in suite.result_names(space_id):
            found = guarded(store, results_path(space_id, name), RESULT_VALIDATION)
            built_on(found, canonical)
            built_on(found, embeddings)
            if not found.not_executed:
                results.append(found)
            checked.append(found)
        for index in suite.indexes_of(space_id):
            stored = store.read(index_path(space_id, index.name))
            built_on(stored, embeddings)
            builds.append(_index_build(space_id, index, stored))
            checked.append(stored)
    return base_tables(
        corpus,
        spaces=spaces,
        space_items=space_items,
        results=[found.folder / RESULTS_FILE for found in results],
        searches=[found.folder / SEARCHES_FILE for found in results],
        index_builds=builds,
        external=[(run.space_id, run.name) for run in suite.runs],
        measured=_measured(suite, store, corpus, embedded, [space.contract for space in spaces]),
        ks=suite.ks,
        pairs=suite.pairs,
        reports=_reports(suite, store, checked),
        manifest=_manifest(suite, corpus, checked, run_id),
    )


def _reports(
    suite: Suite, store: Store, checked: Sequence[Artifact]
) -> Iterator[tuple[str, CheckReport]]:
    for artifact in checked:
        for report in store.read_checks(artifact).values():
            yield f"{suite.name}/{artifact.name}", report


def _manifest(
    suite: Suite, corpus: Corpus, checked: Sequence[Artifact], run_id: str
) -> dict[str, str]:
    facts = {
        "suite": suite.name,
        "source": suite.source.shown,
        "notice": suite.notice,
        "evaluated_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "dagster_run_id": run_id,
        "k": ", ".join(map(str, suite.ks)),
        "audits": ", ".join(f"{pair.old}:{pair.new}" for pair in suite.pairs),
        "seeds": "none: exact search uses no random numbers",
        "ranking": "score descending on a grid of 2^-30 of the largest attainable score, "
        "then item id ascending",
    }
    for artifact in checked:
        facts[f"version {artifact.name}"] = artifact.version
    return manifest(project_root(), facts)


def _materialized(
    suite: Suite,
    model: Model,
    table: TableSummary,
    connection: duckdb.DuckDBPyConnection,
    release: Release,
    warehouse: Path,
    pictures: Mapping[str, Markup],
    check_results: Sequence[dg.AssetCheckResult],
) -> dg.MaterializeResult[None]:
    meanings = column_meanings(model.description)
    columns = [
        dg.TableColumn(name, kind, description=meanings.get(name)) for name, kind in table.columns
    ]
    metadata: dict[str, object] = {
        "dagster/row_count": table.row_count,
        "dagster/column_schema": dg.TableSchema(columns=columns),
        "dagster/table_name": f"{suite.name}.main.{model.name}",
        **shown_table(connection, model.name, table.row_count),
        **shown_pictures(pictures),
    }
    if suite.notice:
        metadata["notice"] = suite.notice
    metadata |= {
        "query": f"SELECT * FROM {model.name}",
        "database": dg.MetadataValue.path(f"{shown_path(warehouse)}/{suite.name}.duckdb"),
        **report_link(suite, warehouse),
        "release": release.release_id,
        **plotted_numbers(connection, model.name),
    }
    return dg.MaterializeResult(
        asset_key=suite.key(model.name),
        metadata=metadata,  # type: ignore[arg-type]
        check_results=check_results,
        data_version=dg.DataVersion(table_digest(connection, model.name)),
    )
