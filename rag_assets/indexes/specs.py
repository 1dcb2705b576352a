"""What an approximate index is built with: one frozen dataclass per index type, no engine here.

Names are the field's: `n_clusters` (nlist), `nprobe`, `n_subvectors` (m), `n_bits`, `n_iters`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Literal

from rag_assets.errors import UsageError


@dataclass(frozen=True, slots=True)
class _Strict:
    # Read by pydantic when a suite's YAML is turned into a spec: no unknown parameters.
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}


@dataclass(frozen=True, slots=True)
class Refine(_Strict):
    """Re-rank the first `factor` * k candidates with better vectors than the codes.

    "exact" scores the stored vectors; "sq8" an 8-bit scalar-quantized copy kept in the index.
    """

    factor: int = 4
    vectors: Literal["exact", "sq8"] = "sq8"


@dataclass(frozen=True, slots=True)
class FilterPolicy(_Strict):
    """What to do under access filters, where probing a fixed number of lists finds too little.

    Up to `exact_below` eligible documents: exact search among them. Otherwise at least nprobe
    lists, and as many more, nearest first, as it takes to hold `least_candidates` eligible ones.
    A graph has no lists: there only `exact_below` applies. Without a filter all documents count as
    eligible, so that a small space is searched exactly.
    """

    exact_below: int = 10_000
    least_candidates: int = 3_000


@dataclass(frozen=True, slots=True)
class _Ivf(_Strict):
    n_clusters: int
    nprobe: int
    n_iters: int = 25
    seed: int = 42


@dataclass(frozen=True, slots=True)
class IvfFlat(_Ivf):
    """Inverted lists of uncompressed vectors: only the choice of lists is approximate."""

    kind: ClassVar[str] = "ivf_flat"
    policy: FilterPolicy | None = None


@dataclass(frozen=True, slots=True)
class IvfPq(_Ivf):
    """Inverted lists of product-quantized residuals (Jegou, Douze, Schmid, PAMI 2011).

    `opq` learns a rotation first (Ge et al., CVPR 2013).
    """

    kind: ClassVar[str] = "ivf_pq"
    n_subvectors: int = 8
    n_bits: int = 8
    opq: bool = False
    refine: Refine | None = None
    policy: FilterPolicy | None = None


@dataclass(frozen=True, slots=True)
class IvfRabitq(_Ivf):
    """Inverted lists of 1-bit codes (RaBitQ: Gao and Long, SIGMOD 2024)."""

    kind: ClassVar[str] = "ivf_rabitq"
    refine: Refine | None = None
    policy: FilterPolicy | None = None


@dataclass(frozen=True, slots=True)
class Hnsw(_Strict):
    """Navigable small-world graph over uncompressed vectors (Malkov and Yashunin, PAMI 2020).

    `m` links a vertex, `ef_construction` and `ef_search` candidates kept while building, searching.
    """

    kind: ClassVar[str] = "hnsw"
    m: int = 16
    ef_construction: int = 100
    ef_search: int = 64
    seed: int = 42
    policy: FilterPolicy | None = None


IndexSpec = IvfPq | IvfFlat | IvfRabitq | Hnsw
KINDS: Mapping[str, type[IndexSpec]] = {
    spec.kind: spec for spec in (IvfPq, IvfFlat, IvfRabitq, Hnsw)
}
# What only search reads: a sweep over these builds each index once.
SEARCH_PARAMETERS = frozenset({"nprobe", "ef_search", "policy"})
_LARGEST_SEED = 2**31 - 1  # the engine's seeds are C ints


def parameters(spec: IndexSpec) -> dict[str, Any]:
    """Every parameter by name, nested ones as mappings; JSON-ready."""
    return {"kind": spec.kind, **asdict(spec)}


def varied(spec: IndexSpec, parameter: str, value: Any) -> IndexSpec:
    """`spec` with one parameter changed. UsageError for a parameter that its type does not have."""
    names = [field.name for field in fields(spec)]
    if parameter not in names:
        raise UsageError(
            f"an {spec.kind} index has no parameter {parameter!r}; it has {', '.join(names)}"
        )
    return replace(spec, **{parameter: value})


def faults(spec: IndexSpec, dimension: int, count: int) -> list[str]:
    """Why an index cannot be built over `count` vectors of `dimension`; empty if it can be.

    Checked before any work is done: engines accept some of these silently.
    """
    found = own_faults(spec)
    if any(_no_integers(spec)):
        return found  # the rules below compare integers

    def need(holds: bool, sentence: str) -> None:
        if not holds:
            found.append(sentence)

    need(count > 0, "there are no vectors")
    if isinstance(spec, _Ivf):
        need(
            spec.n_clusters <= count,
            f"n_clusters is {spec.n_clusters}, more than the {count} vectors",
        )
    if isinstance(spec, IvfPq):
        need(
            dimension % spec.n_subvectors == 0,
            f"n_subvectors is {spec.n_subvectors}; it must divide the dimension {dimension}",
        )
        need(
            spec.n_bits > 8 or 2**spec.n_bits <= count,
            f"n_bits is {spec.n_bits}, which needs {2 ** min(spec.n_bits, 8)} vectors to train on; "
            f"there are {count}",
        )
        # With fewer the engine writes beyond its memory.
        need(
            not spec.opq or dimension <= count,
            f"opq needs at least {dimension} vectors to learn a rotation from; there are {count}",
        )
    return found


def own_faults(spec: IndexSpec) -> list[str]:
    """What is wrong with the parameters over any vectors; empty if nothing is."""
    if found := list(_no_integers(spec)):
        return found
    if spec.seed > _LARGEST_SEED:
        found.append(f"seed is {spec.seed}; it must be at most {_LARGEST_SEED}")
    if isinstance(spec, _Ivf) and spec.nprobe > spec.n_clusters:
        found.append(f"nprobe is {spec.nprobe}, more than n_clusters ({spec.n_clusters})")
    if isinstance(spec, IvfPq) and spec.n_bits > 8:
        found.append(f"n_bits is {spec.n_bits}; it must be from 1 to 8")
    refine = getattr(spec, "refine", None)
    if refine is not None and refine.vectors not in ("exact", "sq8"):
        found.append(f"refine.vectors is {refine.vectors!r}; it must be exact or sq8")
    return found


def _no_integers(spec: IndexSpec) -> Iterator[str]:
    for place, value, least in _integers(spec):
        if type(value) is not int:
            yield f"{place} is {value!r}; it must be an integer"
        elif value < least:
            yield f"{place} is {value}; it must be at least {least}"


def _integers(spec: IndexSpec) -> Iterator[tuple[str, Any, int]]:
    """(place, value, least allowed) of every integer parameter."""
    least = {"seed": 0, "exact_below": 0, "m": 2}  # a graph of single links has no levels
    for prefix, part in (
        ("", spec),
        ("refine.", getattr(spec, "refine", None)),
        ("policy.", spec.policy),
    ):
        for field in fields(part) if part is not None else ():
            if field.type == "int":
                yield prefix + field.name, getattr(part, field.name), least.get(field.name, 1)


def spec_from(kind: str, given: Mapping[str, Any]) -> IndexSpec:
    """An index type and its parameters as YAML gives them. UsageError names what does not fit."""
    from pydantic import TypeAdapter, ValidationError

    if kind not in KINDS:
        raise UsageError(f"unknown index kind {kind!r}; known kinds are {', '.join(KINDS)}")
    try:
        # As JSON: strict then means that 2.0, "2" and true are not integers, while a mapping may
        # stand for a nested dataclass.
        spec: IndexSpec = TypeAdapter(KINDS[kind]).validate_json(json.dumps(given), strict=True)
    except ValidationError as error:
        faults = [
            f"{'.'.join([kind, *map(str, fault['loc'])])}: {fault['msg']}"
            for fault in error.errors()
        ]
        raise UsageError("; ".join(faults)) from None
    if wrong := own_faults(spec):
        raise UsageError("; ".join(f"{kind}: {fault}" for fault in wrong))
    return spec
