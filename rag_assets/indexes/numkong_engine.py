"""The optional library numkong, where its products are faster than float32."""

from __future__ import annotations

from collections.abc import Set
from typing import Any


def native_numkong(instruction_sets: Set[str]) -> Any:
    """The library, or None where it is missing or the processor has none of `instruction_sets`,
    as numkong calls them: without native products float32 is faster."""
    try:
        import numkong
    except ImportError:
        return None
    found = {name for name, present in numkong.get_capabilities().items() if present}
    return numkong if found & instruction_sets else None
