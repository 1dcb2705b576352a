"""The history of a suite, through `rag-assets run` and SQL: what is added, and what is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rag_assets import clock
from rag_assets_tests.conftest import Tree, Workshop, item_in

pytestmark = pytest.mark.slow

Days = Callable[[int], None]
# Toy's index has too little to learn from, and nobody signs anything.
STANDING = {"index_training", "release_checklist"}
START = datetime(2030, 1, 1, 5, tzinfo=UTC)


@pytest.fixture
def day(monkeypatch: pytest.MonkeyPatch) -> Days:
    """Sets the clock to five o'clock of a day, counted from 0."""

    def set_clock(number: int) -> None:
        monkeypatch.setattr(clock, "utc_now", lambda: START + timedelta(days=number))

    set_clock(0)
    return set_clock


def in_both(tree: Tree, item_id: str, **changes: Any) -> None:
    for space_id in ("toy-v1", "toy-v2"):
        item_in(tree, space_id, item_id).update(changes)


def run(workshop: Workshop) -> None:
    done = workshop.command("run", "toy")
    assert done.exit_code == 0, done.output


def warned(workshop: Workshop) -> set[str]:
    """Checks that did not pass, other than the training of toy's tiny index and the checklist."""
    rows = workshop.rows("SELECT check_name FROM check_results WHERE NOT passed")
    return {row["check_name"] for row in rows} - {"index_training", "release_checklist"}


def test_an_unchanged_run_adds_a_heartbeat_and_nothing_else(workshop: Workshop, day: Days) -> None:
    run(workshop)
    tables = ("metric_history", "audit_history", "check_history", "content_changes")
    counts = [f"(SELECT count(*) FROM {table}) AS {table}" for table in tables]
    [before] = workshop.rows(f"SELECT {', '.join(counts)}")
    assert before["metric_history"] > 0 and before["audit_history"] > 0
    kept = sorted((workshop.warehouse / "history" / "toy" / "evaluations").rglob("*"))
    bytes_before = [path.read_bytes() for path in kept if path.is_file()]

    day(1)
    run(workshop)
    [after] = workshop.rows(f"SELECT {', '.join(counts)}")
    assert after == before
    assert sorted((workshop.warehouse / "history" / "toy" / "evaluations").rglob("*")) == kept
    assert [path.read_bytes() for path in kept if path.is_file()] == bytes_before
    [evaluation] = workshop.rows(
        "SELECT evaluated_at, last_seen_at, heartbeat_count, is_latest FROM evaluations"
    )
    assert evaluation == {
        "evaluated_at": "2030-01-01T05:00:00",
        "last_seen_at": "2030-01-02T05:00:00",
        "heartbeat_count": 1,
        "is_latest": True,
    }
    # The release took the place of the equal one before it, and did not push another out.
    assert len(workshop.releases()) == 1


