"""Suites for tests: declared as YAML declares them, run in this process, each with a warehouse."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from rag_assets.components import EvaluationSuite
from rag_assets.components.suite import StoreResource
from rag_assets.warehouse.release import current_release, query
from rag_assets_tests.conftest import ROOT

Rows = list[dict[str, Any]]


def own_project(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Make a folder a project of its own, with the SQL models, and the one that is worked in."""
    shutil.copytree(ROOT / "dbt_like_sql", folder / "dbt_like_sql")
    patch.setenv("RAG_ASSETS_PROJECT", str(folder))


def declared(attributes: dict[str, Any], folder: Path) -> dg.Definitions:
    """The definitions of one suite whose defs.yaml is in `folder`, with a warehouse there too."""
    component = EvaluationSuite.resolve_from_dict(attributes)
    context: Any = SimpleNamespace(path=folder)
    return dg.Definitions.merge(
        component.build_defs(context),
        dg.Definitions(
            resources={"store": StoreResource(root=str(folder / "warehouse"))},
            executor=dg.in_process_executor,
        ),
    )


def ran(definitions: dg.Definitions, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    [job] = [
        job for job in definitions.resolve_all_job_defs() if not job.name.startswith("__ASSET")
    ]
    return job.execute_in_process(
        instance=instance,
        raise_on_error=False,
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
    )


def rows(folder: Path, suite: str, statement: str) -> Rows:
    found: Rows = query(current_release(folder / "warehouse", suite), statement).to_pylist()
    return found
