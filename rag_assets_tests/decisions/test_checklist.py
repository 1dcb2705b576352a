"""Each item of the release checklist: met by a sound release, and not by one with a fault."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from rag_assets.decisions.checklist import checklist, examine
from rag_assets.decisions.items import HOW_TO_GET, ITEMS, Finding
from rag_assets.warehouse.release import current_release
from rag_assets_tests.decisions.releases import BUDGETS, Decided


@pytest.fixture
def release(released: Decided, tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A copy of the release to spoil."""
    path = tmp_path / "release.duckdb"
    shutil.copyfile(current_release(released.folder / "warehouse", "decided"), path)
    with duckdb.connect(str(path)) as con:
        yield con


def examined(
    con: duckdb.DuckDBPyConnection,
    *,
    vectors_given: bool = False,
    calibrated_on: Mapping[str, tuple[str, ...]] | None = None,
) -> dict[str, Finding]:
    findings = examine(
        con,
        vectors_given=vectors_given,
        calibrated_on=calibrated_on or {},
    )
    return {finding.item: finding for finding in findings}


def test_a_sound_release_meets_every_item_that_nobody_has_to_sign(released: Decided) -> None:
    rows = released.rows("FROM release_checklist")
    assert [row["item_no"] for row in rows] == list(range(1, 12))
    assert [row["item"] for row in rows] == list(ITEMS)
    open_items = {"shadow_and_rollback", "approvals"}
    assert {row["item"]: row["status"] for row in rows} == {
        item: "needs_decision" if item in open_items else "pass" for item in ITEMS
    }
    evidence = {row["item"]: row["evidence"] for row in rows}
    assert evidence["splits_kept_apart"].startswith("12 dev, 12 test;")
    # 6 documents and 24 queries; each of 24 queries finds 2 in 2 spaces by 2 indexes.
    assert evidence["content_reconciled"].startswith("30 canonical items agree with 2 spaces")
    assert evidence["no_unauthorized_results"].startswith("192 results of 24 queries, none")
    assert "6 items in the role 'document'" in evidence["roles_as_contracted"]
    assert "2 subgroups" in evidence["report_complete"]
    # 6 vectors of 6 float32 components.
    assert "index_bytes of old (exact) is 144; at most 1000000 is" in evidence["budgets_met"]
    assert evidence["approvals"] == "nobody signed it"
    hows = {row["item"]: row["how_to_get_it"] for row in rows}
    assert "rag-assets sign decided approvals --by NAME" in hows["approvals"]
    assert all(how and "SUITE" not in how for how in hows.values())


def test_the_check_on_the_checklist_warns_of_what_is_open(released: Decided) -> None:
    [check] = released.rows("FROM check_results WHERE check_name = 'release_checklist'")
    assert (check["passed"], check["severity"]) == (False, "warn")
    assert check["asset"] == "decided/release_checklist"
    assert "approvals" in check["details"]


