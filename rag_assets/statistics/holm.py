"""Looking at many differences at once: Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values, in the order given: reject at level a where adjusted <= a.

    The chance of any false rejection among all is then at most a, however the tests depend on each
    other. The i-th smallest p (i from 0) of m becomes (m - i) p, never less than the one before it
    and at most 1 (Holm, Scandinavian Journal of Statistics 6, 1979).
    """
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for position, number in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, (len(p_values) - position) * p_values[number])
        adjusted[number] = min(1.0, largest)
    return adjusted
