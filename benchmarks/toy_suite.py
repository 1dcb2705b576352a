"""The bundled suite, materialized in a fresh process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.timing import Measurement

# What Dagster calls in-process, in a fresh interpreter: the run is kept in memory.
_IN_PROCESS = """
from rag_assets.definitions import definitions_in
from rag_assets.project import suite_folder
jobs = definitions_in(suite_folder("toy")).resolve_all_job_defs()
[job] = [job for job in jobs if job.name == "evaluate_toy"]
assert job.execute_in_process().success
"""
_IMPORTS = ("rag_assets.run", "great_expectations")


def toy_suite() -> Iterator[Measurement]:
    """toy-suite: wall seconds in-process, imports included; beside it those of the command.

    `rag-assets run toy` records the run in Dagster's database too; where its seconds go is told.

    With an empty warehouse: everything is built, and no history is drawn.
    """
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as warehouse:
        environment = {**os.environ, "DAGSTER_HOME": home, "RAG_ASSETS_WAREHOUSE": warehouse}
        settings = Path("dagster_home/dagster.yaml")
        if settings.exists():
            Path(home, "dagster.yaml").write_text(settings.read_text("utf-8"), "utf-8")
        started, cpu = time.perf_counter(), os.times()
        plain = [sys.executable, "-c", "from rag_assets.cli import main; main()", "run", "toy"]
        first = subprocess.run(plain, env=environment, capture_output=True, text=True)
        if first.returncode != 0:
            raise RuntimeError(f"`rag-assets run toy` failed: {first.stderr.strip()[-300:]}")
        seconds, spent = time.perf_counter() - started, os.times()
        steps = _step_seconds(home)
    with tempfile.TemporaryDirectory() as warehouse:
        environment = {**os.environ, "RAG_ASSETS_WAREHOUSE": warehouse}
        again = time.perf_counter()
        alone = [sys.executable, "-c", _IN_PROCESS]
        subprocess.run(alone, env=environment, check=True, capture_output=True)
        in_process = time.perf_counter() - again
    where = {"rag-assets run toy": round(seconds, 2), **_import_seconds(), **steps}
    where["everything else"] = round(
        seconds - where["import rag_assets.run"] - sum(steps.values()), 2
    )
    used = spent.children_user + spent.children_system - cpu.children_user - cpu.children_system
    where["processor time"] = round(used, 2)
    noted = {
        "clock": "wall",
        "load": round(os.getloadavg()[0], 1),
        "note": "the import of great_expectations is part of the first step's checks",
        "seconds": where,
    }
    yield Measurement("toy-suite", None, in_process, None, None, noted)


def _step_seconds(home: str) -> dict[str, float]:
    """Seconds of the steps of the one run in a DAGSTER_HOME, by the kind of asset."""
    import dagster as dg

    found: Counter[str] = Counter()
    with dg.DagsterInstance.from_config(home) as instance:
        [run] = instance.get_runs()
        for step in instance.get_run_step_stats(run.run_id):
            # "toy__toy_v1__embeddings" and "toy__toy_v2__embeddings" are of one kind.
            kind = step.step_key.rpartition("__")[2]
            found[f"steps: {kind}"] += (step.end_time or 0.0) - (step.start_time or 0.0)
    return {kind: round(seconds, 2) for kind, seconds in found.most_common()}


def _import_seconds() -> dict[str, float]:
    """Seconds of the imports, in a process that does nothing else."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", f"import {', '.join(_IMPORTS)}"],
        check=True,
        capture_output=True,
        text=True,
    )
    # "import time: self us | cumulative us | name"
    imports = re.findall(r"^import time:\s*\d+ \|\s*(\d+) \| ( *)(\S+)$", done.stderr, re.M)
    return {
        f"import {name}": round(
            max(int(whole) for whole, _, found in imports if found == name) / 1e6, 2
        )
        for name in _IMPORTS
    }
