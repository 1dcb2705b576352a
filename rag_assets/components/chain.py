"""The assets of a suite up to its results: canonical items, embeddings, exact index, results."""

# Dagster reads annotations at run time, so they are not postponed here.

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg
import pyarrow as pa

from rag_assets.canonical.corpus import ITEMS, SPACE_ITEMS, Corpus, digest, digest_table
from rag_assets.canonical.files import corpus_digest, read_corpus, write_corpus
from rag_assets.components.checks import (
    CONTRACT_VALIDATION,
    DATA_CHECKS,
    built_on,
    check_result,
    check_spec,
    guarded,
    note_blocked,
)
from rag_assets.components.markdown import markdown_table, shown
from rag_assets.components.suite import (
    CANONICAL,
    SourceRead,
    StoreResource,
    Suite,
    asset_group,
    embeddings_path,
    failures_in_plain_words,
    index_path,
    results_path,
)
from rag_assets.embeddings.cache import EmbeddingCache
from rag_assets.embeddings.files import embeddings_digest, read_embeddings, write_embeddings
from rag_assets.embeddings.plans import SpacePlan, make_space
from rag_assets.embeddings.providers import PrecomputedConfig
from rag_assets.errors import InputError, Problem
from rag_assets.evaluation import space_results, write_results
from rag_assets.history.blocked import refused_source
from rag_assets.indexes.exact import ExactIndex
from rag_assets.indexes.ranking import norms
from rag_assets.project import project_root, source_version
from rag_assets.store import Artifact, AssetPath, Store
from rag_assets.warehouse.base import BASE

PREVIEW_ROWS = 10


def canonical_items_asset(suite: Suite) -> dg.AssetsDefinition:
    """Reads the source with its strict loader; nothing is stored when anything is refused."""
    code = _reading_code()

    @dg.asset(
        key=suite.key(*CANONICAL),
        group_name=asset_group(suite.name, "corpus"),
        description=f"Canonical items, query cases and judgements, read strictly from "
        f"`{suite.source.shown}`. One row per item; where spaces disagree about an item, the row "
        "of the first declared space. Bad input fails here, with every fault named.",
        kinds={suite.source.kind, "parquet"},
        owners=list(suite.owners),
        code_version=code,
        metadata={
            "source": suite.source.shown,
            **column_schema(ITEMS),
        },
        check_specs=[check_spec(suite, CANONICAL, DATA_CHECKS)] if suite.source.data_checks else [],
    )
    def canonical_items(
        context: dg.AssetExecutionContext, store: StoreResource
    ) -> Iterator[dg.MaterializeResult[None]]:
        with failures_in_plain_words():
            try:
                read = _read_source(suite)
            except InputError as error:
                report = refused_source(error)
                note_blocked(store, suite, context.run.run_id, CANONICAL[0], report)
                raise
            corpus = read.corpus
            content = corpus_digest(corpus)
            artifacts = store.of(suite, context.run.run_id)
            artifact = artifacts.write(
                CANONICAL,
                digest(code, content),
                lambda folder: write_corpus(corpus, folder),
                content=content,
            )
            results = []
            if read.report is not None:
                artifacts.write_check(artifact, read.report)
                if read.report.blocks:
                    run_id = context.run.run_id
                    note_blocked(store, suite, run_id, CANONICAL[0], read.report)
                results.append(check_result(suite, CANONICAL, read.report))
            documents = [contract.document_role for contract in corpus.contracts]
            roles = Counter(corpus.items["role"].to_pylist())
            yield materialized(
                artifact,
                content,
                rows=len(corpus.items),
                documents=sum(roles[role] for role in set(documents)),
                queries=len(corpus.cases),
                judgements=len(corpus.qrels),
                spaces=len(corpus.contracts),
                check_results=results,
                **_notice(suite),
                preview=dg.MetadataValue.md(_preview(corpus.items)),
            )

    return canonical_items


def versions_now(suite: Suite, cache: EmbeddingCache) -> dict[str, str]:
    """The versions, by asset, that canonical items and precomputed vectors would have now.

    Nothing is stored. Other vectors are made and not read: only making them would tell.
    """
    corpus = _read_source(suite).corpus
    canonical = digest(_reading_code(), corpus_digest(corpus))
    versions = {CANONICAL[0]: canonical}
    for plan in suite.spaces:
        if isinstance(plan.vectors, PrecomputedConfig):
            space = make_space(plan, corpus, root=project_root(), cache=cache).space
            assert space is not None  # they are files, which are there or refused
            name = "/".join(embeddings_path(plan.space_id))
            versions[name] = digest(_embedding_code(), canonical, embeddings_digest(space))
    return versions


