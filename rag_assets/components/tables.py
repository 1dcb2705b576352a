"""The SQL models of a suite as one multi-asset that ends in a published release."""

# Dagster reads annotations at run time, so they are not postponed here.

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import dagster as dg
import duckdb
from markupsafe import Markup

from rag_assets.canonical.corpus import digest
from rag_assets.components.checks import (
    MECHANICAL_GATES,
    RELEASE_CHECKLIST,
    check_result,
    check_spec,
)
from rag_assets.components.inputs import suite_base
from rag_assets.components.markdown import column_meanings, markdown_header
from rag_assets.components.recording import (
    CONTENT_CHANGES,
    CONTRACT_CHANGES,
    Recording,
    identity,
)
from rag_assets.components.report import (
    report_link,
    report_spec,
    shown_pictures,
    written_report,
)
from rag_assets.components.shown_tables import plotted_numbers, shown_table
from rag_assets.components.suite import (
    CANONICAL,
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
from rag_assets.decisions.tables import DECISION_MODELS, decided_tables
from rag_assets.evaluation import (
    Judged,
    build_checked,
)
from rag_assets.history.evaluations import history_folder
from rag_assets.laboratory.evidence import judge_indexes
from rag_assets.laboratory.records import SWEEP_TABLES, promotion_rows
from rag_assets.project import models_folder, shown_path, source_version
from rag_assets.quality.report import CheckReport
from rag_assets.regression.baseline import Baseline, baseline_tables, read_baseline
from rag_assets.regression.evidence import measured_today
from rag_assets.regression.judging import judge_gates
from rag_assets.regression.rows import REGRESSION_GATES
from rag_assets.report.page import report_of
from rag_assets.statistics.evidence import compare_tables, interval_tables
from rag_assets.store import AssetPath
from rag_assets.warehouse.build import TableSummary, summarize, table_digest
from rag_assets.warehouse.models import Model
from rag_assets.warehouse.release import Release, publish, reading

AUDIT: AssetPath = ("migration_audit",)
# Grouped with the audits: what people decide on, after what is measured.
DECISIVE = (
    "check_results",
    "default_index",
    "index_promotion",
    "manifest",
    "regression_gates",
    *DECISION_MODELS,
)
HISTORIC = ("evaluations", "heartbeats", "evaluation_comparison", "case_digests")
# The tables that have a check, which the tables' own step evaluates.
TABLE_CHECKS = (
    (AUDIT, MECHANICAL_GATES),
    ((REGRESSION_GATES,), REGRESSION_GATES),
    ((RELEASE_CHECKLIST,), RELEASE_CHECKLIST),
    (CONTENT_CHANGES, "content_changes"),
    (CONTENT_CHANGES, "access_changes"),
    (CONTRACT_CHANGES, "contract_changes"),
)


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
        "regression_gates": results,
        "manifest": results,
    }.get(base_table, canonical)


def tables_asset(suite: Suite, models: Sequence[Model]) -> dg.AssetsDefinition:
    """One asset per SQL model, and the report on them.

    The table canonical_items belongs to the asset of that name.
    """
    code = source_version("evaluation.py", "warehouse", "quality", "regression", "decisions")
    shown = [model for model in models if (model.name,) != CANONICAL]
    specs = [_spec(suite, model, code) for model in shown]
    about_them = report_spec(suite)

    # The report belongs to the step that publishes: a failed gate would stop a step of its own.
    @dg.multi_asset(
        specs=[*specs, about_them],
        check_specs=[check_spec(suite, asset, name) for asset, name in TABLE_CHECKS],
        name=f"{asset_group(suite.name)}__tables",
    )
    def tables(
        context: dg.AssetExecutionContext, store: StoreResource
    ) -> Iterator[dg.MaterializeResult[None]]:
        with failures_in_plain_words():
            artifacts = store.of(suite, context.run.run_id)
            baseline = read_baseline(suite.folder, suite.name)
            base, checked = suite_base(suite, artifacts, context.run.run_id)
            identified = identity(suite, checked, models, baseline)
            history = history_folder(store.warehouse, suite.name)
            reports: list[tuple[str, CheckReport]] = []

            def build_into(connection: duckdb.DuckDBPyConnection) -> None:
                recording = Recording.begin(history, identified, base, context.run.run_id)
                reports.extend(
                    build_checked(
                        connection,
                        recording.with_history(base) | baseline_tables(baseline),
                        models,
                        suite=suite.name,
                        pairs=len(suite.pairs),
                        judge=lambda built: _judged(suite, built, baseline, recording),
                    )
                )
                recording.keep(connection, suite.kept_evaluations)

            release = publish(
                build_into,
                warehouse=store.warehouse,
                suite=suite.name,
                keep=suite.kept_releases,
                content=identified.fingerprint,
            )
            context.log.info(f"published {shown_path(release.path)}")
            with reading(release.path) as connection:
                built = summarize(connection)
                page = report_of(connection, suite.name, release.release_id, redact=False)
                results = [
                    _materialized(
                        suite,
                        model,
                        built[model.name],
                        connection,
                        release,
                        store.warehouse,
                        page.pictures.get(model.name, {}),
                        [
                            check_result(suite, (model.name,), report)
                            for table, report in reports
                            if table == model.name
                        ],
                    )
                    for model in shown
                ]
        yield from results
        with failures_in_plain_words():
            yield written_report(suite, store.warehouse, page)

    return tables


def _spec(suite: Suite, model: Model, code: str) -> dg.AssetSpec:
    upstream = [suite.key(name) for name in model.depends_on]
    for base_table in model.reads:
        upstream += upstream_assets(suite, base_table)
    return dg.AssetSpec(
        suite.key(model.name),
        deps=sorted(set(upstream)),
        group_name=asset_group(suite.name, _stage(model.name)),
        description=f"{markdown_header(model.description)}\n\n"
        f"Defined in `{models_folder().name}/{model.name}.sql`.",
        kinds={"duckdb", "sql"},
        metadata={"sql": dg.MetadataValue.md(f"```sql\n{model.sql}\n```")},
        owners=list(suite.owners),
        code_version=f"{code}-{digest(model.sql)[:12]}",
    )


def _stage(table: str) -> str:
    if table in HISTORIC or table.endswith(("_history", "_changes")):
        return "history"
    return "audits" if table.startswith("migration") or table in DECISIVE else "measures"


def _judged(
    suite: Suite,
    connection: duckdb.DuckDBPyConnection,
    baseline: Baseline | None,
    recording: Recording,
) -> Judged:
    """The promotion gate of every approximate index, every comparison with its statistics, the
    regression gates, the release checklist, and what has changed."""
    from rag_assets.quality.regression import check_regression_gates

    [[data]] = connection.sql(
        "SELECT value FROM base.manifest WHERE key = 'version canonical_items'"
    ).fetchall()
    promotions = judge_indexes(connection, suite.thresholds, data)
    space_nos = {space_id: number for number, space_id in enumerate(suite.space_ids)}
    gates = judge_gates(suite.regression, measured_today(connection), baseline)
    decided, checklist = decided_tables(
        connection,
        suite.name,
        suite.folder,
        vectors_given=suite.source.holds == "contracts",
    )
    return Judged(
        {
            **decided,
            "promotion": promotion_rows(promotions, space_nos),
            "comparisons": compare_tables(connection),
            "metric_intervals": interval_tables(connection),
            "regression_gates": gates,
        },
        [
            (REGRESSION_GATES, check_regression_gates(gates)),
            (RELEASE_CHECKLIST, checklist),
            *recording.changes(connection),
        ],
    )


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