SPOILED = [
    # 1. splits
    ("splits_kept_apart", "UPDATE query_cases SET split = NULL", "not_executed", "split 'dev'"),
    (
        "splits_kept_apart",
        "UPDATE query_cases SET split = NULL WHERE case_id = 'dev-no-1'",
        "not_executed",
        "1 queries are in no split",
    ),
    (
        "splits_kept_apart",
        "UPDATE query_cases SET split = 'dev' WHERE split = 'test'",
        "not_executed",
        "no query is in the split 'test'",
    ),
    (
        "splits_kept_apart",
        "UPDATE canonical_items SET text = ' What is dev-no-1? ' WHERE item_id = 'query:test-no-1'",
        "fail",
        "dev-no-1, test-no-1 ask the same in two splits",
    ),
    (
        "splits_kept_apart",
        "UPDATE answer_thresholds SET test_split = 'dev' WHERE space_id = 'new'",
        "fail",
        "the threshold of new has one split for both",
    ),
    # 2. content
    *(
        (
            "content_reconciled",
            f"UPDATE space_items SET {change} WHERE space_id = 'new' AND item_id = 'd1'",
            "fail",
            "1 items differ from the canonical item: d1 (new)",
        )
        for change in (
            "role = 'query'",
            "acl = ['board']",
            "source_revision = 'r9'",
            "content_sha256 = 'other'",
        )
    ),
    (
        "content_reconciled",
        "DELETE FROM space_items WHERE space_id = 'old' AND item_id = 'd2'",
        "fail",
        "1 items are missing in a space: d2 (old)",
    ),
    (
        "content_reconciled",
        "INSERT INTO tombstones VALUES ('d3')",
        "fail",
        "d3 was deleted and is still in results of exact in new, results of exact in old, "
        "results of hnsw in new",
    ),
    (
        "content_reconciled",
        "DELETE FROM base.items WHERE item_id = 'd4'",
        "fail",
        "2 items are held or returned but are no item",
    ),
    (
        "content_reconciled",
        "UPDATE spaces SET status = 'not_executed', status_reason = 'no key' "
        "WHERE space_id = 'new'",
        "not_executed",
        "space new was not executed (no key)",
    ),
    # 3. spaces
    (
        "spaces_signed_and_isolated",
        "UPDATE spaces SET revision = 'other' WHERE space_id = 'new'",
        "fail",
        "the signature of new is not that of its contract",
    ),
    (
        "spaces_signed_and_isolated",
        "UPDATE spaces SET revision = 'Latest' WHERE space_id = 'new'",
        "fail",
        "the revision of new is 'Latest', which does not stay",
    ),
    (
        "spaces_signed_and_isolated",
        "UPDATE spaces SET model = ' ' WHERE space_id = 'new'",
        "fail",
        "new states no model",
    ),
    (
        "spaces_signed_and_isolated",
        "UPDATE spaces SET revision = 'old', contract_signature = "
        "(SELECT contract_signature FROM spaces WHERE space_id = 'old')",
        "fail",
        "old and new have the same contract",
    ),
    (
        "spaces_signed_and_isolated",
        "DELETE FROM space_items WHERE space_id = 'new' AND item_id = 'd0'",
        "fail",
        "1 items are returned by an index of a space that lacks them: d0 (new)",
    ),
    (
        "spaces_signed_and_isolated",
        "INSERT INTO space_items (SELECT * FROM space_items "
        "WHERE space_id = 'new' AND item_id = 'd0')",
        "fail",
        "1 items are held twice: d0 (new)",
    ),
    # 4. roles
    (
        "roles_as_contracted",
        "UPDATE spaces SET query_prompt = NULL WHERE space_id = 'old'",
        "not_executed",
        "no prompts are stated, not even that there are none, for old",
    ),
    (
        "roles_as_contracted",
        "UPDATE space_items SET role = 'note' WHERE space_id = 'old' AND item_id = 'd5'",
        "fail",
        "1 items are not in the role that the contract says: d5 (old)",
    ),
    (
        "roles_as_contracted",
        "UPDATE space_items SET role = 'document' WHERE item_id = 'query:dev-no-1'",
        "fail",
        "2 items are not in the role that the contract says",
    ),
    (
        "roles_as_contracted",
        "UPDATE spaces SET document_role = 'query' WHERE space_id = 'new'",
        "fail",
        "new has the roles 'query' and 'query'",
    ),
    # 5. report
    (
        "report_complete",
        "DELETE FROM metric_by_subgroup",
        "not_executed",
        "no query names a subgroup",
    ),
    (
        "report_complete",
        "UPDATE metric_by_query SET recall_at_k = NULL, precision_at_k = NULL, "
        "reciprocal_rank = NULL, ndcg_at_k = NULL",
        "not_executed",
        "no query has judgements",
    ),
    (
        "report_complete",
        "DELETE FROM metric_by_query WHERE space_id = 'new'",
        "fail",
        "space new was evaluated and has no measure of any query",
    ),
    # 6. thresholds
    (
        "thresholds_calibrated",
        "DELETE FROM answer_thresholds WHERE space_id = 'new'",
        "not_executed",
        "new has no threshold",
    ),
    (
        "thresholds_calibrated",
        "UPDATE answer_thresholds SET refusal = 'it has another signature' WHERE space_id = 'old'",
        "not_executed",
        "the threshold of old: it has another signature",
    ),
    (
        "thresholds_calibrated",
        "UPDATE answer_thresholds SET status = 'not_calibrated', reason = 'too few queries'",
        "not_executed",
        "the threshold of old: too few queries; the threshold of new: too few queries",
    ),
    (
        "thresholds_calibrated",
        "UPDATE answer_thresholds SET test_unanswerable = 0 WHERE space_id = 'old'",
        "not_executed",
        "old was calibrated or tested without unanswerable queries",
    ),
    # 7. budgets
    (
        "budgets_met",
        "UPDATE release_budgets SET status = 'over' WHERE measure = 'index_bytes' "
        "AND space_id = 'old'",
        "fail",
        "index_bytes of old (exact) is 144; at most 1000000 is allowed",
    ),
    (
        "budgets_met",
        "UPDATE release_budgets SET status = 'not_measured' WHERE measure = 'p95_ms'",
        "not_executed",
        "p95_ms of new (exact) was not measured; p95_ms of old (exact) was not measured",
    ),
    (
        "budgets_met",
        "DELETE FROM release_budgets WHERE measure = 'cost_per_month'",
        "not_executed",
        "no budget for cost_per_month",
    ),
    # 8. access
    (
        "no_unauthorized_results",
        "UPDATE canonical_items SET acl = ['board'] WHERE item_id = 'd1'",
        "fail",
        "results that their subject may not read, e.g. d1 for",
    ),
    (
        "no_unauthorized_results",
        "UPDATE space_items SET acl = ['board'] WHERE item_id = 'd1' AND space_id = 'new'",
        "fail",
        "by exact in new",
    ),
    (
        "no_unauthorized_results",
        "UPDATE query_cases SET subject_groups = [] WHERE case_id = 'dev-yes-0'",
        "fail",
        # two documents, by two indexes in two spaces
        "8 results that their subject may not read, e.g. d0 for dev-yes-0",
    ),
    (
        "no_unauthorized_results",
        "DELETE FROM query_results",
        "not_executed",
        "no query returned anything",
    ),
]


