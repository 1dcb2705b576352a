"""Items 1 to 4 of the checklist: what the tables show of splits, content, spaces and roles."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields

import duckdb

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.decisions.items import CONTENT, ROLES, SPACES, SPLITS, Finding, found
from rag_assets.warehouse.rows import query_rows

DEV, TEST = "dev", "test"
_SHOWN = 5
_MOVING = ("latest", "main", "master", "head")  # names of revisions that do not stay
_GONE = """
SELECT item_id, 'the canonical items' AS holder FROM canonical_items
UNION ALL
SELECT item_id, 'space ' || space_id FROM space_items
UNION ALL
SELECT item_id, 'results of ' || index_name || ' in ' || space_id FROM query_results
"""
_DELETED = """
SELECT item_id FROM tombstones
UNION
SELECT id FROM content_changes WHERE kind = 'item' AND change = 'deleted'
"""
_UNLIKE_CANONICAL = """
SELECT held.space_id, held.item_id
FROM space_items AS held
JOIN canonical_items AS canonical USING (item_id)
WHERE held.role IS DISTINCT FROM canonical.role
    OR held.acl IS DISTINCT FROM canonical.acl
    OR held.source_revision IS DISTINCT FROM canonical.source_revision
    OR held.content_sha256 IS DISTINCT FROM canonical.content_sha256
ORDER BY ALL
"""
_MISSING = """
SELECT spaces.space_id, canonical.item_id
FROM canonical_items AS canonical
CROSS JOIN spaces
ANTI JOIN space_items AS held
    ON held.space_id = spaces.space_id AND held.item_id = canonical.item_id
WHERE spaces.status = 'evaluated'
ORDER BY ALL
"""
# Numbers of no item: the tables that people read would not show such rows.
_UNKNOWN = """
SELECT space_no, item_no FROM base.space_items ANTI JOIN base.items USING (item_no)
UNION
SELECT space_no, item_no FROM base.results ANTI JOIN base.items USING (item_no)
ORDER BY ALL
"""
_FOREIGN = """
SELECT DISTINCT space_id, item_id
FROM query_results
ANTI JOIN space_items USING (space_id, item_id)
ORDER BY ALL
"""
_WRONG_ROLES = """
SELECT held.space_id, held.item_id
FROM space_items AS held JOIN spaces USING (space_id)
WHERE held.role NOT IN (spaces.query_role, spaces.document_role)
UNION
SELECT held.space_id, held.item_id
FROM query_cases AS cases
JOIN space_items AS held ON held.item_id = cases.query_item_id
JOIN spaces USING (space_id)
WHERE held.role <> spaces.query_role
UNION
SELECT held.space_id, held.item_id
FROM (SELECT DISTINCT space_id, item_id FROM query_results) AS returned
JOIN space_items AS held USING (space_id, item_id)
JOIN spaces USING (space_id)
WHERE held.role <> spaces.document_role
UNION
SELECT held.space_id, held.item_id
FROM qrels JOIN space_items AS held USING (item_id) JOIN spaces USING (space_id)
WHERE held.role <> spaces.document_role
ORDER BY ALL
"""


def examine_splits(
    con: duckdb.DuckDBPyConnection, calibrated_on: Mapping[str, Collection[str]]
) -> Finding:
    """Item 1. `calibrated_on`: the cases that each space's threshold was chosen on."""
    counts: dict[str | None, int] = dict(
        con.sql("SELECT split, count(*) FROM query_cases GROUP BY split ORDER BY split").fetchall()
    )
    seen = ", ".join(f"{count} {split or 'without split'}" for split, count in counts.items())
    gaps = [
        f"no query is in the split {split!r} (queries: {seen or 'none'})"
        for split in (DEV, TEST)
        if split not in counts
    ]
    if counts.get(None):
        gaps.append(f"{counts[None]} queries are in no split")
    shared = con.sql(
        "SELECT list(DISTINCT cases.case_id ORDER BY cases.case_id) "
        "FROM query_cases AS cases "
        "JOIN canonical_items AS asked ON asked.item_id = cases.query_item_id "
        "WHERE cases.split IS NOT NULL "
        "GROUP BY lower(trim(asked.text)) HAVING count(DISTINCT cases.split) > 1 ORDER BY 1"
    ).fetchall()
    faults = [
        f"the queries {_listed(cases)} ask the same in two splits" for [cases] in shared[:_SHOWN]
    ]
    in_test = {
        case_id
        for [case_id] in con.execute(
            "SELECT case_id FROM query_cases WHERE split = ?", [TEST]
        ).fetchall()
    }
    for space_id, cases in calibrated_on.items():
        if mixed := sorted(in_test & set(cases)):
            faults.append(
                f"the threshold of {space_id} was chosen on test queries: {_listed(mixed)}"
            )
    one_split = con.sql(
        "SELECT space_id FROM answer_thresholds WHERE dev_split = test_split ORDER BY space_id"
    ).fetchall()
    faults += [f"the threshold of {space_id} has one split for both" for [space_id] in one_split]
    return found(SPLITS, faults, gaps, f"{seen}; no text is asked in two splits" if seen else "")


