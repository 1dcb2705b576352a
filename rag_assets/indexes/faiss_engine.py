"""FAISS as a module: imported on first use, or a clear error, and run on a stated thread count."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from rag_assets.errors import EngineMissing


def load_faiss() -> Any:
    """The faiss module. Raises EngineMissing where it cannot be imported."""
    # OpenMP reads its wait policy once, when its library loads. By default idle threads spin, which
    # on a busy two-core machine made training 3 to 8 times slower than one thread.
    quiet = "faiss" not in sys.modules and "OMP_WAIT_POLICY" not in os.environ
    if quiet:
        os.environ["OMP_WAIT_POLICY"] = "passive"
    try:
        import faiss
    except ImportError as error:
        reason = " ".join(str(error).split())
        raise EngineMissing(f"FAISS cannot be imported ({reason}); install faiss-cpu") from error
    finally:
        if quiet:
            del os.environ["OMP_WAIT_POLICY"]
    return faiss


@contextmanager
def engine_threads(threads: int | None) -> Iterator[None]:
    """Run FAISS calls of this Python thread on `threads` OpenMP threads; None leaves its default.

    The default is one per available core. The setting belongs to the calling thread.
    """
    if threads is None:
        yield
        return
    faiss = load_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


@dataclass(frozen=True, eq=False)
class Engine:
    """A FAISS index and its parts: re-ranking copy (around a rotation (around inverted lists)).

    Only `outer` owns memory; the parts must not outlive it.
    """

    outer: Any

    @cached_property
    def refines(self) -> bool:
        """Whether candidates are re-ranked inside the engine."""
        return isinstance(self.outer, load_faiss().IndexRefine)

    @cached_property
    def base(self) -> Any:
        """The index below the re-ranking."""
        faiss = load_faiss()
        return faiss.downcast_index(self.outer.base_index) if self.refines else self.outer

    @cached_property
    def rotation(self) -> Any:
        """The linear transform in front of the lists, or None."""
        faiss = load_faiss()
        if not isinstance(self.base, faiss.IndexPreTransform):
            return None
        return faiss.downcast_VectorTransform(self.base.chain.at(0))

    @cached_property
    def lists(self) -> Any:
        """The index of inverted lists, or None for a graph."""
        faiss = load_faiss()
        inner = self.base if self.rotation is None else faiss.downcast_index(self.base.index)
        return inner if isinstance(inner, faiss.IndexIVF) else None

    @cached_property
    def list_no(self) -> np.ndarray | None:
        """int32[n]: the list that holds each document; None for a graph."""
        if self.lists is None:
            return None
        faiss = load_faiss()
        numbers = np.empty(self.outer.ntotal, dtype=np.int32)
        stored = self.lists.invlists
        for number in range(self.lists.nlist):
            size = stored.list_size(number)
            if size:
                numbers[faiss.rev_swig_ptr(stored.get_ids(number), size)] = number
        return numbers

    @property
    def table_bytes(self) -> int:
        """Bytes of product quantization's precomputed table: in memory only, made on loading."""
        table = getattr(self.lists, "precomputed_table", None)
        return 0 if table is None else 4 * int(table.size())

    def measure(self) -> tuple[int, str]:
        """(bytes, SHA-256 in hex) of the serialized index, without holding a copy of it."""
        faiss = load_faiss()
        size, digest = 0, sha256()

        def take(part: bytes) -> None:
            nonlocal size
            size += len(part)
            digest.update(part)

        writer = faiss.PyCallbackIOWriter(take, 1 << 20)
        faiss.write_index(self.outer, writer)
        return size, digest.hexdigest()
