"""The pinned file: what it holds, and that no edit or damage goes unseen."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rag_assets.errors import InputError
from rag_assets.regression.baseline import (
    FILE,
    Baseline,
    baseline_tables,
    read_baseline,
    write_baseline,
)
from rag_assets_tests.regression.measured import HEADER, baseline, measured

PINNED = baseline(
    measured({"q1": 0.5, "q2": None, "q3": 1.0}, groups={"q1": ["x", "y"]}),
    measured({"q1": 0.1}, space_id="other", k=3),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_baseline(PINNED, tmp_path)
    return tmp_path


def refusal(folder: Path, suite: str = "s") -> str:
    with pytest.raises(InputError) as caught:
        read_baseline(folder, suite)
    [line] = caught.value.lines()
    assert line.startswith(f"{folder.name}/{FILE}: ")
    assert "rag-assets pin-baseline" in line
    return line


def test_what_is_written_is_read_and_nothing_else_is_left_in_the_folder(folder: Path) -> None:
    assert read_baseline(folder, "s") == PINNED
    assert [path.name for path in folder.iterdir()] == [FILE]
    assert read_baseline(folder.parent / "nowhere", "s") is None


def test_equal_baselines_are_equal_to_the_byte(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    again = write_baseline(Baseline(HEADER, PINNED.rows), tmp_path / "again")
    assert again.read_bytes() == (folder / FILE).read_bytes()


def test_any_damaged_byte_is_refused_or_changes_nothing(folder: Path) -> None:
    sound = (folder / FILE).read_bytes()
    refused = 0
    for place in range(0, len(sound), 7):
        damaged = bytearray(sound)
        damaged[place] ^= 0x55
        (folder / FILE).write_bytes(damaged)
        try:
            assert read_baseline(folder, "s") == PINNED
        except InputError:
            refused += 1
    assert refused > len(sound) / 7 / 2
    for size in (0, 3, len(sound) // 2, len(sound) - 1):
        (folder / FILE).write_bytes(sound[:size])
        assert "damaged_baseline" in refusal(folder)


def test_an_edited_value_or_header_does_not_match_the_digest(folder: Path) -> None:
    table = pq.read_table(folder / FILE)
    rows = table.to_pylist()
    for change in ({"ndcg_at_k": 0.4}, {"ndcg_at_k": float("nan")}, {"subgroups": ["x"]}):
        edited = [{**rows[0], **change}, *rows[1:]]
        pq.write_table(table.from_pylist(edited, schema=table.schema), folder / FILE)
        assert "does not match" in refusal(folder)
    pq.write_table(table.slice(1), folder / FILE)
    assert "metadata.digest" in refusal(folder)
    [(key, value)] = [pair for pair in table.schema.metadata.items() if b"baseline" in pair[0]]
    for was, now in ((b"Ada", b"Bob"), (b'"format":1', b'"format":2'), (b'"why"', b'"how"')):
        assert was in value
        pq.write_table(table.replace_schema_metadata({key: value.replace(was, now)}), folder / FILE)
        assert "metadata" in refusal(folder)


def test_another_table_or_another_suite_s_baseline_is_refused(folder: Path) -> None:
    assert "a baseline of the suite 's'" in refusal(folder, suite="another")
    pq.write_table(PINNED.rows, folder / FILE)
    assert "no header" in refusal(folder)
    (folder / FILE).unlink()
    (folder / FILE).mkdir()
    assert "damaged_baseline" in refusal(folder)


def test_a_write_that_fails_leaves_the_earlier_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(table: object, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr("rag_assets.regression.baseline.write_parquet", full)
    with pytest.raises(OSError, match="no space"):
        write_baseline(replace(PINNED, rows=PINNED.rows.slice(1)), folder)
    assert [path.name for path in folder.iterdir()] == [FILE]
    assert read_baseline(folder, "s") == PINNED


def test_a_copied_file_is_the_same_baseline(folder: Path, tmp_path: Path) -> None:
    """As in a fresh clone: the file says everything itself."""
    clone = tmp_path / "clone"
    clone.mkdir()
    shutil.copy(folder / FILE, clone)
    assert read_baseline(clone, "s") == PINNED


def test_sql_users_get_its_rows_and_its_header() -> None:
    tables = baseline_tables(PINNED)
    assert tables["baseline_by_query"] == PINNED.rows
    [header] = tables["baseline"].to_pylist()
    assert header["evaluation_id"] == HEADER.evaluation_id
    assert header["contract_signatures"] == '{"one":"51"}'
    assert header["digest"] == PINNED.digest
    assert baseline_tables(None) == {}
