"""What the UI lists, and what a mistake in a suite's YAML is answered with."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster.components.resolved.errors import ResolutionException
from dagster.components.testing import create_defs_folder_sandbox
from pydantic import ValidationError

from rag_assets.components import EvaluationSuite
from rag_assets.components.checks import CHANGES
from rag_assets.components.suite import StoreResource
from rag_assets.definitions import definitions_in, defs
from rag_assets_tests.conftest import ROOT
from rag_assets_tests.test_cli import loaded_after
from rag_assets_tests.warehouse.test_models import TABLES

# The chain of a suite of two spaces and one approximate index. A new asset or check is a line here;
# tables are listed, with their columns, in warehouse/test_models.py.
TOY_ASSETS = """
toy/canonical_items
toy/report
toy/toy-v1/embeddings
toy/toy-v1/exact_index
toy/toy-v1/exact_results
toy/toy-v1/index_times
toy/toy-v1/ivf_pq_index
toy/toy-v1/ivf_pq_results
toy/toy-v2/embeddings
toy/toy-v2/exact_index
toy/toy-v2/exact_results
toy/toy-v2/index_times
toy/toy-v2/ivf_pq_index
toy/toy-v2/ivf_pq_results
"""
TOY_CHECKS = """
toy/canonical_items:contract_validation
toy/content_changes:access_changes
toy/content_changes:content_changes
toy/contract_changes:contract_changes
toy/migration_audit:mechanical_gates
toy/regression_gates:regression_gates
toy/release_checklist:release_checklist
toy/toy-v1/embeddings:contract_validation
toy/toy-v1/exact_results:result_validation
toy/toy-v1/ivf_pq_index:index_training
toy/toy-v1/ivf_pq_results:result_validation
toy/toy-v2/embeddings:contract_validation
toy/toy-v2/exact_results:result_validation
toy/toy-v2/ivf_pq_index:index_training
toy/toy-v2/ivf_pq_results:result_validation
"""


@pytest.fixture(scope="module")
def shipped() -> dg.Definitions:
    return defs()


def of_toy(keys: Any) -> set[str]:
    return {key.to_user_string() for key in keys if key.to_user_string().startswith("toy/")}


def test_the_shipped_suite_has_the_known_assets_and_checks(shipped: dg.Definitions) -> None:
    graph = shipped.resolve_asset_graph()
    tables = {f"toy/{name}" for name in TABLES}
    assert of_toy(graph.get_all_asset_keys()) == set(TOY_ASSETS.split()) | tables
    assert of_toy(graph.asset_check_keys) == set(TOY_CHECKS.split())


def test_a_suite_on_its_own_is_what_it_is_among_all(shipped: dg.Definitions) -> None:
    def parts(definitions: dg.Definitions) -> dict[str, tuple[object, ...]]:
        graph = definitions.resolve_asset_graph()
        return {
            key.to_user_string(): (
                graph.get(key).parent_keys,
                graph.get(key).check_keys,
                graph.get(key).code_version,
            )
            for key in graph.get_all_asset_keys()
        }

    together = parts(shipped)
    apart = {}
    for file in (ROOT / "rag_assets" / "defs").glob("*/defs.yaml"):
        alone = definitions_in(file.parent)
        [job] = [it for it in alone.resolve_all_job_defs() if not it.name.startswith("__ASSET")]
        assert job.name == f"evaluate_{file.parent.name}"
        found = parts(alone)
        assert {key.split("/")[0] for key in found} == {file.parent.name}
        apart |= found
    assert apart == together


def test_every_suite_has_a_job_and_a_schedule_that_is_off(shipped: dg.Definitions) -> None:
    suites = {path.parent.name for path in (ROOT / "rag_assets" / "defs").glob("*/defs.yaml")}
    jobs = {job.name for job in shipped.resolve_all_job_defs()} - {"__ASSET_JOB"}
    assert jobs == {f"evaluate_{suite}" for suite in suites}
    schedules = {schedule.name: schedule for schedule in shipped.get_repository_def().schedule_defs}
    assert set(schedules) == {f"evaluate_{suite}_schedule" for suite in suites}
    for schedule in schedules.values():
        assert schedule.default_status == dg.DefaultScheduleStatus.STOPPED
        assert str(schedule.cron_schedule).endswith(" * * *")  # daily


def test_every_suite_has_an_automation_and_those_with_files_a_watch_both_off(
    shipped: dg.Definitions,
) -> None:
    sensors = {sensor.name: sensor for sensor in shipped.get_repository_def().sensor_defs}
    suites = {path.parent.name for path in (ROOT / "rag_assets" / "defs").glob("*/defs.yaml")}
    assert set(sensors) == {f"evaluate_{suite}_automation" for suite in suites} | {
        f"evaluate_{suite}_source_sensor" for suite in suites - {"p1_synthetic"}
    }
    for sensor in sensors.values():
        assert sensor.default_status == dg.DefaultSensorStatus.STOPPED
    switched = EvaluationSuite.resolve_from_dict(
        {**SUITE, "watch": {"enabled": True, "every_seconds": 5}, "automation": {"enabled": True}}
    ).build_defs(dg.ComponentTree.for_test().load_context)
    for sensor in switched.sensors or ():
        assert sensor.default_status == dg.DefaultSensorStatus.RUNNING  # type: ignore[union-attr]


def test_one_of_the_assets_that_a_step_makes_carries_its_condition(shipped: dg.Definitions) -> None:
    graph = shipped.resolve_asset_graph()
    automatic = {
        key for key in graph.get_all_asset_keys() if graph.get(key).automation_condition is not None
    }
    # The report stands for all tables, which the same step makes.
    assert of_toy(automatic) == set(TOY_ASSETS.split())
    for key in graph.asset_check_keys:
        assert graph.get(key).automation_condition is not None, key


def test_the_ui_is_sent_definitions_that_it_can_read(shipped: dg.Definitions) -> None:
    """Conditions of our own must not be sent as Dagster's: the UI would show no suite at all."""
    snapshot = RepositorySnap.from_def(shipped.get_repository_def())
    assert len(dg.deserialize_value(dg.serialize_value(snapshot), RepositorySnap).asset_nodes) > 0


