"""When the sensor of a source asks for a run, for what, and when it does not."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from rag_assets.components import EvaluationSuite, source_sensor
from rag_assets.components.ended_runs import HOST_TAG, PID_TAG
from rag_assets.components.suite import SUITE_TAG, StoreResource
from rag_assets_tests.conftest import Tree, item_in

CANONICAL = dg.AssetKey(["watched", "canonical_items"])


class Watch:
    """The toy fixture as a suite of this test, with its sensor."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance, **settings: Any) -> None:
        self.instance = instance
        self.source = folder / "source.json"
        self.store = StoreResource(root=str(folder / "warehouse"))
        self.cursor: str | None = None
        component = EvaluationSuite.resolve_from_dict(
            {
                "name": "watched",
                "source": {"path": str(self.source)},
                "spaces": [{"space_id": "toy-v1"}, {"space_id": "toy-v2"}],
                **settings,
            }
        )
        context: Any = SimpleNamespace(path=folder)
        shared = dg.Definitions(resources={"store": self.store}, executor=dg.in_process_executor)
        self.definitions = dg.Definitions.merge(component.build_defs(context), shared)

    def write(self, tree: Tree) -> None:
        self.source.write_text(json.dumps(tree), "utf-8")

    def tick(self) -> dg.RunRequest | str:
        """The run that is requested now, or why none is."""
        [sensor] = [s for s in self.definitions.sensors or () if s.name.endswith("source_sensor")]
        context = dg.build_sensor_context(
            self.instance, cursor=self.cursor, resources={"store": self.store}
        )
        found = sensor.evaluate_tick(context)  # type: ignore[union-attr]
        self.cursor = found.cursor
        if found.run_requests:
            [request] = found.run_requests
            assert isinstance(request, dg.RunRequest)
            return request
        return str(found.skip_message)

    def evaluate(self) -> None:
        """Read the source into the store, as a run does."""
        job = self.definitions.resolve_job_def("evaluate_watched").get_subset(
            asset_selection={CANONICAL}, asset_check_selection=set()
        )
        assert job.execute_in_process(instance=self.instance).success

    def unfinished(self, **tags: str) -> None:
        self.instance.create_run_for_job(
            self.definitions.resolve_job_def("evaluate_watched"),
            status=dg.DagsterRunStatus.STARTED,
            tags=tags,
        )


@pytest.fixture(scope="module")
def home() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as instance:
        yield instance


@pytest.fixture
def instance(home: dg.DagsterInstance) -> Iterator[dg.DagsterInstance]:
    yield home
    for run in home.get_runs():
        home.delete_run(run.run_id)


@pytest.fixture
def watch(tmp_path: Path, instance: dg.DagsterInstance, toy: Tree) -> Watch:
    watch = Watch(tmp_path, instance)
    watch.write(toy)
    return watch


def edited(tree: Tree, text: str) -> Tree:
    item_in(tree, "toy-v1", "doc-oncall")["text"] = text
    return tree


def test_what_was_never_evaluated_is_requested_once_as_a_whole(watch: Watch) -> None:
    request = watch.tick()
    assert isinstance(request, dg.RunRequest)
    assert request.asset_selection is None
    assert request.job_name in (None, "evaluate_watched")
    assert "nobody wrote" in str(watch.tick())


def test_what_the_store_holds_already_is_not_requested(watch: Watch, toy: Tree) -> None:
    watch.evaluate()
    assert "has been evaluated already" in str(watch.tick())
    watch.write(edited(toy, "Something new."))
    watch.evaluate()  # by hand, before the sensor looks
    assert "has been evaluated already" in str(watch.tick())


def test_each_new_content_is_requested_under_a_key_of_its_own(watch: Watch, toy: Tree) -> None:
    watch.evaluate()
    keys = []
    watch.tick()
    for text in ("A", "B", "A", "B"):
        watch.write(edited(toy, text))
        request = watch.tick()
        assert isinstance(request, dg.RunRequest)
        keys.append(request.run_key)
        assert isinstance(watch.tick(), str)
        watch.evaluate()
        assert isinstance(watch.tick(), str)
    assert len(set(keys)) == 4


