"""A failed check binds later runs too, also one that materializes only what lies downstream."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pytest

from rag_assets.components import EvaluationSuite, checks
from rag_assets.components.suite import StoreResource
from rag_assets.quality.report import CheckReport, ExpectationOutcome, Severity
from rag_assets.warehouse.release import current_release
from rag_assets_tests.conftest import Tree

CANONICAL, CHECKED = ["canonical_items"], "contract_validation"
EMBEDDINGS = [["toy-v1", "embeddings"], ["toy-v2", "embeddings"]]
SEARCHED = [
    [space, name] for space in ("toy-v1", "toy-v2") for name in ("exact_index", "exact_results")
]


class Chain:
    """The toy fixture as a suite of this test, one run per call."""

    def __init__(self, folder: Path, toy: Tree) -> None:
        self.source = folder / "source.json"
        self.warehouse = folder / "warehouse"
        self.instance = dg.DagsterInstance.ephemeral()
        self.write(toy)
        component = EvaluationSuite.from_attributes_dict(
            attributes={
                "name": "guarded",
                "source": {"path": str(self.source)},
                "spaces": [{"space_id": "toy-v1"}, {"space_id": "toy-v2"}],
            }
        )
        built = component.build_defs(dg.ComponentTree.for_test().load_context)
        store = StoreResource(root=str(self.warehouse))
        self.definitions = dg.Definitions.merge(
            built, dg.Definitions(resources={"store": store}, executor=dg.in_process_executor)
        )

    def write(self, tree: Tree) -> None:
        self.source.write_text(json.dumps(tree), "utf-8")

    def key(self, path: list[str]) -> dg.AssetKey:
        return dg.AssetKey(["guarded", *path])

    def tables(self) -> list[list[str]]:
        keys = self.definitions.resolve_asset_graph().get_all_asset_keys()
        return [
            list(key.path[1:])
            for key in keys
            if len(key.path) == 2 and key.path[1] != "canonical_items"
        ]

    def run(self, *paths: list[str], checked: bool = True) -> list[str]:
        """Materialize some assets, with their checks; why steps failed, if they did."""
        job = self.definitions.resolve_job_def("evaluate_guarded").get_subset(
            asset_selection={self.key(path) for path in paths},
            asset_check_selection=None if checked else set(),
        )
        return self._failures(job)

    def check(self, path: list[str]) -> list[str]:
        """Evaluate one check, without materializing anything."""
        key = dg.AssetCheckKey(self.key(path), CHECKED)
        job = self.definitions.resolve_job_def("evaluate_guarded").get_subset(
            asset_selection=set(), asset_check_selection={key}
        )
        return self._failures(job)

    def _failures(self, job: Any) -> list[str]:
        result = job.execute_in_process(instance=self.instance, raise_on_error=False)
        reasons = []
        for event in result.all_events:
            if event.event_type == dg.DagsterEventType.STEP_FAILURE:
                failure = event.step_failure_data.user_failure_data
                reasons.append(
                    failure.description if failure else event.step_failure_data.error.message
                )
        assert result.success == (not reasons)
        return reasons


@pytest.fixture
def chain(tmp_path: Path, toy: Tree) -> Chain:
    return Chain(tmp_path, toy)


def verdict(passed: bool, severity: Severity = "error") -> CheckReport:
    outcome = ExpectationOutcome(
        expectation="expect_something",
        column="text",
        expected="all",
        observed="2 blank",
        status="passed" if passed else "failed",
        failing_count=0 if passed else 2,
        sample=() if passed else ("doc-a", "doc-b"),
        meaning="Texts have words.",
        table="items",
        severity=severity,
    )
    return CheckReport(CHECKED, passed, severity, datetime.now(UTC), 10, (outcome,), {})


def judging(monkeypatch: pytest.MonkeyPatch, items: CheckReport, vectors: CheckReport) -> None:
    """Replaces the two contract validations, so that what is tested is the guard alone."""
    monkeypatch.setattr(checks, "check_canonical_items", lambda *_, **__: items)
    monkeypatch.setattr(checks, "check_embeddings", lambda *_, **__: vectors)


def test_a_failed_check_stops_its_own_run_and_every_later_one(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    judging(monkeypatch, items=verdict(passed=False), vectors=verdict(passed=True))
    [failure] = chain.run(CANONICAL, *EMBEDDINGS)  # the embeddings are skipped
    assert "contract_validation" in failure
    refusals = chain.run(*EMBEDDINGS)
    assert len(refusals) == 2
    assert set(refusals) == {
        "the check contract_validation failed on the current version of guarded/canonical_items: "
        "1 of 1 expectations do not hold: expect_something of text (2 blank, e.g. doc-a, doc-b); "
        "correct the source and materialize guarded/canonical_items again"
    }
    # With a later evaluation that passed, the way is free.
    judging(monkeypatch, items=verdict(passed=True), vectors=verdict(passed=True))
    assert chain.check(CANONICAL) == []
    assert chain.run(*EMBEDDINGS) == []


def test_a_check_that_never_ran_stops_what_lies_downstream(chain: Chain) -> None:
    assert chain.run(CANONICAL, checked=False) == []
    assert chain.run(EMBEDDINGS[0]) == [
        "the check contract_validation has not run on the current version of "
        "guarded/canonical_items; materialize guarded/canonical_items together with its checks "
        "first"
    ]


def test_a_check_of_an_older_version_does_not_count(
    chain: Chain, toy: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    judging(monkeypatch, items=verdict(passed=True), vectors=verdict(passed=True))
    assert chain.run(CANONICAL) == []
    toy["items"][0]["text"] += " Changed."
    chain.write(toy)
    assert chain.run(CANONICAL, checked=False) == []
    [refusal] = chain.run(EMBEDDINGS[0])
    assert "has not run on the current version of guarded/canonical_items" in refusal


def test_only_a_warning_does_not_block(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    warning = verdict(passed=False, severity="warn")
    judging(monkeypatch, items=verdict(passed=True), vectors=warning)
    assert chain.run(CANONICAL, *EMBEDDINGS) == []
    assert chain.run(*SEARCHED, checked=False) == []


def test_vectors_of_another_version_of_the_items_are_refused(
    chain: Chain, toy: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    judging(monkeypatch, items=verdict(passed=True), vectors=verdict(passed=True))
    assert chain.run(CANONICAL, *EMBEDDINGS, ["toy-v1", "exact_index"]) == []
    toy["items"][0]["text"] += " Changed."
    chain.write(toy)
    assert chain.run(CANONICAL) == []
    assert chain.run(["toy-v1", "exact_results"]) == [
        "toy-v1/embeddings was built from another version of canonical_items; "
        "materialize toy-v1/embeddings again"
    ]
    # New vectors under the old index are refused too: its norms are those of other vectors.
    item = toy["items"][1]
    item["vector"] = [2 * number for number in item["vector"]]
    chain.write(toy)
    assert chain.run(CANONICAL, EMBEDDINGS[0]) == []
    assert chain.run(["toy-v1", "exact_results"]) == [
        "toy-v1/exact_index was built from another version of toy-v1/embeddings; "
        "materialize toy-v1/exact_index again"
    ]


def test_tables_are_not_built_from_pieces_that_do_not_belong_together(
    chain: Chain, toy: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    judging(monkeypatch, items=verdict(passed=True), vectors=verdict(passed=True))
    assert chain.run(CANONICAL, *EMBEDDINGS, *SEARCHED) == []  # results are checked for real
    for item in toy["items"]:  # in both spaces: the gates of the audit hold
        item["source_revision"] += "+1"
    chain.write(toy)
    assert chain.run(CANONICAL, *EMBEDDINGS) == []
    [refusal] = chain.run(*chain.tables())
    assert "was built from another version of" in refusal
    assert not (chain.warehouse / "guarded.duckdb").exists()
    assert chain.run(*SEARCHED) == []
    assert chain.run(*chain.tables()) == []
    assert current_release(chain.warehouse, "guarded").is_file()


def test_vectors_damaged_in_the_store_fail_the_real_check_and_stop_the_rest(chain: Chain) -> None:
    assert chain.run(CANONICAL) == []
    assert chain.run(EMBEDDINGS[0], checked=False) == []
    [path] = (chain.warehouse / "store" / "guarded" / "toy-v1").rglob("vectors.npy")
    vectors = np.load(path)
    vectors[3, 1] = np.nan
    np.save(path, vectors)
    assert len(chain.check(EMBEDDINGS[0])) == 1
    [refusal] = chain.run(["toy-v1", "exact_index"])
    assert refusal.startswith(
        "the check contract_validation failed on the current version of guarded/toy-v1/embeddings"
    )
    assert "doc-oncall" in refusal  # the fourth document in order of id
    assert refusal.endswith("correct the source and materialize guarded/toy-v1/embeddings again")
