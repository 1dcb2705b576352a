"""What gates say, with values computed by hand and p-values by SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, permutation_test

from rag_assets.regression.judging import MOST_WORSE
from rag_assets.regression.wording import gates_sentence, worse_sentence
from rag_assets_tests.regression.measured import baseline, gate, judged, measured, regression


def scipy_p(old: list[float], new: list[float], resamples: int) -> float:
    """Fisher's paired randomization test of the mean, two-sided, by SciPy."""
    return float(
        permutation_test(
            (np.array(new), np.array(old)),
            lambda one, other, axis: np.mean(one - other, axis=axis),
            permutation_type="samples",
            n_resamples=resamples,
            rng=np.random.default_rng(1),
            vectorized=True,
        ).pvalue
    )


# --- floors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("floor", "status"), [(0.4, "pass"), (0.5, "pass"), (0.5001, "fail")])
def test_a_floor_is_hard_and_needs_no_baseline(floor: float, status: str) -> None:
    # Mean of 0.2, 0.8 and an undefined value: 0.5 over 2 queries.
    [row] = judged(regression(gate(floor=floor)), measured([0.2, None, 0.8]))
    assert (row["status"], row["value"], row["defined_count"]) == (status, 0.5, 2)
    assert (row["baseline_value"], row["difference"], row["changed_count"]) == (None, None, None)
    assert (row["p_value"], row["p_adjusted"], row["worse_queries"]) == (None, None, None)


def test_sentences_of_floors_show_the_side_of_the_bound() -> None:
    today = measured([0.2, 0.8])
    floors = regression(gate(floor=0.4), gate(floor=0.5002, measure="recall_at_k"))
    assert [row["sentence"] for row in judged(floors, today)] == [
        "mean nDCG@10 is 0.500 over 2 queries, at least 0.4 as required",
        "mean recall@10 is 0.5000 over 2 queries, below the floor of 0.5002",
    ]


def test_a_mean_that_is_off_its_floor_by_rounding_passes() -> None:
    values = [0.1] * 10
    assert sum(values) / 10 < 0.1  # floating point
    [row] = judged(regression(gate(floor=0.1)), measured(values))
    assert row["status"] == "pass"


def test_an_undefined_mean_is_not_executed_and_not_0() -> None:
    [row] = judged(regression(gate(floor=0.1)), measured([None, None]))
    assert (row["status"], row["value"], row["defined_count"]) == ("not_executed", None, 0)
    assert "undefined for every query" in row["sentence"]


def test_a_failing_floor_names_what_got_worse_since_the_baseline() -> None:
    then, now = measured([0.9, 0.5, 0.4]), measured([0.1, 0.1, 0.4])
    [row] = judged(regression(gate(floor=0.5)), now, baseline(then))
    assert (row["status"], row["worse_queries"]) == ("fail", ["q00", "q01"])


# --- drops ----------------------------------------------------------------------------------------


def fallen(losses: list[float], start: float = 0.9) -> tuple[list[float], list[float]]:
    """Values of the baseline, and of today: each lower by its loss."""
    return [start] * len(losses), [start - loss for loss in losses]


def test_a_drop_fails_with_the_p_value_that_enumeration_gives() -> None:
    # 20 queries, 10 of them lower by 0.1 to 1.0 times 0.5: mean -2.75 / 20 = -0.1375.
    old, new = fallen([0.05 * n for n in range(1, 11)] + [0.0] * 10)
    [row] = judged(regression(gate(max_drop=0.1)), measured(new), baseline(measured(old)))
    assert row["status"] == "fail"
    assert row["difference"] == pytest.approx(-0.1375, abs=1e-9)
    assert (row["defined_count"], row["changed_count"]) == (20, 10)
    assert (row["baseline_value"], row["value"]) == (
        pytest.approx(0.9),
        pytest.approx(0.9 - 0.1375),
    )
    # All ten fell: of 2^10 sign patterns, the observed and its mirror image are as extreme.
    assert row["p_value"] == row["p_adjusted"] == 2 / 2**10
    # Queries that did not change add nothing to any sum.
    assert row["p_value"] == pytest.approx(scipy_p(old[:10], new[:10], resamples=2**10))
    assert row["worse_queries"] == [f"q{n:02}" for n in range(9, -1, -1)]
    assert row["sentence"] == (
        "mean nDCG@10 fell by 0.138 (10 of 20 queries changed), more than the 0.1 allowed "
        "(p = 0.002)"
    )


