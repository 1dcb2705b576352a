from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.canonical.corpus import Corpus
from rag_assets.embeddings.space import declared_embeddings
from rag_assets.errors import InputError, UsageError
from rag_assets.indexes.exact import ExactIndex
from rag_assets.quality.ground_truth import CrossCheck, check_ground_truth, cross_check
from rag_assets.results.search import search_cases
from rag_assets.sources.ann_hdf5 import read_ann_hdf5
from rag_assets.sources.collection import Collection
from rag_assets.sources.neighbours import read_neighbour_files, read_vecs_folder
from rag_assets.sources.numbering import corpus_of
from rag_assets.sources.options import source_options
from rag_assets.sources.vecs import read_vecs
from rag_assets_tests.sources.folders import DATASETS, PUBLIC, SPACE, write_vecs

# Directions at 0, 90, 180 and 45 degrees, of different lengths; the last repeats the first's.
BASE = np.array([[1, 0], [0, 2], [-3, 0], [1, 1], [5, 0]], np.float32)
QUERIES = np.array([[2, 0], [0, 1]], np.float32)
# By cosine: query 0 has rows 0 and 4 tied, then 3 (45 degrees), 1 (90), 2 (180);
# query 1 has row 1, then 3 (45 degrees), then 0, 2, 4 tied at 90 degrees.
TRUTH = np.array([[0, 4, 3, 1, 2], [1, 3, 0, 2, 4]], np.int32)
GLOVE = DATASETS / "glove50_20k"


def write_hdf5(path: Path, **replaced: object) -> Path:
    h5py = pytest.importorskip("h5py", reason="h5py (extra hdf5) is not installed")
    parts = {"train": BASE, "test": QUERIES, "neighbors": TRUTH} | replaced
    with h5py.File(path, "w") as file:
        distance = parts.pop("distance", "angular")
        if distance is not None:
            file.attrs["distance"] = distance
        chunked = bool(parts.pop("chunked", False))
        for name, values in parts.items():
            if values is not None:
                file.create_dataset(name, data=values, chunks=chunked or None)
    return path


def compared(collection: Collection, contract: SpaceContract, k: int) -> CrossCheck:
    corpus = corpus_of(collection, [contract])
    space = declared_embeddings(corpus, contract.space_id)
    results, _ = search_cases(space, corpus.items, corpus.cases, k, exact=ExactIndex.build(space))
    assert collection.neighbours is not None
    found = cross_check(collection.neighbours, space, results)
    report = check_ground_truth(collection, corpus, space, results)
    assert report.passed == found.agrees
    return found


def test_a_set_of_vectors_names_items_by_position(tmp_path: Path) -> None:
    collection = read_ann_hdf5(write_hdf5(tmp_path / "set.hdf5"), PUBLIC)
    corpus: Corpus = corpus_of(collection, [SPACE])
    assert corpus.items["item_id"].to_pylist() == ["0", "1", "2", "3", "4", "query:0", "query:1"]
    assert corpus.items["text"][0].as_py() == "vector 0 of set.hdf5 (document)"
    assert corpus.cases["case_id"].to_pylist() == ["0", "1"]
    assert len(corpus.qrels) == 0
    assert np.array_equal(corpus.vectors["s"], np.vstack([BASE, QUERIES]))


def test_positions_have_leading_zeros_so_that_ids_sort_as_they_do(tmp_path: Path) -> None:
    base = np.arange(22, dtype=np.float32).reshape(11, 2)
    np.save(tmp_path / "base.npy", base)
    np.save(tmp_path / "query.npy", QUERIES)
    found = read_neighbour_files(tmp_path / "base.npy", tmp_path / "query.npy", PUBLIC)
    ids = found.items["item_id"].to_pylist()
    assert ids[:3] == ["00", "01", "02"]
    assert ids[10] == "10"


