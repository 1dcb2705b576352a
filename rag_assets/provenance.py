"""What a release was made with: code, data, libraries and machine."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

LIBRARIES = ("dagster", "duckdb", "great_expectations", "numpy", "pandas", "pyarrow", "rag-assets")


def machine_facts() -> dict[str, str]:
    """Processor, cores, memory, operating system and library versions, as text."""
    facts = {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": str(usable_cores()),
        "memory_gib": _memory_gib(),
    }
    for library in LIBRARIES:
        try:
            facts[f"version_{library.replace('-', '_')}"] = metadata.version(library)
        except metadata.PackageNotFoundError:
            facts[f"version_{library.replace('-', '_')}"] = "not installed"
    return facts


def code_commit(folder: Path) -> str:
    """The commit checked out in `folder`, with "+changes" when files differ from it."""
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return "unknown (no git checkout)"
    return commit + ("+changes" if changed else "")


def manifest(folder: Path, facts: Mapping[str, str]) -> dict[str, str]:
    """Key-value rows of a release: the given facts, the commit of `folder`, and the machine."""
    return {"commit": code_commit(folder), **facts, **machine_facts()}


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments],
        check=True,
        capture_output=True,
        text=True,
        timeout=10,
    ).stdout.strip()


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux: a container may be given fewer
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _memory_gib() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f}"
    except (ValueError, OSError):
        return "unknown"
