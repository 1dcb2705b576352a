"""Declaring sweeps, and holding a declaration once results are known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_assets.errors import InputError, UsageError
from rag_assets.indexes.specs import Hnsw, IvfPq
from rag_assets.laboratory.plans import record_run, register_plan
from rag_assets.laboratory.sweeps import Claim, Need, StopRule, plan_digest
from rag_assets_tests.laboratory.rows import sweep


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"vary": {"nprobe": [1, 2], "n_bits": [4, 8]}},
            "varies 'nprobe', 'n_bits'; .* exactly one",
        ),
        ({"vary": {}}, "varies nothing"),
        ({"vary": {"seed": [1, 2]}}, "varies 'seed'"),
        ({"vary": {"n_probe": [1, 2]}}, "no parameter 'n_probe'; it has n_clusters"),
        ({"vary": {"ef_search": [1, 2]}}, "an ivf_pq index has no parameter 'ef_search'"),
        ({"vary": {"nprobe": [1]}}, "at least 2"),
        ({"vary": {"nprobe": [2, 1]}}, "must ascend"),
        ({"vary": {"nprobe": [1, 1]}}, "without repeats"),
        ({"vary": {"nprobe": [1, 2.0]}}, "nprobe takes the value 2.0; it must be an integer"),
        ({"vary": {"nprobe": [True, 2]}}, "takes the value True"),
        ({"vary": {"opq": [0, 1]}}, "must be true or false"),
        ({"vary": {"refine": [1, 2]}}, "'refine' is no number or switch"),
        ({"seeds": [1, 2]}, "has 2 seeds; at least 3"),
        ({"seeds": [1, 2, 2]}, "seeds are .* must differ"),
        ({"seeds": [1, 2, -3]}, "a seed is -3"),
        ({"k": True}, "k is True"),
        ({"k": 0}, "k is 0"),
        ({"query_sample": 0}, "query_sample is 0"),
        ({"needs": [Need("a", 1, 0.5), Need("a", 2, 0.5)]}, "needs are .* must differ"),
        ({"name": "Two words"}, "name is 'Two words'"),
        ({"name": "../up"}, "name is"),
    ],
)
def test_a_declaration_that_leaves_something_open_is_refused(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        sweep(**changes)


@pytest.mark.parametrize(
    "make",
    [
        lambda: StopRule(-0.1, 0.5),
        lambda: StopRule(0.1, float("inf")),
        lambda: StopRule(float("nan"), 0.5),
        lambda: Claim(1.5),
        lambda: Claim(True),
        lambda: Need(" ", 1, 0.5),
        lambda: Need("a", float("nan"), 0.5),
        lambda: Need("a", 1, 2),
    ],
)
def test_rules_claims_and_needs_with_impossible_numbers_are_refused(make: Any) -> None:
    with pytest.raises(UsageError):
        make()


def test_values_and_seeds_become_indexes() -> None:
    declared = sweep()
    assert declared.spec(4, 3) == IvfPq(n_clusters=16, nprobe=4, seed=3)
    assert declared.search_only
    assert sweep(index=Hnsw(), vary={"ef_search": [8, 16]}).search_only
    assert not sweep(vary={"n_bits": [4, 8]}).search_only
    assert sweep(vary={"opq": [False, True]}).values == (False, True)


def test_a_value_that_cannot_be_built_over_the_vectors_is_named() -> None:
    with pytest.raises(UsageError, match="nprobe = 32: nprobe is 32, more than n_clusters"):
        sweep(vary={"nprobe": [8, 32]}).check_against(16, 1000)
    sweep().check_against(16, 1000)


def test_a_digest_tells_every_declaration_and_data_apart() -> None:
    declared = sweep()
    others = [
        sweep(seeds=[1, 2, 4]),
        sweep(claim=Claim(0.8)),
        sweep(stop_rule=StopRule(0.05, 0.4)),
        sweep(needs=[]),
        sweep(index=IvfPq(n_clusters=16, nprobe=1, n_bits=4)),
    ]
    digests = {plan_digest(one, "d") for one in (declared, *others)}
    assert len(digests) == 6
    assert plan_digest(declared, "d") == plan_digest(sweep(), "d")
    assert plan_digest(declared, "e") not in digests


def test_a_plan_may_be_corrected_until_there_are_results(tmp_path: Path) -> None:
    first = register_plan(tmp_path, sweep(), "data-1")
    corrected = sweep(stop_rule=StopRule(0.1, 0.5))
    second = register_plan(tmp_path, corrected, "data-1")
    assert (first.runs, second.runs) == (0, 0)
    assert first.digest != second.digest
    record_run(tmp_path, corrected, "data-1", ["row"])
    with pytest.raises(UsageError, match=r"\(stop_rule changed since\).*give the sweep a new name"):
        register_plan(tmp_path, sweep(), "data-1")
    with pytest.raises(UsageError, match="claim, needs changed"):
        register_plan(tmp_path, replace(corrected, claim=Claim(0.1), needs=()), "data-2")


def test_new_data_and_a_new_name_are_no_changes_of_a_plan(tmp_path: Path) -> None:
    register_plan(tmp_path, sweep(), "data-1")
    record_run(tmp_path, sweep(), "data-1", ["row"])
    again = register_plan(tmp_path, sweep(), "data-2")
    assert again.runs == 1
    assert register_plan(tmp_path, sweep(name="probes-2", claim=Claim(0.1)), "data-1").runs == 0


def test_a_run_without_a_registered_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="without being registered"):
        record_run(tmp_path, sweep(), "data-1", [])
    register_plan(tmp_path, sweep(), "data-1")
    with pytest.raises(UsageError, match="without being registered"):
        record_run(tmp_path, sweep(claim=Claim(0.1)), "data-1", [])


def test_a_plan_edited_by_hand_is_refused(tmp_path: Path) -> None:
    register_plan(tmp_path, sweep(), "data-1")
    record_run(tmp_path, sweep(), "data-1", ["row"])
    path = tmp_path / "probes.plan.json"
    stored = json.loads(path.read_text())
    stored["record"]["plan"]["claim"]["min_mean_recall"] = 0.1
    path.write_text(json.dumps(stored))
    with pytest.raises(InputError, match=r"probes\.plan\.json: sha256: edited_plan"):
        register_plan(tmp_path, sweep(claim=Claim(0.1)), "data-1")
    path.write_text("[]")
    with pytest.raises(InputError, match="edited_plan"):
        register_plan(tmp_path, sweep(), "data-1")
