"""Runs in processes of their own: two at once, interrupted, killed, and beside open databases."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import dagster as dg
import duckdb

from rag_assets.components.ended_runs import PID_TAG
from rag_assets.store import Store
from rag_assets_tests.conftest import Workshop, item_in

CHAIN = [("canonical_items",)]
CHAIN += [
    (s, a) for s in ("toy-v1", "toy-v2") for a in ("embeddings", "exact_index", "exact_results")
]


def with_text(workshop: Workshop, text: str) -> None:
    """The same fixture, with another text of one document in both spaces."""
    tree = json.loads(workshop.source.read_text("utf-8"))
    for space_id in ("toy-v1", "toy-v2"):
        item_in(tree, space_id, "doc-oncall")["text"] = text
    workshop.write(tree)


def text_in(release: Path) -> str:
    with duckdb.connect(str(release), read_only=True) as con:
        [[text]] = con.sql(
            "SELECT text FROM canonical_items WHERE item_id = 'doc-oncall'"
        ).fetchall()
        # Whole: every model's table is there, and every check it records passed.
        [[failed]] = con.sql(
            "SELECT count(*) FROM check_results WHERE NOT passed AND severity = 'error'"
        ).fetchall()
        [[gates]] = con.sql("SELECT count(*) FROM migration_audit").fetchall()
    assert failed == 0
    assert gates > 0
    return str(text)


ANALYST = """
import sys, duckdb
path, read_only = sys.argv[1], sys.argv[2] == "reading"
con = duckdb.connect(path, read_only=read_only)
if not read_only:
    con.execute("CREATE TABLE notes AS SELECT 1 AS n")
print("open", flush=True)
sys.stdin.readline()
print(con.sql("SELECT count(*) FROM metric_by_query").fetchall()[0][0] > 0)
"""


@contextmanager
def analyst(release: Path, doing: str) -> Iterator[None]:
    """Somebody who keeps a release open, reading or writing, and can still read it at the end."""
    if doing == "writing":
        release.chmod(0o644)  # an owner can
    process = subprocess.Popen(
        [sys.executable, "-c", ANALYST, str(release), doing],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    try:
        yield
    finally:
        out, _ = process.communicate("go on\n", timeout=60)
    assert out == "True\n"


def test_two_runs_at_once_with_different_content_both_finish_whole_beside_a_reader(
    tmp_path: Path,
    new_workshop: Callable[[Path], Workshop],
    republished: Callable[[Path], Workshop],
) -> None:
    one, other = republished(tmp_path / "one"), new_workshop(tmp_path / "other")
    held = one.link.resolve()
    into_the_same = {"RAG_ASSETS_WAREHOUSE": str(one.warehouse)}
    other = replace(other, environment=other.environment | into_the_same)
    with_text(one, "text of one")
    with_text(other, "text of the other")
    with analyst(held, "reading"):
        for process in [workshop.started("run", "toy") for workshop in (one, other)]:
            out, err = process.communicate(timeout=300)
            assert process.returncode == 0, err
            assert "Relevance" in out
            assert "Traceback" not in err
    releases = sorted((one.warehouse / "releases" / "toy").glob("*.duckdb"))
    assert releases.pop(0) == held
    assert {text_in(path) for path in releases} == {"text of one", "text of the other"}
    assert one.link.resolve() == releases[-1]
    # In each release, the recorded versions are those of one run.
    for path in releases:
        with duckdb.connect(str(path), read_only=True) as con:
            versions = dict(con.sql("SELECT key, value FROM manifest").fetchall())
        store = Store(one.warehouse, "toy", versions["dagster_run_id"])
        for asset in CHAIN:
            recorded = versions.get(f"version {'/'.join(asset)}")
            assert recorded in (None, store.read(asset).version)


def step_done(process: subprocess.Popen[str], step: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(f"done {step} "):
            return
    raise AssertionError(f"{step} was never reported")


def test_interrupted_and_killed_runs_leave_the_release_and_the_next_succeeds_beside_a_writer(
    tmp_path: Path, republished: Callable[[Path], Workshop]
) -> None:
    workshop = republished(tmp_path)
    before, link = workshop.releases(), workshop.link.readlink()
    with_text(workshop, "another text")

    interrupted = workshop.started("run", "toy")
    step_done(interrupted, "toy__canonical_items")
    interrupted.send_signal(signal.SIGINT)
    out, err = interrupted.communicate(timeout=120)
    assert (interrupted.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "error: interrupted"
    assert "Traceback" not in err
    assert (workshop.releases(), workshop.link.readlink()) == (before, link)

    killed = workshop.started("run", "toy")
    step_done(killed, "toy__toy_v1__embeddings")
    killed.send_signal(signal.SIGKILL)
    out, _ = killed.communicate(timeout=120)
    assert (killed.returncode, out) == (-signal.SIGKILL, "")
    assert (workshop.releases(), workshop.link.readlink()) == (before, link)

    with analyst(workshop.link.resolve(), "writing"):
        assert workshop.rows("SELECT count(*) AS n FROM spaces") == [{"n": 2}]
        assert workshop.command("run", "toy").exit_code == 0
        assert text_in(workshop.link.resolve()) == "another text"
    assert len(workshop.releases()) == 2
    # Nobody else could tell Dagster that the killed process is gone.
    with dg.DagsterInstance.from_config(workshop.environment["DAGSTER_HOME"]) as instance:
        [run] = instance.get_runs(dg.RunsFilter(tags={PID_TAG: str(killed.pid)}))
    assert run.status == dg.DagsterRunStatus.FAILURE
