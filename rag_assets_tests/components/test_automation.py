"""What a change of a source sets going: steps are counted, in runs that the sensors requested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from rag_assets.components import EvaluationSuite
from rag_assets.components.suite import StoreResource
from rag_assets_tests.components.test_collections import TEXTS, write_small
from rag_assets_tests.conftest import ROOT
from rag_assets_tests.embeddings.corpora import DIMENSION
from rag_assets_tests.embeddings.fake_server import FakeServer, serving

KEY = "RAG_ASSETS_TEST_KEY"
MODEL = {
    "provider": "p",
    "model": "m",
    "revision": "1",
    "metric": "cosine",
    "dimension": DIMENSION,
    "normalized": False,
}
# One space of every kind: embedded by a server, derived from it, and without its key.
SPACES = ("served", "int8", "keyless")
TABLES = {path.stem for path in (ROOT / "dbt_like_sql").glob("*.sql")} - {"canonical_items"}


def attributes(name: str, server: FakeServer, **settings: Any) -> dict[str, Any]:
    vectors = {"provider": "openai_compatible", "base_url": server.url}
    return {
        "name": name,
        "source": {"format": "beir", "path": f"data/{name}", "acl": ["staff"]},
        "spaces": [
            {"space_id": "served", "contract": MODEL, "vectors": {**vectors, "api_key_env": KEY}},
            {"space_id": "int8", "derive": {"parent": "served", "int8": "vector"}},
            {
                "space_id": "keyless",
                "contract": MODEL,
                "vectors": {**vectors, "api_key_env": "RAG_ASSETS_NO_SUCH_KEY"},
            },
        ],
        "indexes": [{"kind": "hnsw", "spaces": ["served"]}],
        "k": [2],
        "benchmark_budget_s": 0.01,
        **settings,
    }


@dataclass
class Happened:
    """What ran until nothing more was requested, and what the embedding server was asked."""

    made: Counter[str] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    embedded: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    others: set[str] = field(default_factory=set)

    @property
    def chain(self) -> dict[str, int]:
        """How often each asset was made, tables left out."""
        return {name: count for name, count in self.made.items() if name not in TABLES}


class House:
    """Two suites in one warehouse, and the sensors of the one that is called `watched`."""

    def __init__(self, folder: Path, server: FakeServer, **settings: Any) -> None:
        self.folder, self.server = folder, server
        self.source = folder / "data" / "watched"
        self.instance = dg.DagsterInstance.ephemeral()
        self.store = StoreResource(root=str(folder / "warehouse"))
        self.cursors: dict[str, str | None] = {}
        built = []
        for name, stated in (("watched", settings), ("other", {})):
            write_small(folder / "data" / name)
            component = EvaluationSuite.resolve_from_dict(attributes(name, server, **stated))
            context: Any = SimpleNamespace(path=folder)
            built.append(component.build_defs(context))
        shared = dg.Definitions(
            resources={"store": self.store},
            executor=dg.in_process_executor,
            loggers={"console": dg.colored_console_logger},
        )
        self.repository = dg.Definitions.merge(*built, shared).get_repository_def()

    def tick(self, sensor: str) -> Any:
        """What the sensor requests now, or why it does not."""
        name = f"evaluate_watched_{sensor}"
        context = dg.build_sensor_context(
            self.instance,
            cursor=self.cursors.get(name),
            repository_def=self.repository,
            resources={"store": self.store},
        )
        found = self.repository.get_sensor_def(name).evaluate_tick(context)
        self.cursors[name] = found.cursor
        return found

    def run(self, request: dg.RunRequest, happened: Happened) -> None:
        job = self.repository.get_job(request.job_name or "__ASSET_JOB")
        if request.asset_selection is not None:
            checks = request.asset_check_keys
            job = job.get_subset(
                asset_selection={*request.asset_selection},
                asset_check_selection=None if checks is None else {*checks},
            )
        result = job.execute_in_process(
            instance=self.instance,
            tags=request.tags,
            raise_on_error=False,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )
        for event in result.all_events:
            if event.is_step_materialization:
                suite, *path = event.step_materialization_data.materialization.asset_key.path
                happened.made["/".join(path)] += 1
                happened.others |= {suite} - {"watched"}
            if event.is_step_failure:
                data = event.step_failure_data
                told = data.user_failure_data and data.user_failure_data.description
                happened.failures.append(str(told or data.error))
        for found in result.get_asset_check_evaluations():
            happened.checked[f"{'/'.join(found.asset_key.path[1:])}:{found.check_name}"] += 1

    def settle(self, *sensors: str) -> Happened:
        """Let the sensors tick, and run what they request, until they request nothing more."""
        happened = Happened()
        asked = len(self.server.texts)
        for _ in range(20):
            requests = [request for name in sensors for request in self.tick(name).run_requests]
            for request in requests:
                self.run(request, happened)
            if not requests:
                happened.embedded = self.server.texts[asked:]
                return happened
        raise AssertionError(f"no end: {happened}")

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.source / file
        text = path.read_text("utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), "utf-8")


BOTH = ("source_sensor", "automation")
SEARCHED = {
    "served/exact_index",
    "served/exact_results",
    "served/hnsw_index",
    "served/hnsw_results",
    "served/index_times",
    "int8/exact_index",
    "int8/exact_results",
}
# What has nothing to do without its key, and is not done again unless it could not be known.
KEYLESS = {"keyless/exact_results"}
EMBEDDED = {f"{space}/embeddings" for space in SPACES}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeServer]:
    monkeypatch.setenv(KEY, "secret")
    (tmp_path / "dbt_like_sql").symlink_to(ROOT / "dbt_like_sql")
    monkeypatch.setenv("RAG_ASSETS_PROJECT", str(tmp_path))
    with serving() as fake:
        yield fake


@pytest.fixture
def house(tmp_path: Path, server: FakeServer) -> House:
    """Evaluated once by the automation, from nothing."""
    house = House(tmp_path, server, automation={"enabled": True})
    first = house.settle("automation")
    assert first.failures == []
    assert first.others == set()
    assert set(first.made.values()) == {1}
    assert set(first.made) == {"canonical_items", "keyless/exact_index"} | EMBEDDED | SEARCHED | (
        KEYLESS | TABLES
    )
    assert len(first.embedded) == len(TEXTS) + 2
    assert set(first.checked.values()) == {1}
    every = {key.to_user_string() for key in house.repository.asset_graph.asset_check_keys}
    assert {f"watched/{name}" for name in first.checked} == {
        name for name in every if name.startswith("watched/")
    }
    return house


def test_it(house: House) -> None:
    pass
