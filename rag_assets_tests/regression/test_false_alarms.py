"""How often gates fail where nothing changed, and whether they find what did."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from rag_assets.regression.rows import BY_QUERY
from rag_assets.statistics import paired
from rag_assets_tests.regression.measured import baseline, gate, judged, regression

QUERIES = 60
SPACES = ("a", "b")
GROUPS = ("x", "y", "z")
DROPS = regression(
    gate(max_drop=0.0),
    gate(max_drop=0.0, measure="recall_at_k"),
    gate(max_drop=0.0, subgroup="each"),
    gate(max_drop=0.0, subgroup="each", measure="recall_at_k"),
    level=0.2,
    index_names={space: ["exact"] for space in SPACES},
)


def rows_of(values: npt.NDArray[np.float64], groups: list[list[str]]) -> pa.Table:
    """`values`: float64[spaces, measures (nDCG, recall), queries]."""
    rows = [
        {"space_id": space, "index_name": "exact", "case_id": f"q{n:03}", "k": 10}
        | {"ndcg_at_k": ndcg[n], "recall_at_k": recall[n], "subgroups": group}
        | dict.fromkeys(("precision_at_k", "reciprocal_rank"), 1.0)
        for space, (ndcg, recall) in zip("ab", values.tolist(), strict=True)
        for n, group in enumerate(groups)
    ]
    return pa.Table.from_pylist(rows, schema=BY_QUERY)


def noisy(truth: npt.NDArray[np.float64], generator: np.random.Generator) -> Any:
    """What a run measures of the truth: half of the queries are off, in all spaces and measures
    alike, as where an index finds other neighbours."""
    off = generator.normal(0, 0.3, QUERIES) * (generator.random(QUERIES) < 0.5)
    own = generator.normal(0, 0.05, truth.shape) * (off != 0)
    return np.clip(truth + off + own, 0, 1)


def test_the_false_alarm_rate_over_all_gates_is_at_most_the_level(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Old and new are two runs of one truth: every failing gate is a false alarm."""
    monkeypatch.setattr(paired, "FLIPS", 1_999)
    generator = np.random.default_rng(20261130)
    groups = [[name for name in GROUPS if generator.random() < 0.6] for _ in range(QUERIES)]
    runs, alarms, uncorrected, gates = 250, 0, 0, 0
    for _ in range(runs):
        truth = generator.random((len(SPACES), 2, QUERIES))
        old, new = noisy(truth, generator), noisy(truth, generator)
        found = judged(DROPS, rows_of(new, groups), baseline(rows_of(old, groups)))
        gates = len(found)
        alarms += any(row["status"] == "fail" for row in found)
        uncorrected += any(row["difference"] < 0 and row["p_value"] <= DROPS.level for row in found)
    assert gates == 16
    bound = DROPS.level + 3 * math.sqrt(DROPS.level * (1 - DROPS.level) / runs)
    assert alarms / runs <= bound
    # The simulation can tell: without the correction the rate is above the level.
    assert uncorrected / runs > bound
    assert alarms > 0


def test_a_real_drop_in_one_subgroup_is_found_and_its_queries_are_named() -> None:
    generator = np.random.default_rng(7)
    groups = [[GROUPS[n % 3]] for n in range(QUERIES)]
    truth = generator.uniform(0.5, 0.9, (len(SPACES), 2, QUERIES))
    old, new = (truth + generator.normal(0, 0.01, truth.shape) for _ in range(2))
    new[0, 0, 0::3] -= 0.3  # nDCG of subgroup x in space a
    new[0, 0, 6] -= 0.15
    found = judged(DROPS, rows_of(new, groups), baseline(rows_of(old, groups)))
    failing = {
        (row["space_id"], row["measure"], row["subgroup"]): row
        for row in found
        if row["status"] == "fail"
    }
    assert set(failing) == {("a", "ndcg_at_k", "x"), ("a", "ndcg_at_k", None)}
    row = failing["a", "ndcg_at_k", "x"]
    assert row["worse_queries"][0] == "q006"
    assert sorted(row["worse_queries"]) == [f"q{n:03}" for n in range(0, QUERIES, 3)]
    assert set(failing["a", "ndcg_at_k", None]["worse_queries"]) >= set(row["worse_queries"])
    assert failing["a", "ndcg_at_k", None]["worse_queries"][0] == "q006"
