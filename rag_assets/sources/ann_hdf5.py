"""HDF5 files of ann-benchmarks: train, test, neighbors, distances, and the attribute distance.

Needs h5py (extra `hdf5`), imported on use.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from rag_assets.canonical.contracts import Metric
from rag_assets.errors import UsageError
from rag_assets.sources.collection import Collection, GivenVectors, Neighbours
from rag_assets.sources.faults import refuse
from rag_assets.sources.neighbours import positional_collection
from rag_assets.sources.options import SourceOptions
from rag_assets.sources.strict_json import WHOLE_FILE, excerpt

METRIC_OF: dict[str, Metric] = {
    "angular": "cosine",
    "cosine": "cosine",
    "euclidean": "euclidean",
    "ip": "dot",
    "dot": "dot",
}


def read_ann_hdf5(path: str | Path, options: SourceOptions, shown: str | None = None) -> Collection:
    """The vectors of a file, its metric and its ground truth, without texts or judgements.

    `neighbors` and `distances` may be absent. Raises InputError, also for a distance that no metric
    here is; UsageError without h5py and for groups that come from a field.
    """
    try:
        import h5py
    except ImportError:
        raise UsageError("HDF5 needs h5py: pip install 'rag-assets[hdf5]'") from None
    name = shown or os.fspath(path)
    if not Path(path).is_file():
        refuse("file_not_found", name, WHOLE_FILE, "no such file", "name an existing file")
    try:
        with h5py.File(path, "r") as file:
            metric = _metric(file, name)
            train, test = (_vectors(file, path, part, name) for part in ("train", "test"))
            truth = None
            if "neighbors" in file:
                distances = file["distances"][:] if "distances" in file else None
                truth = Neighbours(file["neighbors"][:].astype(np.int64), distances, name)
    except OSError as error:
        refuse("unreadable_file", name, WHOLE_FILE, excerpt(str(error)), "a complete HDF5 file")
    return positional_collection(GivenVectors(train, test, metric, name, name), truth, options)


def _metric(file: Any, shown: str) -> Metric:
    stated = file.attrs.get("distance")
    if isinstance(stated, bytes):
        stated = stated.decode()
    if stated not in METRIC_OF:
        found = "no attribute" if stated is None else excerpt(str(stated))
        remedy = f"one of {', '.join(METRIC_OF)}"
        refuse("unknown_metric", shown, "attribute distance", found, remedy)
    return METRIC_OF[stated]


def _vectors(file: Any, path: str | Path, part: str, shown: str) -> np.ndarray:
    if part not in file:
        found = f"the data sets {', '.join(file)}"
        refuse("missing_field", shown, part, found, "train and test are needed")
    data = file[part]
    if data.ndim != 2 or data.dtype.kind != "f":
        found = f"{data.dtype} of shape {data.shape}"
        refuse("wrong_type", shown, part, found, "floats of shape (n, d) are needed")
    offset = data.id.get_offset()  # None where the values are in chunks or compressed
    if offset is not None:
        return np.memmap(path, data.dtype, "r", offset, data.shape)
    values: np.ndarray = data[:]
    return values
