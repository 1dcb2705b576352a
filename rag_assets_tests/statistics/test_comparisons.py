"""Comparisons as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rag_assets.errors import UsageError
from rag_assets.statistics import paired
from rag_assets.statistics.comparisons import COMPARISONS, PAIRS, compare

Pair = tuple[float | None, float | None]


def pairs(values: Sequence[Pair], **key: Any) -> pa.Table:
    stated = {"comparison_id": "a", "subgroup": None, "measure": "ndcg_at_k", "k": 10, **key}
    rows = [
        {**stated, "case_id": f"case-{number:03}", "old": old, "new": new}
        for number, (old, new) in enumerate(values)
    ]
    return pa.Table.from_pylist(rows, schema=PAIRS)


def compared(*tables: pa.Table, seed: int = 0) -> list[dict[str, Any]]:
    result = compare(pa.concat_tables(tables), seed=seed)
    assert result.schema == COMPARISONS
    rows: list[dict[str, Any]] = result.to_pylist()
    return rows


SAME: Pair = (0.5, 0.5)
DROP: Pair = (0.75, 0.5)
RISE: Pair = (0.25, 0.5)


def test_twelve_losses_of_a_hundred_queries_are_a_loss() -> None:
    [row] = compared(pairs([DROP] * 12 + [SAME] * 88 + [(None, 0.5), (0.5, None)]))
    counts = ("query_count", "defined_count", "changed_count", "better_count", "worse_count")
    assert [row[name] for name in counts] == [102, 100, 12, 0, 12]
    # (12 * 0.75 + 88 * 0.5) / 100 = 0.53; 12 * 0.25 / 100 = 0.03.
    assert row["old_mean"] == pytest.approx(0.53)
    assert row["new_mean"] == 0.5
    assert row["mean_difference"] == pytest.approx(-0.03)
    # All of 2^12 patterns but "all minus" and "all plus" are nearer to 0.
    assert (row["p_value"], row["p_method"]) == (2 / 4096, "exact")
    assert (row["family_size"], row["p_adjusted"], row["verdict"]) == (1, 2 / 4096, "worse")
    # s = 0.25 * sqrt(0.12 * 0.88 * 100/99) = 0.0817; t(0.975, 99) + t(0.8, 99) = 1.984 + 0.845.
    assert row["smallest_detectable"] == pytest.approx(2.829 * 0.0817 / 10, rel=1e-3)
    # Resampled losses are binomial, 12% of 100: 2.2% and 97.4% of it lie at 6 and 18 or 19, times
    # 0.25 / 100.
    assert -0.0476 < row["interval_low"] < -0.0449
    assert -0.0151 < row["interval_high"] < -0.0124
    assert row["sentence"].startswith("12 of 100 queries changed; mean nDCG@10 fell by 0.030, 95%")


def test_fewer_than_twenty_defined_queries_conclude_nothing() -> None:
    [few] = compared(pairs([DROP] * 19 + [(None, 0.5)] * 5))
    assert (few["verdict"], few["defined_count"]) == ("too_few", 19)
    assert few["mean_difference"] == -0.25
    concluded = (
        "interval_low",
        "interval_high",
        "p_value",
        "p_method",
        "p_adjusted",
        "family_size",
        "smallest_detectable",
    )
    assert [few[name] for name in concluded] == [None] * 7
    assert "nothing can be concluded about nDCG@10 from 19 queries" in few["sentence"]
    [enough] = compared(pairs([DROP] * 20))
    assert (enough["verdict"], enough["interval_low"]) == ("worse", -0.25)
    [none] = compared(pairs([(None, 0.5)]))
    assert (none["verdict"], none["mean_difference"], none["old_mean"]) == ("too_few", None, None)


def test_unchanged_queries_show_no_effect() -> None:
    [row] = compared(pairs([SAME, (1.0, 1.0), (0.0, 0.0)] * 10))
    assert row["verdict"] == "unchanged"
    assert (row["interval_low"], row["interval_high"], row["p_value"]) == (0, 0, 1)
    assert row["smallest_detectable"] is None
    assert row["sentence"] == "0 of 30 queries changed; mean nDCG@10 stayed the same"


def test_each_comparison_is_corrected_for_its_own_tests() -> None:
    # Eight losses: p = 2/256 = 0.0078. In a family of two it is a loss; with seven other tests
    # 8 * 0.0078 = 0.0625 is not. Too few queries make no test, nor do fewer than 6 that changed.
    eight = [DROP] * 8 + [SAME] * 22
    balanced = [DROP, RISE] * 3 + [SAME] * 24  # p = 1
    rows = compared(
        pairs(eight, comparison_id="wide"),
        *(pairs(balanced, comparison_id="wide", subgroup=f"g{n}") for n in range(6)),
        pairs(balanced, comparison_id="wide", measure="recall_at_k"),
        pairs(eight, comparison_id="narrow"),
        pairs(balanced, comparison_id="narrow", k=3),
        pairs([DROP] * 12, comparison_id="narrow", subgroup="small"),
        pairs([DROP] * 5 + [SAME] * 15, comparison_id="narrow", subgroup="five"),
        pairs([SAME] * 30, comparison_id="narrow", subgroup="none"),
    )
    told = [(row["family_size"], row["p_adjusted"], row["verdict"]) for row in rows]
    assert told[0] == (8, 8 * 2 / 256, "inconclusive")
    assert told[1:8] == [(8, 1, "inconclusive")] * 7
    assert told[8:] == [
        (2, 2 * 2 / 256, "worse"),
        (2, 1, "inconclusive"),
        (None, None, "too_few"),
        (None, 1, "inconclusive"),
        (None, 1, "unchanged"),
    ]
    assert "may be chance (p = 0.062 corrected for 8 tests)" in rows[0]["sentence"]
    assert "may be chance (fewer than 6 queries changed)" in rows[11]["sentence"]
    assert rows[11]["p_value"] == 2 / 32


def test_gains_are_better_and_rows_keep_their_order() -> None:
    rows = compared(
        pairs([RISE] * 30, k=10, subgroup="z"),
        pairs([DROP] * 30, k=3, subgroup="a"),
        pairs([RISE] * 30, k=10),
        pairs([DROP] * 30, k=3, subgroup="z"),
    )
    assert [(row["subgroup"], row["k"], row["verdict"]) for row in rows] == [
        ("z", 10, "better"),
        ("a", 3, "worse"),
        (None, 10, "better"),
        ("z", 3, "worse"),
    ]


def test_a_row_depends_on_its_own_values_and_the_seed_alone() -> None:
    generator = np.random.default_rng(8)
    old = generator.random(60)
    new = (old + generator.normal(-0.02, 0.1, 60)).clip(0, 1)
    table = pairs(list(zip(old.tolist(), new.tolist(), strict=True)))
    [alone] = compared(table, seed=4)
    shuffled = table.take(generator.permutation(60))
    other = pairs([DROP] * 30, measure="recall_at_k")
    among = compared(other, shuffled, seed=4)[1]
    corrected = {"family_size", "p_adjusted", "verdict", "sentence"}
    assert {k: v for k, v in among.items() if k not in corrected} == {
        k: v for k, v in alone.items() if k not in corrected
    }
    assert alone["interval_low"] != compared(table, seed=5)[0]["interval_low"]


def test_no_pairs_give_no_rows() -> None:
    assert compared(PAIRS.empty_table()) == []


def _twice(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table, table.slice(3, 1)])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_twice, "a: a query appears twice under ndcg_at_k at k = 10"),
        (lambda table: table.drop_columns(["old"]), "the pairs to compare lack old"),
        (
            lambda table: table.set_column(3, "k", pa.array(["ten"] * len(table))),
            "the pairs to compare have other types",
        ),
        (
            lambda table: table.set_column(4, "case_id", pa.nulls(len(table), pa.string())),
            "case_id is NULL",
        ),
        (
            lambda table: table.set_column(5, "old", pa.array([float("nan")] * len(table))),
            "old is nan",
        ),
        (
            lambda table: table.set_column(6, "new", pa.array([97.0] * len(table))),
            "new is 97.0 in a pair to compare; it must be from 0 to 1",
        ),
    ],
)
def test_pairs_that_make_no_sense_are_refused(change: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        compare(change(pairs([SAME] * 20)))


def test_the_same_query_may_stand_in_several_subgroups() -> None:
    rows = compared(pairs([SAME] * 20), pairs([SAME] * 20, subgroup="x"), pairs([SAME] * 20, k=1))
    assert len(rows) == 3


def test_the_whole_comparison_keeps_its_false_alarm_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    # 200 comparisons of unchanged quality, each with 2 measures over all 60 queries and two halves
    # of them. Without correction about 15% would raise an alarm somewhere; with it at most 5%, with
    # a standard error of 1.5%.
    monkeypatch.setattr(paired, "FLIPS", 999)
    monkeypatch.setattr(paired, "RESAMPLES", 10)  # intervals are not looked at here
    generator = np.random.default_rng(4)
    tables = []
    for number in range(200):
        for measure in ("ndcg_at_k", "recall_at_k"):
            old, new = generator.random((2, 60)).round(1)
            values = list(zip(old.tolist(), new.tolist(), strict=True))
            halves = {None: slice(None), "one": slice(30), "two": slice(30, None)}
            tables += [
                pairs(values[part], comparison_id=str(number), measure=measure, subgroup=name)
                for name, part in halves.items()
            ]
    rows = compared(*tables)

    def share_with_alarm(column: str) -> float:
        return len({row["comparison_id"] for row in rows if row[column] <= 0.05}) / 200

    assert share_with_alarm("p_value") > 0.12
    assert share_with_alarm("p_adjusted") <= 0.08
    worse_or_better = {row["comparison_id"] for row in rows if row["verdict"] != "inconclusive"}
    assert len(worse_or_better) / 200 == share_with_alarm("p_adjusted")