def _reading_code() -> str:
    return source_version("canonical", "sources")


def _embedding_code() -> str:
    return source_version("canonical", "embeddings")


def _read_source(suite: Suite) -> SourceRead:
    read = suite.source.read(suite.contracts)
    _declared_spaces_only(suite, read.corpus)
    return read


def embeddings_asset(suite: Suite, plan: SpacePlan) -> dg.AssetsDefinition:
    """The vectors of one space with what they embed."""
    code = _embedding_code()
    space_id = plan.space_id
    parents = [suite.key(*embeddings_path(plan.parent))] if plan.parent is not None else []

    @dg.asset(
        key=suite.key(*embeddings_path(space_id)),
        deps=[suite.key(*CANONICAL), *parents],
        group_name=asset_group(suite.name, space_id),
        description=f"Vectors of every item in the space `{space_id}`, with the id, role, rights "
        "and content hash of what each one embeds. A memory-mapped .npy beside a Parquet table.",
        kinds={"numpy", "parquet"},
        owners=list(suite.owners),
        code_version=code,
        metadata=column_schema(SPACE_ITEMS),
    )
    def embeddings(
        context: dg.AssetExecutionContext, store: StoreResource
    ) -> dg.MaterializeResult[None]:
        with failures_in_plain_words():
            artifacts = store.of(suite, context.run.run_id)
            canonical = guarded(artifacts, CANONICAL, CONTRACT_VALIDATION)
            parent = None
            if plan.parent is not None:
                parent = guarded(artifacts, embeddings_path(plan.parent), CONTRACT_VALIDATION)
                built_on(parent, canonical)
            executed_parent = parent is not None and parent.not_executed is None
            made = make_space(
                plan,
                read_corpus(canonical.folder),
                root=project_root(),
                cache=EmbeddingCache(store.warehouse / "embedding_cache"),
                parent=read_embeddings(parent.folder) if parent and executed_parent else None,
                parent_reason=parent.not_executed if parent else None,
                progress=lambda done, count: context.log.info(f"embedded {done} of {count}"),
            )
            inputs = (canonical, *([parent] if parent else []))
            space = made.space
            if space is None:
                return not_executed(
                    artifacts, embeddings_path(space_id), str(made.reason), inputs, code
                )
            content = embeddings_digest(space)
            artifact = artifacts.write(
                embeddings_path(space_id),
                digest(code, canonical.version, content),
                lambda folder: write_embeddings(space, folder),
                content=content,
                inputs=inputs,
            )
            lengths = norms(space.vectors)
            contract = space.contract
            return materialized(
                artifact,
                content,
                rows=len(space.items),
                documents=space.document_count,
                dimension=contract.dimension,
                metric=contract.metric,
                model=f"{contract.provider} / {contract.model} / {contract.revision}",
                contract_signature=shown(contract.signature),
                raw_vector_bytes=int(space.vectors.nbytes),
                norm_min=float(lengths.min()),
                norm_max=float(lengths.max()),
                **made.facts,
                **_notice(suite),
            )

    return embeddings


def exact_index_asset(suite: Suite, space_id: str) -> dg.AssetsDefinition:
    """What exact search prepares once: the norm of every document."""
    code = source_version("canonical", "embeddings", "indexes")

    @dg.asset(
        key=suite.key(*index_path(space_id)),
        deps=[suite.key(*embeddings_path(space_id))],
        group_name=asset_group(suite.name, space_id),
        description=f"Exact index of the space `{space_id}`: vector norms of its documents, "
        "with what shows that they belong to these vectors. The vectors stay in the "
        "embeddings.",
        kinds={"numpy"},
        owners=list(suite.owners),
        code_version=code,
    )
    def exact_index(
        context: dg.AssetExecutionContext, store: StoreResource
    ) -> dg.MaterializeResult[None]:
        with failures_in_plain_words():
            artifacts = store.of(suite, context.run.run_id)
            embeddings = guarded(artifacts, embeddings_path(space_id), CONTRACT_VALIDATION)
            if embeddings.not_executed:
                return not_executed(
                    artifacts, index_path(space_id), embeddings.not_executed, (embeddings,), code
                )
            space = read_embeddings(embeddings.folder)
            index = ExactIndex.build(space)
            content = digest(code, embeddings.content)
            artifact = artifacts.write(
                index_path(space_id), content, index.save, inputs=(embeddings,)
            )
            return materialized(
                artifact, content, rows=space.document_count, index_bytes=int(index.nbytes)
            )

    return exact_index


