"""A sweep, declared before it is run: one varied parameter, its values, seeds, and when to stop.

What a declaration may not leave open is refused here: which single parameter varies, at least three
seeds, the rule that ends the walk through the values, and the claim that is judged.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from rag_assets.canonical.contracts import canonical_json
from rag_assets.canonical.corpus import digest
from rag_assets.errors import UsageError
from rag_assets.indexes.exact import positive_k
from rag_assets.indexes.specs import SEARCH_PARAMETERS, IndexSpec, faults, parameters, varied
from rag_assets.laboratory.synthetic import LARGEST_SEED

LEAST_SEEDS = 3
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class StopRule:
    """Stop at the first value whose mean recall rises by less than `min_recall_gain` over the
    value before it, or whose p95 grows by more than `max_p95_growth` (0.5 is 50%).
    """

    min_recall_gain: float
    max_p95_growth: float

    def __post_init__(self) -> None:
        _number("stop_rule.min_recall_gain", self.min_recall_gain, 0, 1)
        _number("stop_rule.max_p95_growth", self.max_p95_growth, 0, math.inf)


@dataclass(frozen=True, slots=True)
class Claim:
    """What the verdict is about: a mean ANN Recall@k of at least `min_mean_recall` is reached at a
    value before the stop.
    """

    min_mean_recall: float

    def __post_init__(self) -> None:
        _number("claim.min_mean_recall", self.min_mean_recall, 0, 1)


@dataclass(frozen=True, slots=True)
class Need:
    """A use and its bounds: p95 latency of a single query in milliseconds, and the least recall."""

    name: str
    p95_ms: float
    min_recall: float

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise UsageError("a need has no name")
        _number(f"need {self.name!r}: p95_ms", self.p95_ms, 0, math.inf)
        _number(f"need {self.name!r}: min_recall", self.min_recall, 0, 1)


@dataclass(frozen=True)
class Sweep:
    """One experiment. `vary` maps exactly one parameter of `index` to its values, ascending.

    The seed of `index` is replaced by each of `seeds` in turn. `query_sample`: how many queries,
    drawn with `sample_seed`, are searched; None for all. Raises UsageError for anything else than
    one well-defined experiment.
    """

    name: str
    index: IndexSpec
    vary: Mapping[str, Sequence[Any]]
    seeds: Sequence[int]
    k: int
    stop_rule: StopRule
    claim: Claim
    needs: Sequence[Need] = ()
    query_sample: int | None = None
    sample_seed: int = 0

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError(
                f"the sweep's name is {self.name!r}; use lowercase letters, digits, - and _"
            )
        try:
            self._check()
        except UsageError as error:
            raise UsageError(f"sweep {self.name!r}: {error}") from None
        # Values of a frozen declaration do not change under its owner's hands.
        object.__setattr__(self, "vary", {self.parameter: tuple(self.vary[self.parameter])})
        object.__setattr__(self, "seeds", tuple(self.seeds))
        object.__setattr__(self, "needs", tuple(self.needs))

    @property
    def parameter(self) -> str:
        (name,) = self.vary
        return name

    @property
    def values(self) -> tuple[Any, ...]:
        return tuple(self.vary[self.parameter])

    @property
    def search_only(self) -> bool:
        """Whether only search reads the parameter, so that one build serves every value."""
        return self.parameter in SEARCH_PARAMETERS

    def spec(self, value: Any, seed: int) -> IndexSpec:
        return varied(varied(self.index, self.parameter, value), "seed", seed)

    def _check(self) -> None:
        if len(self.vary) != 1:
            names = ", ".join(map(repr, self.vary)) or "nothing"
            raise UsageError(
                f"varies {names}; a sweep varies exactly one parameter and fixes everything else"
            )
        (name,) = self.vary
        if name == "seed":
            raise UsageError("varies 'seed'; seeds are repetitions of every value, vary another")
        values = list(self.vary[name])
        varied(self.index, name, None)  # refuses a name that the index does not have
        kind = type(getattr(self.index, name))
        if kind not in (int, bool):
            raise UsageError(f"{name!r} is no number or switch; such a parameter cannot be varied")
        for value in values:
            if type(value) is not kind:
                raise UsageError(f"{name} takes the value {value!r}; it must be {_KINDS[kind]}")
        if len(values) < 2:
            raise UsageError(f"{name} takes {len(values)} value; a sweep needs at least 2")
        if any(later <= earlier for earlier, later in pairwise(values)):
            raise UsageError(f"{name} takes {values}; values must ascend, without repeats")
        _check_seeds(self.seeds)
        positive_k(self.k)
        if self.query_sample is not None and (
            type(self.query_sample) is not int or self.query_sample < 1
        ):
            raise UsageError(f"query_sample is {self.query_sample!r}; it must be at least 1")
        _seed("sample_seed", self.sample_seed)
        _distinct("needs", [need.name for need in self.needs])

    def check_against(self, dimension: int, count: int) -> None:
        """Raise UsageError if any value gives an index that cannot be built over the vectors."""
        for value in self.values:
            found = faults(self.spec(value, self.seeds[0]), dimension, count)
            if found:
                raise UsageError(
                    f"sweep {self.name!r}: {self.parameter} = {value}: {'; '.join(found)}"
                )


def plan(sweep: Sweep) -> dict[str, Any]:
    """Everything a sweep declares; JSON-ready."""
    return {
        "name": sweep.name,
        "index": parameters(sweep.index),
        "vary": {sweep.parameter: list(sweep.values)},
        "seeds": list(sweep.seeds),
        "k": sweep.k,
        "stop_rule": asdict(sweep.stop_rule),
        "claim": asdict(sweep.claim),
        "needs": [asdict(need) for need in sweep.needs],
        "query_sample": sweep.query_sample,
        "sample_seed": sweep.sample_seed,
    }


def plan_digest(sweep: Sweep, data_version: str) -> str:
    """SHA-256 (hex) over the declaration and the version of the data that it is run on."""
    return digest(canonical_json(plan(sweep)), data_version)


_KINDS = {int: "an integer", bool: "true or false"}


def _check_seeds(seeds: Sequence[int]) -> None:
    for seed in seeds:
        _seed("a seed", seed)
    _distinct("seeds", seeds)
    if len(seeds) < LEAST_SEEDS:
        raise UsageError(
            f"has {len(seeds)} seeds; at least {LEAST_SEEDS} are needed to see the spread"
        )


def _seed(what: str, seed: object) -> None:
    if type(seed) is not int or not 0 <= seed <= LARGEST_SEED:
        raise UsageError(f"{what} is {seed!r}; it must be an integer from 0 to {LARGEST_SEED}")


def _distinct(what: str, values: Iterable[object]) -> None:
    listed = list(values)
    if len(set(listed)) < len(listed):
        raise UsageError(f"{what} are {listed}; they must differ from each other")


def _number(what: str, value: object, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        bound = f"from {low:g} to {high:g}" if math.isfinite(high) else f"of at least {low:g}"
        raise UsageError(f"{what} is {value!r}; it must be a number {bound}")
    if not math.isfinite(value):
        raise UsageError(f"{what} is {value!r}; it must be finite")
