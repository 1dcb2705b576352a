"""What a release allows people to decide, in words: per audited pair and approximate index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from rag_assets.laboratory.promotion import ELIGIBLE
from rag_assets.report.changes import ChangedQuery
from rag_assets.report.comparisons import Comparison
from rag_assets.report.numbers import counted
from rag_assets.report.reading import Row, rows_of
from rag_assets.report.table import Table

PASSED, FAILED, NOT_EXECUTED = "passed", "failed", "not executed"
A_PERSON_DECIDES = (
    "Whether quality is good enough is a person's decision: the gates say that two spaces can be "
    "compared, and no number on this page says which one to serve."
)
SHOWN_IDS = 50


@dataclass(frozen=True, slots=True)
class Gate:
    """`state` is PASSED, FAILED or NOT_EXECUTED."""

    name: str
    state: str
    asks: str
    found: str


@dataclass(frozen=True, slots=True)
class Pair:
    """One audited pair. `index_name` is the one its queries are shown for, None where none ran.

    `differing` are at most SHOWN_IDS items, of `differing_count`, with the fields that differ.
    `at_k` is the row of `migration_audit` at the largest k; `better` and `worse` count queries
    whose nDCG rose or fell there, of `defined`. `comparison` tells chance from change.
    """

    anchor: str
    old: str
    new: str
    state: str
    sentence: str
    gates: Sequence[Gate]
    differing: Sequence[Row]
    differing_count: int
    comparable: bool
    index_name: str | None
    at_k: Row
    quality: Table
    comparison: Comparison | None
    subgroups: Sequence[Row]
    changed: Sequence[ChangedQuery]
    picture: str
    better: int
    worse: int
    defined: int

    @property
    def decidable(self) -> bool:
        """Whether a person may decide on it: like was compared with like."""
        return self.state == PASSED and self.index_name is not None


@dataclass(frozen=True, slots=True)
class Promotion:
    """The conditions of one approximate index; `state` is PASSED where it is eligible."""

    space_id: str
    index_name: str
    state: str
    passed_count: int
    conditions: Sequence[Row]
    is_default: bool

    @property
    def sentence(self) -> str:
        of_all = f"{self.passed_count} of {len(self.conditions)} conditions are met"
        if self.state == PASSED:
            may = "it may be made the default, by a person's decision"
        else:
            may = "it may not become the default"
        served = "It is the default now." if self.is_default else "Exact search is not replaced."
        return f"{of_all}; {may}. {served}"


def gate_state(value: bool | None) -> str:
    return NOT_EXECUTED if value is None else PASSED if value else FAILED


def pair_state(audit: Row) -> str:
    """NOT_EXECUTED where either gate could not be evaluated: that is not the same as FAILED."""
    states = [gate_state(audit[gate]) for gate in ("inventory_match", "canonical_match")]
    if NOT_EXECUTED in states:
        return NOT_EXECUTED
    return gate_state(audit["mechanical_gates_pass"])


def sentence_on(audit: Row) -> str:
    """What may be decided about a pair, from any of its rows in `migration_audit`."""
    state = pair_state(audit)
    if state == NOT_EXECUTED:
        return f"Nothing may be decided: the gates were not executed ({audit['status_reason']})."
    if state == FAILED:
        return (
            "A migration may not be decided on. Items only in "
            f"{audit['old_space_id']}: {audit['only_old_count']}; only in "
            f"{audit['new_space_id']}: {audit['only_new_count']}; different in content or access: "
            f"{audit['canonical_mismatch_count']}. Bring the sources into line and run again."
        )
    if audit["status"] != "evaluated":
        return (
            "The items agree, but quality was not compared "
            f"({audit['status_reason']}); nothing may be decided about it."
        )
    return (
        "A person may decide: both spaces hold the same items in the same version, so the "
        "measures compare like with like."
    )


def gates_of(audit: Row) -> list[Gate]:
    old, new = audit["old_space_id"], audit["new_space_id"]
    only_old, only_new = audit["only_old_count"], audit["only_new_count"]
    inventory = gate_state(audit["inventory_match"])
    canonical = gate_state(audit["canonical_match"])
    return [
        Gate(
            "Inventory",
            inventory,
            "Both spaces hold the same item ids.",
            "not compared"
            if inventory == NOT_EXECUTED
            else f"{only_old} only in {old}, {only_new} only in {new}",
        ),
        Gate(
            "Content",
            canonical,
            "Items that both hold agree in role, text, access list, revision and hash.",
            "not compared"
            if canonical == NOT_EXECUTED
            else counted(audit["canonical_mismatch_count"], "item differs", "items differ"),
        ),
    ]


def differing_items(con: duckdb.DuckDBPyConnection, old: str, new: str) -> list[Row]:
    """Items in which a pair disagrees: `item_id` and `difference`, in words without any text."""
    return rows_of(
        con,
        """
        SELECT item_id, CASE
            WHEN bool_or(field = 'presence' AND old_value = 'present') THEN 'only in ' || $1
            WHEN bool_or(field = 'presence') THEN 'only in ' || $2
            ELSE 'differs in ' || string_agg(field, ', ' ORDER BY field)
        END AS difference
        FROM migration_differences
        WHERE old_space_id = $1 AND new_space_id = $2
        GROUP BY item_id
        ORDER BY item_id
        """,
        *(old, new),
    )


def audits(con: duckdb.DuckDBPyConnection) -> list[list[Row]]:
    """The rows of `migration_audit`, pair by pair, with exact search and the largest k first."""
    rows = rows_of(
        con,
        "SELECT a.*, p.pair_no FROM migration_audit AS a JOIN migration_pairs AS p "
        "USING (old_space_id, new_space_id) "
        "ORDER BY pair_no, index_name <> 'exact', index_name, k DESC",
    )
    numbers = list(dict.fromkeys(row["pair_no"] for row in rows))
    return [[row for row in rows if row["pair_no"] == number] for number in numbers]


def promotions(con: duckdb.DuckDBPyConnection) -> list[Promotion]:
    """Every approximate index that the promotion gate looked at."""
    chosen = {row["space_id"]: row["index_name"] for row in defaults(con)}
    rows = rows_of(con, "SELECT * FROM index_promotion", needs=["index_promotion"])
    for row in rows:
        row["state"] = {"pass": PASSED, "fail": FAILED}.get(row["status"], NOT_EXECUTED)
    names = list(dict.fromkeys((row["space_id"], row["index_name"]) for row in rows))
    found = []
    for space_id, index_name in names:
        conditions = [r for r in rows if (r["space_id"], r["index_name"]) == (space_id, index_name)]
        found.append(
            Promotion(
                space_id=space_id,
                index_name=index_name,
                state=PASSED if conditions[0]["verdict"] == ELIGIBLE else FAILED,
                passed_count=sum(row["state"] == PASSED for row in conditions),
                conditions=conditions,
                is_default=chosen.get(space_id) == index_name,
            )
        )
    return found


def defaults(con: duckdb.DuckDBPyConnection) -> list[Row]:
    return rows_of(con, "SELECT * FROM default_index", needs=["default_index"])
