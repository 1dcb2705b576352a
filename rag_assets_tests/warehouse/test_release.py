"""Releases under fire: readers, an analyst who writes, killed and competing publishers."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from rag_assets.errors import StoreError, UsageError
from rag_assets.warehouse.release import (
    BuildInto,
    current_release,
    publish,
    query,
    write_database,
)


def numbered(number: int) -> BuildInto:
    """A database whose every row holds one number: a mixture would show."""

    def build_into(con: duckdb.DuckDBPyConnection) -> None:
        con.execute(f"CREATE TABLE t AS SELECT {number} AS n FROM range(1000)")

    return build_into


def number_in(path: Path) -> int:
    found: int = query(path, "SELECT DISTINCT n FROM t").to_pylist()[0]["n"]
    return found


def started(script: str, *arguments: object) -> subprocess.Popen[str]:
    """A Python process that prints a line when it is ready and runs until its stdin closes."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.communicate()[1]
    return process


READER = """
import os, select, sys
import duckdb
link, loops, seen = sys.argv[1], 0, []
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    with duckdb.connect(link, read_only=True) as con:
        (low, high, count), = con.sql("SELECT min(n), max(n), count(*) FROM t").fetchall()
    assert low == high and count == 1000, (low, high, count)
    assert not seen or low >= seen[-1], "went back in time"
    if not seen or low != seen[-1]:
        seen.append(low)
    for _ in range(1000):
        os.stat(link)  # at no moment does the link name nothing
    loops += 1
print(loops, len(seen))
"""

ANALYST = """
import os, sys
import duckdb
link = sys.argv[1]
os.chmod(os.path.realpath(link), 0o644)  # a determined owner
con = duckdb.connect(link)
con.execute("CREATE TABLE mine AS SELECT 1 AS a")
print("ready", flush=True)
sys.stdin.read()
con.execute("INSERT INTO mine VALUES (2)")
print(con.sql("SELECT sum(a), (SELECT min(n) FROM t) FROM mine").fetchall()[0])
con.close()
"""

STUCK_PUBLISHER = """
import sys, time
from pathlib import Path
from rag_assets.warehouse.release import publish
def build_into(con):
    con.execute("CREATE TABLE t AS SELECT 13 AS n FROM range(300000)")
    print("ready", flush=True)
    time.sleep(60)
publish(build_into, warehouse=Path(sys.argv[1]), suite="toy")
"""

BUSY_PUBLISHER = """
import sys
from pathlib import Path
from rag_assets.warehouse.release import publish
number = int(sys.argv[2])
print("ready", flush=True)
for _ in range(3):
    publish(lambda con: con.execute(f"CREATE TABLE t AS SELECT {number} AS n FROM range(1000)"),
            warehouse=Path(sys.argv[1]), suite="toy", keep=3)
"""


def test_a_release_is_a_read_only_file_behind_a_relative_symlink(tmp_path: Path) -> None:
    release = publish(numbered(1), warehouse=tmp_path, suite="toy")
    link = tmp_path / "toy.duckdb"
    assert os.readlink(link) == f"releases/toy/{release.release_id}.duckdb"
    assert stat.S_IMODE(release.path.stat().st_mode) == 0o444
    assert release.size_bytes == release.path.stat().st_size
    assert current_release(tmp_path, "toy") == release.path.resolve()
    moved = tmp_path.rename(tmp_path.with_name("moved warehouse"))
    assert number_in(current_release(moved, "toy")) == 1


def test_a_reader_keeps_the_release_it_opened(tmp_path: Path) -> None:
    publish(numbered(1), warehouse=tmp_path, suite="toy", keep=1)
    with duckdb.connect(str(tmp_path / "toy.duckdb"), read_only=True) as con:
        publish(numbered(2), warehouse=tmp_path, suite="toy", keep=1)
        assert con.sql("SELECT max(n) FROM t").fetchall() == [(1,)]
    assert number_in(current_release(tmp_path, "toy")) == 2


