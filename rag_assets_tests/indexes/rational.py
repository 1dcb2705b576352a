"""Rankings in exact rational arithmetic: no float anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

Vector = Sequence[Any]  # int or Fraction


def rational_score(metric: str, query: Vector, document: Vector) -> Fraction:
    """A strictly increasing function of the score, without a root: sign(s)·s² for cosine."""
    dot = sum(
        (Fraction(q) * Fraction(x) for q, x in zip(query, document, strict=True)), Fraction(0)
    )
    if metric == "dot":
        return dot
    if metric == "euclidean":
        return -sum(
            ((Fraction(q) - Fraction(x)) ** 2 for q, x in zip(query, document, strict=True)),
            Fraction(0),
        )
    lengths = Fraction(sum(q * q for q in query)) * Fraction(sum(x * x for x in document))
    return dot * abs(dot) / lengths if lengths else Fraction(0)


def rational_ranking(
    metric: str, query: Vector, documents: Sequence[Vector], eligible: Iterable[int], k: int
) -> list[int]:
    scores = {row: rational_score(metric, query, documents[row]) for row in eligible}
    return sorted(eligible, key=lambda row: (-scores[row], row))[:k]
