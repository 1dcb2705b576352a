"""Regression gates as a reader meets them: what failed first, with the queries that got worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb

from rag_assets.regression.rows import FAIL, INCONCLUSIVE, NOT_EXECUTED, PASS
from rag_assets.regression.wording import NAMED, worse_sentence
from rag_assets.report import verdicts
from rag_assets.report.changes import excerpt
from rag_assets.report.intervals import arm
from rag_assets.report.numbers import told
from rag_assets.report.reading import Row, rows_of
from rag_assets.report.table import Column, Table

NOT_CLEAR = "inconclusive"
# Status -> state, in the order in which they are shown.
STATES: Mapping[str, str] = {
    FAIL: verdicts.FAILED,
    INCONCLUSIVE: NOT_CLEAR,
    NOT_EXECUTED: verdicts.NOT_EXECUTED,
    PASS: verdicts.PASSED,
}


@dataclass(frozen=True, slots=True)
class Query:
    """`text` is None where texts are left out, and for a query that is no longer there."""

    case_id: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Gate:
    """`whose` is the space, or an index of it. `worst` are at most NAMED of the queries that are
    worse than in the baseline, `unnamed` how many there are besides. `none_named` says why `worst`
    is empty.
    """

    state: str
    whose: str
    sentence: str
    worst: Sequence[Query]
    unnamed: int
    none_named: str


@dataclass(frozen=True, slots=True)
class Regression:
    """Every gate, by state as in STATES. `baseline` is the row of base.baseline, None without."""

    gates: Sequence[Gate]
    baseline: Row | None

    @property
    def loud(self) -> list[Gate]:
        """What a person has to look at."""
        return [gate for gate in self.gates if gate.state in (verdicts.FAILED, NOT_CLEAR)]

    def table(self, state: str) -> Table:
        return Table(
            f"Gates: {state}",
            (Column("of", "whose"), Column("in words", "sentence")),
            [
                {"whose": gate.whose, "sentence": gate.sentence}
                for gate in self.gates
                if gate.state == state
            ],
        )


def regression(con: duckdb.DuckDBPyConnection, *, redact: bool) -> Regression:
    """The regression gates of a release; none where it was built before there were any."""
    needs = ["regression_gates"]
    rows = rows_of(con, "SELECT * FROM regression_gates", needs=needs)
    pinned = rows_of(con, "SELECT * FROM base.baseline", needs=needs)
    order = list(STATES)
    rows.sort(key=lambda row: order.index(row["status"]))
    texts = {} if redact or not rows else _query_texts(con)
    return Regression([_gate(row, texts) for row in rows], pinned[0] if pinned else None)


def _gate(row: Row, texts: Mapping[str, str]) -> Gate:
    worse = row["worse_queries"] or []
    return Gate(
        state=STATES[row["status"]],
        whose=arm(row["space_id"], row["index_name"]),
        sentence=told(row["sentence"]),
        worst=[
            Query(case_id, excerpt(texts[case_id]) if case_id in texts else None)
            for case_id in worse[:NAMED]
        ],
        unnamed=max(len(worse) - NAMED, 0),
        none_named="" if worse else told(worse_sentence(row["worse_queries"])),
    )


def _query_texts(con: duckdb.DuckDBPyConnection) -> dict[str, str]:
    rows = rows_of(
        con,
        "SELECT case_id, text FROM base.cases AS cases "
        "JOIN base.items AS items ON items.item_no = cases.query_item_no",
    )
    return {row["case_id"]: row["text"] for row in rows}