def test_every_asset_says_what_it_is_and_whose(shipped: dg.Definitions) -> None:
    graph = shipped.resolve_asset_graph()
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert node.description, key
        assert node.kinds, key
        assert node.code_version, key
        assert node.group_name.startswith(key.path[0].replace("-", "_")), key
    for key in of_toy(graph.get_all_asset_keys()):
        assert graph.get(dg.AssetKey.from_user_string(key)).owners == ["team:search-quality"]


def test_every_check_that_gates_is_blocking(shipped: dg.Definitions) -> None:
    graph = shipped.resolve_asset_graph()
    for key in graph.asset_check_keys:
        if key.name not in ("index_training", *CHANGES):  # these warn
            assert graph.get(key).blocking, key


def test_loading_the_definitions_leaves_heavy_engines_out() -> None:
    statement = "from rag_assets.definitions import definitions_in, defs; defs()"
    assert loaded_after(statement, "great_expectations", "faiss", "torch") == set()


def test_dg_accepts_the_shipped_yaml() -> None:
    dg_command = shutil.which("dg")
    if dg_command is None:
        pytest.skip("the dg command is not installed (pip install -e '.[ui]')")
    done = subprocess.run(
        [dg_command, "check", "yaml"], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


SUITE: dict[str, Any] = {
    "name": "second",
    "source": {"path": "data/toy/toy.json"},
    "spaces": [{"space_id": "toy-v1"}, {"space_id": "toy-v2"}],
}


def test_a_second_suite_is_a_second_folder_with_a_yaml_file() -> None:
    contents = {
        "type": "rag_assets.components.EvaluationSuite",
        "attributes": SUITE
        | {"k": [1, 5], "schedule": {"cron": "30 2 * * 1", "enabled": True}, "audits": []},
    }
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(
            component_cls=EvaluationSuite, defs_yaml_contents=contents
        )
        with sandbox.load_component_and_build_defs(defs_path=path) as (component, built):
            assert isinstance(component, EvaluationSuite)
            both = dg.Definitions.merge(
                built, dg.Definitions(resources={"store": StoreResource(root="unused")})
            )
            keys = {k.to_user_string() for k in both.resolve_asset_graph().get_all_asset_keys()}
            assert {"second/canonical_items", "second/toy-v2/exact_results"} <= keys
            assert {f"second/{name}" for name in TABLES} <= keys
            [schedule] = both.get_repository_def().schedule_defs
            assert schedule.name == "evaluate_second_schedule"
            assert schedule.cron_schedule == "30 2 * * 1"
            assert schedule.default_status == dg.DefaultScheduleStatus.RUNNING


def loaded(**changes: Any) -> EvaluationSuite:
    return EvaluationSuite.from_attributes_dict(attributes=SUITE | changes)


def spaces(*names: str) -> list[dict[str, str]]:
    return [{"space_id": name} for name in names]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "My Suite"}, "use lower-case letters, digits, '-' and '_'"),
        ({"name": "../x"}, "use lower-case letters, digits, '-' and '_'"),
        ({"audits": [{"old": "toy-v1", "new": "x"}]}, "unknown space 'x'; known spaces are toy-v1"),
        ({"audits": [{"old": "toy-v1", "new": "toy-v1"}]}, "cannot be audited against itself"),
        ({"audits": [{"old": "toy-v1", "new": "toy-v2"}] * 2}, "audited twice"),
        ({"k": [0]}, "k must be an integer from 1 to 10000, not 0"),
        ({"k": []}, "at least one k is needed"),
        ({"k": [3, 3]}, "the same k is given twice"),
        ({"k": [True]}, "valid integer"),
        ({"k": [2.0]}, "valid integer"),
        ({"k": ["3"]}, "valid integer"),
        ({"spaces": spaces("a", "a")}, "two spaces have the same id"),
        ({"spaces": spaces("a-b", "a_b")}, "ids that differ only in punctuation: a-b, a_b"),
        ({"spaces": []}, "a suite needs at least one space"),
        ({"spaces": spaces("a/b")}, "should match pattern"),
        ({"spaces": spaces("it's")}, "should match pattern"),
        ({"spaces": spaces("..")}, "should match pattern"),
        ({"spaces": spaces("")}, "should match pattern"),
        ({"audit": []}, "Extra inputs are not permitted"),
        ({"source": {"path": "x", "max_mib": float("inf")}}, "finite number"),
        ({"source": {"path": "x", "max_mib": 0}}, "greater than 0"),
        ({"kept_releases": 0}, "greater than or equal to 1"),
    ],
    ids=str,
)
def test_a_mistake_in_the_yaml_is_refused_with_what_is_allowed(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises((ValidationError, ResolutionException)) as caught:
        loaded(**changes)
    error: BaseException | None = caught.value
    told = ""
    while error is not None:
        told += str(error)
        error = error.__cause__ or error.__context__
    assert said in told


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"schedule": {"cron": "99 x"}}, "invalid cron schedule '99 x'"),
        ({"schedule": {"timezone": "Mars/One"}}, "Invalid execution timezone Mars/One"),
        ({"owners": ["nobody"]}, "Owner must be an email address or a team name"),
    ],
    ids=str,
)
def test_what_only_dagster_can_judge_is_refused_when_the_suite_is_built(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(dg.DagsterInvalidDefinitionError, match=said):
        loaded(**changes).build_defs(dg.ComponentTree.for_test().load_context)


def test_the_source_is_read_when_it_is_materialized_and_not_before(tmp_path: Path) -> None:
    suite = loaded(source={"path": str(tmp_path / "absent.json")})
    built = suite.build_defs(dg.ComponentTree.for_test().load_context)
    both = dg.Definitions.merge(
        built, dg.Definitions(resources={"store": StoreResource(root=str(tmp_path))})
    )
    assert both.resolve_job_def("evaluate_second")
