"""Base tables are loaded from memory or from files, and refused when they do not fit."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_assets.errors import StoreError
from rag_assets.warehouse.base import BASE
from rag_assets.warehouse.build import build, empty_table, summarize
from rag_assets.warehouse.models import Model
from rag_assets_tests.warehouse.examples import MODELS, base_tables
from rag_assets_tests.warehouse.test_measure_models import ONE_SPACE


def test_parquet_files_give_the_same_tables_as_arrow_tables(tmp_path: Path) -> None:
    # Brackets and stars in a folder's name are not patterns.
    folder = tmp_path / "a [1] * folder"
    folder.mkdir()
    from_memory = base_tables(ONE_SPACE)
    results = from_memory["results"]
    parts = [folder / "one.parquet", folder / "two.parquet"]
    pq.write_table(results.slice(0, 2), parts[0])
    pq.write_table(results.slice(2), parts[1])
    pq.write_table(from_memory["items"], folder / "items.parquet")
    from_files = {**from_memory, "results": parts, "items": folder / "items.parquet"}
    tables = []
    for base in (from_memory, from_files):
        con = duckdb.connect()
        build(con, base, MODELS)
        tables.append(con.sql("FROM metric_by_query").to_arrow_table())
        assert summarize(con)["query_results"].row_count == results.num_rows
    assert tables[0] == tables[1]


def test_files_that_are_read_in_place_give_the_same_measures(tmp_path: Path) -> None:
    folder = tmp_path / "a [1] * folder's"
    folder.mkdir()
    base: dict[str, list[Path]] = {}
    for name, table in base_tables(ONE_SPACE).items():
        files = [folder / f"{name} {half}.parquet" for half in (1, 2)]
        pq.write_table(table.slice(0, 1), files[0])
        pq.write_table(table.slice(1), files[1])
        base[name] = files
    found = []
    for keep in (True, False):
        with duckdb.connect() as con:
            build(con, base, MODELS, keep_inputs=keep)
            found.append(con.sql("SELECT * FROM metric_by_query ORDER BY ALL").fetchall())
            [[kept]] = con.sql(
                "SELECT count(*) FROM duckdb_tables() WHERE schema_name = 'base'"
            ).fetchall()
            assert kept == (len(base) if keep else 0)
    assert found[0] == found[1] != []
    pq.write_table(pa.table({"k": ["three"]}), tmp_path / "k.parquet")
    with duckdb.connect() as con, pytest.raises(StoreError, match="'k' is VARCHAR, not INTEGER"):
        build(con, {**base, "evaluated_k": [tmp_path / "k.parquet"]}, MODELS, keep_inputs=False)


def test_no_files_are_an_empty_table() -> None:
    con = duckdb.connect()
    build(con, {**base_tables(ONE_SPACE), "results": []}, MODELS)
    assert summarize(con)["query_results"].row_count == 0


def test_columns_are_matched_by_name_and_further_ones_ignored() -> None:
    base = base_tables(ONE_SPACE)
    cutoffs = pa.table({"more": ["x"], "k": pa.array([2], pa.int64())})
    con = duckdb.connect()
    build(con, {**base, "evaluated_k": cutoffs}, MODELS)
    assert con.sql("FROM base.evaluated_k").fetchall() == [(2,)]


def test_tables_carry_their_description() -> None:
    con = duckdb.connect()
    build(con, {name: empty_table(name) for name in BASE}, MODELS)
    comment = con.sql(
        "SELECT comment FROM duckdb_tables() WHERE table_name = 'manifest' AND schema_name = 'main'"
    ).fetchall()
    assert comment[0][0].startswith("One row: one fact about how")


@pytest.mark.parametrize(
    ("name", "table", "words"),
    [
        ("evaluated_k", pa.table({"cutoff": [1]}), "'evaluated_k' has no column 'k'"),
        ("evaluated_k", pa.table({"k": [1.5]}), "'k' is DOUBLE, not INTEGER"),
        ("evaluated_k", pa.table({"k": [2**40]}), "1099511627776"),
        ("evaluated_k", pa.table({"k": pa.array([None], pa.int32())}), "NOT NULL"),
        ("manifest", pa.table({"key": [1], "value": ["x"]}), "'key' is BIGINT, not VARCHAR"),
        ("evaluated_k", Path("nowhere.parquet"), "nowhere.parquet"),
        ("wrong", pa.table({"k": [1]}), "unknown base table 'wrong'"),
    ],
)
def test_a_base_table_that_does_not_fit_is_refused_by_name(
    name: str, table: pa.Table | Path, words: str
) -> None:
    base = {**{known: empty_table(known) for known in BASE}, name: table}
    with pytest.raises(StoreError, match="base table") as refused:
        build(duckdb.connect(), base, MODELS)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_base_table_may_be_left_out_only_if_no_model_reads_it() -> None:
    model = Model("cutoffs", "FROM base.evaluated_k", "One row: a k.", (), ("evaluated_k",))
    con = duckdb.connect()
    build(con, {"evaluated_k": pa.table({"k": [1]})}, [model])
    assert summarize(con)["cutoffs"].columns == (("k", "INTEGER"),)
    with pytest.raises(StoreError, match="'evaluated_k' is missing"):
        build(duckdb.connect(), {}, [model])


def test_a_model_that_fails_is_named() -> None:
    model = Model("broken", "SELECT nothing FROM base.evaluated_k", "One row.", (), ())
    with pytest.raises(StoreError, match=r"broken\.sql: .*nothing"):
        build(duckdb.connect(), {"evaluated_k": empty_table("evaluated_k")}, [model])