def examine_content(con: duckdb.DuckDBPyConnection) -> Finding:
    """Item 2. What was deleted since the evaluation before, and what the source states as deleted
    (tombstones), may be nowhere.
    """
    faults = [
        *_counted(con, _UNLIKE_CANONICAL, "differ from the canonical item"),
        *_counted(con, _MISSING, "are missing in a space"),
        *_counted(con, _UNKNOWN, "are held or returned but are no item"),
    ]
    gone = {row[0] for row in con.sql(_DELETED).fetchall()}
    holders = con.execute(
        f"SELECT item_id, list(DISTINCT holder ORDER BY holder) FROM ({_GONE}) "
        "WHERE list_contains(?, item_id) GROUP BY item_id ORDER BY item_id",
        [sorted(gone)],
    ).fetchall()
    faults += [
        f"{item_id} was deleted and is still in {_listed(where)}"
        for item_id, where in holders[:_SHOWN]
    ]
    if len(holders) > _SHOWN:
        faults.append(f"{len(holders) - _SHOWN} more deleted items are still there")
    [[items, spaces]] = con.sql(
        "SELECT (SELECT count(*) FROM canonical_items), "
        "(SELECT count(*) FROM spaces WHERE status = 'evaluated')"
    ).fetchall()
    seen = (
        f"{items} canonical items agree with {spaces} spaces in role, access list, revision and "
        f"content; deleted items that are still in a space: 0 of {len(gone)}"
    )
    return found(CONTENT, faults, not_evaluated(con), seen if spaces else "")


def examine_spaces(con: duckdb.DuckDBPyConnection) -> Finding:
    """Item 3."""
    spaces = query_rows(con, "FROM spaces ORDER BY space_no")
    faults = []
    for space in spaces:
        contract = SpaceContract(**{one.name: space[one.name] for one in fields(SpaceContract)})
        if contract.signature != space["contract_signature"]:
            faults.append(f"the signature of {space['space_id']} is not that of its contract")
        blank = [name for name in ("provider", "model", "revision") if not space[name].strip()]
        if blank:
            faults.append(f"{space['space_id']} states no {', '.join(blank)}")
        if space["revision"].strip().lower() in _MOVING:
            faults.append(
                f"the revision of {space['space_id']} is {space['revision']!r}, which does not stay"
            )
    by_signature: dict[str, list[str]] = {}
    for space in spaces:
        by_signature.setdefault(space["contract_signature"], []).append(space["space_id"])
    faults += [
        f"{' and '.join(ids)} have the same contract" for ids in by_signature.values() if ids[1:]
    ]
    faults += _counted(con, _FOREIGN, "are returned by an index of a space that lacks them")
    faults += _counted(
        con,
        "SELECT space_id, item_id FROM space_items GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL",
        "are held twice",
    )
    seen = (
        f"{len(spaces)} spaces have {len(by_signature)} different signatures, each that of its "
        "contract; every result is an item of its own space"
    )
    return found(SPACES, faults, not_evaluated(con), seen if spaces else "")


def examine_roles(con: duckdb.DuckDBPyConnection, *, vectors_given: bool) -> Finding:
    """Item 4. `vectors_given`: vectors were not made from texts, so that prompts do not apply."""
    spaces = query_rows(con, "FROM spaces ORDER BY space_no")
    faults = [
        f"{space['space_id']} has the roles {space['query_role']!r} and {space['document_role']!r}"
        for space in spaces
        if space["query_role"] == space["document_role"]
        or not space["query_role"].strip()
        or not space["document_role"].strip()
    ]
    faults += _counted(con, _WRONG_ROLES, "are not in the role that the contract says")
    unstated = [
        space["space_id"]
        for space in spaces
        if space["query_prompt"] is None or space["document_prompt"] is None
    ]
    gaps = not_evaluated(con)
    if unstated and not vectors_given:
        gaps.append(f"no prompts are stated, not even that there are none, for {_listed(unstated)}")
    counts = con.sql(
        "SELECT role, count(DISTINCT item_id) FROM space_items GROUP BY role ORDER BY role"
    ).fetchall()
    seen = ", ".join(f"{count} items in the role {role!r}" for role, count in counts)
    return found(ROLES, faults, gaps, seen)


def not_evaluated(con: duckdb.DuckDBPyConnection) -> list[str]:
    """A gap for every space that was not executed, and one where there is no space at all."""
    spaces = query_rows(con, "FROM spaces ORDER BY space_no")
    gaps = [
        f"space {space['space_id']} was not executed ({space['status_reason']})"
        for space in spaces
        if space["status"] != "evaluated"
    ]
    return gaps if spaces else ["there is no space"]


def _counted(con: duckdb.DuckDBPyConnection, sql: str, what: str) -> list[str]:
    """A fault that counts the rows (space, item) of a query and names the first; none without."""
    rows = con.sql(sql).fetchall()
    if not rows:
        return []
    return [f"{len(rows)} items {what}: {_listed([f'{item} ({space})' for space, item in rows])}"]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
