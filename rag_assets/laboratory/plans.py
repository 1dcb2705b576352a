"""Plans are written before the first run, and do not change once there are results.

A stop rule that is added or moved after the results are known proves nothing. So each sweep has a
file `<folder>/<name>.plan.json` with its declaration, written before anything is measured, and the
runs that were made under it. As long as there are none, the declaration may still be corrected.
New data is another run under the same declaration; another declaration needs another name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_assets import clock
from rag_assets.canonical.contracts import canonical_json
from rag_assets.canonical.corpus import digest
from rag_assets.errors import InputError, Problem, UsageError
from rag_assets.laboratory.sweeps import Sweep, plan, plan_digest
from rag_assets.whole_files import replace_text


@dataclass(frozen=True, slots=True)
class RegisteredPlan:
    """`digest`: of declaration and data; `registered_at`: UTC, ISO 8601; `runs`: finished ones."""

    digest: str
    registered_at: str
    runs: int


def register_plan(folder: Path, sweep: Sweep, data_version: str) -> RegisteredPlan:
    """Write the sweep's plan if there is none; to be called before anything is measured.

    Raises UsageError where results exist under the same name for another declaration, InputError
    where the plan's file was edited by hand.
    """
    path = _path(folder, sweep)
    record = _read(path)
    declared = plan(sweep)
    if record is None or (record["plan"] != declared and not record["runs"]):
        record = {"plan": declared, "registered_at": _now(), "runs": []}
        _write(path, record)
    elif record["plan"] != declared:
        changed = [key for key in declared if record["plan"].get(key) != declared[key]]
        raise UsageError(
            f"sweep {sweep.name!r} has results from {record['runs'][-1]['finished_at']} under "
            f"another plan ({', '.join(changed)} changed since); a plan is fixed once results are "
            "known: give the sweep a new name"
        )
    return RegisteredPlan(
        plan_digest(sweep, data_version), record["registered_at"], len(record["runs"])
    )


def record_run(folder: Path, sweep: Sweep, data_version: str, rows: Sequence[object]) -> None:
    """Note that results exist: from now on the plan is fixed. `rows` are the sweep's rows.

    Raises UsageError unless exactly this declaration was registered before.
    """
    path = _path(folder, sweep)
    record = _read(path)
    if record is None or record["plan"] != plan(sweep):
        raise UsageError(f"sweep {sweep.name!r} was run without being registered first")
    record["runs"].append(
        {
            "plan_digest": plan_digest(sweep, data_version),
            "data_version": data_version,
            "finished_at": _now(),
            "rows": len(rows),
            "rows_sha256": digest(*map(repr, rows)),
        }
    )
    _write(path, record)


def _path(folder: Path, sweep: Sweep) -> Path:
    return folder / f"{sweep.name}.plan.json"


def _read(path: Path) -> dict[str, Any] | None:
    try:
        stored = json.loads(path.read_text("utf-8"))
        record, own = stored["record"], stored["sha256"]
        fine = own == digest(canonical_json(record)) and {"plan", "registered_at", "runs"} <= set(
            record
        )
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError):
        fine = False
    if not fine:
        raise InputError(
            [
                Problem(
                    "edited_plan",
                    path.name,
                    "sha256",
                    "a content that its digest does not match",
                    "a plan is written by rag-assets alone: restore the file, or remove it and "
                    "give the sweep a new name",
                )
            ]
        )
    return dict(record)


def _write(path: Path, record: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = {"record": record, "sha256": digest(canonical_json(record))}
    replace_text(path, json.dumps(stored, indent=1, ensure_ascii=False) + "\n")


def _now() -> str:
    return clock.utc_now().isoformat(timespec="seconds")
