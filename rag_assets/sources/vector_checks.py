"""Checks of vectors against a space's contract, before anything else sees them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.indexes.ranking import norms
from rag_assets.sources.faults import Faults, refuse
from rag_assets.sources.fixture_fields import NORM_TOLERANCE
from rag_assets.sources.strict_json import WHOLE_FILE, excerpt


def refuse_unsound(
    vectors: np.ndarray, contract: SpaceContract, file: str, name: Callable[[int], str]
) -> None:
    """Raises InputError unless `vectors` is `dtype[n, dimension]` of the contract, each finite,
    not zero and, where it says normalized, of norm 1 within 1e-6 (taken in float64).

    `name` gives the id of a row. Read in blocks, so a memory-mapped array stays on disk.
    """
    if vectors.ndim != 2 or vectors.shape[1] != contract.dimension:
        found = f"an array of shape {vectors.shape}"
        remedy = f"space {contract.space_id!r} needs (n, {contract.dimension})"
        refuse("wrong_dimension", file, WHOLE_FILE, found, remedy)
    if vectors.dtype != contract.numpy_dtype:
        remedy = f"space {contract.space_id!r} declares {contract.dtype}; nothing is cast"
        refuse("wrong_dtype", file, WHOLE_FILE, str(vectors.dtype), remedy)
    lengths = norms(vectors)
    faults = Faults()
    unsound = ~np.isfinite(lengths) | (lengths == 0)
    if contract.normalized:
        unsound |= ~(np.abs(lengths - 1) <= NORM_TOLERANCE)
    for row in np.flatnonzero(unsound)[: faults.max_problems + 1]:
        place = f"row {row} ({excerpt(name(int(row)))})"
        length = lengths[row]
        if not np.isfinite(vectors[row]).all():
            at = int(np.flatnonzero(~np.isfinite(vectors[row]))[0])
            found = f"{vectors[row, at]} at component {at}"
            faults.add("not_finite", file, place, found, "components are finite numbers")
        elif length == 0:
            faults.add("zero_vector", file, place, "only zeros", "a vector has a direction")
        else:
            remedy = f"the contract says normalized: norms are 1 within {NORM_TOLERANCE:g}"
            faults.add("not_normalized", file, place, f"norm {length:.9g}", remedy)
    faults.raise_if_any()
