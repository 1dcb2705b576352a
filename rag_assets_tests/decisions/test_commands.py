"""`sign`, `activate` and `roll-back`: what a person may do to the space that serves."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from rag_assets_tests.decisions.releases import Decided

BY = ("--by", "Ada", "--why", "ready")


def alias(suite: Decided) -> dict[str, Any] | None:
    path = suite.folder / "active_space.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def refused(suite: Decided, space_id: str) -> list[str]:
    """What `activate` says is missing; it must have changed nothing."""
    before = alias(suite)
    result = suite.activate(space_id)
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    assert alias(suite) == before
    lines: list[str] = result.stderr.splitlines()
    assert all(line.startswith("error: ") for line in lines)
    return [line.removeprefix("error: ") for line in lines]


def test_an_unsigned_release_activates_nothing_and_says_all_that_is_missing(
    suite: Decided,
) -> None:
    lines = refused(suite, "old")
    assert [line.split(":")[0] for line in lines] == [
        "checklist item 9 shadow_and_rollback",
        "checklist item 10 approvals",
    ]
    assert "rag-assets sign decided approvals --by NAME --why TEXT" in lines[1]
    for line, item in zip(lines, ("shadow_and_rollback", "approvals"), strict=True):
        assert item in line
        suite.sign(item)
    # The first space needs no audit and no decision about one.
    assert "old is active from now on" in suite.activate("old").stdout


def test_a_migration_is_activated_after_its_audit_was_decided_on(ready: Decided) -> None:
    assert ready.activate("old").exit_code == 0
    [line] = refused(ready, "new")
    assert line.startswith("quality old:new: needs_decision: none; read migration_by_query")
    ready.sign("quality", "old:new", why="equal on all queries")
    result = ready.activate("new")
    assert (result.exit_code, result.stderr) == (0, "")
    found = alias(ready)
    assert found is not None
    assert found["active"] == "new"
    assert [(s["space_id"], s["kind"], s["by"], s["why"]) for s in found["switches"]] == [
        ("old", "activate", "Ada", "ready"),
        ("new", "activate", "Ada", "ready"),
    ]
    # In the tables after the next run; the gates never decide, a person did.
    assert ready.run().success
    [row] = ready.rows("FROM active_space")
    assert (row["space_id"], row["switched_by"], row["why"]) == ("new", "Ada", "ready")
    assert row["evaluation_id"] == ready.evaluation  # unchanged content, the same evaluation
    log = ready.rows("FROM active_space_log")
    assert [(r["switch_no"], r["space_id"], r["kind"]) for r in log] == [
        (1, "old", "activate"),
        (2, "new", "activate"),
    ]
    decisions = ready.rows("FROM decisions")
    assert [(r["item"], r["decision"], r["status"], r["reason"]) for r in decisions] == [
        (item, "approve", "valid", None)
        for item in ("shadow_and_rollback", "approvals", "quality old:new")
    ]
    assert set(ready.statuses().values()) == {"pass"}
    [check] = ready.rows("FROM check_results WHERE check_name = 'release_checklist'")
    assert check["passed"] is True
    audits = ready.rows("SELECT DISTINCT quality_decision_required AS q FROM migration_audit")
    assert audits == [{"q": True}]


def test_a_decision_against_a_migration_keeps_it_from_serving(serving: Decided) -> None:
    serving.done("sign", "decided", "quality", "old:new", *BY, "--refuse")
    [line] = refused(serving, "new")
    assert line.startswith("quality old:new: refused by Ada: ready")
    serving.sign("quality old:new", why="looked again")
    assert serving.activate("new").exit_code == 0


def test_decisions_expire_with_the_data(serving: Decided) -> None:
    said = f"the data changed since evaluation {serving.evaluation}"
    serving.edit_a_text()
    assert serving.run().success
    lines = refused(serving, "new")
    assert [line.split(":")[0] for line in lines] == [
        "checklist item 9 shadow_and_rollback",
        "checklist item 10 approvals",
        "quality old",
    ]
    assert all(said in line for line in lines)
    rows = serving.rows("FROM decisions")
    assert {(row["status"], row["reason"]) for row in rows} == {("expired", said)}
    assert serving.statuses()["approvals"] == "needs_decision"


def test_a_refused_approval_fails_its_item(ready: Decided) -> None:
    ready.done("sign", "decided", "approvals", *BY, "--refuse")
    [line] = refused(ready, "old")
    assert line.startswith("checklist item 10 approvals: fail: refused by Ada for evaluation")


def test_what_was_not_executed_needs_an_acceptance(ready: Decided) -> None:
    assert ready.run(budgets={}).success
    [line] = refused(ready, "old")
    assert line.startswith("checklist item 7 budgets_met: not_executed: no budget for p95_ms")
    assert "rag-assets sign decided accept budgets_met --by NAME" in line
    ready.sign("accept", "budgets_met", why="a pilot for ten users")
    assert ready.activate("old").exit_code == 0
    assert ready.run(budgets={}).success
    [row] = ready.rows("FROM release_checklist WHERE item = 'budgets_met'")
    assert (row["status"], row["decided_by"]) == ("not_executed", "Ada")
    [check] = ready.rows("FROM check_results WHERE check_name = 'release_checklist'")
    assert check["passed"] is True


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (["approval"], "unknown item 'approval'; an item is `quality OLD:NEW`"),
        (["quality", "old:other"], "it has quality new:old, quality old:new"),
        (["accept", "splits_kept_apart"], "only what was not executed can be accepted; here: noth"),
        (["accept", "approvals"], "only what was not executed can be accepted"),
    ],
)
def test_what_cannot_be_signed_is_bad_usage(suite: Decided, item: list[str], said: str) -> None:
    result = suite.command("sign", "decided", *item, *BY)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert not (suite.folder / "decisions.yaml").exists()


def test_a_migration_that_was_not_audited_is_refused(serving: Decided) -> None:
    assert serving.run(audits=[{"old": "new", "new": "old"}]).success
    lines = refused(serving, "new")
    assert "the migration old -> new was not audited; add {old: old, new: new}" in lines[0]


def test_a_migration_whose_gates_fail_is_refused(serving: Decided) -> None:
    """A text differs between the spaces: planted in the release, as no run publishes it here."""
    with spoiled(serving) as con:
        con.execute(
            "UPDATE migration_audit SET mechanical_gates_pass = FALSE, canonical_match = FALSE, "
            "quality_note = 'The mechanical gates failed.' WHERE new_space_id = 'new'"
        )
        con.execute(
            "UPDATE check_results SET passed = FALSE, severity = 'error' "
            "WHERE check_name = 'mechanical_gates'"
        )
    lines = refused(serving, "new")
    assert lines[0].startswith("the check mechanical_gates failed on decided/migration_audit")
    assert lines[1].startswith("the audit old -> new: The mechanical gates failed.")
    with spoiled(serving) as con:
        con.execute(
            "UPDATE migration_audit SET mechanical_gates_pass = NULL, canonical_match = NULL, "
            "status = 'not_executed', status_reason = 'no key' WHERE new_space_id = 'new'"
        )
        con.execute("UPDATE check_results SET severity = 'warn' WHERE NOT passed")
    [line] = refused(serving, "new")
    assert line.startswith("the audit old -> new was not_executed: no key")


def test_any_check_that_fails_keeps_a_space_from_serving(ready: Decided) -> None:
    with spoiled(ready) as con:
        con.execute(
            "UPDATE check_results SET passed = FALSE, severity = 'error' "
            "WHERE asset = 'decided/new/embeddings'"
        )
    [line] = refused(ready, "old")
    assert line.startswith("the check contract_validation failed on decided/new/embeddings")


def test_a_failing_item_cannot_be_accepted(ready: Decided) -> None:
    with spoiled(ready) as con:
        con.execute("UPDATE release_checklist SET status = 'fail' WHERE item = 'budgets_met'")
    [line] = refused(ready, "old")
    assert line.startswith("checklist item 7 budgets_met: fail")
    assert "accept" not in line
    assert ready.command("sign", "decided", "accept budgets_met", *BY).exit_code == 2


def test_a_space_that_was_not_executed_is_refused(ready: Decided) -> None:
    with spoiled(ready) as con:
        con.execute("UPDATE base.spaces SET status = 'not_executed' WHERE space_id = 'old'")
    [line] = refused(ready, "old")
    assert line.startswith("space old was not executed")


def test_a_stale_release_is_refused(ready: Decided) -> None:
    definition = ready.folder / "defs.yaml"
    definition.write_text("# edited\n", "utf-8")
    [line] = refused(ready, "old")
    assert (
        line == "the release is stale: the suite's YAML changed since; run: rag-assets run decided"
    )
    definition.write_text("# declared by a test\n", "utf-8")
    current = ready.folder / "warehouse/store/decided/new/embeddings/current.json"
    current.unlink()  # as after a materialization that was thrown away
    [line] = refused(ready, "old")
    assert line.startswith("the release is stale: new/embeddings has another version now")


def test_a_release_of_an_older_version_is_refused(ready: Decided) -> None:
    with spoiled(ready) as con:
        con.execute("DELETE FROM base.manifest WHERE key = 'data_version'")
    for arguments in (("activate", "decided", "old"), ("sign", "decided", "approvals")):
        result = ready.command(*arguments, *BY)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "made by an older version; run: rag-assets run decided" in result.stderr
    with spoiled(ready) as con:
        con.execute("DROP TABLE release_checklist")
    assert "older version" in ready.activate("old").stderr


def test_unknown_and_active_spaces_are_bad_usage(ready: Decided) -> None:
    result = ready.activate("other")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "suite decided has no space 'other'; it has old, new" in result.stderr
    assert ready.activate("old").exit_code == 0
    result = ready.activate("old")
    assert result.exit_code == 2
    assert "old is the active space already" in result.stderr


def test_rolling_back_goes_back_step_by_step(serving: Decided) -> None:
    back = ("roll-back", "decided", "--by", "Bo", "--why", "complaints")
    result = serving.command(*back)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no space to roll back to: old is the first active space" in result.stderr
    assert serving.activate("new").exit_code == 0
    serving.sign("quality", "new:old")
    assert serving.activate("old").exit_code == 0
    # No gate is asked on the way back: everything expires here.
    serving.edit_a_text()
    assert serving.run().success
    assert "decided: new is active again" in serving.done(*back)
    assert "decided: old is active again" in serving.done(*back)
    assert serving.command(*back).exit_code == 2
    found = alias(serving)
    assert found is not None
    assert found["active"] == "old"
    kinds = [(switch["space_id"], switch["kind"]) for switch in found["switches"]]
    assert kinds[2:] == [("old", "activate"), ("new", "roll_back"), ("old", "roll_back")]
    assert found["switches"][-1]["forced"] is None
    assert found["switches"][-1]["evaluation"] == serving.evaluation


def test_a_space_that_is_another_by_now_is_rolled_back_to_by_force_only(
    serving: Decided,
) -> None:
    assert serving.activate("new").exit_code == 0
    with spoiled(serving) as con:
        con.execute("UPDATE base.spaces SET contract_signature = repeat('f', 64) "
                    "WHERE space_id = 'old'")  # fmt: skip
    back = ("roll-back", "decided", "--by", "Bo", "--why", "complaints")
    before = alias(serving)
    result = serving.command(*back)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "and has ffffffffffff now" in result.stderr
    assert "--force" in result.stderr
    assert alias(serving) == before
    serving.done(*back, "--force")
    found = alias(serving)
    assert found is not None
    assert found["active"] == "old"
    assert found["switches"][-1]["forced"].startswith("old was activated with the contract sig")


def test_rolling_back_without_a_release_takes_force(serving: Decided) -> None:
    assert serving.activate("new").exit_code == 0
    shutil.rmtree(serving.folder / "warehouse")
    back = ("roll-back", "decided", "--by", "Bo", "--why", "the machine is new")
    result = serving.command(*back)
    assert result.exit_code == 1
    assert "is not known to the current release" in result.stderr
    serving.done(*back, "--force")
    found = alias(serving)
    assert found is not None
    assert (found["active"], found["switches"][-1]["evaluation"]) == ("old", None)


def test_an_edited_log_is_refused_and_stops_the_next_run(serving: Decided) -> None:
    path = serving.folder / "active_space.json"
    sound = path.read_text("utf-8")
    for edit in ('"active": "old"', '"why": "ready"'):
        path.write_text(sound.replace(edit, edit[:-1] + '2"'), "utf-8")
        result = serving.activate("new")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "active_space.json: " in result.stderr
        assert "edited_active_space" in result.stderr
    assert not serving.run().success


def test_faulty_decisions_stop_no_evaluation_and_count_for_nothing(ready: Decided) -> None:
    path = ready.folder / "decisions.yaml"
    path.write_text(path.read_text("utf-8") + "- item: approvals\n", "utf-8")
    ready.run()
    statuses = ready.statuses()
    assert (statuses["shadow_and_rollback"], statuses["approvals"]) == ("fail", "fail")
    assert statuses["content_reconciled"] == "pass"
    [row] = ready.rows("FROM release_checklist WHERE item = 'approvals'")
    assert "decisions.yaml: line" in row["evidence"]
    assert "missing_key" in row["evidence"]
    [check] = ready.rows("FROM check_results WHERE check_name = 'release_checklist'")
    assert check["severity"] == "error"
    assert ready.rows("FROM metric_by_space") != []
    result = ready.activate("old")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "missing_key" in result.stderr


def spoiled(suite: Decided) -> Any:
    """A connection that may change the current release, which its owner can."""
    import duckdb

    path = (suite.folder / "warehouse" / "decided.duckdb").resolve()
    path.chmod(0o644)
    return duckdb.connect(str(path))
