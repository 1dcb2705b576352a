"""`rag-assets check`: the current release against the gates and the baseline as they are now."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb

from rag_assets.errors import StoreError
from rag_assets.quality.report import CheckReport, summary
from rag_assets.regression.baseline import Baseline, Header
from rag_assets.regression.evidence import measured_today
from rag_assets.regression.gates import Regression
from rag_assets.regression.judging import judge_gates
from rag_assets.regression.rows import FAIL, NOT_EXECUTED, REGRESSION_GATES
from rag_assets.regression.wording import gate_sentence, gates_sentence, worse_sentence
from rag_assets.warehouse.release import reading


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A check of the release that failed with severity "error", and what it found."""

    asset: str
    check_name: str
    found: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found. `gates` are rows of GATES; `baseline` is None where none is pinned."""

    suite: str
    passed: bool
    baseline: Header | None
    gates: Sequence[Mapping[str, Any]]
    failed_checks: Sequence[FailedCheck]


def check_release(
    release: Path,
    regression: Regression,
    baseline: Baseline | None,
    suite: str,
    *,
    strict: bool = False,
) -> Checked:
    """Judge every gate anew, and collect what failed when the release was made (but for the gates:
    bounds and baseline may have changed since). StoreError for a release without these tables.

    It passes where no gate and no check failed; with `strict`, if also every gate was executed.
    """
    try:
        with reading(release) as connection:
            today = measured_today(connection)
            failed = connection.sql(
                "SELECT asset, check_name, CAST(details AS VARCHAR) FROM check_results "
                "WHERE NOT passed AND severity = 'error' AND check_name <> ? "
                "ORDER BY asset, check_name",
                params=[REGRESSION_GATES],
            ).fetchall()
    except duckdb.CatalogException:
        raise StoreError(
            f"the current release of {suite} was made by an older version; run: "
            f"rag-assets run {suite}"
        ) from None
    gates = judge_gates(regression, today, baseline).to_pylist()
    wrong = (FAIL, NOT_EXECUTED) if strict else (FAIL,)
    return Checked(
        suite,
        not failed and all(gate["status"] not in wrong for gate in gates),
        None if baseline is None else baseline.header,
        gates,
        [
            FailedCheck(asset, check_name, summary(CheckReport.from_json(details)))
            for asset, check_name, details in failed
        ],
    )


def as_json(checked: Checked) -> str:
    """Equal to the byte for an equal release, YAML and baseline. Undefined values are null."""
    document = {
        "suite": checked.suite,
        "passed": checked.passed,
        "baseline": checked.baseline and asdict(checked.baseline),
        "gates": [
            {name: value for name, value in gate.items() if name != "gate_no"}
            for gate in checked.gates
        ],
        "failed_checks": [asdict(failed) for failed in checked.failed_checks],
    }
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False)


def as_text(checked: Checked) -> str:
    """One line a gate, with the worst queries below those that failed, and the verdict last."""
    pinned = checked.baseline
    lines = [
        f"Baseline: evaluation {pinned.evaluation_id}, pinned {pinned.pinned_at} by "
        f"{pinned.pinned_by}: {pinned.why}"
        if pinned
        else "Baseline: none is pinned; pin one: rag-assets pin-baseline "
        f"{checked.suite} --by NAME --why TEXT"
    ]
    for gate in checked.gates:
        lines.append(f"{gate['status'].replace('_', ' ').upper():13}{gate_sentence(gate)}")
        if gate["status"] == FAIL:
            lines.append(f"{'':13}{worse_sentence(gate['worse_queries'])}")
    lines += [
        f"{'CHECK FAILED':13}{failed.check_name} on {failed.asset}: {failed.found}"
        for failed in checked.failed_checks
    ]
    verdict = "passed" if checked.passed else "failed"
    counts = gates_sentence(checked.gates).split(". ")[0]
    lines.append(f"Check {verdict}: {counts}; {len(checked.failed_checks)} other checks failed")
    return "\n".join(lines)
