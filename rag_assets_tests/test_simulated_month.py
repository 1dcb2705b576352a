"""A month of daily runs: each change is caught by the right check on its day, and nothing else is.

A source of sixty documents and sixty queries in two languages changes as sources do. The clock is
set to each day's five o'clock; every run is the suite's whole job.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pytest

from rag_assets import clock
from rag_assets.regression.pinning import pin_baseline
from rag_assets_tests.components.suites import Rows, declared, ran, rows

pytestmark = pytest.mark.slow

Tree = dict[str, Any]
START = datetime(2031, 3, 1, 5, tzinfo=UTC)
DAYS = 31
DIMENSION = 16
DOCUMENTS = 60
SPACES = ("old", "new")
SUITE: dict[str, Any] = {
    "name": "month",
    "source": {"format": "fixture", "path": "data/month.json"},
    "spaces": [{"space_id": space_id} for space_id in SPACES],
    "k": [5],
    "regression": {
        "level": 0.05,
        "gates": [
            {"measure": "ndcg_at_k", "k": 5, "floor": 0.3, "max_drop": 0.4},
            {"measure": "ndcg_at_k", "k": 5, "subgroup": "each", "max_drop": 0.1},
        ],
    },
}


def unit(vectors: np.ndarray) -> np.ndarray:
    scaled: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return scaled


def source() -> Tree:
    """Sixty documents, a query beside each, and two spaces that differ by a little noise."""
    rng = np.random.default_rng(5)
    documents = rng.standard_normal((DOCUMENTS, DIMENSION))
    queries = documents + 0.5 * rng.standard_normal((DOCUMENTS, DIMENSION))
    items, contracts = [], []
    for space_id in SPACES:
        contracts.append(
            {
                "space_id": space_id,
                "provider": "hand",
                "model": space_id,
                "revision": "2031-01",
                "dimension": DIMENSION,
                "metric": "cosine",
                "normalized": True,
                "query_role": "query",
                "document_role": "document",
                "dtype": "float64",
            }
        )
        for role, vectors in (("document", documents), ("query", queries)):
            moved = unit(vectors + 0.05 * rng.standard_normal(vectors.shape))
            items += [
                {
                    "item_id": f"{role}-{number:02}",
                    "space_id": space_id,
                    "role": role,
                    "text": f"The {role} with number {number}.",
                    "vector": [float(value) for value in vector],
                    "acl": ["staff", "guests"],
                    "source_revision": "1",
                }
                for number, vector in enumerate(moved)
            ]
    cases = [
        {
            "case_id": f"case-{number:02}",
            "query_item_id": f"query-{number:02}",
            "subject_groups": ["staff"],
            "relevance": {f"document-{number:02}": 3},
            "subgroups": ["english" if number % 2 == 0 else "german"],
        }
        for number in range(DOCUMENTS - 10)  # nothing is asked about the last ten documents
    ]
    return {"contracts": contracts, "items": items, "queries": cases}


def items(tree: Tree, item_id: str) -> list[Tree]:
    return [item for item in tree["items"] if item["item_id"] == item_id]


def add_documents(tree: Tree) -> None:
    rng = np.random.default_rng(6)
    for number in (90, 91):
        [vector] = unit(rng.standard_normal((1, DIMENSION)))
        for item in items(tree, "document-50"):
            tree["items"].append(
                {
                    **copy.deepcopy(item),
                    "item_id": f"document-{number}",
                    "text": f"Added, number {number}.",
                    "vector": [float(value) for value in vector],
                }
            )


def edit_document(tree: Tree) -> None:
    for item in items(tree, "document-07"):
        item["text"] = "Rewritten."


def delete_document(tree: Tree) -> None:
    tree["items"] = [item for item in tree["items"] if item["item_id"] != "document-55"]


def revoke_access(tree: Tree) -> None:
    for item in items(tree, "document-52"):
        item["acl"] = ["guests"]


def revise_model(tree: Tree) -> None:
    tree["contracts"][1]["revision"] = "2031-03"


def break_german(tree: Tree) -> None:
    """Query vectors of one subgroup lose their meaning; texts, ids and contracts stay."""
    rng = np.random.default_rng(7)
    for number in range(1, DOCUMENTS - 10, 2):
        [vector] = unit(rng.standard_normal((1, DIMENSION)))
        [item] = [one for one in items(tree, f"query-{number:02}") if one["space_id"] == "old"]
        item["vector"] = [float(value) for value in vector]


def break_source(tree: Tree) -> None:
    del items(tree, "document-03")[0]["acl"]


# Day: what happens to the source before that day's run, and the checks that have to catch it.
HAPPENS = {
    4: (add_documents, {"content_changes"}),
    8: (edit_document, {"content_changes"}),
    11: (delete_document, {"content_changes"}),
    15: (revoke_access, {"access_changes"}),
    19: (revise_model, {"contract_changes"}),
    23: (break_german, {"regression_gates"}),
    27: (break_source, {"source_reading"}),
}
UNDONE = {24: 23, 28: 27}  # on this day, what happened on that day is put right


@dataclass(frozen=True)
class Month:
    """What each day's run fired, and the folder with everything that was left."""

    folder: Path
    fired: dict[int, set[str]]
    succeeded: dict[int, bool]

    def sql(self, statement: str) -> Rows:
        return rows(self.folder, "month", statement)


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Month]:
    folder = tmp_path_factory.mktemp("month")
    shutil.copytree(Path(__file__).parents[1] / "dbt_like_sql", folder / "dbt_like_sql")
    (folder / "data").mkdir()
    path = folder / "data" / "month.json"
    tree = source()
    before: dict[int, Tree] = {}
    fired: dict[int, set[str]] = {}
    succeeded = {}
    with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.ephemeral() as instance:
        patch.setenv("RAG_ASSETS_PROJECT", str(folder))
        definitions = declared(SUITE, folder)
        for day in range(DAYS):
            now = START + timedelta(days=day)
            patch.setattr(clock, "utc_now", lambda now=now: now)
            if day in HAPPENS:
                before[day] = copy.deepcopy(tree)
                HAPPENS[day][0](tree)
            elif day in UNDONE:
                tree = before[UNDONE[day]]
            path.write_text(json.dumps(tree), "utf-8")
            result = ran(definitions, instance)
            succeeded[day] = result.success
            fired[day] = {
                evaluation.check_name
                for evaluation in result.get_asset_check_evaluations()
                if not evaluation.passed
            }
            if day == 0:
                pin_baseline(folder / "warehouse", "month", folder, by="A. Person", why="the start")
        yield Month(folder, fired, succeeded)


