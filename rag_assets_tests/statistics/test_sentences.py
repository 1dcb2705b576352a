"""What a comparison showed, as people would say it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rag_assets.statistics.sentences import Finding, sentence

FELL = Finding(
    subgroup=None,
    measure="ndcg_at_k",
    k=10,
    defined_count=100,
    changed_count=12,
    mean_difference=-0.0212,
    interval=(-0.0377, -0.0041),
    p_adjusted=0.012,
    family_size=8,
    smallest_detectable=0.024,
    verdict="worse",
)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {},
            "12 of 100 queries changed; mean nDCG@10 fell by 0.021, 95% interval -0.038 to -0.004",
        ),
        (
            {
                "subgroup": "night shift",
                "measure": "reciprocal_rank",
                "mean_difference": 0.5,
                "interval": (0.25, 0.75),
                "verdict": "better",
            },
            "subgroup night shift: 12 of 100 queries changed; mean RR@10 rose by 0.500, "
            "95% interval 0.250 to 0.750",
        ),
        (
            {"interval": (-0.05, 0.0099), "p_adjusted": 0.4, "verdict": "inconclusive"},
            "12 of 100 queries changed; mean nDCG@10 fell by 0.021, 95% interval -0.050 to 0.010; "
            "this may be chance (p = 0.40 corrected for 8 tests), and a change below 0.024 would "
            "often go unseen",
        ),
        (
            {
                "mean_difference": 0.0,
                "interval": (-0.00012, 0.00012),
                "p_adjusted": 1.0,
                "family_size": 1,
                "smallest_detectable": 0.00017,
                "verdict": "inconclusive",
            },
            # -0.00012 to three decimals is 0.000, without a sign.
            "12 of 100 queries changed; mean nDCG@10 stayed the same, 95% interval 0.000 to 0.000; "
            "this may be chance (p = 1.00), and a change below 0.0002 would often go unseen",
        ),
        (
            {"changed_count": 5, "p_adjusted": 1.0, "family_size": None, "verdict": "inconclusive"},
            "5 of 100 queries changed; mean nDCG@10 fell by 0.021, 95% interval -0.038 to -0.004; "
            "this may be chance (fewer than 6 queries changed), and a change below 0.024 would "
            "often go unseen",
        ),
        (
            {"defined_count": 0, "changed_count": 0, "verdict": "too_few", "interval": None},
            "nothing can be concluded about nDCG@10 from 0 queries, at least 20 are needed",
        ),
        (
            {"mean_difference": -0.00004, "interval": (-0.00009, -0.00001)},
            "12 of 100 queries changed; mean nDCG@10 fell by 0.00004, "
            "95% interval -0.00009 to -0.00001",
        ),
        (
            {
                "changed_count": 0,
                "mean_difference": 0.0,
                "interval": (0.0, 0.0),
                "p_adjusted": 1.0,
                "smallest_detectable": None,
                "verdict": "unchanged",
            },
            "0 of 100 queries changed; mean nDCG@10 stayed the same",
        ),
        (
            {"defined_count": 1, "changed_count": 1, "verdict": "too_few", "interval": None},
            "nothing can be concluded about nDCG@10 from 1 query, at least 20 are needed "
            "(1 of 1 query changed)",
        ),
        (
            {"measure": "ann_recall_at_k", "k": 3, "interval": (-0.5, 0.0)},
            "12 of 100 queries changed; mean ANN recall@3 fell by 0.021, "
            "95% interval -0.500 to 0.000",
        ),
        (
            {"measure": "map", "k": 5},
            "12 of 100 queries changed; mean map@5 fell by 0.021, 95% interval -0.038 to -0.004",
        ),
    ],
)
def test_a_finding_reads(changes: dict[str, Any], said: str) -> None:
    assert sentence(replace(FELL, **changes)) == said