def test_a_drop_within_its_bound_passes_however_certain() -> None:
    old, new = fallen([0.01] * 40)
    [row] = judged(regression(gate(max_drop=0.01)), measured(new), baseline(measured(old)))
    assert row["status"] == "pass"
    assert row["p_value"] < 0.001
    assert row["sentence"].endswith("; a drop of 0.01 is allowed")


def test_a_rise_passes() -> None:
    old, new = fallen([-0.1] * 40, start=0.5)
    [row] = judged(regression(gate(max_drop=0.0)), measured(new), baseline(measured(old)))
    assert (row["status"], row["worse_queries"]) == ("pass", [])


def test_a_drop_that_may_be_chance_is_inconclusive_and_says_what_would_be_seen() -> None:
    # 12 fall by 0.5 and 8 rise by 0.4: the mean falls by 0.14.
    old = [0.5] * 20
    new = [0.0] * 12 + [0.9] * 8
    [row] = judged(regression(gate(max_drop=0.05)), measured(new), baseline(measured(old)))
    assert row["status"] == "inconclusive"
    assert row["p_value"] > 0.05
    assert row["p_value"] == pytest.approx(scipy_p(old, new, resamples=100_000), abs=0.01)
    # s = 0.9 sqrt(0.6 0.4 20 / 19), (t(0.975, 19) + t(0.8, 19)) s / sqrt(20) = 0.2988
    assert "this may be chance (p = 0." in row["sentence"]
    assert row["sentence"].endswith("a change below 0.299 would often go unseen")


def test_below_20_queries_nothing_is_concluded_however_large_the_drop() -> None:
    old, new = fallen([0.5] * 19)
    [row] = judged(regression(gate(max_drop=0.1)), measured(new), baseline(measured(old)))
    assert (row["status"], row["p_value"], row["p_adjusted"]) == ("inconclusive", None, None)
    assert "nothing can be concluded from 19 queries, at least 20 are needed" in row["sentence"]
    old, new = fallen([0.5] * 20)
    [row] = judged(regression(gate(max_drop=0.1)), measured(new), baseline(measured(old)))
    assert row["status"] == "fail"
    assert row["sentence"].endswith("more than the 0.1 allowed (p < 0.001)")


def test_with_fewer_than_6_changed_queries_nothing_is_concluded() -> None:
    old, new = fallen([0.8] * 5 + [0.0] * 25)
    [row] = judged(regression(gate(max_drop=0.1)), measured(new), baseline(measured(old)))
    assert (row["status"], row["p_value"], row["p_adjusted"]) == ("inconclusive", 2 / 2**5, 1.0)
    assert "fewer than 6 queries changed" in row["sentence"]


def test_all_drops_of_the_suite_are_one_family() -> None:
    """Three spaces with 9, 8 and 7 queries lower: p = 2/2^m, times 3, 2 and 1 by Holm."""
    spaces = {"a": 9, "b": 8, "c": 7, "unchanged": 0}
    then = [measured([0.9] * 30, space_id=space) for space in spaces]
    now = [
        measured([0.1] * lower + [0.9] * (30 - lower), space_id=space)
        for space, lower in spaces.items()
    ]
    gates = regression(gate(max_drop=0.1), index_names={space: ["exact"] for space in spaces})
    rows = judged(gates, baseline(*now).rows, baseline(*then))
    p_values = [2 / 2**9, 2 / 2**8, 2 / 2**7]
    assert [row["p_value"] for row in rows] == [*p_values, 1.0]
    assert [row["p_adjusted"] for row in rows[:3]] == [3 * 2 / 2**9, 2 * 2 / 2**8, 2 / 2**7]
    assert [row["status"] for row in rows] == ["fail", "fail", "fail", "pass"]
    # Stricter than Benjamini and Hochberg, which SciPy has.
    lenient = false_discovery_control(p_values)
    assert all(row["p_adjusted"] >= q for row, q in zip(rows, lenient, strict=False))
    # At a level that only the smallest meets, the others are told apart.
    strict = regression(
        gate(max_drop=0.1), level=0.012, index_names={space: ["exact"] for space in "abc"}
    )
    found = judged(strict, baseline(*now).rows, baseline(*then))
    assert [row["status"] for row in found] == ["fail", "inconclusive", "inconclusive"]
    assert "(p = 0.016 corrected for 3 tests)" in found[1]["sentence"]


