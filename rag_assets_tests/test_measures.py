"""Measures from Python: shared cases, an independent library, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest

from rag_assets.errors import UsageError
from rag_assets.measures import (
    evaluate_run,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
    reciprocal_rank_at_k,
)

SHARED_CASES = Path(__file__).parents[2] / "shared" / "cases" / "metric_cases.json"
SINGLE = (recall_at_k, precision_at_k, reciprocal_rank_at_k, ndcg_at_k)
# Cases that some libraries accept and this project refuses, with the reason it gives.
REFUSED_CASES = {
    "duplicate_doc_same_score": "ranked more than once",
    "nan_score": "must be a number",
    "int_ids": "must be text",
    "float_grade": "must be an integer",
}


def test_single_query_measures_have_the_values_worked_out_by_hand() -> None:
    ranked = ["x", "a", "y", "b"]
    relevance = {"a": 2, "b": 1, "c": 3, "n": 0, "s": -1}
    # Top 3 of 3 relevant (a, b, c): a at rank 2.
    assert recall_at_k(ranked, relevance, 3) == 1 / 3
    assert precision_at_k(ranked, relevance, 3) == 1 / 3
    assert reciprocal_rank_at_k(ranked, relevance, 3) == 1 / 2
    # Gains a 3, b 1, c 7; ideal c, a, b.
    ideal = 7 + 3 / math.log2(3) + 1 / math.log2(4)
    assert ndcg_at_k(ranked, relevance, 3) == pytest.approx(3 / math.log2(3) / ideal, abs=1e-15)
    assert precision_at_k(ranked, relevance, 10) == 2 / 10
    assert reciprocal_rank_at_k(ranked, relevance, 1) == 0.0
    assert [measure([], relevance, 3) for measure in SINGLE] == [0.0] * 4
    assert [measure(ranked, {"x": 0, "a": -2}, 3) for measure in SINGLE] == [None] * 4


def test_numpy_integers_are_integers() -> None:
    assert recall_at_k(["a"], {"a": np.int8(1)}, np.int64(1)) == 1.0


@pytest.mark.parametrize(
    ("ranked", "relevance", "k", "words"),
    [
        (["a", "b", "a"], {"a": 1}, 3, "'a' is ranked more than once"),
        (["a", 1], {"a": 1}, 3, "must be text, not 1"),
        ("ab", {"a": 1}, 3, "list of texts"),
        (["a"], {}, 3, "at least one judgement"),
        (["a"], {"a": 1.0}, 3, "must be an integer"),
        (["a"], {"a": True}, 3, "must be an integer"),
        (["a"], {"a": "1"}, 3, "must be an integer"),
        (["a"], {"a": 54}, 3, "from -128 to 53"),
        (["a"], {"a": 1, 2: 1}, 3, "must be text, not 2"),
        (["a"], {"a": 1}, 0, "k must be"),
        (["a"], {"a": 1}, -1, "k must be"),
        (["a"], {"a": 1}, True, "k must be"),
        (["a"], {"a": 1}, 2.0, "k must be"),
        (["a"], {"a": 1}, 40_000, "k must be"),
    ],
)
@pytest.mark.parametrize("measure", SINGLE, ids=lambda measure: measure.__name__)
def test_single_query_measures_refuse_what_is_not_a_ranking(
    measure: Any, ranked: Any, relevance: Any, k: Any, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        measure(ranked, relevance, k)


@pytest.mark.parametrize("ks", [[], [3, 3], [0], [True]])
def test_a_run_needs_distinct_positive_cutoffs(ks: list[int]) -> None:
    with pytest.raises(UsageError):
        evaluate_run({"q": [("a", 1.0)]}, {"q": {"a": 1}}, ks)


@pytest.mark.parametrize("score", [math.nan, "1", None, True])
def test_a_score_that_is_not_a_number_is_refused(score: Any) -> None:
    with pytest.raises(UsageError, match="must be a number"):
        evaluate_run({"q": [("a", score)]}, {"q": {"a": 1}}, [1])


def test_equal_scores_are_ranked_by_id_and_order_of_input_does_not_matter() -> None:
    run = {"q": [("c", 1.0), ("b", 1.0), ("z", 2.0)]}
    found = evaluate_run(run, {"q": {"b": 1}}, [3]).to_pylist()[0]
    assert found["reciprocal_rank"] == 1 / 2
    assert evaluate_run({"q": dict(run["q"])}, {"q": {"b": 1}}, [3]).to_pylist()[0] == found


def test_queries_of_the_run_and_of_the_judgements_are_all_reported() -> None:
    table = evaluate_run({"unjudged": [("a", 1.0)]}, {"unranked": {"a": 1}}, [2, 1])
    found = [(r["query_id"], r["k"], r["recall_at_k"]) for r in table.to_pylist()]
    assert found[:2] == [("unjudged", 1, None), ("unjudged", 2, None)]
    assert found[2:] == [("unranked", 1, 0.0), ("unranked", 2, 0.0)]


def shared_cases() -> list[dict[str, Any]]:
    if not SHARED_CASES.is_file():
        return []
    cases: list[dict[str, Any]] = json.loads(SHARED_CASES.read_text("utf-8"))["retrieval_cases"]
    return cases


@pytest.mark.skipif(not SHARED_CASES.is_file(), reason="../shared/cases is not beside this clone")
@pytest.mark.parametrize("case", shared_cases(), ids=lambda case: case["id"])
def test_shared_cases_have_their_reference_values_or_are_refused(case: dict[str, Any]) -> None:
    run = {
        query: [(doc, math.nan if score == "nan" else score) for doc, score in scored]
        for query, scored in case["run"].items()
    }
    if case["id"] in REFUSED_CASES:
        with pytest.raises(UsageError, match=REFUSED_CASES[case["id"]]):
            evaluate_run(run, case["qrels"], [case["k"]])
        return
    table = evaluate_run(run, case["qrels"], [case["k"]]).to_pylist()
    found = next(r for r in table if r["query_id"] == case["query"])
    expected = case["reference"]["doc_asc"]
    # The references are rounded to 6 places; without a relevant document P is undefined here.
    columns = {
        "recall_at_k": expected["R"],
        "precision_at_k": None if expected["R"] is None else expected["P"],
        "reciprocal_rank": expected["RR"],
        "ndcg_at_k": expected["nDCG_exp"],
    }
    for column, value in columns.items():
        assert found[column] == (value if value is None else pytest.approx(value, abs=1e-6))


def test_measures_agree_with_ir_measures_on_random_runs_without_ties() -> None:
    random = np.random.default_rng(20)
    documents = [f"d{number:03d}" for number in range(60)]
    run: dict[str, dict[str, float]] = {}
    qrels: dict[str, dict[str, int]] = {}
    for number in range(200):
        query = f"q{number}"
        depth = int(random.integers(1, 40))
        ranked = random.permutation(documents)[:depth]
        # Distinct small integers: exact in trec_eval's float32 too.
        run[query] = {str(doc): float(depth - rank) for rank, doc in enumerate(ranked)}
        judged = random.permutation(documents)[: int(random.integers(1, 30))]
        qrels[query] = {str(doc): int(random.integers(0, 4)) for doc in judged}
        qrels[query][str(judged[0])] = int(random.integers(1, 4))
    ks = [1, 3, 10, 25]
    ours = {(r["query_id"], r["k"]): r for r in evaluate_run(run, qrels, ks).to_pylist()}
    # trec_eval computes nDCG with linear gain; mapped grades make it 2^grade - 1 in full precision
    # (ir_measures' own exponential gain comes from gdeval.pl, which prints five places).
    gains = {0: 0, 1: 1, 2: 3, 3: 7}
    columns = {
        "recall_at_k": ir_measures.R,
        "precision_at_k": ir_measures.P,
        "reciprocal_rank": ir_measures.RR,
        "ndcg_at_k": ir_measures.nDCG(gains=gains),
    }
    named = {measure @ k: (column, k) for column, measure in columns.items() for k in ks}
    compared = 0
    for theirs in ir_measures.iter_calc(list(named), qrels, run):
        column, k = named[theirs.measure]
        assert ours[theirs.query_id, k][column] == pytest.approx(theirs.value, abs=1e-12)
        compared += 1
    assert compared == 200 * len(named)