@pytest.mark.parametrize("chunked", [False, True])
def test_hdf5_ground_truth_agrees_with_exact_search(tmp_path: Path, chunked: bool) -> None:
    # 1 - cosine of the ranked documents: 0, 0, 1 - 0.7071068, 1, 2 and 0, 0.2928932, 1, 1, 1
    distances = np.array([[0, 0, 0.2928932, 1, 2], [0, 0.2928932, 1, 1, 1]], np.float32)
    path = write_hdf5(tmp_path / "set.hdf5", distances=distances, chunked=chunked)
    found = compared(read_ann_hdf5(path, PUBLIC), SPACE, 5)
    assert found.agrees
    assert found.depth == 5
    assert not found.other_order.any()
    assert found.distance_gap == pytest.approx(0, abs=1e-6)


def test_ties_in_another_order_agree_and_other_documents_do_not(tmp_path: Path) -> None:
    tied = TRUTH.copy()
    tied[0, :2] = [4, 0]
    tied[1, 2:] = [4, 0, 2]
    found = compared(
        read_ann_hdf5(write_hdf5(tmp_path / "tied.hdf5", neighbors=tied), PUBLIC), SPACE, 5
    )
    assert found.agrees
    assert found.other_order.tolist() == [2, 3]
    # Cut at 1: row 4 instead of row 0 is a tie across the cut.
    path = write_hdf5(tmp_path / "cut.hdf5", neighbors=tied[:, :1])
    assert compared(read_ann_hdf5(path, PUBLIC), SPACE, 5).agrees
    wrong = TRUTH.copy()
    wrong[1, :2] = [3, 1]
    found = compared(
        read_ann_hdf5(write_hdf5(tmp_path / "wrong.hdf5", neighbors=wrong), PUBLIC), SPACE, 5
    )
    assert not found.agrees
    assert found.differing_ranks.tolist() == [0, 2]
    assert found.largest_gap == pytest.approx(1 - np.sqrt(0.5))


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        ({"distance": None}, "attribute distance: unknown_metric"),
        ({"distance": "hamming"}, "unknown_metric"),
        ({"train": None}, "train: missing_field"),
        ({"test": QUERIES.astype(np.int32)}, "test: wrong_type"),
        ({"neighbors": TRUTH[:1]}, "wrong_length"),
        ({"neighbors": TRUTH + 1}, "query 0: unknown_neighbour: found 5"),
        ({"neighbors": TRUTH * 0}, "query 0: repeated_neighbour"),
        ({"distances": np.zeros((2, 3))}, "wrong_length"),
    ],
)
def test_faults_of_hdf5_files(tmp_path: Path, replaced: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_ann_hdf5(write_hdf5(tmp_path / "set.hdf5", **replaced), PUBLIC)


def test_a_file_that_is_no_hdf5(tmp_path: Path) -> None:
    pytest.importorskip("h5py", reason="h5py (extra hdf5) is not installed")
    (tmp_path / "set.hdf5").write_bytes(b"no")
    with pytest.raises(InputError, match="unreadable_file"):
        read_ann_hdf5(tmp_path / "set.hdf5", PUBLIC)
    with pytest.raises(InputError, match="file_not_found"):
        read_ann_hdf5(tmp_path / "gone.hdf5", PUBLIC)


def test_hdf5_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(UsageError, match=r"rag-assets\[hdf5\]"):
        read_ann_hdf5(tmp_path / "set.hdf5", PUBLIC)


def test_a_contract_in_another_metric_than_the_file_is_refused(tmp_path: Path) -> None:
    path = write_hdf5(tmp_path / "set.hdf5", distance="euclidean")
    with pytest.raises(UsageError, match="about euclidean"):
        corpus_of(read_ann_hdf5(path, PUBLIC), [SPACE])


def test_vectors_of_one_space_are_not_shared_among_several(tmp_path: Path) -> None:
    from dataclasses import replace

    found = read_ann_hdf5(write_hdf5(tmp_path / "set.hdf5"), PUBLIC)
    with pytest.raises(UsageError, match="one space, but 2"):
        corpus_of(found, [SPACE, replace(SPACE, space_id="t")])


def test_groups_of_vectors_are_stated_never_read(tmp_path: Path) -> None:
    path = write_hdf5(tmp_path / "set.hdf5")
    with pytest.raises(UsageError, match="who may read"):
        read_ann_hdf5(path, source_options({}))
    with pytest.raises(UsageError, match="no fields"):
        read_ann_hdf5(path, source_options({"acl": {"field": "x"}, "subject_groups": "a"}))


def test_vecs_come_back_as_written(tmp_path: Path) -> None:
    for name, values in (
        ("a.fvecs", BASE),
        ("a.ivecs", TRUTH),
        ("a.bvecs", np.array([[0, 255], [7, 8]], np.uint8)),
    ):
        write_vecs(tmp_path / name, values)
        found = read_vecs(tmp_path / name)
        assert isinstance(found, np.memmap)
        assert found.dtype == values.dtype
        assert np.array_equal(found, values)
    # by hand: d = 2, then 1.0 and 0.0
    first = (tmp_path / "a.fvecs").read_bytes()[:12]
    assert first == b"\x02\x00\x00\x00" + b"\x00\x00\x80\x3f" + b"\x00\x00\x00\x00"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"\x02\x00\x00\x00" + bytes(7), "not_whole_records"),
        (b"\x00\x00\x00\x00", "not_whole_records"),
        (b"", "not_whole_records"),
        (b"\x01\x00\x00\x00" + bytes(4) + b"\x02\x00\x00\x00" + bytes(4), "wrong_dimension"),
    ],
)
def test_faults_of_vecs(tmp_path: Path, content: bytes, code: str) -> None:
    (tmp_path / "a.fvecs").write_bytes(content)
    with pytest.raises(InputError, match=code):
        read_vecs(tmp_path / "a.fvecs")


