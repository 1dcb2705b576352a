"""The bundled suite, materialized in a fresh process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.timing import Measurement

_IMPORTS = ("dagster", "great_expectations", "duckdb", "pandas", "faiss", "rag_assets.cli")


def toy_suite() -> Iterator[Measurement]:
    """toy-suite: wall seconds of `rag-assets run toy`, imports included, and where they go."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "DAGSTER_HOME": home}
        settings = Path("dagster_home/dagster.yaml")
        if settings.exists():
            Path(home, "dagster.yaml").write_text(settings.read_text("utf-8"), "utf-8")
        started = time.perf_counter()
        plain = [sys.executable, "-c", "from rag_assets.cli import main; main()", "run", "toy"]
        first = subprocess.run(plain, env=environment, capture_output=True, text=True)
        if first.returncode != 0:
            raise RuntimeError(f"`rag-assets run toy` failed: {first.stderr.strip()[-300:]}")
        seconds = time.perf_counter() - started
        command = [*plain[:1], "-X", "importtime", *plain[1:]]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    # "import time: self us | cumulative us | name"
    imports = re.findall(r"^import time:\s*(\d+) \|\s*(\d+) \| ( *)(\S+)$", done.stderr, re.M)
    where = {"all imports": round(sum(int(own) for own, *_ in imports) / 1e6, 2)}
    for name in _IMPORTS:
        taken = [int(whole) for _, whole, _, found in imports if found == name]
        if taken:
            where[f"import {name}"] = round(max(taken) / 1e6, 2)
    where["everything else"] = round(seconds - where["all imports"], 2)
    noted = {"clock": "wall", "load": round(os.getloadavg()[0], 1), "seconds": where}
    yield Measurement("toy-suite", None, seconds, None, None, noted)
