from __future__ import annotations

import pyarrow as pa
import pytest

from rag_assets.quality.suites import check_release_checklist
from rag_assets.warehouse.base import BASE
from rag_assets_tests.quality.examples import bad, only


def checklist(*rows: dict[str, object]) -> pa.Table:
    sound = {
        "status": "pass",
        "evidence": "seen",
        "how_to_get_it": "run the suite",
        "decided_by": None,
        "decided_at": None,
    }
    numbered = [
        {**sound, "item_no": number, "item": f"item_{number}", **row}
        for number, row in enumerate(rows, 1)
    ]
    return pa.Table.from_pylist(numbered, schema=BASE["checklist"])


def test_a_checklist_that_passes_passes() -> None:
    report = check_release_checklist(checklist({}, {}), 2)
    assert (report.passed, report.check_name) == (True, "release_checklist")
    assert report.numbers["pass"] == 2


def test_an_item_that_fails_is_an_error_with_its_evidence() -> None:
    report = check_release_checklist(checklist({}, {"status": "fail", "evidence": "d2 leaks"}), 2)
    outcome = only(report)
    assert (report.severity, report.blocks) == ("error", True)
    assert outcome.sample == ("item_2",)
    assert "d2 leaks" in outcome.observed


@pytest.mark.parametrize("status", ["not_executed", "needs_decision"])
def test_an_open_item_warns_by_name(status: str) -> None:
    report = check_release_checklist(checklist({"status": status}, {}), 2)
    outcome = only(report)
    assert (report.severity, report.blocks) == ("warn", False)
    assert outcome.sample == ("item_1",)
    assert "item: item_1" in outcome.observed


def test_what_a_person_accepted_does_not_warn_unless_it_needs_a_decision() -> None:
    by = {"decided_by": "Ada", "decided_at": "2026-11-30T21:55:00+00:00"}
    report = check_release_checklist(checklist({"status": "not_executed", **by}), 1)
    assert (report.passed, report.numbers["accepted"]) == (True, 1)
    assert not check_release_checklist(checklist({"status": "needs_decision", **by}), 1).passed


def test_every_item_is_there_once_with_a_known_status() -> None:
    assert check_release_checklist(checklist({}), 2).blocks
    assert check_release_checklist(checklist({}, {"item": "item_1"}), 2).blocks
    unknown = check_release_checklist(checklist({"status": "done"}), 1)
    assert ("release_checklist", "status", "column_values_to_be_in_set") in bad(unknown)
    assert unknown.blocks
