"""What a suite may declare as regression gates, and how a mistake is answered."""

from __future__ import annotations

from typing import Any

import pytest
from dagster.components.resolved.errors import ResolutionException
from pydantic import ValidationError

from rag_assets.components import EvaluationSuite
from rag_assets.errors import UsageError
from rag_assets_tests.regression.measured import gate, regression

SPACES = {"one": ["exact", "hnsw"], "two": ["exact"]}


def test_a_gate_asks_its_rules_of_every_space_in_declared_order() -> None:
    found = regression(gate(floor=0.5, max_drop=0.1), gate(k=3, floor=0.2), index_names=SPACES)
    assert [(q.space_id, q.k, q.rule, q.bound) for q in found.questions] == [
        ("one", 10, "floor", 0.5),
        ("one", 10, "max_drop", 0.1),
        ("two", 10, "floor", 0.5),
        ("two", 10, "max_drop", 0.1),
        ("one", 3, "floor", 0.2),
        ("two", 3, "floor", 0.2),
    ]
    assert found.level == 0.05


@pytest.mark.parametrize(
    ("gates", "said"),
    [
        ([gate(measure="map", floor=0.5)], "unknown measure 'map'; known are recall_at_k"),
        ([gate(k=5, floor=0.5)], "k = 5 is not evaluated; the suite's k are 3, 10"),
        ([gate()], "it has no bound; state a floor, a max_drop or both"),
        ([gate(floor=0)], "floor is 0; it must be above 0 and at most 1"),
        ([gate(floor=1.01)], "floor is 1.01"),
        ([gate(floor=float("nan"))], "floor is nan"),
        ([gate(max_drop=-0.01)], "max_drop is -0.01; it must be at least 0 and below 1"),
        ([gate(max_drop=1)], "max_drop is 1"),
        ([gate(max_drop=float("nan"))], "max_drop is nan"),
        ([gate(floor=0.5, subgroup=" ")], "the subgroup has no name"),
        ([gate(floor=0.5, space_ids=("three",))], "unknown space 'three'; known are one, two"),
        ([gate(floor=0.5, space_ids=())], "spaces is empty"),
        ([gate(floor=0.5, index_name="hnsw")], "space 'two' has no index 'hnsw'; it has exact"),
        (
            [gate(floor=0.5), gate(max_drop=0.1), gate(floor=0.6, space_ids=("two",))],
            "gate 3: floor of ndcg_at_k at k = 10 for all queries of two, exact is stated twice",
        ),
        (
            [gate(floor=0.5, space_ids=("one", "one"), subgroup="x")],
            "for subgroup x of one, exact is stated twice",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_gate_that_makes_no_sense_is_refused(gates: list[Any], said: str) -> None:
    with pytest.raises(UsageError, match="regression: gate") as caught:
        regression(*gates, index_names=SPACES)
    assert said in str(caught.value)


@pytest.mark.parametrize("level", [0, 0.0009, 0.51, 1, float("nan")])
def test_a_level_out_of_range_is_refused(level: float) -> None:
    with pytest.raises(UsageError, match=r"level is .*; it must be from 0.001 to 0.5"):
        regression(level=level)


def suite(**regression: Any) -> EvaluationSuite:
    return EvaluationSuite.from_attributes_dict(
        attributes={
            "name": "s",
            "source": {"path": "data/toy/toy.json"},
            "spaces": [{"space_id": "toy-v1"}, {"space_id": "toy-v2"}],
            "k": [3, 10],
            "regression": regression,
        }
    )


def test_the_yaml_of_the_readme_s_kind_becomes_questions(tmp_path: Any) -> None:
    gates = [
        {"measure": "ndcg_at_k", "k": 10, "max_drop": 0.02},
        {"measure": "ndcg_at_k", "k": 10, "subgroup": "1.10", "floor": 0.15, "spaces": ["toy-v2"]},
        {"measure": "recall_at_k", "k": 3, "subgroup": "each", "max_drop": 0.1},
    ]
    found = suite(level=0.1, gates=gates).suite(tmp_path).regression
    assert found.level == 0.1
    assert [(q.space_id, q.subgroup, q.measure, q.k, q.rule, q.bound) for q in found.questions] == [
        ("toy-v1", None, "ndcg_at_k", 10, "max_drop", 0.02),
        ("toy-v2", None, "ndcg_at_k", 10, "max_drop", 0.02),
        ("toy-v2", "1.10", "ndcg_at_k", 10, "floor", 0.15),
        ("toy-v1", "each", "recall_at_k", 3, "max_drop", 0.1),
        ("toy-v2", "each", "recall_at_k", 3, "max_drop", 0.1),
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"gates": [{"measure": "map", "k": 10, "floor": 0.5}]}, "'recall_at_k', 'precision_at_k'"),
        ({"gates": [{"measure": "ndcg_at_k", "k": 7, "floor": 0.5}]}, "k = 7 is not evaluated"),
        ({"gates": [{"measure": "ndcg_at_k", "floor": 0.5}]}, "Field required"),
        ({"gates": [{"measure": "ndcg_at_k", "k": 10, "flor": 0.5}]}, "Extra inputs"),
        ({"level": 0.9}, "level is 0.9"),
    ],
    ids=str,
)
def test_a_mistake_in_the_yaml_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises((ValidationError, ResolutionException)) as caught:
        suite(**fields)
    error: BaseException | None = caught.value
    told = ""
    while error is not None:
        told += str(error)
        error = error.__cause__ or error.__context__
    assert said in told
