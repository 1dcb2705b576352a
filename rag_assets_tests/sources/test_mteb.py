from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from rag_assets.canonical.corpus import Corpus
from rag_assets.errors import InputError
from rag_assets.sources.mteb import read_mteb, read_table_vectors
from rag_assets.sources.numbering import corpus_of
from rag_assets.sources.options import source_options
from rag_assets_tests.sources.folders import PUBLIC, SPACE, judged

DOCUMENTS = pa.table(
    {"_id": ["d1", "007"], "title": ["One", None], "text": ["first", "third"], "team": ["a", "b"]}
)
QUERIES = pa.table({"_id": ["q1", "q2"], "text": ["what?", "which?"]})
QRELS = pa.table({"query-id": ["q1", "q2"], "corpus-id": ["d1", "007"], "score": [2, 1]})


def write_parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path.with_suffix(".parquet"))


def write_feather(table: pa.Table, path: Path) -> None:
    feather.write_feather(table, path.with_suffix(".feather"))


def write_stream(table: pa.Table, path: Path) -> None:
    target = str(path.with_suffix(".arrow"))
    with pa.OSFile(target, "wb") as sink, pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)


def folder(
    at: Path,
    write: Callable[[pa.Table, Path], None] = write_parquet,
    corpus: pa.Table = DOCUMENTS,
    queries: pa.Table = QUERIES,
    qrels: pa.Table = QRELS,
) -> Path:
    at.mkdir(exist_ok=True)
    for name, table in (("corpus", corpus), ("queries", queries), ("qrels", qrels)):
        write(table, at / name)
    return at


def test_every_kind_of_table_reads_the_same(tmp_path: Path) -> None:
    settings = source_options({"acl": {"field": "team"}, "subject_groups": ["a", "b"]})
    for number, write in enumerate((write_parquet, write_feather, write_stream)):
        found = read_mteb(folder(tmp_path / str(number), write), settings)
        assert found.items["text"].to_pylist() == ["One first", "third", "what?", "which?"]
        assert found.items["acl"].to_pylist()[:2] == [["a"], ["b"]]
        assert found.cases["split"].to_pylist() == [None, None]
        assert judged(found) == {("q1", "d1"): 2, ("q2", "007"): 1}


def test_shards_are_one_table_and_judgement_files_are_splits(tmp_path: Path) -> None:
    for part, table in (("corpus", DOCUMENTS), ("queries", QUERIES)):
        (tmp_path / part).mkdir()
        for shard in range(2):
            target = tmp_path / part / f"train-0000{shard}-of-00002"
            write_parquet(table.slice(shard, 1), target)
    (tmp_path / "qrels").mkdir()
    write_parquet(QRELS.slice(0, 1), tmp_path / "qrels" / "dev")
    for shard in range(2):
        target = tmp_path / "qrels" / f"test-0000{shard}-of-00002"
        write_parquet(QRELS.slice(1, 1 - shard), target)
    found = read_mteb(tmp_path, source_options({"acl": "public", "split": "test"}))
    assert found.items["place"].to_pylist() == [1, 2, 2]  # rows count through the shards
    assert found.cases["case_id"].to_pylist() == ["q2"]
    assert judged(found) == {("q2", "007"): 1}


def test_whole_floats_are_grades_and_others_are_not(tmp_path: Path) -> None:
    scores = [pa.array([2.0, 0.0]), pa.array([2.0, 0.5]), pa.array([2.0, None])]
    tables = [QRELS.set_column(2, "score", column) for column in scores]
    assert judged(read_mteb(folder(tmp_path, qrels=tables[0]), PUBLIC)) == {
        ("q1", "d1"): 2,
        ("q2", "007"): 0,
    }
    for table in tables[1:]:
        with pytest.raises(InputError, match="row 2, score: bad_grade"):
            read_mteb(folder(tmp_path, qrels=table), PUBLIC)


