"""`rag-assets import`: a folder becomes a suite, and only if everything in it is sound."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from rag_assets.canonical.contracts import contract_from
from rag_assets.components.evaluation_suite import EvaluationSuite
from rag_assets.errors import InputError, UsageError
from rag_assets.importing import import_fixture, import_suite, read_contract_file
from rag_assets.sources.formats import read_collection
from rag_assets.sources.options import source_options
from rag_assets_tests.conftest import ROOT

SETTINGS = {"acl": "public"}


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    folder = tmp_path / "own data"
    (folder / "qrels").mkdir(parents=True)
    documents = [{"_id": f"d{n}", "title": f"Title {n}", "text": f"Text {n}."} for n in range(3)]
    queries = [{"_id": f"q{n}", "text": f"Question {n}?"} for n in range(2)]
    for name, records in (("corpus", documents), ("queries", queries)):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines, "utf-8")
    judged = "query-id\tcorpus-id\tscore\nq0\td0\t1\nq1\td2\t2\n"
    (folder / "qrels" / "test.tsv").write_text(judged, "utf-8")
    return folder


def vectors(folder: Path, scale: float = 1.0, dimension: int = 3) -> Path:
    folder.mkdir()
    eye = np.eye(3, dimension, dtype=np.float32) * np.float32(scale)
    np.save(folder / "doc_vectors.npy", eye)
    np.save(folder / "query_vectors.npy", eye[:2])
    (folder / "doc_ids.txt").write_text("d0\nd1\nd2\n", "utf-8")
    (folder / "query_ids.txt").write_text("q0\nq1\n", "utf-8")
    return folder


def imported(beir: Path, tmp_path: Path, **changes: object) -> dict[str, object]:
    given: dict[str, object] = {
        "suite": "own",
        "root": tmp_path,
        "defs": tmp_path / "defs",
        "settings": SETTINGS,
        "contracts": {},
        "ks": (10,),
        **changes,
    }
    made = import_suite("beir", beir, **given)  # type: ignore[arg-type]
    loaded: dict[str, object] = yaml.safe_load(made.file.read_text("utf-8"))
    return loaded


def test_the_written_suite_loads_and_names_its_files_from_the_project(
    beir: Path, tmp_path: Path
) -> None:
    spaces = {"one": vectors(tmp_path / "one"), "two": vectors(tmp_path / "two", scale=2.0)}
    written = imported(beir, tmp_path, vectors=spaces)
    assert written["type"] == "rag_assets.components.EvaluationSuite"
    attributes = written["attributes"]
    assert isinstance(attributes, dict)
    assert attributes["source"] == {"format": "beir", "path": "own data", "acl": "public"}
    one, two = attributes["spaces"]
    assert one["vectors"] == {"provider": "precomputed", "folder": "one"}
    # Vectors tell their dimension and whether they are of unit length, and no more.
    assert (one["contract"]["dimension"], one["contract"]["normalized"]) == (3, True)
    assert two["contract"]["normalized"] is False
    assert one["contract"]["model"] == "unstated"
    assert EvaluationSuite.model()


def test_two_spaces_of_unknown_models_are_not_taken_for_the_same(
    beir: Path, tmp_path: Path
) -> None:
    spaces = {"one": vectors(tmp_path / "one"), "two": vectors(tmp_path / "two", scale=-1.0)}
    attributes = imported(beir, tmp_path, vectors=spaces)["attributes"]
    assert isinstance(attributes, dict)
    one, two = (contract_from(s["space_id"], s["contract"]) for s in attributes["spaces"])
    assert one.signature != two.signature


def test_a_contract_file_states_what_the_vectors_cannot_tell(beir: Path, tmp_path: Path) -> None:
    file = tmp_path / "contract.yaml"
    file.write_text("provider: us\nmodel: m\nrevision: '7'\nmetric: dot\n", "utf-8")
    spaces = {"one": vectors(tmp_path / "one")}
    contracts = {"one": read_contract_file(file)}
    attributes = imported(beir, tmp_path, vectors=spaces, contracts=contracts)["attributes"]
    assert isinstance(attributes, dict)
    [space] = attributes["spaces"]
    assert space["contract"]["model"] == "m"
    assert space["contract"]["metric"] == "dot"


def test_nothing_is_written_when_anything_is_wrong(beir: Path, tmp_path: Path) -> None:
    good = {"one": vectors(tmp_path / "one")}
    with pytest.raises(UsageError, match="who may read"):
        imported(beir, tmp_path, vectors=good, settings={})
    with pytest.raises(UsageError, match="dimension 4, its vectors have 3"):
        imported(beir, tmp_path, vectors=good, contracts={"one": {"dimension": 4}})
    with pytest.raises(UsageError, match="no --vectors"):
        imported(beir, tmp_path, vectors=good, contracts={"two": {}})
    short = vectors(tmp_path / "short")
    (short / "doc_ids.txt").write_text("d0\nd1\nd9\n", "utf-8")
    with pytest.raises(InputError, match="d9"):
        imported(beir, tmp_path, vectors={"one": short})
    (beir / "qrels" / "test.tsv").write_text("q0\td0\t1\n", "utf-8")
    with pytest.raises(InputError, match="header"):
        imported(beir, tmp_path, vectors=good)
    assert not (tmp_path / "defs").exists()


@pytest.mark.parametrize(
    "name", ["../elsewhere", "/elsewhere", "a b", "a/b", "Own", "", ".", "mine\n", "9"]
)
def test_a_suite_s_name_is_that_of_a_folder_in_defs(name: str, beir: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UsageError, match="a suite cannot be called"):
        imported(beir, tmp_path, vectors={}, suite=name)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("space_ids", "said"), [(["a/b"], "space_id"), (["a.b", "a-b"], "differ only in punctuation")]
)
def test_a_suite_that_dagster_would_refuse_is_not_written(
    space_ids: list[str], said: str, beir: Path, tmp_path: Path
) -> None:
    """One bad suite stops all of them from loading."""
    given = vectors(tmp_path / "given")
    with pytest.raises(UsageError, match=said):
        imported(beir, tmp_path, vectors=dict.fromkeys(space_ids, given))
    assert not (tmp_path / "defs").exists()


def test_an_existing_suite_is_not_overwritten(beir: Path, tmp_path: Path) -> None:
    spaces = {"one": vectors(tmp_path / "one")}
    imported(beir, tmp_path, vectors=spaces)
    with pytest.raises(UsageError, match="exists already"):
        imported(beir, tmp_path, vectors=spaces)


def test_without_vectors_the_suite_starts_with_a_space_that_needs_no_model(
    beir: Path, tmp_path: Path
) -> None:
    attributes = imported(beir, tmp_path, vectors={})["attributes"]
    assert isinstance(attributes, dict)
    [space] = attributes["spaces"]
    assert (space["space_id"], space["vectors"]) == ("words", {"provider": "lsa"})


def test_a_converted_collection_is_what_the_suite_reads(beir: Path, tmp_path: Path) -> None:
    written = imported(beir, tmp_path, vectors={}, convert_to=tmp_path / "converted")
    attributes = written["attributes"]
    assert isinstance(attributes, dict)
    assert attributes["source"]["path"] == "converted"
    settings = {k: v for k, v in attributes["source"].items() if k not in ("format", "path")}
    again = read_collection("beir", tmp_path / "converted", source_options(settings))
    assert again.items["text"].to_pylist()[:3] == [f"Title {n} Text {n}." for n in range(3)]
    assert set(again.items["acl"].to_pylist()[0]) == {"public"}


def test_a_fixture_becomes_a_suite_of_its_own_spaces(tmp_path: Path) -> None:
    file, corpus = import_fixture(
        ROOT / "data" / "toy" / "toy.json",
        suite="again",
        root=ROOT,
        defs=tmp_path / "defs",
        ks=(3,),
    )
    attributes = yaml.safe_load(file.read_text("utf-8"))["attributes"]
    assert attributes["source"] == {"format": "fixture", "path": "data/toy/toy.json"}
    assert [space["space_id"] for space in attributes["spaces"]] == ["toy-v1", "toy-v2"]
    assert len(corpus.cases) == 4


def test_vectors_may_be_a_column_of_tables(beir: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    for part, ids in (("corpus", ["d0", "d1", "d2"]), ("queries", ["q0", "q1"])):
        vectors = np.eye(len(ids), 3, dtype=np.float32)
        column = pa.FixedSizeListArray.from_arrays(vectors.ravel(), 3)
        pq.write_table(pa.table({"_id": ids, "embedding": column}), folder / f"{part}.parquet")
    written = imported(beir, tmp_path, vectors={"one": folder}, column="embedding")
    attributes = written["attributes"]
    assert isinstance(attributes, dict)
    [space] = attributes["spaces"]
    assert space["vectors"]["column"] == "embedding"
    assert (space["contract"]["dimension"], space["contract"]["normalized"]) == (3, True)