def test_publishing_disturbs_neither_readers_nor_an_analyst_who_writes(tmp_path: Path) -> None:
    link = tmp_path / "toy.duckdb"
    publish(numbered(0), warehouse=tmp_path, suite="toy")
    analyst = started(ANALYST, link)  # holds release 0 open for writing, with a .wal beside it
    publish(numbered(1), warehouse=tmp_path, suite="toy", keep=5)
    readers = [started(READER, link) for _ in range(2)]
    for number in range(2, 12):
        publish(numbered(number), warehouse=tmp_path, suite="toy", keep=5)
        time.sleep(0.05)
    for reader in readers:
        out, err = reader.communicate("stop\n")
        assert (reader.returncode, err) == (0, "")
        loops, distinct = map(int, out.split())
        assert loops > 10
        assert distinct > 3
    out, err = analyst.communicate()
    assert (analyst.returncode, out) == (0, "(3, 0)\n"), err
    publish(numbered(12), warehouse=tmp_path, suite="toy", keep=5)
    assert number_in(link) == 12
    assert not [path for path in tmp_path.rglob("*") if path.suffix == ".wal"]


def test_a_killed_publisher_leaves_the_release_and_the_next_one_cleans_up(tmp_path: Path) -> None:
    folder = tmp_path / "releases" / "toy"
    first = publish(numbered(1), warehouse=tmp_path, suite="toy")
    killed = started(STUCK_PUBLISHER, tmp_path)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    (tmp_path / ".toy.duckdb.draft-dead").symlink_to("nowhere")  # killed between the two renames
    assert len(list(folder.glob(".draft-*"))) >= 1
    assert current_release(tmp_path, "toy") == first.path.resolve()
    assert number_in(tmp_path / "toy.duckdb") == 1
    second = publish(numbered(2), warehouse=tmp_path, suite="toy")
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [".lock", first.path.name, second.path.name]
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["releases", "toy.duckdb"]


def test_a_publisher_waits_for_another_one_of_the_same_suite(tmp_path: Path) -> None:
    stuck = started(STUCK_PUBLISHER, tmp_path)
    waiting = threading.Thread(
        target=publish, args=(numbered(2),), kwargs={"warehouse": tmp_path, "suite": "toy"}
    )
    waiting.start()
    try:
        waiting.join(0.5)
        assert waiting.is_alive()
        assert not (tmp_path / "toy.duckdb").exists()
        publish(numbered(3), warehouse=tmp_path, suite="other")  # waits for nobody
    finally:
        stuck.kill()
        stuck.communicate()
        waiting.join()
    assert number_in(current_release(tmp_path, "toy")) == 2


def test_publishers_at_once_all_succeed(tmp_path: Path) -> None:
    publishers = [started(BUSY_PUBLISHER, tmp_path, number) for number in (1, 2)]
    for publisher in publishers:
        _, err = publisher.communicate()
        assert (publisher.returncode, err) == (0, "")
    assert number_in(current_release(tmp_path, "toy")) in (1, 2)
    releases = sorted((tmp_path / "releases" / "toy").glob("*.duckdb"))
    assert len(releases) == 3
    assert current_release(tmp_path, "toy") == releases[-1].resolve()


def test_only_the_last_releases_are_kept_and_never_the_current_one_deleted(tmp_path: Path) -> None:
    made = [publish(numbered(n), warehouse=tmp_path, suite="toy", keep=3) for n in range(5)]
    folder = tmp_path / "releases" / "toy"
    assert sorted(folder.glob("*.duckdb")) == [release.path for release in made[2:]]
    # A release from a clock that ran ahead sorts last; the current one is then not among the last.
    for year in (2998, 2999):
        (folder / f"{year}0101T000000.000000Z-00000000.duckdb").touch()
    newest = publish(numbered(9), warehouse=tmp_path, suite="toy", keep=2)
    assert newest.path.exists()
    assert number_in(current_release(tmp_path, "toy")) == 9


def test_a_log_is_removed_once_its_release_is_gone(tmp_path: Path) -> None:
    first = publish(numbered(1), warehouse=tmp_path, suite="toy")
    log = Path(f"{first.path}.wal")
    log.touch()  # an analyst died with unsaved work
    publish(numbered(2), warehouse=tmp_path, suite="toy", keep=2)
    assert log.exists()
    publish(numbered(3), warehouse=tmp_path, suite="toy", keep=2)
    assert not first.path.exists()
    assert not log.exists()


def test_suites_are_published_apart(tmp_path: Path) -> None:
    publish(numbered(1), warehouse=tmp_path, suite="toy", keep=1)
    publish(numbered(2), warehouse=tmp_path, suite="toy.2", keep=1)
    assert number_in(current_release(tmp_path, "toy")) == 1
    assert number_in(current_release(tmp_path, "toy.2")) == 2


