"""A corpus as files: Parquet tables, JSON contracts and one .npy per space's declared vectors."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rag_assets.canonical.contracts import SpaceContract, canonical_json
from rag_assets.canonical.corpus import (
    CASES,
    ITEMS,
    QRELS,
    SPACE_ITEMS,
    Corpus,
    digest,
    digest_array,
    digest_table,
)

TABLES = {"items": ITEMS, "space_items": SPACE_ITEMS, "cases": CASES, "qrels": QRELS}


def corpus_digest(corpus: Corpus) -> str:
    """SHA-256 (hex) over everything a corpus says, independent of how its source spelled it."""
    parts = [canonical_json(asdict(contract)) for contract in corpus.contracts]
    parts += [digest_table(getattr(corpus, name)) for name in TABLES]
    parts += [digest_array(corpus.vectors[space_id]) for space_id in sorted(corpus.vectors)]
    return digest(*parts)


def write_corpus(corpus: Corpus, folder: Path) -> None:
    contracts = [asdict(contract) for contract in corpus.contracts]
    (folder / "contracts.json").write_text(json.dumps(contracts, indent=1), "utf-8")
    for name in TABLES:
        write_parquet(getattr(corpus, name), folder / f"{name}.parquet")
    # Files are numbered: a space id may hold characters that a file name cannot.
    for number, contract in enumerate(corpus.contracts):
        if contract.space_id in corpus.vectors:
            np.save(folder / f"vectors-{number}.npy", corpus.vectors[contract.space_id])


def read_corpus(folder: Path) -> Corpus:
    """The corpus stored in `folder`; vectors are memory-mapped, read-only."""
    records = json.loads((folder / "contracts.json").read_text("utf-8"))
    contracts = tuple(SpaceContract(**record) for record in records)
    vectors = {}
    for number, contract in enumerate(contracts):
        path = folder / f"vectors-{number}.npy"
        if path.is_file():
            vectors[contract.space_id] = np.load(path, mmap_mode="r")
    tables = {name: pq.read_table(folder / f"{name}.parquet") for name in TABLES}
    return Corpus(contracts=contracts, vectors=vectors, **tables)


def write_parquet(table: pa.Table, path: Path) -> None:
    """Parquet with zstd: the one format of tables between assets."""
    pq.write_table(table, path, compression="zstd")
