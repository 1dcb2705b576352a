"""Building approximate indexes and keeping them as files, with an account of how it went."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rag_assets.canonical.contracts import canonical_json
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.indexes.ann import AnnIndex
from rag_assets.indexes.faiss_engine import load_faiss
from rag_assets.indexes.specs import IndexSpec, parameters

BUILT, NOT_EXECUTED = "built", "not_executed"
_FILE = "build.json"


@dataclass(frozen=True, slots=True)
class IndexBuild:
    """How the building of one approximate index went.

    `params` is JSON, `status` BUILT or NOT_EXECUTED with a reason, `build_ms` wall time,
    `index_bytes` what is stored and `memory_bytes` that and what search keeps beside it.
    `warnings` are sentences about the training data.
    """

    space_id: str
    index_name: str
    kind: str
    params: str
    seed: int
    status: str
    status_reason: str | None = None
    build_ms: float | None = None
    index_bytes: int | None = None
    memory_bytes: int | None = None
    warnings: tuple[str, ...] = ()


def timed_build(spec: IndexSpec, space: EmbeddedSpace) -> tuple[AnnIndex, float]:
    """An index and the milliseconds of its training and filling. Raises as `AnnIndex.build`."""
    load_faiss()  # the first import takes longer than building a small index
    started = time.perf_counter()
    index = AnnIndex.build(spec, space)
    return index, (time.perf_counter() - started) * 1000


def store_index(name: str, spec: IndexSpec, space: EmbeddedSpace, folder: Path) -> None:
    """Build an index and write it into an existing folder.

    EngineMissing without its engine; UsageError for parameters that do not fit the space.
    """
    index, build_ms = timed_build(spec, space)
    index.save(folder)
    build = IndexBuild(
        space_id=space.contract.space_id,
        index_name=name,
        kind=spec.kind,
        params=canonical_json(parameters(spec)),
        seed=spec.seed,
        status=BUILT,
        build_ms=build_ms,
        index_bytes=index.nbytes,
        memory_bytes=index.memory_bytes,
        warnings=index.warnings,
    )
    (folder / _FILE).write_text(json.dumps(asdict(build), indent=1), "utf-8")


def read_index_build(folder: Path) -> IndexBuild:
    record = json.loads((folder / _FILE).read_text("utf-8"))
    return IndexBuild(**{**record, "warnings": tuple(record["warnings"])})
