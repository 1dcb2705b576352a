"""Runs that will not end by themselves, because their process is gone."""

from __future__ import annotations

import os
import socket

import dagster as dg

HOST_TAG, PID_TAG = "rag_assets/host", "rag_assets/pid"


def process_tags() -> dict[str, str]:
    """Tags that say which process executes a run."""
    return {HOST_TAG: socket.gethostname(), PID_TAG: str(os.getpid())}


def report_dead_runs(instance: dg.DagsterInstance) -> None:
    """A run whose process was killed says "started" for ever: say that it failed."""
    unfinished = dg.RunsFilter(
        statuses=[dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED],
        tags={HOST_TAG: socket.gethostname()},
    )
    for run in instance.get_runs(unfinished):
        try:
            os.kill(int(run.tags[PID_TAG]), 0)
        except ProcessLookupError:
            instance.report_run_failed(run, "the process of this run was ended from outside")
        except PermissionError:
            continue  # alive, and somebody else's