def test_a_request_that_failed_is_not_repeated(watch: Watch, toy: Tree) -> None:
    watch.evaluate()
    watch.tick()
    watch.write(edited(toy, "A"))
    assert isinstance(watch.tick(), dg.RunRequest)
    os.utime(watch.source)  # nothing was evaluated meanwhile
    assert "its content is the same" in str(watch.tick())


def test_with_the_automation_only_canonical_items_are_requested(
    tmp_path: Path, instance: dg.DagsterInstance, toy: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(tmp_path, instance, automation={"enabled": True})
    watch.write(toy)
    whole = watch.tick()
    assert isinstance(whole, dg.RunRequest)
    assert whole.asset_selection is None  # the store is empty: there is nothing to build on
    watch.evaluate()
    watch.write(edited(toy, "A"))
    request = watch.tick()
    assert isinstance(request, dg.RunRequest)
    assert (request.asset_selection, request.asset_check_keys) == ([CANONICAL], None)
    # What Dagster keeps when somebody switches the automation off in the UI.
    switched = SimpleNamespace(
        instigator_name="evaluate_watched_automation", status=SimpleNamespace(value="STOPPED")
    )
    monkeypatch.setattr(dg.DagsterInstance, "all_instigator_state", lambda *_: [switched])
    watch.write(edited(toy, "B"))
    request = watch.tick()
    assert isinstance(request, dg.RunRequest)
    assert request.asset_selection is None


def test_it_waits_while_a_run_of_the_suite_is_not_finished(watch: Watch, toy: Tree) -> None:
    watch.evaluate()
    watch.tick()
    watch.unfinished(**{SUITE_TAG: "another"})
    watch.write(edited(toy, "A"))
    assert isinstance(watch.tick(), dg.RunRequest)
    watch.unfinished(**{SUITE_TAG: "watched"})
    watch.write(edited(toy, "B"))
    assert "waits until the run" in str(watch.tick())
    for run in watch.instance.get_runs():
        watch.instance.report_run_failed(run)
    assert isinstance(watch.tick(), dg.RunRequest)


def test_a_run_whose_process_is_gone_is_not_waited_for(watch: Watch) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    tags = {HOST_TAG: socket.gethostname(), PID_TAG: str(ended.pid)}
    watch.unfinished(**{SUITE_TAG: "watched", **tags})
    assert isinstance(watch.tick(), dg.RunRequest)


def test_a_source_that_is_away_or_broken_is_skipped_until_it_is_written(
    watch: Watch, toy: Tree
) -> None:
    watch.source.rename(watch.source.with_suffix(".away"))
    assert "not readable" in str(watch.tick())
    assert "nobody wrote" in str(watch.tick())
    watch.source.write_text('{"contracts": [', "utf-8")
    told = watch.tick()
    assert isinstance(told, str)
    assert "source.json" in told
    assert "\n" not in told
    watch.write(toy)
    assert isinstance(watch.tick(), dg.RunRequest)


def test_what_changes_while_it_is_read_is_read_again(
    watch: Watch, toy: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(corpus: Any) -> str:
        watch.write(edited(toy, "A"))
        return "half old, half new"

    with monkeypatch.context() as patch:
        patch.setattr(source_sensor, "corpus_digest", slow)
        assert "changed while it was read" in str(watch.tick())
    assert isinstance(watch.tick(), dg.RunRequest)


def test_a_source_too_large_for_a_tick_is_left_to_the_automation(
    tmp_path: Path, instance: dg.DagsterInstance, toy: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_sensor, "READ_AT_MOST_MIB", 0)
    monkeypatch.setattr(source_sensor, "corpus_digest", None)  # nothing is read
    watch = Watch(tmp_path, instance)
    watch.write(toy)
    assert "switch the automation on" in str(watch.tick())
    watch = Watch(tmp_path, instance, automation={"enabled": True})
    assert "watched from now on" in str(watch.tick())
    watch.write(edited(toy, "A"))
    assert isinstance(watch.tick(), dg.RunRequest)
    assert "nobody wrote" in str(watch.tick())