@pytest.mark.parametrize(
    ("part", "table", "message"),
    [
        ("corpus", DOCUMENTS.set_column(0, "_id", pa.array([1, 7])), "column _id: id_not_text"),
        ("corpus", DOCUMENTS.drop_columns("_id"), "missing_field"),
        ("corpus", DOCUMENTS.set_column(0, "_id", pa.array(["a", "a"])), "row 2: duplicate_docu"),
        ("corpus", DOCUMENTS.set_column(0, "_id", pa.array(["a", None])), "row 2, _id: missing_f"),
        ("queries", QUERIES.drop_columns("text"), "row 1 .*, text: missing_field"),
        ("qrels", QRELS.set_column(1, "corpus-id", pa.array([1, 7])), "id_not_text"),
        ("qrels", QRELS.drop_columns("score"), "column score: bad_grade"),
        ("qrels", QRELS.set_column(2, "score", pa.array(["1", "2"])), "column score: bad_grade"),
        ("qrels", QRELS.set_column(0, "query-id", pa.array(["", "q2"])), "blank_identifier"),
        ("qrels", pa.concat_tables([QRELS, QRELS.set_column(2, "score", pa.array([1, 1]))]),
         "row 3: conflicting_judgements"),
    ],
)  # fmt: skip
def test_faults_are_named_by_column_and_row(
    tmp_path: Path, part: str, table: pa.Table, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_mteb(folder(tmp_path, **{part: table}), PUBLIC)


def test_a_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "corpus.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match="unreadable_file"):
        read_mteb(tmp_path, PUBLIC)


def vector_column(kind: str, rows: list[list[float] | None]) -> pa.Array:
    types = {
        "list": pa.list_(pa.float32()),
        "large": pa.large_list(pa.float32()),
        "fixed": pa.list_(pa.float32(), 2),
        "double": pa.list_(pa.float64()),
    }
    return pa.array(rows, types[kind])


def with_vectors(at: Path, documents: pa.Array, queries: pa.Array) -> tuple[Path, Corpus]:
    corpus = DOCUMENTS.append_column("embedding", documents)
    asked = QUERIES.append_column("embedding", queries)
    folder(at, corpus=corpus, queries=asked)
    return at, corpus_of(read_mteb(at, PUBLIC), [SPACE])


@pytest.mark.parametrize("kind", ["list", "large", "fixed"])
def test_a_column_of_vectors_of_any_list_type(tmp_path: Path, kind: str) -> None:
    at, corpus = with_vectors(
        tmp_path, vector_column(kind, [[1, 2], [3, 4]]), vector_column(kind, [[5, 6], [7, 8]])
    )
    space = read_table_vectors(at, "embedding", corpus, SPACE)
    assert space.items["item_id"].to_pylist() == ["007", "d1", "query:q1", "query:q2"]
    assert space.vectors.tolist() == [[3, 4], [1, 2], [5, 6], [7, 8]]
    assert space.vectors.dtype == np.float32


def test_arrays_that_duckdb_wrote(tmp_path: Path) -> None:
    folder(tmp_path)
    with duckdb.connect() as con:
        for part, rows in (("corpus", "('d1', [1, 2]), ('007', [3, 4])"),
                           ("queries", "('q1', [5, 6]), ('q2', [7, 8])")):  # fmt: skip
            con.execute(
                "COPY (SELECT _id, 'text' AS text, v::FLOAT[2] AS v "
                f"FROM (VALUES {rows}) t(_id, v))"
                f" TO '{tmp_path / part}.parquet'"
            )
    corpus = corpus_of(read_mteb(tmp_path, PUBLIC), [SPACE])
    space = read_table_vectors(tmp_path, "v", corpus, SPACE)
    assert space.vectors.tolist() == [[3, 4], [1, 2], [5, 6], [7, 8]]


@pytest.mark.parametrize(
    ("kind", "rows", "message"),
    [
        ("list", [[1, 2], [3]], r'row 2 \("007"\), embedding: wrong_dimension'),
        ("list", [[1, 2], None], r'row 2 \("007"\), embedding: missing_vector'),
        ("list", [[1, 2], [3, None]], r'row 2 \("007"\), embedding: not_finite'),
        ("fixed", [[1, 2], None], r'row 2 \("007"\), embedding: missing_vector'),
        ("list", [[1, 2], [3, float("nan")]], r'row 1 \("007"\): not_finite'),
        ("double", [[1, 2], [3, 4]], "wrong_dtype: found float64"),
    ],
)
def test_unsound_vectors_in_a_column_are_named(
    tmp_path: Path, kind: str, rows: list[list[float] | None], message: str
) -> None:
    at, corpus = with_vectors(
        tmp_path, vector_column(kind, rows), vector_column(kind, [[5, 6], [7, 8]])
    )
    with pytest.raises(InputError, match=message):
        read_table_vectors(at, "embedding", corpus, SPACE)


@pytest.mark.parametrize("kind", ["list", "fixed"])
def test_vectors_of_many_batches_stay_with_their_rows(tmp_path: Path, kind: str) -> None:
    # 20,000 rows come in several batches
    count = 20_000
    ids = [f"d{number:05d}" for number in range(count)]
    vectors = np.stack([np.arange(count), np.ones(count)], axis=1).astype(np.float32)
    documents = pa.table({"_id": ids, "text": ids, "v": vector_column(kind, vectors.tolist())})
    queries = QUERIES.append_column("v", vector_column(kind, [[5, 6], [7, 8]]))
    folder(tmp_path, corpus=documents, queries=queries, qrels=QRELS.slice(0, 0))
    corpus = corpus_of(read_mteb(tmp_path, PUBLIC), [SPACE])
    space = read_table_vectors(tmp_path, "v", corpus, SPACE)
    assert np.array_equal(space.documents, vectors)


def test_a_column_that_holds_no_vectors_is_refused(tmp_path: Path) -> None:
    corpus = corpus_of(read_mteb(folder(tmp_path), PUBLIC), [SPACE])
    with pytest.raises(InputError, match="column text: wrong_type"):
        read_table_vectors(tmp_path, "text", corpus, SPACE)
