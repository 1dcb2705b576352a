"""`rag-assets run`: materialize one suite in this process and tell how it went."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import yaml
from dagster import DagsterEventType
from pydantic import ValidationError

from rag_assets.components.ended_runs import process_tags, report_dead_runs
from rag_assets.components.suite import SUITE_TAG
from rag_assets.errors import RagAssetsError, StoreError, UsageError
from rag_assets.evaluation_output import summary_tables
from rag_assets.project import project_root, shown_path, suite_folder, warehouse_root
from rag_assets.report.files import report_path
from rag_assets.tabular import joined
from rag_assets.warehouse.release import current_release, reading


def run_suite(name: str, *, echo: Callable[[str], None], complain: Callable[[str], None]) -> int:
    """Materialize every asset of a suite, and return the exit status.

    0 if every step and check passed; 1 if a check failed, and `echo` tells which; 2 if a step could
    not do its work, a refused source for example: `complain` tells why, `echo` nothing.
    """
    [job] = [
        job
        for job in _definitions(suite_folder(name)).resolve_all_job_defs()
        if job.tags.get(SUITE_TAG) == name
    ]
    with _instance() as instance:
        report_dead_runs(instance)
        result = job.execute_in_process(
            instance=instance,
            tags=process_tags(),
            run_config={"loggers": {"progress": {}}},
            raise_on_error=False,
        )
    failed_checks = [
        evaluation
        for evaluation in result.get_asset_check_evaluations()
        if not evaluation.passed and evaluation.severity == dg.AssetCheckSeverity.ERROR
    ]
    published = any(
        event.event_type == DagsterEventType.ASSET_MATERIALIZATION
        and event.asset_key == dg.AssetKey([name, "manifest"])
        for event in result.all_events
    )
    failures = [e for e in result.all_events if e.event_type == DagsterEventType.STEP_FAILURE]
    if any(map(_was_interrupted, failures)):
        raise KeyboardInterrupt
    reasons = [reason for failure in failures for reason in _reasons(failure)]
    if reasons:
        for reason in reasons:
            complain(reason)
        complain(_what_stays(name) if not published else "the release was published all the same")
        return 2
    if published:
        echo(summary(current_release(warehouse_root(), name), name))
    for evaluation in failed_checks:
        echo(
            f"\nCHECK FAILED {evaluation.check_name} on {evaluation.asset_key.to_user_string()}: "
            f"{evaluation.description}"
        )
    if not published:
        echo(f"\n{_what_stays(name)}")
    return 0 if result.success and not failed_checks else 1


def summary(release: Path, name: str) -> str:
    """What a newcomer reads first: notice, spaces, measures, audits, checks, where it all is."""
    with reading(release) as connection:
        tables = summary_tables(connection)
        [[passed, warned, failed]] = connection.sql(
            "SELECT count(*) FILTER (WHERE passed), count(*) FILTER (WHERE NOT passed AND "
            "severity = 'warn'), count(*) FILTER (WHERE NOT passed AND severity <> 'warn') "
            "FROM check_results"
        ).fetchall()
        [[note]] = connection.sql("SELECT value FROM manifest WHERE key = 'notice'").fetchall()
    notice = f"Note: {note}" if note else ""
    link = shown_path(warehouse_root() / f"{name}.duckdb")
    where = (
        f"Checks:   {passed} passed, {warned} warned, {failed} failed\n"
        f"Database: {link}\n"
        f"Report:   {shown_path(report_path(warehouse_root(), name))}\n"
        f'Query it: rag-assets sql {name} "SELECT * FROM metric_by_query"\n'
        "See it:   make ui"
    )
    return joined(["", *tables, notice, where])


def _definitions(folder: Path) -> dg.Definitions:
    """The suites in a folder. UsageError, in one line, if their YAML is at fault."""
    from rag_assets.definitions import definitions_in

    try:
        return definitions_in(folder)
    except Exception as error:
        if (message := suite_fault(error)) is None:
            raise
        raise UsageError(message) from None


def suite_fault(error: Exception) -> str | None:
    """What is wrong with a suite's YAML, in one line; None if `error` is of another kind."""
    cause: BaseException = error
    while deeper := cause.__cause__ or cause.__context__:
        if isinstance(cause, ValidationError):
            break
        cause = deeper
    if isinstance(cause, ValidationError):
        said = "; ".join(map(_fault, cause.errors()))
    elif isinstance(cause, (dg.DagsterError, RagAssetsError, yaml.YAMLError)):
        said = str(cause)
    else:
        return None
    # Dagster's first line names the suite's folder; a drawing follows.
    [where, *_] = str(error).splitlines()
    message = said if where in said else f"{where.rstrip(':')}: {said}"
    return message.replace(f"{project_root()}/", "")


def _fault(fault: Mapping[str, Any]) -> str:
    place = ".".join(map(str, fault["loc"]))
    return f"{place}: {fault['msg']}" if place else fault["msg"]


def _instance() -> dg.DagsterInstance:
    """The instance in DAGSTER_HOME, by default dagster_home/ in the project, as `make ui` uses."""
    named = os.environ.get("DAGSTER_HOME") or project_root() / "dagster_home"
    home = os.environ["DAGSTER_HOME"] = str(Path(named).absolute())
    Path(home).mkdir(parents=True, exist_ok=True)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    return dg.DagsterInstance.get()


def _was_interrupted(event: dg.DagsterEvent) -> bool:
    error = event.step_failure_data.error
    causes = (error, error.cause) if error else ()
    return any(e.cls_name == "DagsterExecutionInterruptedError" for e in causes if e)


def _reasons(event: dg.DagsterEvent) -> list[str]:
    """Why a step failed, one line per fault; nothing where its checks failed: they tell."""
    data = event.step_failure_data
    if data.user_failure_data is not None and data.user_failure_data.description:
        return str(data.user_failure_data.description).splitlines()
    if data.error is None:
        return [f"{event.step_key} failed; no reason was recorded"]
    if data.error.cls_name == "DagsterAssetCheckFailedError":
        return []
    inner = data.error.cause or data.error
    return [f"{event.step_key} failed: {inner.message.strip()}"]


def _what_stays(name: str) -> str:
    try:
        release = current_release(warehouse_root(), name)
    except StoreError:
        return "nothing was published, and there is no earlier release"
    return f"nothing was published; the last release stays: {shown_path(release)}"