def day_of(moment: datetime) -> int:
    return (moment.replace(tzinfo=UTC) - START).days


# Open on every day: nobody signs anything in this month.
STANDING = {"release_checklist"}


def test_each_change_is_caught_on_its_day_and_nothing_else_fires(month: Month) -> None:
    expected = {day: HAPPENS[day][1] if day in HAPPENS else set() for day in range(DAYS)}
    expected[0] = {"regression_gates"}  # a warning: there is no baseline yet
    expected[27] = set()  # the source was refused before any check
    assert {day: fired - STANDING for day, fired in month.fired.items()} == expected
    assert [day for day, success in month.succeeded.items() if not success] == [23, 27]


def test_history_reads_as_it_happened(month: Month) -> None:
    fired = month.sql(
        "SELECT evaluated_at, check_name, severity, evaluation_id FROM check_history "
        "WHERE NOT passed ORDER BY evaluated_at, check_name"
    )
    told = [
        (day_of(row["evaluated_at"]), row["check_name"], row["severity"])
        for row in fired
        if row["check_name"] not in STANDING
    ]
    assert told == [
        (0, "regression_gates", "warn"),
        (4, "content_changes", "warn"),
        (8, "content_changes", "warn"),
        (11, "content_changes", "warn"),
        (15, "access_changes", "warn"),
        (19, "contract_changes", "warn"),
        (23, "regression_gates", "error"),
        (27, "source_reading", "error"),
    ]
    # An evaluation a day on which something changed, a heartbeat on every other that was read.
    evaluations = month.sql("SELECT evaluated_at FROM evaluations ORDER BY evaluated_at")
    days = [day_of(row["evaluated_at"]) for row in evaluations]
    assert days == [0, 1, 4, 8, 11, 15, 19, 23, 24]  # the baseline was pinned after day 0
    [[beats]] = [list(row.values()) for row in month.sql("SELECT count(*) FROM heartbeats")]
    assert beats == DAYS - len(days) - 1


def test_the_silent_regression_is_in_one_subgroup_of_one_space_and_names_its_queries(
    month: Month,
) -> None:
    means = month.sql(
        "SELECT evaluated_at, space_id, subgroup, mean_ndcg_at_k FROM metric_history "
        "WHERE index_name = 'exact' ORDER BY evaluated_at"
    )
    by_day: dict[tuple[str, str | None], dict[int, float]] = {}
    for row in means:
        day = day_of(row["evaluated_at"])
        by_day.setdefault((row["space_id"], row["subgroup"]), {})[day] = row["mean_ndcg_at_k"]
    german, english = by_day["old", "german"], by_day["old", "english"]
    assert german[23] < german[19] - 0.1
    assert english[23] == english[19]
    assert by_day["new", "german"][23] == by_day["new", "german"][19]
    [details] = month.sql(
        "SELECT details FROM check_history WHERE check_name = 'regression_gates' "
        "AND NOT passed AND severity = 'error'"
    )
    outcomes = [
        outcome
        for outcome in json.loads(details["details"])["outcomes"]
        if outcome["status"] == "failed"
    ]
    assert len(outcomes) == 1
    assert "german" in json.dumps(outcomes)
    assert "english" not in json.dumps(outcomes)


def test_what_was_deleted_or_revoked_is_gone_from_every_result(month: Month) -> None:
    found = {row["item_id"] for row in month.sql("SELECT DISTINCT item_id FROM query_results")}
    assert not found & {"document-55", "document-52"}
    assert "document-07" in found
