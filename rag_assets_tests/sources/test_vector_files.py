from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.errors import InputError, Problem
from rag_assets.sources.vector_files import read_vector_folder
from rag_assets_tests.sources.folders import SPACE, UNIT, corpus

DOC_IDS, QUERY_IDS = ["d1", "007", "d2"], ["q3", "q1", "q2"]
DOC_VECTORS = np.array([[3, 1], [3, 2], [3, 3]], np.float32)
QUERY_VECTORS = np.array([[4, 1], [4, 2], [4, 3]], np.float32)


def write_vectors(
    folder: Path,
    doc_ids: list[str] = DOC_IDS,
    query_ids: list[str] = QUERY_IDS,
    docs: np.ndarray = DOC_VECTORS,
    queries: np.ndarray = QUERY_VECTORS,
) -> None:
    folder.mkdir(exist_ok=True)
    np.save(folder / "doc_vectors.npy", docs)
    np.save(folder / "query_vectors.npy", queries)
    (folder / "doc_ids.txt").write_text("".join(f"{name}\n" for name in doc_ids), "utf-8")
    (folder / "query_ids.txt").write_text("".join(f"{name}\n" for name in query_ids), "utf-8")


def aligned(
    folder: Path, contract: SpaceContract = SPACE, ignore_extra: bool = False
) -> EmbeddedSpace:
    found = corpus(folder / "set")
    return read_vector_folder(folder / "v", found, contract, shown="v", ignore_extra=ignore_extra)


def refused(folder: Path, contract: SpaceContract = SPACE) -> list[Problem]:
    with pytest.raises(InputError) as caught:
        aligned(folder, contract)
    return list(caught.value.problems)


def test_vectors_follow_their_ids_not_their_rows(tmp_path: Path) -> None:
    write_vectors(tmp_path / "v")
    found = aligned(tmp_path)
    # rows of the space: 007, d1, d2, then the query items of q1, q2, q3
    assert found.vectors.tolist() == [[3, 2], [3, 1], [3, 3], [4, 2], [4, 3], [4, 1]]
    assert found.document_count == 3
    assert not found.vectors.flags.writeable


def test_aligned_vectors_can_be_a_memory_mapped_file(tmp_path: Path) -> None:
    write_vectors(tmp_path / "v")
    found = corpus(tmp_path / "set")
    space = read_vector_folder(tmp_path / "v", found, SPACE, into=tmp_path / "aligned.npy")
    assert isinstance(space.vectors, np.memmap)
    assert np.array_equal(space.vectors, aligned(tmp_path).vectors)
    assert np.array_equal(np.load(tmp_path / "aligned.npy"), space.vectors)


@pytest.mark.parametrize(
    ("doc_ids", "code", "found"),
    [
        (["d1", "007", "d9"], "missing_vector", '"d2"'),
        (["d1", "007", "d9"], "unknown_vector", '"d9"'),
        (["d1", "d1", "d2"], "repeated_vector", '"d1"'),
        (["d1", "7", "d2"], "missing_vector", '"007"'),  # leading zeros are part of an id
        (["d1", "007", "d2 "], "missing_vector", '"d2"'),
    ],
)
def test_ids_must_match_exactly(tmp_path: Path, doc_ids: list[str], code: str, found: str) -> None:
    write_vectors(tmp_path / "v", doc_ids=doc_ids)
    by_code = {problem.code: problem for problem in refused(tmp_path)}
    assert by_code[code].found == found
    assert by_code[code].file == "v/doc_vectors.npy"


def test_vectors_of_other_queries_may_be_ignored(tmp_path: Path) -> None:
    more = np.vstack([QUERY_VECTORS, [[9, 9]]]).astype(np.float32)
    write_vectors(tmp_path / "v", query_ids=[*QUERY_IDS, "q9"], queries=more)
    assert [problem.code for problem in refused(tmp_path)] == ["unknown_vector"]
    assert len(aligned(tmp_path, ignore_extra=True).vectors) == 6


def spoilt(row: int, value: list[float]) -> np.ndarray:
    vectors = DOC_VECTORS.copy()
    vectors[row] = value
    return vectors


@pytest.mark.parametrize(
    ("docs", "code", "place"),
    [
        (spoilt(1, [np.nan, 1]), "not_finite", 'row 1 ("007")'),
        (spoilt(2, [1, -np.inf]), "not_finite", 'row 2 ("d2")'),
        (spoilt(0, [0, 0]), "zero_vector", 'row 0 ("d1")'),
        (DOC_VECTORS.astype(np.float64), "wrong_dtype", "whole file"),
        (DOC_VECTORS[:, :1], "wrong_dimension", "whole file"),
        (DOC_VECTORS.ravel(), "wrong_dimension", "whole file"),
        (DOC_VECTORS[:2], "wrong_length", "whole file"),
    ],
)
def test_unsound_vectors_are_named(tmp_path: Path, docs: np.ndarray, code: str, place: str) -> None:
    write_vectors(tmp_path / "v", docs=docs)
    (problem,) = refused(tmp_path)
    assert (problem.code, problem.place) == (code, place)


@pytest.mark.parametrize(("error", "sound"), [(5e-7, True), (2e-6, False)])
def test_a_normalized_contract_wants_norm_1_within_a_millionth(
    tmp_path: Path, error: float, sound: bool
) -> None:
    contract = replace(UNIT, dtype="float64")
    ones = np.tile([1.0, 0.0], (3, 1))
    docs = ones.copy()
    docs[2, 0] += error
    write_vectors(tmp_path / "v", docs=docs, queries=ones)
    if sound:
        assert len(aligned(tmp_path, contract).vectors) == 6
    else:
        (problem,) = refused(tmp_path, contract)
        assert (problem.code, problem.place) == ("not_normalized", 'row 2 ("d2")')


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda folder: (folder / "doc_vectors.npy").unlink(), "file_not_found"),
        (lambda folder: (folder / "doc_vectors.npy").write_bytes(b"no array"), "unreadable_file"),
        (
            lambda folder: (folder / "doc_vectors.npy").write_bytes(
                (folder / "doc_vectors.npy").read_bytes()[:-1]
            ),
            "unreadable_file",
        ),
        (
            lambda folder: np.save(folder / "doc_vectors.npy", np.array([[{}]]), allow_pickle=True),
            "unreadable_file",
        ),
        (lambda folder: (folder / "query_ids.txt").unlink(), "file_not_found"),
    ],
)
def test_files_that_are_missing_or_broken(
    tmp_path: Path, spoil: Callable[[Path], object], code: str
) -> None:
    write_vectors(tmp_path / "v")
    spoil(tmp_path / "v")
    (problem,) = refused(tmp_path)
    assert problem.code == code
