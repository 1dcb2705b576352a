"""The release checklist, what people decided, and the space that serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb

from rag_assets.decisions import items
from rag_assets.decisions.signed import APPROVE, quality_of
from rag_assets.report import verdicts
from rag_assets.report.reading import Row, rows_of

UNDECIDED = "undecided"
APPROVED, REFUSED, EXPIRED = "approved", "refused", "expired"
STATES: Mapping[str, str] = {
    items.PASS: verdicts.PASSED,
    items.FAIL: verdicts.FAILED,
    items.NOT_EXECUTED: verdicts.NOT_EXECUTED,
    items.NEEDS_DECISION: UNDECIDED,
}


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the checklist; `met` is whether it lets a space be activated. `decided_by` signed
    it, or accepted that it was not executed.
    """

    number: int
    name: str
    state: str
    evidence: str
    how: str
    decided_by: str | None
    decided_at: str | None

    @property
    def met(self) -> bool:
        if self.state == verdicts.NOT_EXECUTED:
            return self.decided_by is not None
        return self.state == verdicts.PASSED


@dataclass(frozen=True, slots=True)
class SignedOff:
    """`decisions` and `switches` are rows of their tables with a `result` in words, `switches` with
    the newest first. `active` is the space that serves, with `changed`: whether its contract is
    another by now; None where no space was ever activated.
    """

    items: Sequence[Item]
    decisions: Sequence[Row]
    switches: Sequence[Row]
    active: Row | None

    @property
    def anything(self) -> bool:
        return bool(self.items or self.decisions or self.switches)

    def on_quality(self, old: str, new: str) -> Row | None:
        """The decision on a migration that counts: the last that is valid, else the last."""
        about = [row for row in self.decisions if row["item"] == quality_of(old, new)]
        valid = [row for row in about if row["result"] != EXPIRED]
        found = valid or about
        return found[-1] if found else None


def signed_off(con: duckdb.DuckDBPyConnection) -> SignedOff:
    """Empty for a release that was built before there was a checklist."""
    checklist = rows_of(
        con, "SELECT * FROM release_checklist ORDER BY item_no", needs=["release_checklist"]
    )
    decisions = rows_of(con, "SELECT * FROM decisions", needs=["decisions"])
    for row in decisions:
        made = APPROVED if row["decision"] == APPROVE else REFUSED
        row["made"] = made
        row["result"] = made if row["status"] == "valid" else EXPIRED
    switches = rows_of(
        con, "SELECT * FROM active_space_log ORDER BY switch_no DESC", needs=["active_space_log"]
    )
    active = rows_of(
        con,
        "SELECT active.*, "
        "spaces.contract_signature IS DISTINCT FROM active.contract_signature AS changed "
        "FROM active_space AS active LEFT JOIN spaces USING (space_id) "
        "WHERE active.space_id IS NOT NULL",
        needs=["active_space"],
    )
    return SignedOff(
        items=[_item(row) for row in checklist],
        decisions=decisions,
        switches=switches,
        active=active[0] if active else None,
    )


def _item(row: Row) -> Item:
    return Item(
        number=row["item_no"],
        name=row["item"].replace("_", " "),
        state=STATES[row["status"]],
        evidence=row["evidence"],
        how=row["how_to_get_it"],
        decided_by=row["decided_by"],
        decided_at=row["decided_at"],
    )
