"""Vectors that were already paid for, as immutable files that any number of processes may add to.

    <root>/<contract signature>/documents/<name>.npz    one embedded batch: keys and vectors
    <root>/<contract signature>/queries/<name>.npz

A batch's name comes from its keys, and it is written under a temporary name first, so that a
process killed at any moment loses no more than the batch it was waiting for. The CRC of the zip
container tells a damaged file, which is set aside and embedded again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from rag_assets.canonical.contracts import SpaceContract

Side = Literal["documents", "queries"]
KEY_BYTES = 32


def input_key(text: str) -> str:
    """SHA-256 (hex) of a text exactly as it is sent, prompt included."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True)
class EmbeddingCache:
    """Vectors by contract signature, side (role) and exact input."""

    root: Path

    def batches(
        self, contract: SpaceContract, side: Side, notes: list[str]
    ) -> Iterator[tuple[list[str], np.ndarray]]:
        """Stored batches: (keys[n], vectors dtype[n, dimension]). `notes` gets the damaged ones."""
        for path in sorted(self._folder(contract, side).glob("*.npz")):
            batch = _read(path, contract)
            if batch is None:
                notes.append(f"cache file {path.stem[:12]} is damaged; it was set aside")
                with contextlib.suppress(OSError):
                    os.replace(path, path.with_suffix(".damaged"))
            else:
                yield batch

    def store(
        self, contract: SpaceContract, side: Side, keys: Sequence[str], vectors: np.ndarray
    ) -> None:
        """Add a batch of valid vectors, `dtype[n, dimension]`, one for each key."""
        folder = self._folder(contract, side)
        folder.mkdir(parents=True, exist_ok=True)
        packed = np.frombuffer(bytes.fromhex("".join(keys)), np.uint8).reshape(-1, KEY_BYTES)
        name = hashlib.sha256(packed.tobytes()).hexdigest()
        draft = folder / f".draft-{uuid.uuid4().hex}"
        try:
            with draft.open("wb") as file:
                np.savez(file, keys=packed, vectors=vectors)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, folder / f"{name}.npz")
        finally:
            draft.unlink(missing_ok=True)

    def _folder(self, contract: SpaceContract, side: Side) -> Path:
        return self.root / contract.signature / side


def _read(path: Path, contract: SpaceContract) -> tuple[list[str], np.ndarray] | None:
    """A stored batch, or None if the file is not what `store` writes."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            keys, vectors = arrays["keys"], arrays["vectors"]
    except Exception:  # a damaged container raises anything from KeyError to zlib.error
        return None
    if keys.dtype != np.uint8 or keys.ndim != 2 or keys.shape[1] != KEY_BYTES:
        return None
    fits = vectors.shape == (len(keys), contract.dimension)
    if not fits or vectors.dtype != contract.numpy_dtype or not np.isfinite(vectors).all():
        return None
    return [row.tobytes().hex() for row in keys], vectors
