"""The contract of an embedding space, and its signature."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

import numpy as np

Metric = Literal["cosine", "dot", "euclidean"]
Dtype = Literal["float32", "float64"]
METRICS: tuple[str, ...] = get_args(Metric)
DTYPES: tuple[str, ...] = get_args(Dtype)
MAX_DIMENSION = 100_000


@dataclass(frozen=True, slots=True)
class SpaceContract:
    """What makes vectors comparable: two spaces with equal signatures hold the same kind of vector.

    `space_id` is a storage alias and not part of the signature. `normalized` promises unit norm.
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

    @property
    def signature(self) -> str:
        """SHA-256 (hex) over canonical JSON of every field except `space_id`."""
        body = asdict(self)
        del body["space_id"]
        return hashlib.sha256(canonical_json(body).encode("utf-8")).hexdigest()

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        return np.dtype(self.dtype)


CONTRACT_FIELDS: tuple[str, ...] = tuple(f.name for f in fields(SpaceContract))


def canonical_json(value: object) -> str:
    """JSON with sorted keys, no spaces and no escapes beyond the necessary; refuses NaN."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
