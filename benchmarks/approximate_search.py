"""Approximate search through the product against raw FAISS, on one thread."""

from __future__ import annotations

from collections.abc import Iterator

import faiss
import numpy as np
import pyarrow as pa

from benchmarks.timing import Measurement, compared, times
from rag_assets.canonical.contracts import SpaceContract
from rag_assets.canonical.corpus import SPACE_ITEMS
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.indexes.ann import AnnIndex
from rag_assets.indexes.specs import IvfFlat, IvfPq
from rag_assets.indexes.sweep_search import sweep_nprobe

K = 10
_QUERIES = 1000
_CENTRES = 500


def clustered_space(count: int, dimension: int) -> tuple[EmbeddedSpace, np.ndarray]:
    """Documents around a few hundred centres, and queries near documents: float32[m, d]."""
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((_CENTRES, dimension), dtype=np.float32)
    documents = rng.standard_normal((count, dimension), dtype=np.float32)
    documents *= np.float32(0.8)
    documents += centres[rng.integers(0, _CENTRES, count)]
    near = documents[rng.integers(0, count, _QUERIES)]
    queries = near + 0.5 * rng.standard_normal(near.shape, dtype=np.float32)
    contract = SpaceContract(
        "bench",
        "synthetic",
        "clusters",
        "1",
        dimension,
        "cosine",
        False,
        "query",
        "document",
        "float32",
    )
    constants = {
        "role": "document",
        "text": "",
        "source_revision": "",
        "content_sha256": "",
        "space_no": 0,
    }
    columns = {
        "item_no": np.arange(count, dtype=np.int32),
        "item_id": [f"{number:08}" for number in range(count)],
        "acl": pa.nulls(count, SPACE_ITEMS.field("acl").type),
    }
    for field in SPACE_ITEMS:
        if field.name not in columns:
            columns[field.name] = pa.repeat(pa.scalar(constants[field.name], field.type), count)
    items = pa.table([columns[field.name] for field in SPACE_ITEMS], schema=SPACE_ITEMS)
    return EmbeddedSpace(contract, items, documents), queries


def approximate_search(count: int, dimension: int, rounds: int) -> Iterator[Measurement]:
    """ann-batch and nprobe-sweep (ivf_pq and ivf_flat) at `count` documents."""
    faiss.omp_set_num_threads(1)
    space, queries = clustered_space(count, dimension)
    n_clusters = 1024
    nprobes = [1 << power for power in range(n_clusters.bit_length())]
    unit = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    for spec in (
        IvfPq(n_clusters, 16, n_iters=5, n_subvectors=dimension // 8, n_bits=8),
        IvfFlat(n_clusters, 16, n_iters=5),
    ):
        index = AnnIndex.build(spec, space)
        shape = {
            "documents": count,
            "dimension": dimension,
            "queries": len(queries),
            "k": K,
            "threads": 1,
            "index": spec.kind,
            "n_clusters": n_clusters,
        }
        if isinstance(spec, IvfPq):
            raw = index.engine.outer
            parameters = faiss.SearchParametersIVF(nprobe=spec.nprobe)
            taken = times(
                {
                    "ours": lambda index=index: index.search(queries, K, threads=1),
                    "raw": lambda raw=raw, p=parameters: raw.search(unit, K, params=p),
                },
                max(rounds, 5),
            )
            yield compared(
                "ann-batch",
                "the same faiss.IndexIVFPQ, searched directly",
                taken["ours"],
                taken["raw"],
                **shape,
                nprobe=spec.nprobe,
            )

        def one_by_one(index: AnnIndex = index) -> dict[int, np.ndarray]:
            raw = index.engine.outer
            found = {}
            for value in nprobes:
                parameters = faiss.SearchParametersIVF(nprobe=value)
                found[value] = raw.search(unit, K, params=parameters)[1]
            return found

        def swept(index: AnnIndex = index) -> dict[int, np.ndarray]:
            answers = sweep_nprobe(index, queries, K, nprobes, threads=1)
            return {value: rows for value, (rows, _) in answers.items()}

        ours, theirs = swept(), one_by_one()
        truth = theirs[n_clusters] if isinstance(spec, IvfFlat) else None
        settings = {
            **shape,
            "nprobes": nprobes,
            "same_rows": round(
                float(np.mean([_shared(ours[value], theirs[value]) for value in nprobes])), 4
            ),
        }
        if truth is not None:
            settings["largest_recall_difference"] = round(
                max(
                    abs(_shared(ours[value], truth) - _shared(theirs[value], truth))
                    for value in nprobes
                ),
                5,
            )
        taken = times({"ours": swept, "raw": one_by_one}, 1, warm=False)
        yield compared(
            "nprobe-sweep",
            f"one faiss batch search of the same {spec.kind} per value",
            taken["ours"],
            taken["raw"],
            **settings,
        )


def _shared(one: np.ndarray, two: np.ndarray) -> float:
    """The mean share of common rows: int64[m, k] each."""
    return float((one[:, :, np.newaxis] == two[:, np.newaxis, :]).any(axis=2).mean())
