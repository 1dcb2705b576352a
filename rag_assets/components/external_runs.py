"""Runs from elsewhere: what another search returned for the suite's cases, beside our indexes."""

# Dagster reads annotations at run time, so they are not postponed here.

import dagster as dg

from rag_assets.canonical.corpus import digest, digest_table
from rag_assets.canonical.files import read_corpus
from rag_assets.components.chain import (
    checked_inputs,
    column_schema,
    materialized,
    not_executed,
)
from rag_assets.components.suite import (
    CANONICAL,
    DeclaredRun,
    StoreResource,
    Suite,
    asset_group,
    embeddings_path,
    failures_in_plain_words,
    results_path,
)
from rag_assets.evaluation import external_results, write_results
from rag_assets.project import project_root, source_version
from rag_assets.sources.trec_run import read_trec_run
from rag_assets.warehouse.base import BASE


def external_run_asset(suite: Suite, declared: DeclaredRun) -> dg.AssetsDefinition:
    """The results of one TREC run file, checked for leaks like our own."""
    code = source_version("sources", "evaluation.py")
    path = results_path(declared.space_id, declared.name)

    @dg.asset(
        key=suite.key(*path),
        deps=[suite.key(*CANONICAL), suite.key(*embeddings_path(declared.space_id))],
        group_name=asset_group(suite.name, declared.space_id),
        description=f"Ranked documents of every query case as the run file `{declared.path}` has "
        f"them, evaluated beside the indexes of the space `{declared.space_id}`. A run that holds "
        "a document its subject may not read is refused.",
        kinds={"trec", "parquet"},
        owners=list(suite.owners),
        code_version=code,
        metadata=column_schema(BASE["results"]),
    )
    def external_run(
        context: dg.AssetExecutionContext, store: StoreResource
    ) -> dg.MaterializeResult[None]:
        with failures_in_plain_words():
            artifacts = store.of(suite, context.run.run_id)
            canonical, embeddings = checked_inputs(artifacts, declared.space_id)
            inputs = (canonical, embeddings)
            if embeddings.not_executed:  # its rights could not be checked against the space
                return not_executed(artifacts, path, embeddings.not_executed, inputs, code)
            corpus = read_corpus(canonical.folder)
            run = read_trec_run(project_root() / declared.path, corpus, declared.path)
            found = external_results(
                run.results, corpus, declared.space_id, declared.name, max(suite.ks)
            )
            content = digest_table(found.results)
            artifact = artifacts.write(
                path,
                digest(code, canonical.version, embeddings.version, content),
                lambda folder: write_results(found, folder),
                content=content,
                inputs=inputs,
            )
            return materialized(
                artifact,
                content,
                rows=len(found.results),
                tag=run.tag,
                reordered_lines=run.reordered,
                cases_without_results=run.silent_cases,
            )

    return external_run
