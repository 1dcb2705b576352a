"""Starting Dagster's UI over a copy of the project's data, and stopping all of it again."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[2]
START_SECONDS = 240
STOP_SECONDS = 60
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_WARNING = re.compile(r" - (WARNING|ERROR|CRITICAL) - |Warning: |Traceback")


@dataclass(frozen=True)
class Server:
    """A running UI. `project` is a copy of the bundled data that a test may change."""

    url: str
    project: Path
    warehouse: Path
    log: Path

    def warnings(self) -> list[str]:
        """Lines of the server's log above the level INFO, and Python's own warnings."""
        text = _COLOUR.sub("", self.log.read_text())
        return [line for line in text.splitlines() if _WARNING.search(line)]


def copy_project(folder: Path) -> Path:
    """What a suite reads: SQL models, bundled data and settings. The code stays where it is."""
    for name in ("dbt_like_sql", "data/toy", "dagster_home/dagster.yaml"):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        source = PROJECT / name
        (shutil.copytree if source.is_dir() else shutil.copyfile)(source, target)
    for name in ("pyproject.toml", "workspace.yaml"):
        shutil.copyfile(PROJECT / name, folder / name)
    (folder / "rag_assets").symlink_to(PROJECT / "rag_assets")
    return folder


@contextmanager
def serving(command: Sequence[str], folder: Path) -> Iterator[Server]:
    """Run a `... dev` command on a free port over a new project in `folder`.

    On leaving, the whole process group gets what Ctrl-C sends; AssertionError if anything that
    was started is still there STOP_SECONDS later (it is killed then).
    """
    project = copy_project(folder / "a project")
    warehouse = folder / "warehouse"
    log = folder / "server.log"
    port = _free_port()
    environment = os.environ | {
        "DAGSTER_HOME": str(project / "dagster_home"),
        "RAG_ASSETS_PROJECT": str(project),
        "RAG_ASSETS_WAREHOUSE": str(warehouse),
        "PYTHONPATH": os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")]),
    }
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(Path(sys.executable).parent / command[0]), *command[1:], "--port", str(port)],
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # A job in the background of a script ignores SIGINT, and its children inherit that.
            preexec_fn=_default_signals,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_serving(url, process, log)
        yield Server(url, project, warehouse, log)
    finally:
        left = _stop(process)
    assert left == []


def _default_signals() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _wait_until_serving(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/server_info", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(f"the server does not serve; its log:\n{log.read_text()}")


def _stop(process: subprocess.Popen[bytes]) -> list[str]:
    """Interrupt the session that `process` leads; the command lines of what survived."""
    os.killpg(process.pid, signal.SIGINT)
    deadline = time.monotonic() + STOP_SECONDS
    while _members(process.pid) and time.monotonic() < deadline:
        process.poll()
        time.sleep(0.1)
    left = _members(process.pid)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    process.wait(STOP_SECONDS)
    return list(left.values())


def _members(session: int) -> dict[int, str]:
    """Processes of a session that are not zombies: process id -> command line."""
    members = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # After the name, which may hold anything: state, parent, group, session.
            state, _, _, its_session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(its_session) == session and state != "Z":
                members[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
        except OSError:  # it has just ended
            continue
    return members


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
