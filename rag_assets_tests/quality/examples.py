"""A small healthy corpus, its spaces and results, and ways to spoil one cell of a table.

d1 is readable by `all`, d2 by `all` and `staff`, d3 by `staff`. Case c1 (group all) may read d1
and d2, case c2 (group staff) d2 and d3. Item numbers: d1 0, d2 1, d3 2, q1 3, q2 4.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.canonical.corpus import CASES, ITEMS, QRELS, RESULTS, SPACE_ITEMS, Corpus
from rag_assets.canonical.text import content_sha256
from rag_assets.embeddings.space import EmbeddedSpace, declared_embeddings
from rag_assets.quality.report import CheckReport, ExpectationOutcome

ACL = {"d1": ["all"], "d2": ["all", "staff"], "d3": ["staff"], "q1": ["all"], "q2": ["all"]}
NUMBERS = {item_id: number for number, item_id in enumerate(ACL)}
PLAIN = SpaceContract("plain", "p", "m", "1", 2, "cosine", False, "query", "document", "float32")
UNIT = SpaceContract("unit", "p", "m", "2", 2, "dot", True, "query", "document", "float64")


def with_cell(table: pa.Table, row: int, **values: object) -> pa.Table:
    """`table` with some cells of one row replaced."""
    rows = table.to_pylist()
    rows[row] |= values
    return pa.Table.from_pylist(rows, schema=table.schema)


def with_row(table: pa.Table, row: int, **values: object) -> pa.Table:
    """`table` with a copy of a row at its end, some cells replaced."""
    rows = table.to_pylist()
    return pa.Table.from_pylist([*rows, {**rows[row], **values}], schema=table.schema)


def without_row(table: pa.Table, row: int) -> pa.Table:
    rows = table.to_pylist()
    del rows[row]
    return pa.Table.from_pylist(rows, schema=table.schema)


def item(item_id: str) -> dict[str, object]:
    return {
        "item_no": NUMBERS[item_id],
        "item_id": item_id,
        "role": "document" if item_id.startswith("d") else "query",
        "text": f"text of {item_id}",
        "acl": ACL[item_id],
        "source_revision": "r1",
        "content_sha256": content_sha256(f"text of {item_id}"),
    }


def corpus() -> Corpus:
    items = pa.Table.from_pylist([item(item_id) for item_id in ACL], schema=ITEMS)
    space_items = pa.Table.from_pylist(
        [
            {name: (item(item_id) | {"space_no": space_no})[name] for name in SPACE_ITEMS.names}
            for space_no in (0, 1)
            for item_id in ACL
        ],
        schema=SPACE_ITEMS,
    )
    cases = pa.Table.from_pylist(
        [case(0, "c1", "q1", ["all"]), case(1, "c2", "q2", ["staff"])], schema=CASES
    )
    qrels = pa.Table.from_pylist(
        [
            {"case_no": 0, "item_no": 0, "grade": 3},
            {"case_no": 1, "item_no": 2, "grade": 2},
        ],
        schema=QRELS,
    )
    vectors = {
        "plain": np.array([[2, 0], [0, 1], [1, 1], [1, 0], [0, 3]], dtype=np.float32),
        "unit": np.array([[1, 0], [0, 1], [0.6, 0.8], [1, 0], [0, 1]]),
    }
    return Corpus((PLAIN, UNIT), items, space_items, cases, qrels, vectors)


def case(number: int, case_id: str, query: str, groups: list[str]) -> dict[str, object]:
    return {
        "case_no": number,
        "case_id": case_id,
        "query_item_no": NUMBERS[query],
        "query_item_id": query,
        "subject_groups": groups,
        "subgroups": [],
        "split": None,
    }


def space(space_id: str = "plain") -> EmbeddedSpace:
    return declared_embeddings(corpus(), space_id)


def with_component(embedded: EmbeddedSpace, row: int, value: float) -> EmbeddedSpace:
    """The first component of one vector replaced."""
    vectors = embedded.vectors.copy()
    vectors[row, 0] = value
    return replace(embedded, vectors=vectors)


def results() -> pa.Table:
    """k = 2: c1 finds d1, d2; c2 finds d3, d2."""
    return result_rows((0, 1, 0, 0.9), (0, 2, 1, 0.5), (1, 1, 2, 0.8), (1, 2, 1, 0.8))


def result_rows(*rows: tuple[int, int, int, float]) -> pa.Table:
    """Rows of (case_no, rank, item_no, score)."""
    return pa.Table.from_pylist(
        [dict(zip(RESULTS.names, row, strict=True)) for row in rows], schema=RESULTS
    )


def bad(report: CheckReport) -> dict[tuple[str, str | None, str], ExpectationOutcome]:
    """Outcomes that did not pass, by (table, column, expectation without its prefix)."""
    return {
        (outcome.table, outcome.column, outcome.expectation.removeprefix("expect_")): outcome
        for outcome in report.outcomes
        if outcome.status != "passed"
    }


def only(report: CheckReport) -> ExpectationOutcome:
    """The one outcome that did not pass."""
    (outcome,) = bad(report).values()
    return outcome
