"""The active space of a suite: the alias that serving code reads, `<suite>/active_space.json`.

    {"format": 1, "active": "minilm", ..., "switches": [...]}

`active` is the space that serves; `switches` is the chained log of how it came to that. A switch is
one rename under a lock, so that a reader finds the space before or the one after, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_assets import clock
from rag_assets.decisions.chained_log import LogFile, append_record, locked, one_line, read_log
from rag_assets.errors import GateError, UsageError

ACTIVATE, ROLL_BACK = "activate", "roll_back"
_LOG = LogFile(
    name="active_space.json",
    records="switches",
    fields=(
        "space_id",
        "contract_signature",
        "kind",
        "by",
        "when",
        "why",
        "evaluation",
        "forced",
    ),
    optional=frozenset({"evaluation", "forced"}),
    code="edited_active_space",
    remedy="the active space changes through `rag-assets activate` and `rag-assets roll-back` "
    "only: restore the file from version control",
    shown={"active": "space_id"},
)


@dataclass(frozen=True, slots=True)
class Switch:
    """One switch. `kind` is "activate" or "roll_back"; `when` UTC in ISO 8601; `evaluation` the one
    that it was decided on, None where a roll-back had no release; `forced`: what a forced roll-back
    passed over, else None.
    """

    space_id: str
    contract_signature: str
    kind: str
    by: str
    when: str
    why: str
    evaluation: str | None
    forced: str | None
    previous: str | None


def switches(folder: Path) -> list[Switch]:
    """Every switch, oldest first. InputError for a file that was edited by hand."""
    return [_switch(record) for record in read_log(folder, _LOG)]


def activate(
    folder: Path,
    space_id: str,
    signature: str,
    evaluation: str,
    *,
    by: str,
    why: str,
    missing: Callable[[str | None], Sequence[str]],
) -> Switch:
    """Make a space the active one.

    `missing` is told the space that is active, None for none, and returns what keeps `space_id`
    from taking over, each with its remedy; GateError with all of it if there is anything. It is
    asked under the lock, so that two switches at once are judged one after the other. UsageError
    for a space that is active already; InputError for an edited file.
    """
    by, why = one_line("by", by), one_line("why", why)
    with locked(folder):
        stack = _stack(switches(folder))
        active = stack[-1].space_id if stack else None
        if active == space_id:
            raise UsageError(f"{space_id} is the active space already; nothing was changed")
        if lines := missing(active):
            raise GateError(lines)
        return _append(folder, space_id, signature, ACTIVATE, by, why, evaluation, None)


def roll_back(
    folder: Path,
    signatures: Mapping[str, str],
    evaluation: str | None,
    *,
    by: str,
    why: str,
    force: bool = False,
) -> Switch:
    """Return to the space that was active before the one that is; again, to the one before that.

    No gate is asked: the way back must be open when everything else fails. Only a space that no
    longer has the contract signature it was activated with (`signatures`: those of the current
    release, empty without one) is refused with a GateError, because its index may hold other
    vectors now; `force` goes back all the same, and the log says what it passed over. UsageError
    where no space was active before.
    """
    by, why = one_line("by", by), one_line("why", why)
    with locked(folder):
        stack = _stack(switches(folder))
        if len(stack) < 2:
            active = (
                f"{stack[-1].space_id} is the first active space" if stack else "none is active"
            )
            raise UsageError(f"there is no space to roll back to: {active}")
        target = stack[-2]
        now = signatures.get(target.space_id)
        changed = None
        if now != target.contract_signature:
            held = f"has {now[:12]}" if now else "is not known to the current release"
            changed = (
                f"{target.space_id} was activated with the contract signature "
                f"{target.contract_signature[:12]} and {held} now"
            )
        if changed and not force:
            raise GateError(
                [
                    f"{changed}: make sure that its index still holds the vectors of that "
                    "contract, then add --force"
                ]
            )
        return _append(
            folder,
            target.space_id,
            target.contract_signature,
            ROLL_BACK,
            by,
            why,
            evaluation,
            changed,
        )


def _stack(log: Sequence[Switch]) -> list[Switch]:
    """The activations that roll-backs have not undone, the active one last."""
    stack: list[Switch] = []
    for switch in log:
        if switch.kind == ROLL_BACK:
            stack.pop()
        else:
            stack.append(switch)
    return stack


def _append(
    folder: Path,
    space_id: str,
    signature: str,
    kind: str,
    by: str,
    why: str,
    evaluation: str | None,
    forced: str | None,
) -> Switch:
    record = {
        "space_id": space_id,
        "contract_signature": signature,
        "kind": kind,
        "by": by,
        "when": clock.utc_now().isoformat(timespec="seconds"),
        "why": why,
        "evaluation": evaluation,
        "forced": forced,
    }
    return _switch(append_record(folder, _LOG, record))


def _switch(record: Any) -> Switch:
    return Switch(**record)
