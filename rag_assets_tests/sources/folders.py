"""A small BEIR folder to break, and the contract of a space over it.

Documents d1 (open to all and staff), d2 (staff) and 007; queries q1 (judged: d1 2, d2 0) and
q2 (judged: 007 1) in split test, q3 judged nowhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.canonical.corpus import Corpus
from rag_assets.errors import InputError, Problem
from rag_assets.sources.beir import read_beir
from rag_assets.sources.collection import Collection
from rag_assets.sources.numbering import corpus_of
from rag_assets.sources.options import SourceOptions, source_options

DATASETS = Path(__file__).parents[3] / "shared" / "datasets"

DOCUMENTS: list[dict[str, Any]] = [
    {"_id": "d1", "title": "One", "text": "first", "metadata": {"groups": ["staff", "all"]}},
    {"_id": "d2", "title": "", "text": "second", "metadata": {"groups": "staff"}},
    {"_id": "007", "text": "third", "metadata": {"groups": ["all"], "rev": "r7"}},
]
QUERIES: list[dict[str, Any]] = [
    {"_id": "q1", "text": "what is first?", "metadata": {"kind": "fact", "year": 2011}},
    {"_id": "q2", "text": "what is third?"},
    {"_id": "q3", "text": "what is missing?"},
]
HEADER = "query-id\tcorpus-id\tscore\n"
JUDGEMENTS = HEADER + "q1\td1\t2\nq1\td2\t0\nq2\t007\t1\n"
FILES = {
    "corpus.jsonl": "".join(json.dumps(row) + "\n" for row in DOCUMENTS),
    "queries.jsonl": "".join(json.dumps(row) + "\n" for row in QUERIES),
    "qrels/test.tsv": JUDGEMENTS,
}
PUBLIC = source_options({"acl": "public"})
SPACE = SpaceContract("s", "p", "m", "1", 2, "cosine", False, "query", "document", "float32")
UNIT = SpaceContract("s", "p", "m", "1", 2, "cosine", True, "query", "document", "float32")


def lines(*rows: Mapping[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def write(folder: Path, files: Mapping[str, str | bytes | None]) -> Path:
    """The folder above with some files replaced, or left out where the content is None."""
    for name, content in {**FILES, **files}.items():
        if content is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def read(folder: Path, options: SourceOptions = PUBLIC, **files: str | bytes | None) -> Collection:
    """The collection in the folder above; keywords replace corpus, queries or qrels."""
    names = {"corpus": "corpus.jsonl", "queries": "queries.jsonl", "qrels": "qrels/test.tsv"}
    written = write(folder, {names[name]: content for name, content in files.items()})
    return read_beir(written, options, "set")


def corpus(folder: Path, options: SourceOptions = PUBLIC, **files: str | bytes | None) -> Corpus:
    return corpus_of(read(folder, options, **files), [SPACE])


def problems(
    folder: Path, options: SourceOptions = PUBLIC, **files: str | bytes | None
) -> list[Problem]:
    with pytest.raises(InputError) as caught:
        read(folder, options, **files)
    return list(caught.value.problems)


def judged(collection: Collection) -> dict[tuple[str, str], int]:
    """Grades by case id and item id."""
    cases, items = collection.cases["case_id"], collection.items["item_id"]
    return {
        (cases[row["case_row"]].as_py(), items[row["item_row"]].as_py()): row["grade"]
        for row in collection.qrels.to_pylist()
    }


def vectors_of(corpus: Corpus) -> np.ndarray:
    """Distinct vectors, one for each row of the space: (1, 0), (1, 1), (1, 2), ..."""
    count = len(corpus.items_of("s"))
    return np.stack([np.ones(count), np.arange(count)], axis=1).astype(np.float32)


def write_vecs(path: Path, values: np.ndarray) -> None:
    """Write `values[n, d]` in the layout of the suffix; the dtype must be that of the layout."""
    value = {".fvecs": "<f4", ".ivecs": "<i4", ".bvecs": "u1"}[path.suffix]
    if values.dtype != value:
        raise ValueError(f"{path.suffix} holds {value}, not {values.dtype}")
    records = np.empty(len(values), [("d", "<i4"), ("values", value, (values.shape[1],))])
    records["d"], records["values"] = values.shape[1], values
    records.tofile(path)
