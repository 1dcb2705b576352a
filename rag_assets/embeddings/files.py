"""One space's embeddings as files: contract.json, items.parquet and vectors.npy."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.canonical.corpus import digest, digest_array, digest_table
from rag_assets.canonical.files import write_parquet
from rag_assets.embeddings.space import EmbeddedSpace


def embeddings_digest(space: EmbeddedSpace) -> str:
    """SHA-256 (hex) over signature, items and vectors; the storage alias does not count."""
    return digest(space.contract.signature, digest_table(space.items), digest_array(space.vectors))


def write_embeddings(space: EmbeddedSpace, folder: Path) -> None:
    (folder / "contract.json").write_text(json.dumps(asdict(space.contract), indent=1), "utf-8")
    write_parquet(space.items, folder / "items.parquet")
    np.save(folder / "vectors.npy", space.vectors)


def read_embeddings(folder: Path) -> EmbeddedSpace:
    """The embeddings stored in `folder`; vectors are memory-mapped, read-only."""
    contract = SpaceContract(**json.loads((folder / "contract.json").read_text("utf-8")))
    return EmbeddedSpace(
        contract=contract,
        items=pq.read_table(folder / "items.parquet"),
        vectors=np.load(folder / "vectors.npy", mmap_mode="r"),
    )
