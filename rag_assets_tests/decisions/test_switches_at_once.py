"""Switches in processes of their own: two at once, and one that is killed on its way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

from rag_assets_tests.conftest import ROOT
from rag_assets_tests.decisions.releases import Decided

# The command line, on a suite in a folder of the test's own.
COMMAND = """
import pathlib, sys
from rag_assets import project
project.suite_folder = lambda name: pathlib.Path({folder!r})
{before}
from rag_assets.cli import main
main(sys.argv[1:])
"""
# The process dies between the draft and the rename that would make it count.
KILLED = """
import os, signal
os.replace = lambda *paths: os.kill(os.getpid(), signal.SIGKILL)
"""


def started(suite: Decided, *arguments: str, before: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            COMMAND.format(folder=str(suite.folder), before=before),
            *arguments,
            *("--by", "Ada", "--why", "ready"),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT), **suite.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_of_two_first_switches_at_once_one_is_made_and_the_other_is_judged_after_it(
    ready: Decided,
) -> None:
    both = {s: started(ready, "activate", "decided", s) for s in ("old", "new")}
    ended = {s: (*process.communicate(timeout=120), process) for s, process in both.items()}
    codes = {s: process.returncode for s, (_, _, process) in ended.items()}
    assert sorted(codes.values()) == [0, 1]
    [first] = [s for s, code in codes.items() if code == 0]
    [other] = [s for s, code in codes.items() if code == 1]
    # Alone it would have needed no decision on a migration: it saw the first one's switch.
    assert f"quality {first}:{other}: needs_decision" in ended[other][1]
    tree = json.loads((ready.folder / "active_space.json").read_text("utf-8"))
    assert tree["active"] == first
    assert len(tree["switches"]) == 1


def test_signatures_at_once_are_all_kept(ready: Decided) -> None:
    before = (ready.folder / "decisions.yaml").read_text("utf-8")
    several = [started(ready, "sign", "decided", "quality", "old:new") for _ in range(4)]
    assert [process.communicate(timeout=120)[1] for process in several] == [""] * 4
    assert [process.returncode for process in several] == [0] * 4
    after = (ready.folder / "decisions.yaml").read_text("utf-8")
    assert after.startswith(before)
    assert after.count("- item: quality old:new\n") == 4


def test_a_killed_switch_leaves_the_space_that_was_active(serving: Decided) -> None:
    path = serving.folder / "active_space.json"
    before = path.read_bytes()
    killed = started(serving, "activate", "decided", "new", before=KILLED)
    killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL
    assert path.read_bytes() == before
    assert len(list(serving.folder.glob(".draft-*"))) == 1  # written, not made to count
    again = started(serving, "activate", "decided", "new")
    out, err = again.communicate(timeout=120)
    assert (again.returncode, err) == (0, "")
    assert "new is active from now on" in out
    assert json.loads(path.read_text("utf-8"))["active"] == "new"
    assert list(serving.folder.glob(".draft-*")) == []


def test_a_killed_signature_leaves_the_decisions_as_they_were(ready: Decided) -> None:
    path = ready.folder / "decisions.yaml"
    before = path.read_bytes()
    killed = started(ready, "sign", "decided", "quality", "old:new", before=KILLED)
    killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL
    assert path.read_bytes() == before
