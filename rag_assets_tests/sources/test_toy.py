"""The bundled toy fixture gives the numbers its README promises, worked out here from scratch.

Nothing of the package's search or measures is used: scores are exact fractions of the stored
float32 components, ordered by score descending, then item id ascending, over readable documents.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_assets.sources.fixture import load_fixture

TOY = Path(__file__).parents[2] / "data" / "toy" / "toy.json"
K = 3
RAW: dict[str, Any] = json.loads(TOY.read_text(encoding="utf-8"))
SPACES = ["toy-v1", "toy-v2"]
Vector = list[Fraction]


def _dot(a: Vector, b: Vector) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def _signed_squared_cosine(query: Vector, document: Vector) -> Fraction:
    """Orders as the cosine does, without a square root; the query's norm is the same for all."""
    dot = _dot(query, document)
    return dot * abs(dot) / _dot(document, document)


SCORES: dict[str, Callable[[Vector, Vector], Fraction]] = {
    "toy-v1": _signed_squared_cosine,
    "toy-v2": _dot,
}


def _items(space_id: str) -> dict[str, dict[str, Any]]:
    return {item["item_id"]: item for item in RAW["items"] if item["space_id"] == space_id}


def _vector(item: dict[str, Any]) -> Vector:
    return [Fraction(float(np.float32(component))) for component in item["vector"]]


def _top(space_id: str, case: dict[str, Any], groups: list[str]) -> list[tuple[str, Fraction]]:
    items = _items(space_id)
    query = _vector(items[case["query_item_id"]])
    scored = [
        (item_id, SCORES[space_id](query, _vector(item)))
        for item_id, item in items.items()
        if item["role"] == "document" and set(item["acl"]) & set(groups)
    ]
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))[:K]


def _ids(space_id: str, case: dict[str, Any]) -> list[str]:
    return [item_id for item_id, _ in _top(space_id, case, case["subject_groups"])]


def _mean(values: list[float]) -> float:
    assert len(values) == 4
    return sum(values) / len(values)


@pytest.mark.parametrize("space_id", SPACES)
def test_recall_mrr_and_ndcg_at_3_are_1(space_id: str) -> None:
    recalls, ranks, ndcgs = [], [], []
    for case in RAW["queries"]:
        relevance, ids = case["relevance"], _ids(space_id, case)
        recalls.append(len(relevance.keys() & set(ids)) / len(relevance))
        ranks.append(next(1 / n for n, item_id in enumerate(ids, 1) if item_id in relevance))
        found = [relevance.get(item_id, 0) for item_id in ids]
        ideal = sorted(relevance.values(), reverse=True)[:K]
        dcg, best = (
            sum((2**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))
            for grades in (found, ideal)
        )
        ndcgs.append(dcg / best)
    assert (_mean(recalls), _mean(ranks), _mean(ndcgs)) == (1.0, 1.0, 1.0)


def test_mean_top_3_jaccard_between_the_spaces_is_0_875() -> None:
    overlaps = {}
    for case in RAW["queries"]:
        old, new = (set(_ids(space_id, case)) for space_id in SPACES)
        overlaps[case["case_id"]] = Fraction(len(old & new), len(old | new))
    assert sum(overlaps.values()) / len(overlaps) == Fraction("0.875")
    assert overlaps.pop("case-orleans-key") == Fraction(1, 2)
    assert list(overlaps.values()) == [1, 1, 1]


def test_two_zero_scores_stand_behind_the_right_answer_of_one_case() -> None:
    (case,) = [case for case in RAW["queries"] if case["case_id"] == "case-orleans-key"]
    old, new = (_top(space_id, case, case["subject_groups"]) for space_id in SPACES)
    assert [item_id for item_id, _ in old] == [
        "doc-orleans-office",
        "doc-deploy-window",
        "doc-first-week",
    ]
    assert [item_id for item_id, _ in new] == [
        "doc-orleans-office",
        "doc-deploy-window",
        "doc-oncall",
    ]
    assert [score == 0 for _, score in old + new] == [False, True, True] * 2
    assert list(case["relevance"]) == ["doc-orleans-office"]


@pytest.mark.parametrize("space_id", SPACES)
def test_an_unreadable_twin_of_a_query_would_win_if_the_filter_leaked(space_id: str) -> None:
    (case,) = [case for case in RAW["queries"] if case["case_id"] == "case-rollback"]
    items = _items(space_id)
    assert items["doc-breach-notes"]["vector"] == items["q-rollback"]["vector"]
    assert items["doc-breach-notes"]["acl"] == ["security"]
    assert "doc-breach-notes" not in _ids(space_id, case)
    leaked = _top(space_id, case, [*case["subject_groups"], "security"])
    assert leaked[0][0] == "doc-breach-notes"


def test_the_loader_agrees_with_the_file() -> None:
    corpus = load_fixture(TOY)
    assert [c.space_id for c in corpus.contracts] == SPACES
    v1, v2 = corpus.contracts
    assert (v1.dimension, v1.metric, v1.normalized, v1.dtype) == (4, "cosine", False, "float32")
    assert (v2.dimension, v2.metric, v2.normalized, v2.dtype) == (5, "dot", True, "float32")
    assert (v1.provider, v1.model) == (v2.provider, v2.model)
    assert (v1.revision, v2.revision) == ("v1", "v2")
    for space_id, n_bytes in zip(SPACES, (160, 200), strict=True):  # 10 items x 4 or 5 x 4 bytes
        assert corpus.vectors[space_id].nbytes == n_bytes
        roles = corpus.items_of(space_id)["role"].to_pylist()
        assert roles == ["document"] * 6 + ["query"] * 4
        raw = _items(space_id)
        for row, item_id in enumerate(corpus.items_of(space_id)["item_id"].to_pylist()):
            assert [Fraction(float(x)) for x in corpus.vectors[space_id][row]] == _vector(
                raw[item_id]
            )


def test_both_spaces_hold_the_same_canonical_items() -> None:
    corpus = load_fixture(TOY)
    old, new = (corpus.items_of(space_id).drop_columns("space_no") for space_id in SPACES)
    assert old.equals(new)
    texts = "".join(corpus.items["text"].to_pylist())
    assert "é" in texts
    assert "新" in texts
    grades = corpus.qrels["grade"].to_pylist()
    assert set(grades) == {1, 2, 3}
    assert corpus.cases.num_rows == 4
    assert all(corpus.cases["subgroups"].to_pylist())
