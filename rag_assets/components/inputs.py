"""The base tables of a suite, from the artifacts of its store and what people decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from rag_assets import clock
from rag_assets.canonical.contracts import SpaceContract, canonical_json
from rag_assets.canonical.corpus import Corpus
from rag_assets.canonical.files import read_corpus
from rag_assets.components.checks import (
    CONTRACT_VALIDATION,
    RESULT_VALIDATION,
    built_on,
    guarded,
)
from rag_assets.components.suite import (
    CANONICAL,
    DeclaredIndex,
    Suite,
    benchmark_path,
    embeddings_path,
    index_path,
    results_path,
    sweep_path,
)
from rag_assets.decisions.gates import DEFINITION, definition_digest
from rag_assets.decisions.tables import stated_tables
from rag_assets.embeddings.files import read_embeddings
from rag_assets.errors import UsageError
from rag_assets.evaluation import (
    EXACT,
    RESULTS_FILE,
    SEARCHES_FILE,
    SpaceStatus,
    base_tables,
    space_item_rows,
)
from rag_assets.indexes.builds import NOT_EXECUTED, IndexBuild, read_index_build
from rag_assets.indexes.specs import parameters
from rag_assets.laboratory.defaults import default_decisions
from rag_assets.laboratory.records import SWEEP_TABLES, read_tables, rows_of
from rag_assets.project import project_root
from rag_assets.provenance import manifest
from rag_assets.quality.report import CheckReport
from rag_assets.store import Artifact, Store
from rag_assets.thresholds.choice import threshold_tables
from rag_assets.warehouse.build import BaseTable


def suite_base(
    suite: Suite, store: Store, run_id: str
) -> tuple[dict[str, BaseTable], list[Artifact]]:
    """The base tables, and the versions they are made of: checked, and belonging together."""
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
    base = base_tables(
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
    return base, checked


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
    rows = []
    for space_id in suite.space_ids:
        decision = decided.get(space_id)
        index_name = decision.index_name if decision else EXACT
        if index_name not in {EXACT, *(index.name for index in suite.indexes_of(space_id))}:
            raise UsageError(
                f"the default index of space {space_id!r} is {index_name!r}, which the suite does "
                "not declare any more; declare it, or go back: rag-assets default-index "
                f"{suite.name} {space_id} exact --by NAME --why TEXT"
            )
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
        **stated_tables(suite.folder, project_root(), suite.budgets, suite.tombstones),
        **threshold_tables(suite.folder, contracts),
    }


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
        "evaluated_at": clock.utc_now().isoformat(timespec="seconds"),
        "dagster_run_id": run_id,
        "k": ", ".join(map(str, suite.ks)),
        "audits": ", ".join(f"{pair.old}:{pair.new}" for pair in suite.pairs),
        "seeds": "none: exact search uses no random numbers",
        "ranking": "score descending on a grid of 2^-30 of the largest attainable score, "
        "then item id ascending",
    }
    if (definition := definition_digest(suite.folder)) is not None:
        facts[DEFINITION] = definition
    for artifact in checked:
        facts[f"version {artifact.name}"] = artifact.version
    return manifest(project_root(), facts)
