"""What a change of a source sets going: steps are counted, in runs that the sensors requested."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from rag_assets.components import EvaluationSuite, chain, checks
from rag_assets.components.suite import StoreResource
from rag_assets.errors import StoreError
from rag_assets_tests.components.suites import rows
from rag_assets_tests.components.test_collections import TEXTS, write_small
from rag_assets_tests.components.test_guard import verdict
from rag_assets_tests.conftest import ROOT
from rag_assets_tests.embeddings.corpora import DIMENSION
from rag_assets_tests.embeddings.fake_server import FakeServer, serving

pytestmark = pytest.mark.slow

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
TABLES |= {"report"}  # the step that makes the tables writes it


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
                "contract": {**MODEL, "revision": "2"},  # or the cache would serve it
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


class House:
    """Two suites in one warehouse, and the sensors of the one that is called `watched`."""

    def __init__(
        self, folder: Path, server: FakeServer, instance: dg.DagsterInstance, **settings: Any
    ) -> None:
        self.folder, self.server, self.instance = folder, server, instance
        self.source = folder / "data" / "watched"
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


CANONICAL = dg.AssetKey(["watched", "canonical_items"])
BOTH = ("source_sensor", "automation")
EMBEDDINGS = {f"{space}/embeddings" for space in SPACES}
INDEXES = {"served/exact_index", "served/hnsw_index", "int8/exact_index"}
SEARCHES = {
    "served/exact_results",
    "served/hnsw_results",
    "served/index_times",
    "int8/exact_results",
    "keyless/exact_results",
}


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Evaluated once by the automation, from nothing. Tests change it and let it settle."""
    folder = tmp_path_factory.mktemp("automation")
    (folder / "dbt_like_sql").symlink_to(ROOT / "dbt_like_sql")
    with pytest.MonkeyPatch.context() as patch, serving() as server, dg.instance_for_test() as home:
        patch.setenv(KEY, "secret")
        patch.setenv("RAG_ASSETS_PROJECT", str(folder))
        house = House(folder, server, home, automation={"enabled": True})
        first = house.settle("automation")
        assert (first.failures, first.others) == ([], set())
        # Also with a space that has no key, whose checks warn.
        chain = {"canonical_items", "keyless/exact_index"} | EMBEDDINGS | INDEXES | SEARCHES
        assert first.made == Counter(chain | TABLES)
        assert Counter(first.embedded) == Counter([*TEXTS.values(), "boats on water", "wind"])
        checks = {key.to_user_string() for key in house.repository.asset_graph.asset_check_keys}
        assert Counter({f"watched/{name}": n for name, n in first.checked.items()}) == Counter(
            name for name in checks if name.startswith("watched/")
        )
        yield house


@pytest.fixture
def house(settled: House) -> House:
    before = settled.settle(*BOTH)
    assert (before.made, before.failures) == (Counter(), [])
    return settled


def test_another_spelling_of_the_same_content_runs_nothing(house: House) -> None:
    corpus = house.source / "corpus.jsonl"
    records = [json.loads(line) for line in corpus.read_text("utf-8").splitlines()]
    spelled = [
        json.dumps(dict(reversed(record.items())), separators=(" , ", " : ")) for record in records
    ]
    corpus.write_text("\n".join(spelled) + "\n", "utf-8")
    assert "content is the same" in str(house.tick("source_sensor").skip_message)
    os.utime(corpus)
    assert "content is the same" in str(house.tick("source_sensor").skip_message)
    assert "nobody wrote" in str(house.tick("source_sensor").skip_message)
    assert house.settle(*BOTH).made == Counter()


def test_the_same_content_materialized_again_changes_nothing_downstream(house: House) -> None:
    house.run(dg.RunRequest(asset_selection=[CANONICAL]), Happened())
    assert house.settle(*BOTH).made == Counter()


def test_a_refused_source_is_skipped_and_what_was_evaluated_stays(house: House) -> None:
    corpus = house.source / "corpus.jsonl"
    whole = corpus.read_bytes()
    corpus.write_bytes(whole[:-20])  # somebody is still writing
    told = str(house.tick("source_sensor").skip_message)
    assert "data/watched/corpus.jsonl: line 4" in told
    assert "\n" not in told
    assert "nobody wrote" in str(house.tick("source_sensor").skip_message)
    refused = Happened()
    house.run(dg.RunRequest(asset_selection=[CANONICAL]), refused)  # by hand
    assert (refused.made, len(refused.failures)) == (Counter(), 1)
    assert house.settle(*BOTH).made == Counter()
    corpus.write_bytes(whole)
    assert "content is the same" in str(house.tick("source_sensor").skip_message)


def test_editing_one_document_embeds_one_and_makes_the_chain_once_each_time(house: House) -> None:
    once = Counter({"canonical_items"} | EMBEDDINGS | INDEXES | SEARCHES | TABLES)
    corpus = house.source / "corpus.jsonl"
    original = corpus.read_bytes()
    house.edit("corpus.jsonl", TEXTS["cats"], "Cats are awake at night.")
    happened = house.settle(*BOTH)
    assert happened.embedded == ["Cats are awake at night."]
    assert (happened.made, happened.failures, happened.others) == (once, [], set())
    [row] = rows(house.folder, "watched", "SELECT text FROM canonical_items WHERE item_id = 'cats'")
    assert row["text"] == "Cats are awake at night."
    corpus.write_bytes(original)  # content that was evaluated before, but is not current
    back = house.settle(*BOTH)
    assert (back.embedded, back.made) == ([], once)  # its vector is still in the cache
    [row] = rows(house.folder, "watched", "SELECT text FROM canonical_items WHERE item_id = 'cats'")
    assert row["text"] == TEXTS["cats"]


def test_editing_a_judgement_leaves_indexes_alone(house: House) -> None:
    house.edit("qrels/test.tsv", "q-boats\tboats\t1", "q-boats\tboats\t2")
    happened = house.settle(*BOTH)
    assert happened.embedded == []
    assert happened.made == Counter({"canonical_items"} | EMBEDDINGS | SEARCHES | TABLES)
    assert (happened.failures, happened.others) == ([], set())
    assert rows(house.folder, "watched", "SELECT grade FROM qrels") == [{"grade": 2}]


def test_a_failed_check_or_step_stops_what_depends_on_it_without_further_failures(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(checks, "check_canonical_items", lambda *_, **__: verdict(passed=False))
        house.edit("corpus.jsonl", TEXTS["boats"], "Boats are made of wood.")
        stopped = house.settle(*BOTH)
    assert stopped.made == Counter(["canonical_items"])
    assert len(stopped.failures) == 1
    with monkeypatch.context() as patch:
        patch.setattr(chain.ExactIndex, "build", refuse)
        house.edit("corpus.jsonl", "Boats are made of wood.", "Boats are made of steel.")
        stopped = house.settle(*BOTH)
    unharmed = {"served/hnsw_index", "keyless/exact_results"}
    assert stopped.made == Counter({"canonical_items"} | EMBEDDINGS | unharmed)
    assert stopped.failures == ["no index today"] * 2  # of two spaces
    house.edit("corpus.jsonl", "Boats are made of steel.", TEXTS["boats"])
    assert house.settle(*BOTH).made["manifest"] == 1


def refuse(*_: object) -> None:
    raise StoreError("no index today")