@pytest.mark.parametrize(("item", "spoil", "status", "said"), SPOILED)
def test_an_item_is_not_met(
    item: str, spoil: str, status: str, said: str, release: duckdb.DuckDBPyConnection
) -> None:
    before = examined(release)[item]
    assert before.status == "pass"
    release.execute(spoil)
    after = examined(release)[item]
    assert (after.status, said in after.evidence) == (status, True), after.evidence


def test_a_threshold_that_was_chosen_on_what_are_test_queries_now_mixes_the_splits(
    release: duckdb.DuckDBPyConnection,
) -> None:
    apart = {"old": ("dev-yes-0", "dev-no-0")}
    assert examined(release, calibrated_on=apart)["splits_kept_apart"].status == "pass"
    mixed = examined(release, calibrated_on={"old": ("dev-yes-0", "test-no-0")})
    assert mixed["splits_kept_apart"].status == "fail"
    assert mixed["splits_kept_apart"].evidence == (
        "the threshold of old was chosen on test queries: test-no-0"
    )


def test_an_item_that_was_deleted_since_an_earlier_evaluation_must_be_nowhere(
    release: duckdb.DuckDBPyConnection,
) -> None:
    deleted = "INSERT INTO content_changes (kind, id, change) VALUES ('item', ?, 'deleted')"
    release.execute(deleted, ["d9"])
    gone = examined(release)["content_reconciled"]
    assert gone.status == "pass"
    assert gone.evidence.endswith("deleted items that are still in a space: 0 of 1")
    release.execute(deleted, ["d5"])
    there = examined(release)["content_reconciled"]
    assert there.status == "fail"
    assert "d5 was deleted and is still in" in there.evidence
    assert "d9" not in there.evidence


