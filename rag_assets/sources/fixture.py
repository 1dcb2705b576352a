"""A JSON fixture: contracts, items with their vectors, and judged queries, in one file.

    {"contracts": [{space_id, provider, model, revision, dimension, metric, normalized,
                    query_role, document_role, dtype}],
     "items":     [{item_id, space_id, role, text, vector, acl, source_revision}],
     "queries":   [{case_id, query_item_id, subject_groups, relevance: {item_id: grade},
                    subgroups}]}

Fields are exactly these. The rules are in fixture_rules (records and references) and
fixture_fields (single values).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from rag_assets.canonical.contracts import FIXTURE_FIELDS, SpaceContract
from rag_assets.canonical.corpus import CASES, ITEMS, QRELS, SPACE_ITEMS, Corpus
from rag_assets.canonical.text import content_sha256
from rag_assets.errors import UsageError
from rag_assets.sources.fixture_fields import Reading
from rag_assets.sources.fixture_rules import Fixture, Sound, check_fixture
from rag_assets.sources.strict_json import parse_json, read_limited

MAX_BYTES = 5 * 1024 * 1024
MAX_PROBLEMS = 100


def load_fixture(
    path: str | Path, *, max_bytes: int = MAX_BYTES, max_problems: int = MAX_PROBLEMS
) -> Corpus:
    """The corpus in a fixture file of at most `max_bytes`.

    Raises InputError with the faults found, in order of the file, at most `max_problems` of them.
    """
    return parse_fixture(read_limited(path, max_bytes), os.fspath(path), max_problems=max_problems)


def parse_fixture(data: bytes, file: str, *, max_problems: int = MAX_PROBLEMS) -> Corpus:
    """The corpus in a fixture's bytes; `file` is what problems call it. Raises as load_fixture."""
    if max_problems < 1:
        raise UsageError(f"max_problems is {max_problems}; at least 1 problem must be shown")
    reading = Reading(file, max_problems)
    fixture = check_fixture(parse_json(data, file), reading)
    reading.raise_if_refused()
    return _corpus(fixture)


def _corpus(fixture: Fixture) -> Corpus:
    contracts = tuple(
        SpaceContract(**{name: contract[name] for name in FIXTURE_FIELDS})
        for contract in fixture.spaces.values()
    )
    canonical: dict[str, Sound] = {}
    for held in fixture.held.values():
        for item_id, item in held.items():
            canonical.setdefault(item_id, item)
            item["acl"] = sorted(item["acl"])
            item["content_sha256"] = content_sha256(item["text"])
    item_no = {item_id: number for number, item_id in enumerate(sorted(canonical))}

    space_rows: list[Sound] = []
    vectors: dict[str, np.ndarray] = {}
    for space_no, contract in enumerate(contracts):
        rows = sorted(
            fixture.held[contract.space_id].values(),
            key=lambda item: (item["role"] != contract.document_role, item_no[item["item_id"]]),
        )
        matrix = np.stack([item["vector"] for item in rows])
        matrix.setflags(write=False)
        vectors[contract.space_id] = matrix
        space_rows += (
            item | {"space_no": space_no, "item_no": item_no[item["item_id"]]} for item in rows
        )
    return Corpus(
        contracts=contracts,
        items=_table(
            ({**canonical[item_id], "item_no": number} for item_id, number in item_no.items()),
            ITEMS,
        ),
        space_items=_table(space_rows, SPACE_ITEMS),
        cases=_table(
            (
                case
                | {
                    "case_no": number,
                    "query_item_no": item_no[case["query_item_id"]],
                    "subject_groups": sorted(case["subject_groups"]),
                    "split": None,
                }
                for number, (_, case) in enumerate(fixture.cases)
            ),
            CASES,
        ),
        qrels=_table(
            (
                {"case_no": number, "item_no": item_no[item_id], "grade": grade}
                for number, (_, case) in enumerate(fixture.cases)
                for item_id, grade in case["relevance"].items()
            ),
            QRELS,
        ),
        vectors=vectors,
    )


def _table(rows: Iterable[Sound], schema: pa.Schema) -> pa.Table:
    """A table of the schema's columns; other keys of the rows are left out."""
    columns: dict[str, list[object]] = {name: [] for name in schema.names}
    for row in rows:
        for name, column in columns.items():
            column.append(row[name])
    return pa.table(columns, schema=schema)