def test_queries_of_one_side_only_are_left_out_counted_and_said() -> None:
    then = measured({"both": 0.5, "gone": 0.9, "lost": 0.9, "found": None})
    now = measured({"both": 0.4, "new": 0.1, "lost": None, "found": 1.0})
    [row] = judged(regression(gate(max_drop=0.2)), now, baseline(then))
    assert (row["status"], row["defined_count"]) == ("pass", 1)
    assert row["difference"] == pytest.approx(-0.1)
    assert row["worse_queries"] == ["both"]
    assert row["sentence"].endswith(
        "left out, because defined in one of the two: 2 only in the baseline, 2 only today"
    )


# --- subgroups ------------------------------------------------------------------------------------


def test_membership_is_today_s_and_a_query_that_left_is_counted() -> None:
    then = measured([0.9, 0.8, 0.7], groups={"q00": ["x"], "q01": ["x"]})
    now = measured([0.9, 0.1, 0.5], groups={"q00": ["x"], "q02": ["x"]})
    [row] = judged(regression(gate(subgroup="x", max_drop=0.5)), now, baseline(then))
    assert (row["defined_count"], row["difference"]) == (2, pytest.approx(-0.1))
    assert row["worse_queries"] == ["q02"]
    assert "1 only in the baseline" in row["sentence"]


def test_an_unknown_subgroup_is_not_executed_and_never_passes() -> None:
    gates = regression(gate(subgroup="absent", floor=0.1, max_drop=0.9))
    rows = judged(gates, measured([0.5]), baseline(measured([0.5])))
    assert [row["status"] for row in rows] == ["not_executed"] * 2
    assert all("no query is in this subgroup today" in row["sentence"] for row in rows)


def test_each_is_every_subgroup_with_a_value_that_no_other_gate_names() -> None:
    groups = {"q00": ["b", "a"], "q01": ["never"], "q02": ["gone"], "q03": ["a", "named"]}
    then = measured([0.5, None, 0.5, 0.5], groups=groups)
    now = measured([0.5, None, 0.5, 0.5], groups=groups | {"q02": []})
    gates = regression(
        gate(subgroup="each", max_drop=0.3),
        gate(subgroup="named", max_drop=0.1, floor=0.2),
        gate(subgroup="each", floor=0.4),
    )
    rows = judged(gates, now, baseline(then))
    assert [(row["subgroup"], row["rule"], row["bound"], row["status"]) for row in rows] == [
        ("a", "max_drop", 0.3, "pass"),
        ("b", "max_drop", 0.3, "pass"),
        ("gone", "max_drop", 0.3, "not_executed"),
        ("named", "floor", 0.2, "pass"),
        ("named", "max_drop", 0.1, "pass"),
        ("a", "floor", 0.4, "pass"),
        ("b", "floor", 0.4, "pass"),
        ("gone", "floor", 0.4, "not_executed"),
    ]


def test_each_of_no_subgroups_is_not_executed() -> None:
    [row] = judged(regression(gate(subgroup="each", floor=0.1)), measured([0.5]))
    assert (row["subgroup"], row["status"]) == ("each", "not_executed")


# --- what is missing ------------------------------------------------------------------------------