@pytest.mark.parametrize("notice", ["", "  ", None])
def test_fixture_vectors_need_a_notice(
    notice: str | None, release: duckdb.DuckDBPyConnection
) -> None:
    item = "fixtures_not_presented_as_quality"
    assert "of models: old, new" in examined(release)[item].evidence
    release.execute("UPDATE manifest SET value = 'nothing about models' WHERE key = 'notice'")
    told = examined(release, vectors_given=True)[item]
    assert told.status == "pass"
    assert told.evidence == "not of models: old, new; the release says: nothing about models"
    release.execute("UPDATE manifest SET value = ? WHERE key = 'notice'", [notice])
    assert examined(release, vectors_given=True)[item].status == "fail"


def test_prompts_do_not_apply_to_vectors_that_were_given(
    release: duckdb.DuckDBPyConnection,
) -> None:
    release.execute("UPDATE spaces SET query_prompt = NULL, document_prompt = NULL")
    assert examined(release)["roles_as_contracted"].status == "not_executed"
    assert examined(release, vectors_given=True)["roles_as_contracted"].status == "pass"


def test_a_suite_without_spaces_has_shown_nothing(release: duckdb.DuckDBPyConnection) -> None:
    for table in ("spaces", "space_items", "query_results", "metric_by_query", "release_budgets"):
        release.execute(f"DELETE FROM {table}")
    statuses = {finding.item: finding.status for finding in examined(release).values()}
    del statuses["splits_kept_apart"], statuses["fixtures_not_presented_as_quality"]
    assert set(statuses.values()) == {"not_executed"}


def test_every_item_is_listed_though_nothing_was_found_about_it() -> None:
    rows = checklist("toy", [], [])
    assert [row.item for row in rows] == list(HOW_TO_GET)
    assert {row.status for row in rows} == {"needs_decision"}
    assert not any(row.met for row in rows)


def test_budgets_are_compared_in_the_suite_s_own_run(suite: Decided) -> None:
    tight: dict[str, Any] = {**BUDGETS, "index_bytes": {"limit": 143}}
    suite.run(budgets=tight)  # a failing item is published
    [row] = suite.rows("FROM release_budgets WHERE measure = 'index_bytes' AND space_id = 'old'")
    assert (row["index_name"], row["measured"], row["status"]) == ("exact", 144, "over")
    assert suite.statuses()["budgets_met"] == "fail"
    [check] = suite.rows("FROM check_results WHERE check_name = 'release_checklist'")
    assert (check["passed"], check["severity"]) == (False, "error")


def test_tombstones_come_from_a_file_of_ids(suite: Decided) -> None:
    (suite.source / "deleted.txt").write_text("d9\nd2\n", "utf-8")
    suite.run(tombstones="data/decided/deleted.txt")
    assert suite.rows("FROM tombstones") == [{"item_id": "d2"}, {"item_id": "d9"}]
    [row] = suite.rows("FROM release_checklist WHERE item = 'content_reconciled'")
    assert row["status"] == "fail"
    assert row["evidence"].startswith("d2 was deleted and is still in")
    assert "d9" not in row["evidence"]


def test_a_file_of_tombstones_that_is_missing_stops_the_run(suite: Decided) -> None:
    before = (suite.folder / "warehouse" / "decided.duckdb").readlink()
    assert not suite.run(tombstones="data/decided/absent.txt").success
    assert (suite.folder / "warehouse" / "decided.duckdb").readlink() == before
