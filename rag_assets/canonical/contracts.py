"""The contract of an embedding space, and its signature."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

import numpy as np

from rag_assets.errors import UsageError

Metric = Literal["cosine", "dot", "euclidean"]
Dtype = Literal["float32", "float64"]
METRICS: tuple[str, ...] = get_args(Metric)
DTYPES: tuple[str, ...] = get_args(Dtype)
MAX_DIMENSION = 100_000


@dataclass(frozen=True, slots=True)
class SpaceContract:
    """What makes vectors comparable: two spaces with equal signatures hold the same kind of vector.

    `space_id` is a storage alias and not part of the signature. `normalized` promises unit norm.
    Prompts are put before a text of that role; `pooling`, `truncation` and `max_input_tokens` say
    how a model was run. A fixture has none of these. `derived_from` is the signature of the space
    that a derivation was made from. `licence`, `looked_up_at` and `looked_up_on` (a URL or a file,
    an ISO date) do not change vectors and stay out of the signature.
    """

    space_id: str
    provider: str
    model: str
    revision: str
    dimension: int
    metric: Metric
    normalized: bool
    query_role: str
    document_role: str
    dtype: Dtype
    query_prompt: str | None = None
    document_prompt: str | None = None
    pooling: str | None = None
    truncation: str | None = None
    max_input_tokens: int | None = None
    derivation: str | None = None
    derived_from: str | None = None
    licence: str | None = None
    looked_up_at: str | None = None
    looked_up_on: str | None = None

    @property
    def signature(self) -> str:
        """SHA-256 (hex) over canonical JSON of every field that is set and changes vectors."""
        body = {
            name: value
            for name, value in asdict(self).items()
            if name not in UNSIGNED and (name in FIXTURE_FIELDS or value is not None)
        }
        return hashlib.sha256(canonical_json(body).encode("utf-8")).hexdigest()

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        return np.dtype(self.dtype)


CONTRACT_FIELDS: tuple[str, ...] = tuple(f.name for f in fields(SpaceContract))
FIXTURE_FIELDS = CONTRACT_FIELDS[: CONTRACT_FIELDS.index("dtype") + 1]
NOT_STATED = frozenset({"space_id", "derivation", "derived_from"})
UNSIGNED = frozenset({"space_id", "licence", "looked_up_at", "looked_up_on"})


STATED_DEFAULTS = {"query_role": "query", "document_role": "document", "dtype": "float32"}


def contract_from(space_id: str, stated: Mapping[str, Any]) -> SpaceContract:
    """A contract as YAML states it. UsageError for a field that is missing, unknown or wrong."""
    from pydantic import TypeAdapter, ValidationError

    settable = [name for name in CONTRACT_FIELDS if name not in NOT_STATED]
    for name in stated:
        if name not in settable:
            raise UsageError(
                f"space {space_id}: contract.{name} is unknown; allowed are {', '.join(settable)}"
            )
    try:
        # As JSON: strict then means that 384.0, "384" and true are not integers.
        contract: SpaceContract = TypeAdapter(SpaceContract).validate_json(
            json.dumps({**STATED_DEFAULTS, **stated, "space_id": space_id}), strict=True
        )
    except ValidationError as error:
        faults = [f"contract.{fault['loc'][-1]}: {fault['msg']}" for fault in error.errors()]
        raise UsageError(f"space {space_id}: {'; '.join(faults)}") from None
    if not 1 <= contract.dimension <= MAX_DIMENSION:
        raise UsageError(
            f"space {space_id}: contract.dimension is {contract.dimension}; "
            f"it must be from 1 to {MAX_DIMENSION}"
        )
    if contract.query_role == contract.document_role:
        raise UsageError(f"space {space_id}: query_role and document_role must differ")
    return contract


def canonical_json(value: object) -> str:
    """JSON with sorted keys, no spaces and no escapes beyond the necessary; refuses NaN."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
