"""Small corpora of plain texts, a contract for them, and a provider whose every vector is known."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.canonical.corpus import CASES, ITEMS, QRELS, SPACE_ITEMS, Corpus
from rag_assets.canonical.text import content_sha256
from rag_assets.embeddings.cache import EmbeddingCache
from rag_assets.embeddings.embed import EmbeddingReport, RetryPolicy, embed_space
from rag_assets.embeddings.providers import Limits, Provider
from rag_assets.embeddings.space import EmbeddedSpace

DIMENSION = 4
CONTRACT = SpaceContract(
    "s", "hand", "m", "r1", DIMENSION, "cosine", True, "query", "document", "float32"
)
DOCUMENTS = {f"d{number}": f"document {number}" for number in range(10)}
QUERIES = {"q0": "query zero", "q1": "query one"}


def contract(**changes: Any) -> SpaceContract:
    return replace(CONTRACT, **changes)


def corpus_of(
    documents: Mapping[str, str] = DOCUMENTS,
    queries: Mapping[str, str] = QUERIES,
    of: SpaceContract = CONTRACT,
) -> Corpus:
    """Document ids must sort before query ids."""
    roles = [(of.document_role, documents), (of.query_role, queries)]
    rows = [
        {
            "space_no": 0,
            "item_no": number,
            "item_id": item_id,
            "role": role,
            "text": text,
            "acl": ["all"],
            "source_revision": "r1",
            "content_sha256": content_sha256(text),
        }
        for number, (role, item_id, text) in enumerate(
            (role, item_id, text) for role, texts in roles for item_id, text in texts.items()
        )
    ]
    return Corpus(
        (of,),
        pa.Table.from_pylist(rows, schema=ITEMS),
        pa.Table.from_pylist(rows, schema=SPACE_ITEMS),
        CASES.empty_table(),
        QRELS.empty_table(),
        {},
    )


def vector_of(text: str, dimension: int = DIMENSION) -> list[float]:
    """A unit vector that only this text has."""
    numbers = np.frombuffer(hashlib.sha512(text.encode()).digest()[: 2 * dimension], np.uint16)
    vector = numbers.astype(np.float64) - 32_767.5
    unit: list[float] = (vector / np.linalg.norm(vector)).tolist()
    return unit


def expected(texts: Sequence[str]) -> np.ndarray:
    return np.array([vector_of(text) for text in texts], dtype=np.float32)


def vectors_of(texts: Sequence[str]) -> np.ndarray:
    return np.array([vector_of(text) for text in texts])


@dataclass
class Known:
    """A provider that remembers its calls; `answer` may fail or lie, given the texts."""

    answer: Callable[[Sequence[str]], np.ndarray] = vectors_of
    max_items: int = 4
    max_bytes: int = 10_000
    calls: list[tuple[str, list[str]]] = field(default_factory=list)

    @property
    def limits(self) -> Limits:
        return Limits(self.max_items, self.max_bytes)

    @property
    def texts(self) -> list[str]:
        return [text for _, texts in self.calls for text in texts]

    def embed(self, texts: Sequence[str], role: str) -> np.ndarray:
        self.calls.append((role, list(texts)))
        return self.answer(texts)


def embedded(
    provider: Provider,
    root: Path,
    corpus: Corpus | None = None,
    of: SpaceContract = CONTRACT,
    waits: list[float] | None = None,
    retry: RetryPolicy | None = None,
) -> tuple[EmbeddedSpace, EmbeddingReport]:
    """embed_space without real waiting; `waits` gets the seconds it would have slept."""
    noted = [] if waits is None else waits
    return embed_space(
        corpus or corpus_of(of=of),
        of,
        provider,
        EmbeddingCache(root),
        retry=retry,
        sleep=noted.append,
    )