def exact_results_asset(suite: Suite, space_id: str) -> dg.AssetsDefinition:
    """The exact, access-filtered ranking of every query case in one space."""
    code = source_version("canonical", "embeddings", "indexes", "results", "evaluation.py")

    @dg.asset(
        key=suite.key(*results_path(space_id)),
        deps=[
            suite.key(*CANONICAL),
            suite.key(*embeddings_path(space_id)),
            suite.key(*index_path(space_id)),
        ],
        group_name=asset_group(suite.name, space_id),
        description=f"Ranked documents of every query case in the space `{space_id}`, by exact "
        "search among the documents that the case's groups may read: the ground truth. Ordered by "
        "score descending, then item id ascending.",
        kinds={"numpy", "parquet"},
        owners=list(suite.owners),
        code_version=code,
        metadata=column_schema(BASE["results"]),
    )
    def results(
        context: dg.AssetExecutionContext, store: StoreResource
    ) -> dg.MaterializeResult[None]:
        with failures_in_plain_words():
            artifacts = store.of(suite, context.run.run_id)
            canonical, embeddings = checked_inputs(artifacts, space_id)
            stored_index = artifacts.read(index_path(space_id))
            built_on(stored_index, embeddings)
            inputs = (canonical, embeddings, stored_index)
            path = results_path(space_id)
            if embeddings.not_executed:
                return not_executed(artifacts, path, embeddings.not_executed, inputs, code)
            corpus = read_corpus(canonical.folder)
            space = read_embeddings(embeddings.folder)
            index = ExactIndex.load(stored_index.folder, space)
            found = space_results(space, index, corpus, suite.ks, suite.pairs)
            content = digest(digest_table(found.results), digest_table(found.searches))
            artifact = artifacts.write(
                path,
                digest(code, canonical.version, stored_index.version, content),
                lambda folder: write_results(found, folder),
                content=content,
                inputs=inputs,
            )
            return materialized(
                artifact,
                content,
                rows=len(found.results),
                queries=len(corpus.cases),
                depth=max(suite.ks),
                **_notice(suite),
            )

    return results


def checked_inputs(store: Store, space_id: str) -> tuple[Artifact, Artifact]:
    """The canonical items and a space's embeddings, both checked and belonging together."""
    canonical = guarded(store, CANONICAL, CONTRACT_VALIDATION)
    embeddings = guarded(store, embeddings_path(space_id), CONTRACT_VALIDATION)
    built_on(embeddings, canonical)
    return canonical, embeddings


def not_executed(
    store: Store, asset: AssetPath, reason: str, inputs: tuple[Artifact, ...], code: str
) -> dg.MaterializeResult[None]:
    """An empty version that says why: the chain goes on without this space."""
    content = digest("not executed", reason)
    artifact = store.write(
        asset,
        digest(code, content, *(artifact.version for artifact in inputs)),
        lambda folder: None,
        content=content,
        inputs=inputs,
        info={"not_executed": reason},
    )
    return materialized(artifact, content, rows=0, status="not_executed", status_reason=reason)


def _declared_spaces_only(suite: Suite, corpus: Corpus) -> None:
    found = tuple(contract.space_id for contract in corpus.contracts)
    if found != suite.space_ids:
        raise InputError(
            [
                Problem(
                    code="spaces_differ",
                    file=suite.source.shown,
                    place="$.contracts",
                    found=f"spaces {', '.join(found)}",
                    remedy=f"the suite {suite.name} declares {', '.join(suite.space_ids)}, in "
                    "this order; change the file or the suite's defs.yaml",
                )
            ]
        )


def materialized(
    artifact: Artifact,
    content: str,
    *,
    rows: int,
    check_results: Sequence[dg.AssetCheckResult] = (),
    **metadata: object,
) -> dg.MaterializeResult[None]:
    """What the UI shows of a stored artifact: rows, bytes, its version and further facts."""
    files = [path for path in artifact.folder.rglob("*") if path.is_file()]
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": rows,
            **metadata,  # type: ignore[dict-item]
            "stored_bytes": sum(path.stat().st_size for path in files),
            "stored_version": shown(artifact.version),
        },
        data_version=dg.DataVersion(content),
        check_results=check_results,
    )


def _notice(suite: Suite) -> dict[str, Any]:
    return {"notice": suite.notice} if suite.notice else {}


def column_schema(schema: pa.Schema) -> dict[str, dg.TableSchema]:
    """A table's columns as an asset's metadata."""
    columns = [dg.TableColumn(field.name, str(field.type)) for field in schema]
    return {"dagster/column_schema": dg.TableSchema(columns=columns)}


def _preview(items: pa.Table) -> str:
    # Without texts: whoever may open the UI need not be allowed to read them.
    labels = {"item_id": "item", "role": "role", "acl": "readable by"}
    return markdown_table(items.slice(0, PREVIEW_ROWS), labels)
