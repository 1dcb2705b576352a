"""The laboratory of a suite: the benchmark of each space's indexes, and its declared sweeps."""

# Dagster reads annotations at run time, so they are not postponed here.

import base64
from collections.abc import Mapping
from typing import Any

import dagster as dg

from rag_assets.canonical.corpus import digest, digest_table
from rag_assets.canonical.files import read_corpus
from rag_assets.components.chain import (
    checked_inputs,
    column_schema,
    materialized,
    not_executed,
)
from rag_assets.components.checks import built_on
from rag_assets.components.markdown import markdown_table
from rag_assets.components.suite import (
    CANONICAL,
    DeclaredSweep,
    StoreResource,
    Suite,
    asset_group,
    benchmark_path,
    embeddings_path,
    failures_in_plain_words,
    index_path,
    sweep_path,
)
from rag_assets.embeddings.files import read_embeddings
from rag_assets.errors import EngineMissing
from rag_assets.evaluation import EXACT
from rag_assets.indexes.ann import AnnIndex
from rag_assets.indexes.exact import ExactIndex
from rag_assets.laboratory.index_benchmarks import benchmark_indexes
from rag_assets.laboratory.pictures import tradeoff_picture
from rag_assets.laboratory.plans import record_run, register_plan
from rag_assets.laboratory.queries import SearchIndex, case_queries
from rag_assets.laboratory.records import (
    benchmark_rows,
    sweep_record,
    write_tables,
)
from rag_assets.laboratory.sweep_runs import run_sweep
from rag_assets.project import plans_folder, source_version
from rag_assets.provenance import usable_cores
from rag_assets.warehouse.base import BASE


def index_benchmark_asset(suite: Suite, space_id: str) -> dg.AssetsDefinition:
    """Times of every index of one space, exact search among them, in one run."""
    code = source_version("indexes", "laboratory")
    names = [index.name for index in suite.indexes_of(space_id)]

    @dg.asset(
        key=suite.key(*benchmark_path(space_id)),
        deps=[
            suite.key(*CANONICAL),
            suite.key(*embeddings_path(space_id)),
            *(suite.key(*index_path(space_id, name)) for name in (EXACT, *names)),
        ],
        group_name=asset_group(suite.name, space_id),
        description=f"How fast the indexes of the space `{space_id}` answer: exact search and "
        "every approximate index, timed against each other in one run (single queries on one "
        "thread, batches on one thread and on all cores).",
        kinds={"numpy", "faiss"},
        owners=list(suite.owners),
        code_version=code,
        metadata=column_schema(BASE["benchmarks"]),
    )
    def index_benchmark(
        context: dg.AssetExecutionContext, store: StoreResource
    ) -> dg.MaterializeResult[None]:
        with failures_in_plain_words():
            artifacts = store.of(suite, context.run.run_id)
            canonical, embeddings = checked_inputs(artifacts, space_id)
            inputs = (canonical, embeddings)
            if embeddings.not_executed:
                return not_executed(
                    artifacts, benchmark_path(space_id), embeddings.not_executed, inputs, code
                )
            corpus, space = read_corpus(canonical.folder), read_embeddings(embeddings.folder)
            exact = artifacts.read(index_path(space_id))
            built_on(exact, embeddings)
            indexes: dict[str, SearchIndex] = {EXACT: ExactIndex.load(exact.folder, space)}
            for name in names:
                stored = artifacts.read(index_path(space_id, name))
                built_on(stored, embeddings)
                if not stored.not_executed:
                    indexes[name] = AnnIndex.load(stored.folder, space)
            times = benchmark_indexes(
                indexes,
                case_queries(space, corpus),
                max(suite.ks),
                threads=usable_cores(),
                budget_s=suite.benchmark_budget_s,
            )
            table = benchmark_rows(times, corpus.space_no(space_id))
            content = digest_table(table)
            artifact = artifacts.write(
                benchmark_path(space_id),
                digest(code, canonical.version, embeddings.version, content),
                lambda folder: write_tables({"benchmarks": table}, folder),
                inputs=inputs,
            )
            shown = table.select(
                [
                    "index_name",
                    "query_count",
                    "p50_ms",
                    "p95_ms",
                    "p99_ms",
                    "best_p50_ms",
                    "queries_per_second",
                    "queries_per_second_parallel",
                ]
            )
            medians = {f"p50_ms [{one.index_name}]": one.p50_ms for one in times}
            return materialized(
                artifact,
                content,
                rows=len(table),
                table=dg.MetadataValue.md(markdown_table(shown)),
                **_known(medians),
            )

    return index_benchmark