def test_a_build_that_fails_leaves_nothing_and_the_release_stays(tmp_path: Path) -> None:
    first = publish(numbered(1), warehouse=tmp_path, suite="toy")

    def failing(con: duckdb.DuckDBPyConnection) -> None:
        con.execute("CREATE TABLE t AS SELECT 1")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(failing, warehouse=tmp_path, suite="toy")
    assert current_release(tmp_path, "toy") == first.path.resolve()
    left = {path.name for path in (tmp_path / "releases" / "toy").iterdir()}
    assert left == {".lock", first.path.name}


def test_a_suite_without_a_release_is_named_with_those_that_have_one(tmp_path: Path) -> None:
    publish(numbered(1), warehouse=tmp_path, suite="toy")
    with pytest.raises(StoreError, match=r"'other' has no release yet \(published: toy\)"):
        current_release(tmp_path, "other")


@pytest.mark.parametrize("suite", ["../toy", "", "a/b", ".hidden"])
def test_a_suite_name_that_is_a_path_is_refused(tmp_path: Path, suite: str) -> None:
    for call in (
        lambda: publish(numbered(1), warehouse=tmp_path, suite=suite),
        lambda: current_release(tmp_path, suite),
    ):
        refused: Callable[[], object] = call
        with pytest.raises(UsageError, match="not the name of a suite"):
            refused()


def test_a_database_is_written_whole_to_a_fresh_file(tmp_path: Path) -> None:
    path = tmp_path / "out.duckdb"
    write_database(path, numbered(4))
    assert number_in(path) == 4
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.duckdb"]
    with pytest.raises(UsageError, match="exists already"):
        write_database(path, numbered(5))
    assert number_in(path) == 4


def test_a_database_is_not_written_over_a_file_that_appears_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "out.duckdb"

    def overtaken(con: duckdb.DuckDBPyConnection) -> None:
        path.write_text("somebody else's")

    with pytest.raises(UsageError, match="exists already"):
        write_database(path, overtaken)
    assert path.read_text() == "somebody else's"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.duckdb"]


def test_a_database_is_not_written_beside_a_stale_log_or_into_no_folder(tmp_path: Path) -> None:
    (tmp_path / "out.duckdb.wal").touch()
    with pytest.raises(UsageError, match=r"out\.duckdb\.wal: exists already"):
        write_database(tmp_path / "out.duckdb", numbered(1))
    with pytest.raises(UsageError, match="does not exist"):
        write_database(tmp_path / "nowhere" / "out.duckdb", numbered(1))


def test_a_query_reads(tmp_path: Path) -> None:
    path = tmp_path / "out.duckdb"
    write_database(path, numbered(4))
    assert query(path, "SELECT sum(n) AS s FROM t;").to_pylist() == [{"s": 4000}]
    assert query(path, "DESCRIBE t").to_pylist()[0]["column_name"] == "n"


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("INSERT INTO t VALUES (1)", "read-only"),
        ("DROP TABLE t", "read-only"),
        ("CREATE TABLE u AS FROM t", "read-only"),
        ("COPY t TO 'out.csv'", "disabled by configuration"),
        ("ATTACH 'other.duckdb'", "disabled by configuration"),
        ("FROM read_csv('out.csv')", "disabled by configuration"),
        ("SET enable_external_access = true", "locked"),
        ("SELECT 1; SELECT 2", "found 2"),
        ("  ", "found 0"),
        ("SELEC 1", "SELEC"),
        ("FROM tt", 'Did you mean "t"'),
    ],
)
def test_a_query_that_is_not_one_reading_statement_is_refused_in_one_line(
    tmp_path: Path, sql: str, words: str
) -> None:
    path = tmp_path / "out.duckdb"
    write_database(path, numbered(4))
    with pytest.raises(UsageError) as refused:
        query(path, sql)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.duckdb"]


def test_a_release_that_somebody_holds_for_writing_can_still_be_queried(tmp_path: Path) -> None:
    release = publish(numbered(1), warehouse=tmp_path, suite="toy")
    release.path.chmod(0o644)  # its owner may do that, and root need not
    hold = f"import duckdb; c = duckdb.connect({str(release.path)!r}); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        with pytest.raises(duckdb.IOException, match="lock"):
            duckdb.connect(str(release.path), read_only=True)
        assert query(release.path, "SELECT 1 AS one").to_pylist() == [{"one": 1}]
        writer.communicate(b"\n")
