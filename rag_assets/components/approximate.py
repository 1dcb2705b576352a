"""The approximate branch of a space: one index asset and one results asset per declared index."""

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
from rag_assets.components.checks import CONTRACT_VALIDATION, built_on, guarded
from rag_assets.components.suite import (
    CANONICAL,
    DeclaredIndex,
    StoreResource,
    Suite,
    asset_group,
    embeddings_path,
    failures_in_plain_words,
    index_path,
    results_path,
)
from rag_assets.embeddings.files import read_embeddings
from rag_assets.errors import EngineMissing
from rag_assets.evaluation import space_results, write_results
from rag_assets.indexes.ann import AnnIndex
from rag_assets.indexes.builds import BUILT, read_index_build, store_index
from rag_assets.indexes.exact import ExactIndex
from rag_assets.indexes.faiss_engine import load_faiss
from rag_assets.indexes.specs import parameters
from rag_assets.project import source_version
from rag_assets.warehouse.base import BASE


def approximate_index_asset(
    suite: Suite, space_id: str, declared: DeclaredIndex
) -> dg.AssetsDefinition:
    """One index, trained and filled once, then loaded by whatever searches it."""
    code = source_version("canonical", "embeddings", "indexes")
    name = declared.name

    @dg.asset(
        key=suite.key(*index_path(space_id, name)),
        deps=[suite.key(*embeddings_path(space_id))],
        group_name=asset_group(suite.name, space_id),
        description=f"Approximate index `{name}` ({declared.spec.kind}) over the documents of the "
        f"space `{space_id}`. Same seed and data give the same index on any number of threads.",
        kinds={"faiss"},
        owners=list(suite.owners),
        code_version=digest(code, str(parameters(declared.spec)))[:12],
        metadata={"parameters": parameters(declared.spec)},
    )
    def approximate_index(
        context: dg.AssetExecutionContext, store: StoreResource
    ) -> dg.MaterializeResult[None]:
        with failures_in_plain_words():
            artifacts = store.of(suite, context.run.run_id)
            embeddings = guarded(artifacts, embeddings_path(space_id), CONTRACT_VALIDATION)
            if embeddings.not_executed:
                return not_executed(
                    artifacts,
                    index_path(space_id, name),
                    embeddings.not_executed,
                    (embeddings,),
                    code,
                )
            content = digest(code, embeddings.content, str(parameters(declared.spec)))
            space = read_embeddings(embeddings.folder)
            path = index_path(space_id, name)
            try:
                load_faiss()  # an index that is stored already cannot be searched without it either
                artifact = artifacts.write(
                    path,
                    content,
                    lambda folder: store_index(name, declared.spec, space, folder),
                    inputs=(embeddings,),
                )
            except EngineMissing as missing:
                return not_executed(artifacts, path, str(missing), (embeddings,), code)
            build = read_index_build(artifact.folder)
            return materialized(
                artifact,
                content,
                rows=space.document_count,
                status=build.status,
                build_ms=build.build_ms,
                index_bytes=build.index_bytes,
                memory_bytes=build.memory_bytes,
            )

    return approximate_index


def approximate_results_asset(
    suite: Suite, space_id: str, declared: DeclaredIndex
) -> dg.AssetsDefinition:
    """What one approximate index returned for every query case."""
    code = source_version("canonical", "embeddings", "indexes", "results", "evaluation.py")
    name = declared.name

    @dg.asset(
        key=suite.key(*results_path(space_id, name)),
        deps=[
            suite.key(*CANONICAL),
            suite.key(*embeddings_path(space_id)),
            suite.key(*index_path(space_id)),
            suite.key(*index_path(space_id, name)),
        ],
        group_name=asset_group(suite.name, space_id),
        description=f"Ranked documents of every query case in the space `{space_id}` by the "
        f"approximate index `{name}`, among the documents that the case's groups may read. "
        "Beside each score that the index reported stands the exact one.",
        kinds={"faiss", "parquet"},
        owners=list(suite.owners),
        code_version=code,
        metadata=column_schema(BASE["results"]),
    )
    def approximate_results(
        context: dg.AssetExecutionContext, store: StoreResource
    ) -> dg.MaterializeResult[None]:
        with failures_in_plain_words():
            artifacts = store.of(suite, context.run.run_id)
            canonical, embeddings = checked_inputs(artifacts, space_id)
            exact_index = artifacts.read(index_path(space_id))
            stored = artifacts.read(index_path(space_id, name))
            built_on(exact_index, embeddings)
            built_on(stored, embeddings)
            inputs = (canonical, embeddings, stored)
            path = results_path(space_id, name)
            if stored.not_executed:
                return not_executed(artifacts, path, stored.not_executed, inputs, code)
            corpus = read_corpus(canonical.folder)
            space = read_embeddings(embeddings.folder)
            found = space_results(
                space,
                ExactIndex.load(exact_index.folder, space),
                corpus,
                suite.ks,
                suite.pairs,
                index_name=name,
                index=AnnIndex.load(stored.folder, space),
            )
            content = digest(digest_table(found.results), digest_table(found.searches))
            artifact = artifacts.write(
                path,
                digest(code, canonical.version, stored.version, content),
                lambda folder: write_results(found, folder),
                content=content,
                inputs=inputs,
            )
            return materialized(
                artifact,
                content,
                rows=len(found.results),
                queries=len(found.searches),
                depth=max(suite.ks),
                status=BUILT,
            )

    return approximate_results