def sweep_asset(suite: Suite, declared: DeclaredSweep) -> dg.AssetsDefinition:
    """One declared experiment: its plan is registered before anything is measured."""
    code = source_version("indexes", "laboratory")
    sweep, space_id = declared.sweep, declared.space_id
    rule, claim = sweep.stop_rule, sweep.claim

    @dg.asset(
        key=suite.key(*sweep_path(declared)),
        deps=[
            suite.key(*CANONICAL),
            suite.key(*embeddings_path(space_id)),
        ],
        group_name=asset_group(suite.name, space_id),
        description=f"Sweep of `{sweep.parameter}` over {', '.join(map(str, sweep.values))} for "
        f"the index `{declared.index_name}` of `{space_id}`, seeds "
        f"{', '.join(map(str, sweep.seeds))}; everything else is fixed. Claim: mean ANN "
        f"Recall@{sweep.k} of at least {claim.min_mean_recall:g}. Stop rule, fixed beforehand: "
        f"stop where mean recall rises by less than {rule.min_recall_gain:g} or p95 grows by more "
        f"than {rule.max_p95_growth:.0%}.",
        kinds={"faiss", "matplotlib"},
        owners=list(suite.owners),
        code_version=code,
        metadata=column_schema(BASE["sweep_runs"]),
    )
    def sweep_results(
        context: dg.AssetExecutionContext, store: StoreResource
    ) -> dg.MaterializeResult[None]:
        with failures_in_plain_words():
            artifacts = store.of(suite, context.run.run_id)
            canonical, embeddings = checked_inputs(artifacts, space_id)
            inputs = (canonical, embeddings)
            if embeddings.not_executed:
                return not_executed(
                    artifacts, sweep_path(declared), embeddings.not_executed, inputs, code
                )
            corpus, space = read_corpus(canonical.folder), read_embeddings(embeddings.folder)
            plans = plans_folder() / suite.name
            version = digest(canonical.version, embeddings.version)
            registered = register_plan(plans, sweep, version)
            try:
                rows = run_sweep(
                    sweep,
                    space,
                    case_queries(space, corpus),
                    budget_s=suite.sweep_budget_s,
                    progress=context.log.info,
                )
            except EngineMissing as missing:
                return not_executed(artifacts, sweep_path(declared), str(missing), inputs, code)
            record_run(plans, sweep, version, rows)
            record = sweep_record(
                sweep,
                rows,
                registered,
                space_no=corpus.space_no(space_id),
                index_name=declared.index_name,
            )
            picture = tradeoff_picture(sweep, rows, record.verdict)
            content = digest(*(digest_table(table) for table in record.tables.values()))

            def write_files(folder: Any) -> None:
                write_tables(record.tables, folder)
                (folder / "tradeoff.png").write_bytes(picture.png)
                (folder / "tradeoff.svg").write_bytes(picture.svg)

            artifact = artifacts.write(
                sweep_path(declared),
                digest(code, canonical.version, embeddings.version, content),
                write_files,
                inputs=inputs,
            )
            image = base64.b64encode(picture.png).decode("ascii")
            values = record.tables["sweep_values"].drop_columns(
                ["sweep", "space_no", "index_name", "parameter", "value_no"]
            )
            points = record.tables["operating_points"].drop_columns(
                ["sweep", "space_no", "index_name", "parameter"]
            )
            return materialized(
                artifact,
                content,
                rows=len(rows),
                verdict=record.verdict.verdict,
                reason=record.verdict.reason,
                tradeoff=dg.MetadataValue.md(
                    f"![Recall against latency](data:image/png;base64,{image})"
                ),
                values=dg.MetadataValue.md(markdown_table(values)),
                operating_points=dg.MetadataValue.md(markdown_table(points)),
            )

    return sweep_results


def _known(numbers: Mapping[str, float | None]) -> dict[str, Any]:
    return {name: number for name, number in numbers.items() if number is not None}
