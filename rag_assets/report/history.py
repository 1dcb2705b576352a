"""The evaluations that are kept: when they were made, what changed, and which checks fired."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
from markupsafe import Markup

from rag_assets.report.checks import Finding, check_state, findings_in
from rag_assets.report.history_pictures import movements
from rag_assets.report.intervals import arm
from rag_assets.report.numbers import change, count, counted, measure, moment
from rag_assets.report.reading import Row, rows_of
from rag_assets.report.table import Column, Table
from rag_assets.statistics.sentences import measure_label

SHOWN_EVALUATIONS = 20
SHOWN_FIRED = 20
SHOWN_IDS = 20
# Column of metric_history -> measure.
MEASURES: Mapping[str, str] = {"mean_ndcg_at_k": "ndcg_at_k", "mean_recall_at_k": "recall_at_k"}
# (kind, change) -> what happened to one, and to many, in the order in which they are shown.
_CHANGES: Mapping[tuple[str, str], tuple[str, str]] = {
    ("item", "deleted"): ("item was deleted", "items were deleted"),
    ("item", "added"): ("item was added", "items were added"),
    ("item", "edited"): ("item was edited", "items were edited"),
    ("item", "access"): ("item has another access list", "items have other access lists"),
    ("item", "revision"): ("item has only another revision", "items have only other revisions"),
    ("case", "deleted"): ("query case was deleted", "query cases were deleted"),
    ("case", "added"): ("query case was added", "query cases were added"),
    ("case", "edited"): (
        "query case was edited or judged anew",
        "query cases were edited or judged anew",
    ),
}


@dataclass(frozen=True, slots=True)
class Changes:
    """One kind of change in the content: `told` with the number; at most SHOWN_IDS `rows`."""

    told: str
    rows: Sequence[Row]
    count: int
    with_values: bool


@dataclass(frozen=True, slots=True)
class Fired:
    """A check that did not pass. `stopped`: it ended a run before that came to an evaluation."""

    at: str
    name: str
    asset: str
    state: str
    stopped: bool
    findings: Sequence[Finding]


@dataclass(frozen=True, slots=True)
class History:
    """`lead` says in words how much there is. `compared` is None with fewer than two evaluations;
    `unknown` says why it is not known what changed, or that nothing did.
    """

    count: int
    lead: str
    k: int
    picture: Markup
    evaluations: Table
    compared: Table | None
    changes: Sequence[Changes]
    contracts: Sequence[Row]
    unknown: str
    fired: Sequence[Fired]
    fired_count: int


def history(con: duckdb.DuckDBPyConnection, k: int, *, redact: bool) -> History | None:
    """What a release knows of earlier ones; None where it was built before there was a history."""
    made = _evaluations(con)
    if not made:
        return None
    fired = _fired(con, redact=redact)
    content, contracts = _content_changes(con), _contract_changes(con)
    return History(
        count=len(made),
        lead=_lead(made, _baseline(con)),
        k=k,
        picture=history_picture(con, k),
        evaluations=_table(made),
        compared=_compared(con, k) if len(made) > 1 else None,
        changes=content,
        contracts=contracts,
        unknown="" if content or contracts else _why_nothing(con, made),
        fired=fired[:SHOWN_FIRED],
        fired_count=len(fired),
    )


def history_picture(con: duckdb.DuckDBPyConnection, k: int) -> Markup:
    """nDCG and Recall at k over the evaluations, a row of panels per space that is in this one.

    Exact search stands for its space; where a space has none, every index is drawn.
    """
    made = _evaluations(con)
    numbers = {row["evaluation_id"]: row for row in made}
    rows = rows_of(
        con,
        "SELECT history.*, space_no FROM metric_history AS history "
        "JOIN spaces USING (space_id) WHERE subgroup IS NULL AND k = $1 AND (index_name = 'exact' "
        "OR NOT EXISTS (SELECT 1 FROM metric_history AS other WHERE other.index_name = 'exact' "
        "AND other.space_id = history.space_id)) ORDER BY space_no, index_name, evaluated_at",
        k,
        needs=["metric_history"],
    )
    arms: dict[str, list[Row]] = {}
    for row in rows:
        evaluation = numbers[row["evaluation_id"]]
        row["number"] = evaluation["number"]
        row["signature"] = evaluation["signatures"].get(row["space_id"])
        arms.setdefault(arm(row["space_id"], row["index_name"]), []).append(row)
    pinned = next((row["number"] for row in made if row["pinned"]), None)
    return movements(arms, MEASURES, k, len(made), pinned, "history")


def _evaluations(con: duckdb.DuckDBPyConnection) -> list[Row]:
    """Rows of evaluations, the oldest first, with their `number` from 1 and what `differs`."""
    rows = rows_of(con, "SELECT * FROM evaluations ORDER BY evaluated_at", needs=["evaluations"])
    pinned = _baseline(con)
    before: Row | None = None
    for number, row in enumerate(rows, 1):
        row["number"] = number
        row["pinned"] = row["evaluation_id"] == pinned
        row["signatures"] = json.loads(row["contract_signatures"])
        row["differs"] = _differs(before, row) if before else None
        before = row
    return rows


def _baseline(con: duckdb.DuckDBPyConnection) -> str | None:
    """The id of the evaluation that is pinned."""
    rows = rows_of(con, "SELECT evaluation_id FROM base.baseline", needs=["regression_gates"])
    return rows[0]["evaluation_id"] if rows else None


def _differs(before: Row, now: Row) -> str:
    old, new = before["signatures"], now["signatures"]
    contracts = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    found = [
        *(["content or vectors"] if before["data_version"] != now["data_version"] else []),
        *(["code"] if before["code_version"] != now["code_version"] else []),
        *([f"contract of {', '.join(contracts)}"] if contracts else []),
    ]
    return "; ".join(found) or "settings or results"


def _lead(made: Sequence[Row], pinned: str | None) -> str:
    first, last = moment(made[0]["evaluated_at"]), moment(made[-1]["last_seen_at"])
    seen = sum(row["heartbeat_count"] for row in made)
    again = f"Runs that found everything as it was: {count(seen)}, the last at {last}."
    if len(made) == 1:
        said = f"There is one evaluation, made at {first}, so no measure can have moved yet."
    else:
        said = f"{len(made)} evaluations are kept, the first made at {first}."
    if pinned is not None and not any(row["pinned"] for row in made):
        said += f" The pinned baseline, evaluation {pinned}, is none of them."
    return f"{said} {again}" if seen else said


def _table(made: Sequence[Row]) -> Table:
    rows = []
    for row in reversed(made[-SHOWN_EVALUATIONS:]):
        marks = [
            str(row["number"]),
            *(["this one"] if row["is_latest"] else []),
            *(["baseline"] if row["pinned"] else []),
        ]
        beats = row["heartbeat_count"]
        times = counted(beats, "time", "times")
        seen = f"{times}, last {moment(row['last_seen_at'])}" if beats else "never"
        rows.append({**row, "name": ", ".join(marks), "seen": seen})
    hidden = len(made) - len(rows)
    return Table(
        "Evaluations",
        (
            Column("number", "name", whole=True),
            Column("made", "evaluated_at", moment, whole=True),
            Column("differs from the one before in", "differs"),
            Column(
                "seen again",
                "seen",
                means="by later runs that found content, code and settings as they were",
            ),
            Column("id", "evaluation_id", whole=True),
        ),
        rows,
        undefined="undefined: none before it is kept.",
        note=f"{hidden} earlier ones are in the table evaluations." if hidden else "",
    )


def _compared(con: duckdb.DuckDBPyConnection, k: int) -> Table:
    rows = rows_of(
        con,
        "SELECT compared.* FROM evaluation_comparison AS compared LEFT JOIN spaces USING (space_id)"
        " WHERE subgroup IS NULL AND k = $1 AND list_contains($2, measure) "
        "ORDER BY space_no, space_id, index_name <> 'exact', index_name, "
        "list_position($2, measure)",
        *(k, list(MEASURES.values())),
        needs=["evaluation_comparison"],
    )
    for row in rows:
        row["whose"] = arm(row["space_id"], row["index_name"])
        row["notation"] = measure_label(row["measure"], k)
    return Table(
        "This evaluation and the one before, over all queries",
        (
            Column("of", "whose"),
            Column("mean", "notation"),
            Column("before", "previous_value", measure, numeric=True),
            Column("now", "latest_value", measure, numeric=True),
            Column("difference", "difference", change, numeric=True),
        ),
        rows,
        undefined="undefined, or not measured in that evaluation.",
        note="Content and queries may differ between the two. Whether a fall is more than chance "
        "is what the regression gates say.",
    )


def _content_changes(con: duckdb.DuckDBPyConnection) -> list[Changes]:
    rows = rows_of(con, "SELECT * FROM content_changes", needs=["content_changes"])
    found = []
    for (kind, what), (one, many) in _CHANGES.items():
        those = [row for row in rows if (row["kind"], row["change"]) == (kind, what)]
        if those:
            told = counted(len(those), one, many)
            with_values = what in ("access", "revision")  # the others are digests
            found.append(Changes(told, those[:SHOWN_IDS], len(those), with_values))
    return found


def _contract_changes(con: duckdb.DuckDBPyConnection) -> list[Row]:
    return rows_of(con, "SELECT * FROM contract_changes", needs=["contract_changes"])


def _why_nothing(con: duckdb.DuckDBPyConnection, made: Sequence[Row]) -> str:
    if len(made) == 1:
        return ""
    kept = rows_of(con, "SELECT 1 FROM base.previous_spaces LIMIT 1", needs=["contract_changes"])
    if not kept:
        return (
            "What changed in the content is not known: the snapshot of the evaluation before is no "
            "longer kept."
        )
    return "Items, query cases and contracts are those of the evaluation before."


def _fired(con: duckdb.DuckDBPyConnection, *, redact: bool) -> list[Fired]:
    rows = rows_of(
        con,
        "SELECT * FROM check_history WHERE NOT passed "
        "ORDER BY evaluated_at DESC, evaluation_id IS NOT NULL, severity = 'warn', asset, "
        "check_name",
        needs=["check_history"],
    )
    return [
        Fired(
            at=moment(row["evaluated_at"]),
            name=row["check_name"],
            asset=row["asset"],
            state=check_state(row),
            stopped=row["evaluation_id"] is None,
            findings=findings_in(row, redact=redact),
        )
        for row in rows
    ]
