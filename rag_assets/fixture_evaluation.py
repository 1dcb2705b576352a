"""`rag-assets evaluate`: the whole evaluation of one fixture, without Dagster."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from rag_assets.canonical.corpus import Corpus
from rag_assets.embeddings.space import EmbeddedSpace, declared_embeddings
from rag_assets.errors import UsageError
from rag_assets.evaluation import (
    NOTICE,
    AuditedPair,
    SpaceResults,
    audited_pairs,
    base_tables,
    build_checked,
    check_ks,
    check_scoped_results,
    space_item_rows,
    space_results,
)
from rag_assets.indexes.exact import ExactIndex
from rag_assets.project import models_folder, project_root, readable
from rag_assets.provenance import manifest
from rag_assets.quality.report import CheckReport
from rag_assets.sources.fixture import load_fixture
from rag_assets.warehouse.build import build
from rag_assets.warehouse.models import load_models
from rag_assets.warehouse.release import check_fresh, write_database


def evaluate_fixture(
    path: Path,
    *,
    ks: Sequence[int],
    audits: Sequence[str] | None,
    max_bytes: int,
    db: Path | None = None,
) -> tuple[bool, duckdb.DuckDBPyConnection]:
    """Evaluate a fixture without Dagster: whether all gates passed, and a connection to all tables.

    `audits` are pairs OLD:NEW; None stands for every two neighbouring spaces. With `db`, the tables
    are also written to that new DuckDB file, checks included. InputError for a bad fixture,
    UsageError for a bad k, pair or database path; nothing is written then.
    """
    ks = check_ks(ks)
    if db is not None:
        check_fresh(db)  # before the work, not only after it
    corpus = load_fixture(path, max_bytes=max_bytes)
    space_ids = [contract.space_id for contract in corpus.contracts]
    declared = None if audits is None else [named_pair(audit, space_ids) for audit in audits]
    pairs = audited_pairs(declared, space_ids)
    models = load_models(models_folder())
    spaces = [declared_embeddings(corpus, contract.space_id) for contract in corpus.contracts]
    found = [space_results(s, ExactIndex.build(s), corpus, ks, pairs) for s in spaces]
    reports = []
    if db is not None:
        reports = _fixture_reports(path, corpus, spaces, found, ks, pairs)
    base = base_tables(
        corpus,
        space_items=[space_item_rows(space, number) for number, space in enumerate(spaces)],
        results=pa.concat_tables(part.results for part in found),
        searches=pa.concat_tables(part.searches for part in found),
        ks=ks,
        pairs=pairs,
        reports=reports,
        manifest=manifest(project_root(), {"source": readable(path), "notice": NOTICE}),
    )
    connection = duckdb.connect()
    if db is None:
        build(connection, base, models)
        gates_passed = _gates_pass(connection)
    else:
        gates: list[CheckReport] = []

        def build_into(file: duckdb.DuckDBPyConnection) -> None:
            name = readable(path.name)
            [(_, report)] = build_checked(file, base, models, suite=name, pairs=len(pairs))
            gates.append(report)

        write_database(db, build_into)
        # An absolute path is a file's name and nothing else; ":memory:" would not be one.
        quoted = os.path.abspath(db).replace("'", "''")
        connection.execute(f"ATTACH '{quoted}' AS written (READ_ONLY)")
        connection.execute("USE written")
        gates_passed = gates[0].passed and not any(report.blocks for _, report in reports)
    return gates_passed, connection


def named_pair(text: str, space_ids: Sequence[str]) -> tuple[str, str]:
    """The two spaces that OLD:NEW names. Ids may hold colons; UsageError if that is ambiguous."""
    words = text.split(":")
    splits = [(":".join(words[:at]), ":".join(words[at:])) for at in range(1, len(words))]
    known = [pair for pair in splits if set(pair) <= set(space_ids)]
    if len(known) > 1:
        raise UsageError(f"audit {text}: this names several pairs of spaces")
    return known[0] if known else splits[0]


def _fixture_reports(
    path: Path,
    corpus: Corpus,
    spaces: Sequence[EmbeddedSpace],
    results: Sequence[SpaceResults],
    ks: Sequence[int],
    pairs: Sequence[AuditedPair],
) -> list[tuple[str, CheckReport]]:
    from rag_assets.quality.suites import check_canonical_items, check_embeddings

    reports = [(f"{readable(path.name)}/canonical_items", check_canonical_items(corpus))]
    for space, found in zip(spaces, results, strict=True):
        name = f"{readable(path.name)}/{space.contract.space_id}"
        reports.append((f"{name}/embeddings", check_embeddings(space, corpus)))
        scoped = check_scoped_results(found.results, space, corpus, ks, pairs)
        reports.append((f"{name}/exact_results", scoped))
    return reports


def _gates_pass(connection: duckdb.DuckDBPyConnection) -> bool:
    failing = "SELECT count(*) FROM migration_audit WHERE mechanical_gates_pass IS NOT TRUE"
    [[count]] = connection.sql(failing).fetchall()
    return bool(count == 0)