def test_history_tells_what_changed_when_and_only_then(
    workshop: Workshop, day: Days, toy: Tree
) -> None:
    original = json.dumps(toy)
    run(workshop)
    assert warned(workshop) == set()  # a first evaluation has nothing to differ from

    day(1)
    in_both(toy, "doc-oncall", text="Who is on call this week, and how to reach them.")
    in_both(toy, "doc-breach-notes", acl=["legal", "security"])
    for space_id in ("toy-v1", "toy-v2"):
        toy["items"].append({**item_in(toy, space_id, "doc-oncall"), "item_id": "doc-new"})
    workshop.write(toy)
    run(workshop)
    assert warned(workshop) == {"content_changes", "access_changes"}
    changes = workshop.rows("SELECT kind, id, change FROM content_changes")
    assert {(row["kind"], row["id"], row["change"]) for row in changes} == {
        ("item", "doc-new", "added"),
        ("item", "doc-oncall", "edited"),
        ("item", "doc-breach-notes", "access"),
    }
    [access] = workshop.rows(
        "SELECT old_value, new_value FROM content_changes WHERE change = 'access'"
    )
    assert access["old_value"] != access["new_value"] == "[legal, security]"

    day(2)  # nothing new: the table still shows the last change, the checks are quiet
    run(workshop)
    assert warned(workshop) == set()
    assert len(workshop.rows("SELECT * FROM content_changes")) == 3

    day(3)
    toy["contracts"][1]["revision"] = "another"
    workshop.write(toy)
    run(workshop)
    assert warned(workshop) == {"contract_changes"}
    [change] = workshop.rows("SELECT space_id, change, new_revision FROM contract_changes")
    assert change == {"space_id": "toy-v2", "change": "changed", "new_revision": "another"}

    day(4)  # back to the first day's content: a change, and another evaluation of equal numbers
    workshop.write(json.loads(original))
    run(workshop)
    assert warned(workshop) == {"content_changes", "access_changes", "contract_changes"}
    deleted = workshop.rows("SELECT id FROM content_changes WHERE change = 'deleted'")
    assert deleted == [{"id": "doc-new"}]
    days = workshop.rows("SELECT evaluated_at, data_version FROM evaluations ORDER BY 1")
    assert [row["evaluated_at"][:10] for row in days] == [
        "2030-01-01",
        "2030-01-02",
        "2030-01-04",
        "2030-01-05",
    ]
    assert days[0]["data_version"] == days[-1]["data_version"] != days[1]["data_version"]
    means = workshop.rows(
        "SELECT evaluated_at, mean_ndcg_at_k FROM metric_history WHERE space_id = 'toy-v1' "
        "AND index_name = 'exact' AND subgroup IS NULL AND k = 3 ORDER BY evaluated_at"
    )
    assert len(means) == 4 and means[0]["mean_ndcg_at_k"] == means[-1]["mean_ndcg_at_k"]
    fired = workshop.rows(
        "SELECT evaluated_at, check_name FROM check_history WHERE NOT passed ORDER BY ALL"
    )
    assert [
        (row["evaluated_at"][:10], row["check_name"])
        for row in fired
        if row["check_name"] not in STANDING
    ] == [
        ("2030-01-02", "access_changes"),
        ("2030-01-02", "content_changes"),
        ("2030-01-04", "contract_changes"),
        ("2030-01-05", "access_changes"),
        ("2030-01-05", "content_changes"),
        ("2030-01-05", "contract_changes"),
    ]


def test_judgements_are_content(workshop: Workshop, day: Days, toy: Tree) -> None:
    run(workshop)
    day(1)
    case = toy["queries"][0]
    item_id = next(iter(case["relevance"]))
    case["relevance"][item_id] = 4 - case["relevance"][item_id]
    workshop.write(toy)
    run(workshop)
    changes = workshop.rows("SELECT kind, id, change FROM content_changes")
    assert changes == [{"kind": "case", "id": case["case_id"], "change": "edited"}]


def test_a_run_that_was_stopped_is_in_the_history_of_checks(
    workshop: Workshop, day: Days, toy: Tree
) -> None:
    run(workshop)
    day(1)
    broken = json.loads(json.dumps(toy))
    item_in(broken, "toy-v2", "doc-oncall")["vector"][0] = "much"
    workshop.write(broken)
    assert workshop.command("run", "toy").exit_code == 2
    day(2)
    workshop.write(toy)
    run(workshop)
    [stopped] = workshop.rows(
        "SELECT evaluation_id, asset, check_name, severity, evaluated_at, details "
        "FROM check_history WHERE evaluation_id IS NULL"
    )
    assert stopped["asset"] == "toy/canonical_items"
    assert stopped["check_name"] == "source_reading"
    assert stopped["severity"] == "error"
    assert stopped["evaluated_at"].startswith("2030-01-02")
    [outcome] = json.loads(stopped["details"])["outcomes"]
    assert "vector" in outcome["column"]
    # What was good before is still the latest evaluation, seen again today.
    [evaluation] = workshop.rows("SELECT evaluated_at, heartbeat_count FROM evaluations")
    assert evaluation == {"evaluated_at": "2030-01-01T05:00:00", "heartbeat_count": 1}


def test_a_damaged_evaluation_is_named_and_stops_the_tables(workshop: Workshop) -> None:
    run(workshop)
    [home] = (workshop.warehouse / "history" / "toy" / "evaluations").iterdir()
    (home / "evaluation.json").write_text("{", "utf-8")
    done = workshop.command("run", "toy")
    assert done.exit_code == 2
    assert f"evaluations/{home.name} cannot be read" in done.stderr
    assert len(workshop.releases()) == 1