def test_a_folder_of_vecs_with_bytes(tmp_path: Path) -> None:
    write_vecs(tmp_path / "x_base.bvecs", np.array([[1, 0], [0, 2], [9, 9]], np.uint8))
    write_vecs(tmp_path / "x_query.fvecs", QUERIES)
    write_vecs(tmp_path / "x_groundtruth.ivecs", np.array([[0, 2], [1, 2]], np.int32))
    assert compared(read_vecs_folder(tmp_path, PUBLIC), SPACE, 2).agrees
    write_vecs(tmp_path / "base.fvecs", BASE)
    with pytest.raises(InputError, match="ambiguous_file"):
        read_vecs_folder(tmp_path, PUBLIC)
    with pytest.raises(InputError, match="file_not_found"):
        read_vecs_folder(tmp_path / "gone", PUBLIC)


@pytest.mark.skipif(not GLOVE.is_dir(), reason="../shared/datasets/glove50_20k is not there")
@pytest.mark.parametrize("layout", ["hdf5", "vecs", "npy"])
def test_glove_ground_truth_is_ours_up_to_ties(layout: str) -> None:
    if layout == "hdf5":
        pytest.importorskip("h5py", reason="h5py (extra hdf5) is not installed")
        collection = read_ann_hdf5(GLOVE / "glove50-20k-angular.hdf5", PUBLIC)
    elif layout == "vecs":
        collection = read_vecs_folder(GLOVE, PUBLIC)
    else:
        collection = read_neighbour_files(
            GLOVE / "base.npy",
            GLOVE / "query.fvecs",
            PUBLIC,
            neighbours=GLOVE / "groundtruth.ivecs",
        )
    contract = SpaceContract(
        "glove", "p", "m", "1", 50, "cosine", False, "query", "document", "float32"
    )
    found = compared(collection, contract, 100)
    assert found.agrees
    assert found.depth == 100
    if layout == "hdf5":  # distances were stored as float32
        assert found.distance_gap == pytest.approx(0, abs=1e-6)