def test_without_a_baseline_drops_are_not_executed_and_floors_are() -> None:
    rows = judged(regression(gate(floor=0.1, max_drop=0.1)), measured([0.5]))
    assert [row["status"] for row in rows] == ["pass", "not_executed"]
    assert rows[1]["sentence"] == (
        "mean nDCG@10 was not examined: no baseline is pinned; see rag-assets pin-baseline"
    )


def test_a_baseline_without_the_space_or_k_is_not_compared_with() -> None:
    gates = regression(gate(max_drop=0.1))
    for other in (measured([0.5], space_id="other"), measured([0.5], k=3)):
        [row] = judged(gates, measured([0.5]), baseline(other))
        assert row["status"] == "not_executed"
        assert "the baseline holds no results of exact of one at k = 10" in row["sentence"]


def test_a_space_or_index_that_was_not_executed_today_says_why() -> None:
    names = {"one": ["exact", "hnsw"], "two": ["exact"]}
    gates = regression(
        gate(floor=0.1, space_ids=("two",)),
        gate(floor=0.1, index_name="hnsw", space_ids=("one",)),
        gate(floor=0.1, k=3, space_ids=("one",)),
        index_names=names,
    )
    reasons = {("two", None): "it was not executed: no key", ("one", "hnsw"): "no engine"}
    rows = judged(gates, measured([0.5]), reasons=reasons)
    assert [row["status"] for row in rows] == ["not_executed"] * 3
    assert [row["sentence"].partition("examined: ")[2] for row in rows] == [
        "it was not executed: no key",
        "no engine",
        "the release holds no results of exact of one at k = 3",
    ]


def test_at_most_1000_worse_queries_are_listed_by_loss() -> None:
    names = [f"q{n:04}" for n in range(1_200)]
    then = measured(dict.fromkeys(names, 0.9))
    now = measured({name: 0.8 - n / 10_000 for n, name in enumerate(names)})
    [row] = judged(regression(gate(max_drop=0.01)), now, baseline(then))
    assert row["status"] == "fail"
    assert row["worse_queries"] == names[::-1][:MOST_WORSE]
    assert worse_sentence(row["worse_queries"][:7]) == (
        "worse: q1199, q1198, q1197, q1196, q1195 and 2 more"
    )


def test_the_sentence_on_all_gates_puts_failures_first() -> None:
    gates = regression(gate(max_drop=0.1), gate(floor=0.6), gate(floor=0.1, measure="recall_at_k"))
    rows = judged(gates, measured([0.5]))
    assert gates_sentence(rows) == (
        "1 of 3 gates pass, 1 fail, 1 not executed. "
        "one, exact: mean nDCG@10 is 0.500 over 1 query, below the floor of 0.6; "
        "worse: unknown, there is no baseline to compare with. "
        "one, exact: mean nDCG@10 was not examined: no baseline is pinned; "
        "see rag-assets pin-baseline"
    )
    assert gates_sentence([]) == "no regression gates are declared"


unit = st.one_of(st.none(), st.integers(0, 20).map(lambda n: n / 20))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(unit, unit), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_no_gate_depends_on_the_order_of_queries_and_only_falls_beyond_the_bound_fail(
    pairs: list[tuple[float | None, float | None]], random: object
) -> None:
    then = measured([old for old, _ in pairs])
    now = measured([new for _, new in pairs])
    gates = regression(gate(max_drop=0.1))
    [row] = judged(gates, now, baseline(then))
    order = list(range(len(pairs)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert judged(gates, now.take(order), baseline(then)) == [row]
    both = [(old, new) for old, new in pairs if old is not None and new is not None]
    if not both:
        assert row["status"] == "not_executed"
        return
    fell = sum(old - new for old, new in both) / len(both)
    assert (row["status"] == "pass") == (fell <= 0.1 + 1e-9)
    if row["status"] == "fail":
        assert len(both) >= 20 and row["p_adjusted"] <= 0.05
    assert len(row["worse_queries"]) == sum(new < old for old, new in both)
