"""The formats of sources by name, but for the JSON fixture, which brings its own contracts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from rag_assets.errors import UsageError
from rag_assets.sources.ann_hdf5 import read_ann_hdf5
from rag_assets.sources.beir import read_beir, read_trec
from rag_assets.sources.collection import Collection
from rag_assets.sources.mteb import read_mteb
from rag_assets.sources.neighbours import read_vecs_folder
from rag_assets.sources.options import SourceOptions

Reader = Callable[[Path, SourceOptions, str | None], Collection]

READERS: Mapping[str, Reader] = {
    "beir": read_beir,
    "trec": read_trec,
    "mteb": read_mteb,
    "ann_hdf5": read_ann_hdf5,
    "vecs": read_vecs_folder,
}


def read_collection(
    source_format: str, path: Path, options: SourceOptions, shown: str | None = None
) -> Collection:
    """The collection at `path`, which problems call `shown`. Raises InputError, UsageError."""
    if source_format not in READERS:
        raise UsageError(f"unknown format {source_format!r}; known are {', '.join(READERS)}")
    return READERS[source_format](path, options, shown)
