"""What follows from gates, checks, checklist and decisions, in two sentences."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.decisions.gates import CHECKLIST_CHECK
from rag_assets.regression.rows import REGRESSION_GATES
from rag_assets.report.checks import Check
from rag_assets.report.numbers import counted, moment
from rag_assets.report.regression import Regression
from rag_assets.report.signed import EXPIRED, UNDECIDED, SignedOff
from rag_assets.report.verdicts import FAILED, NOT_EXECUTED, Pair


def conclusion(
    pairs: Sequence[Pair], gates: Regression, checks: Sequence[Check], signed: SignedOff
) -> str:
    """Which space is active, what may be decided and what is missing; "" without a checklist."""
    if not signed.items:
        return ""
    open_ends = missing(gates, checks, signed)
    if open_ends:
        lacks = f"before a space may be activated, this is open: {' and '.join(open_ends)}"
    else:
        lacks = "gates, checks and checklist keep no space from being activated"
    return f"{_serving(signed)} {_decidable(pairs, signed)}; {lacks}."


def missing(gates: Regression, checks: Sequence[Check], signed: SignedOff) -> list[str]:
    """What keeps any space from being activated, counted."""
    told_apart = (CHECKLIST_CHECK, REGRESSION_GATES)
    failed = [one for one in checks if one.state == FAILED and one.name not in told_apart]
    lost = sum(gate.state == FAILED for gate in gates.gates)
    waiting = [item for item in signed.items if not item.met]
    by_state = [
        f"{number} {state}"
        for state in (FAILED, NOT_EXECUTED, UNDECIDED)
        if (number := sum(item.state == state for item in waiting))
    ]
    of_all = f"{len(waiting)} of {len(signed.items)} items of the checklist"
    return [
        *([counted(len(failed), "failed check", "failed checks")] if failed else []),
        *([counted(lost, "failed regression gate", "failed regression gates")] if lost else []),
        *([f"{of_all} ({', '.join(by_state)})"] if waiting else []),
    ]


def _serving(signed: SignedOff) -> str:
    active = signed.active
    if active is None:
        return "No space is active yet."
    by = f"since {moment(active['since'])}, by {active['switched_by']}"
    changed = ", and its contract has changed since" if active["changed"] else ""
    return f"The active space is {active['space_id']} ({by}){changed}."


def _decidable(pairs: Sequence[Pair], signed: SignedOff) -> str:
    """What a person may decide, or has decided, about the migrations that start where it counts."""
    active = signed.active["space_id"] if signed.active else None
    audited = [pair for pair in pairs if active in (None, pair.old)]
    if not audited:
        away = f"from {active} " if active else ""
        return f"No migration {away}is audited, so none may be decided on"
    groups: dict[str, list[str]] = {}
    for pair in audited:
        made = signed.on_quality(pair.old, pair.new)
        if not pair.decidable:
            found = "nobody may decide on"
        elif made is None or made["result"] == EXPIRED:
            found = "a person may decide on"
        else:
            found = f"{made['decided_by']} {made['result']}"
        groups.setdefault(found, []).append(
            f"{pair.old}\N{NO-BREAK SPACE}→\N{NO-BREAK SPACE}{pair.new}"
        )
    told = "; ".join(f"{found} {' and '.join(names)}" for found, names in groups.items())
    return f"{told[:1].upper()}{told[1:]}"
