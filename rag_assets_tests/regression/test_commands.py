"""`pin-baseline`, `check` and `run` of a suite with gates: exit statuses, and what they print."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import run
from typing import Any

import dagster as dg
import duckdb
import numpy as np
import pytest
import yaml
from click.testing import CliRunner, Result

from rag_assets import project
from rag_assets.cli import main
from rag_assets.project import SUITE_TYPE
from rag_assets.regression.baseline import FILE, read_baseline
from rag_assets.warehouse.release import current_release
from rag_assets_tests.components.suites import declared, ran, rows
from rag_assets_tests.conftest import ROOT

COUNT = 40
LOST = range(10, 22)  # queries of the subgroup "hard", which find nothing any more
GATES = [
    {"measure": "ndcg_at_k", "k": 3, "floor": 0.5},
    {"measure": "ndcg_at_k", "k": 3, "subgroup": "hard", "max_drop": 0.1},
    {"measure": "recall_at_k", "k": 3, "subgroup": "each", "max_drop": 0.1},
]
STATED = {"evaluation_id": "20261130T215500Z-1a2b3c4d", "data_version": "da", "code_version": "c0"}


def fixture_tree(lost: range = range(0)) -> dict[str, Any]:
    """A document for every query, with its vector; queries in `lost` look elsewhere."""
    vectors = np.eye(COUNT).tolist()
    contract = {"provider": "hand", "model": "hand", "revision": "v1", "dimension": COUNT}
    contract |= {"metric": "cosine", "normalized": True, "query_role": "query"}
    contract |= {"document_role": "document", "dtype": "float32", "space_id": "one"}
    item = {"space_id": "one", "acl": ["staff"], "source_revision": "r1"}
    documents = [
        item | {"item_id": f"d{n:02}", "role": "document", "text": f"Text {n}.", "vector": vector}
        for n, vector in enumerate(vectors)
    ]
    queries = [
        item
        | {"item_id": f"q{n:02}", "role": "query", "text": f"Question {n}?"}
        | {"vector": vectors[(n + COUNT // 2) % COUNT] if n in lost else vectors[n]}
        for n in range(COUNT)
    ]
    cases = [
        {"case_id": f"case-{n:02}", "query_item_id": f"q{n:02}", "subject_groups": ["staff"]}
        | {"relevance": {f"d{n:02}": 3}, "subgroups": ["hard" if n < 25 else "easy"]}
        for n in range(COUNT)
    ]
    return {"contracts": [contract], "items": documents + queries, "queries": cases}


@dataclass(frozen=True)
class Guarded:
    """The suite `guard` in a project of its own, its warehouse, and the command line on it."""

    root: Path

    @property
    def folder(self) -> Path:
        return self.root / "defs" / "guard"

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    def write(self, gates: list[dict[str, Any]], **changes: Any) -> None:
        attributes = {
            "name": "guard",
            "source": {"format": "fixture", "path": "data/guard.json"},
            "spaces": [{"space_id": "one"}],
            "k": [3],
            "notice": "Vectors are hand-authored and show nothing about any model.",
            "regression": {"gates": gates},
        } | changes
        self.folder.mkdir(parents=True, exist_ok=True)
        document = {"type": SUITE_TYPE, "attributes": attributes}
        (self.folder / "defs.yaml").write_text(yaml.safe_dump(document), "utf-8")

    def source(self, tree: Mapping[str, Any]) -> None:
        (self.root / "data").mkdir(exist_ok=True)
        (self.root / "data" / "guard.json").write_text(json.dumps(tree), "utf-8")

    def run(self) -> dg.ExecuteInProcessResult:
        document = yaml.safe_load((self.folder / "defs.yaml").read_text("utf-8"))
        with dg.DagsterInstance.ephemeral() as instance:
            return ran(declared(document["attributes"], self.folder), instance)

    def state_evaluation(self) -> None:
        """What says which evaluation a release is, where its maker did not say."""
        release = current_release(self.warehouse, "guard")
        release.chmod(0o644)
        with duckdb.connect(str(release)) as connection:
            for table in ("base.manifest", "manifest"):
                for key, value in STATED.items():
                    connection.execute(
                        f"INSERT INTO {table} SELECT ?, ? WHERE NOT EXISTS "
                        f"(FROM {table} WHERE key = ?)",
                        [key, value, key],
                    )
        release.chmod(0o444)

    def command(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, arguments)

    def pin(self, *, by: str = "Ada", why: str = "the first one") -> Result:
        return self.command("pin-baseline", "guard", "--by", by, "--why", why)

    def sql(self, statement: str) -> list[dict[str, Any]]:
        return rows(self.folder, "guard", statement)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose suite was run and pinned while every query found its document."""
    guard = Guarded(tmp_path_factory.mktemp("sound"))
    shutil.copytree(ROOT / "dbt_like_sql", guard.root / "dbt_like_sql")
    guard.write(GATES)
    guard.source(fixture_tree())
    with pytest.MonkeyPatch.context() as patch:
        point_at(guard, patch)
        assert guard.run().success
        guard.state_evaluation()
        result = guard.pin()
    assert result.exit_code == 0, result.output
    assert "80 rows" not in result.output and f"{COUNT} rows" in result.output
    return guard.root


def point_at(guard: Guarded, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("RAG_ASSETS_PROJECT", str(guard.root))
    patch.setenv("RAG_ASSETS_WAREHOUSE", str(guard.warehouse))
    patch.setattr(project, "suites_folder", lambda: guard.root / "defs")


@pytest.fixture
def guard(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guarded:
    """A copy of it, free to change."""
    copy = Guarded(Path(shutil.copytree(sound, tmp_path / "guard", symlinks=True)))
    point_at(copy, monkeypatch)
    return copy


def refused(result: Result, *said: str) -> None:
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    [line] = result.stderr.splitlines()
    for words in said:
        assert words in line


def test_the_pinned_file_holds_the_release_s_measures(guard: Guarded) -> None:
    pinned = read_baseline(guard.folder, "guard")
    assert pinned is not None
    [facts] = guard.sql(
        "SELECT max(value) FILTER (WHERE key = 'evaluation_id') AS evaluation_id, "
        "max(value) FILTER (WHERE key = 'evaluated_at') AS evaluated_at FROM manifest"
    )
    assert pinned.header.evaluation_id == facts["evaluation_id"]
    assert pinned.header.evaluated_at == facts["evaluated_at"]
    assert (pinned.header.pinned_by, pinned.header.why) == ("Ada", "the first one")
    [signature] = guard.sql("SELECT contract_signature FROM spaces")
    assert pinned.header.contract_signatures == {"one": signature["contract_signature"]}
    rows = pinned.rows.to_pylist()
    assert [row["case_id"] for row in rows] == [f"case-{n:02}" for n in range(COUNT)]
    assert {row["ndcg_at_k"] for row in rows} == {1.0}


def test_an_unchanged_suite_passes_and_the_json_is_equal_to_the_byte(guard: Guarded) -> None:
    result = guard.command("check", "guard")
    assert result.exit_code == 0, result.output
    assert "PASS         one, exact: mean nDCG@3 is 1.000 over 40 queries" in result.output
    assert "mean recall@3 of subgroup easy stayed the same (0 of 15 queries" in result.output
    assert result.output.endswith("Check passed: 4 of 4 gates pass; 0 other checks failed\n")
    one, two = (guard.command("check", "guard", "--format", "json").stdout for _ in range(2))
    assert one == two
    found = json.loads(one)
    assert found["passed"] is True
    assert found["baseline"]["why"] == "the first one"
    assert [gate["status"] for gate in found["gates"]] == ["pass"] * 4


def test_a_drop_fails_the_run_and_the_check_with_the_release_published(guard: Guarded) -> None:
    before = current_release(guard.warehouse, "guard")
    pinned = read_baseline(guard.folder, "guard")
    assert pinned is not None
    guard.source(fixture_tree(LOST))
    stale = guard.command("check", "guard")
    refused(stale, "made from other content", "(canonical_items)", "run: rag-assets run guard")

    result = guard.run()
    error = dg.AssetCheckSeverity.ERROR
    failed = [
        e for e in result.get_asset_check_evaluations() if not e.passed and e.severity == error
    ]
    [evaluation] = failed
    assert evaluation.asset_check_key.to_user_string() == "guard/regression_gates:regression_gates"
    assert "mean nDCG@3 of subgroup hard fell by 0.480" in str(evaluation.description)
    assert current_release(guard.warehouse, "guard") != before

    gates = guard.sql("SELECT * FROM regression_gates")
    lost = [f"case-{n}" for n in LOST]
    assert [(g["rule"], g["subgroup"], g["measure"], g["status"]) for g in gates] == [
        ("floor", None, "ndcg_at_k", "pass"),
        ("max_drop", "hard", "ndcg_at_k", "fail"),
        ("max_drop", "easy", "recall_at_k", "pass"),
        ("max_drop", "hard", "recall_at_k", "fail"),
    ]
    # Of 2^12 sign patterns two are as extreme; two of the tests have changed queries.
    for gate in (gates[1], gates[3]):
        assert gate["worse_queries"] == lost
        assert gate["difference"] == pytest.approx(-12 / 25)
        assert (gate["p_value"], gate["p_adjusted"]) == (2 / 2**12, 4 / 2**12)
        assert gate["baseline_evaluation"] == pinned.header.evaluation_id
    [stored] = guard.sql("FROM check_results WHERE check_name = 'regression_gates'")
    assert (stored["asset"], stored["passed"], stored["severity"]) == (
        "guard/regression_gates",
        False,
        "error",
    )
    # The same question, as comparison_statistics puts it; SQL users can put others.
    [compared] = guard.sql(
        "SELECT * FROM comparison_statistics WHERE comparison_id LIKE 'today against baseline %' "
        "AND comparison_id LIKE '%, one, exact' AND subgroup = 'hard' AND measure = 'ndcg_at_k'"
    )
    assert (compared["verdict"], compared["worse_count"]) == ("worse", 12)
    assert compared["p_value"] == gates[1]["p_value"]
    [own] = guard.sql(
        "SELECT avg(t.ndcg_at_k - b.ndcg_at_k) AS difference FROM metric_by_query AS t "
        "JOIN base.baseline_by_query AS b USING (space_id, index_name, case_id, k) "
        "WHERE list_contains(b.subgroups, 'hard')"
    )
    assert own["difference"] == pytest.approx(gates[1]["difference"])

    checked = guard.command("check", "guard")
    assert checked.exit_code == 1
    assert "worse: case-10, case-11, case-12, case-13, case-14 and 7 more" in checked.output
    assert "Check failed: 2 of 4 gates pass, 2 fail; 0 other checks failed" in checked.output

    # An edited bound counts at once, and so does a new baseline: a person's decision.
    guard.write([GATES[0], {**GATES[1], "max_drop": 0.5}])
    assert guard.command("check", "guard").exit_code == 0
    guard.write(GATES)
    guard.state_evaluation()
    assert guard.pin(why="the hard ones were wrong").exit_code == 0
    accepted = guard.command("check", "guard")
    assert accepted.exit_code == 0
    assert "the hard ones were wrong" in accepted.output


def test_a_fresh_clone_has_only_the_committed_baseline_and_its_run_fails(
    guard: Guarded, tmp_path: Path, dagster_home: Path
) -> None:
    clone = tmp_path / "clone"
    shutil.copytree(ROOT / "rag_assets", clone / "rag_assets")
    shutil.copytree(ROOT / "dbt_like_sql", clone / "dbt_like_sql")
    shutil.copy(ROOT / "pyproject.toml", clone)
    suite = clone / "rag_assets" / "defs" / "guard"
    suite.mkdir()
    for name in ("defs.yaml", FILE):
        shutil.copy(guard.folder / name, suite)
    Guarded(clone).source(fixture_tree(LOST))
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment |= {"PYTHONPATH": str(clone), "DAGSTER_HOME": str(dagster_home)}

    def command(*arguments: str) -> Any:
        return run(
            [sys.executable, "-m", "rag_assets.cli", *arguments],
            env=environment,
            cwd=clone,
            capture_output=True,
            text=True,
            timeout=300,
        )

    done = command("run", "guard")
    assert done.returncode == 1, done.stderr
    assert "CHECK FAILED regression_gates on guard/regression_gates" in done.stdout
    assert "FAIL one, exact: mean nDCG@3 of subgroup hard fell by 0.480" in done.stdout
    assert (clone / "data" / "warehouse" / "guard.duckdb").exists()
    checked = command("check", "guard", "--format", "json")
    assert checked.returncode == 1, checked.stderr
    assert [gate["status"] for gate in json.loads(checked.stdout)["gates"]].count("fail") == 2


def test_without_a_baseline_drops_are_not_executed_which_strict_does_not_accept(
    guard: Guarded,
) -> None:
    (guard.folder / FILE).unlink()
    assert guard.run().success
    [stored] = guard.sql("FROM check_results WHERE check_name = 'regression_gates'")
    assert (stored["passed"], stored["severity"]) == (False, "warn")
    lenient = guard.command("check", "guard")
    assert lenient.exit_code == 0
    assert (
        "NOT EXECUTED one, exact: mean nDCG@3 of subgroup hard was not examined" in lenient.output
    )
    assert "pin one: rag-assets pin-baseline guard --by NAME --why TEXT" in lenient.output
    strict = guard.command("check", "guard", "--strict", "--format", "json")
    assert (strict.exit_code, json.loads(strict.stdout)["passed"]) == (1, False)


def test_a_suite_without_gates_passes_and_says_so(guard: Guarded) -> None:
    guard.write([])
    assert guard.run().success
    result = guard.command("check", "guard")
    assert result.exit_code == 0
    assert "no regression gates are declared" in result.output


def test_a_damaged_baseline_stops_the_check_and_the_run(guard: Guarded) -> None:
    data = (guard.folder / FILE).read_bytes()
    (guard.folder / FILE).write_bytes(data[: len(data) // 2])
    refused(guard.command("check", "guard"), "guard/baseline.parquet", "restore the file")
    before = current_release(guard.warehouse, "guard")
    result = guard.run()
    assert not result.success
    [failure] = [event for event in result.all_events if event.is_step_failure]
    assert "damaged_baseline" in failure.step_failure_data.user_failure_data.description  # type: ignore[union-attr,operator]
    assert current_release(guard.warehouse, "guard") == before


def test_a_check_that_failed_in_the_release_fails_it_and_cannot_be_pinned(guard: Guarded) -> None:
    tree = fixture_tree()
    tree["contracts"].append(tree["contracts"][0] | {"space_id": "two", "revision": "v2"})
    copies = [item | {"space_id": "two"} for item in tree["items"]]
    copies[0] = copies[0] | {"text": "Another text."}  # the canonical gate of the audit fails
    tree["items"] += copies
    guard.source(tree)
    guard.write(GATES[:1], spaces=[{"space_id": "one"}, {"space_id": "two"}])
    guard.run()
    guard.state_evaluation()
    result = guard.command("check", "guard")
    assert result.exit_code == 1
    assert "CHECK FAILED mechanical_gates on guard/migration_audit" in result.output
    assert "Check failed: 2 of 2 gates pass; " in result.output
    held = (guard.folder / FILE).read_bytes()
    refused(guard.pin(), "checks failed in it: ", "guard/migration_audit mechanical_gates")
    assert (guard.folder / FILE).read_bytes() == held


def forget(key: str) -> Callable[[Guarded], None]:
    def forgetting(guard: Guarded) -> None:
        release = current_release(guard.warehouse, "guard")
        release.chmod(0o644)
        with duckdb.connect(str(release)) as connection:
            connection.execute("DELETE FROM manifest WHERE key = ?", [key])

    return forgetting


@pytest.mark.parametrize("key", ["evaluation_id", "data_version", "code_version"])
def test_a_release_of_an_older_version_cannot_be_pinned(guard: Guarded, key: str) -> None:
    forget(key)(guard)
    refused(guard.pin(), "made by an older version", "run: rag-assets run guard")


def test_a_release_of_other_precomputed_vectors_is_not_checked(guard: Guarded) -> None:
    data = guard.root / "data"
    (data / "qrels").mkdir()
    for name, key in (("corpus", "d"), ("queries", "q")):
        lines = [{"_id": f"{key}{n}", "text": f"A {name} text {n}."} for n in range(3)]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (data / f"{name}.jsonl").write_text(text, "utf-8")
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td0\t1\n", "utf-8")
    for name, key in (("doc", "d"), ("query", "q")):
        np.save(data / f"{name}_vectors.npy", np.eye(3, dtype=np.float32))
        (data / f"{name}_ids.txt").write_text(f"{key}0\n{key}1\n{key}2\n", "utf-8")
    contract = {"provider": "p", "model": "m", "revision": "1", "dimension": 3}
    contract |= {"metric": "cosine", "normalized": True}
    vectors = {"provider": "precomputed", "folder": "data"}
    (guard.folder / FILE).unlink()
    guard.write(
        GATES[:1],
        source={"format": "beir", "path": "data", "acl": "public"},
        spaces=[{"space_id": "one", "contract": contract, "vectors": vectors}],
    )
    assert guard.run().success
    assert guard.command("check", "guard").exit_code == 0
    np.save(data / "query_vectors.npy", np.eye(3, dtype=np.float32)[::-1])
    refused(guard.command("check", "guard"), "made from other content", "(one/embeddings)")


def test_pinning_needs_a_release_a_name_and_a_reason(guard: Guarded) -> None:
    refused(guard.pin(why=" "), "why is ' '")
    refused(guard.pin(by="a\nb"), "by is 'a\\nb'")
    shutil.rmtree(guard.warehouse)
    refused(guard.pin(), "has no release yet")
    refused(guard.command("check", "guard"), "has no release yet", "rag-assets run guard")
    refused(guard.command("check", "absent"), "unknown suite 'absent'; known suites are guard")


def test_a_gate_that_is_a_mistake_is_refused_with_its_file(guard: Guarded) -> None:
    guard.write([{"measure": "ndcg_at_k", "k": 4, "floor": 0.5}])
    refused(guard.command("check", "guard"), "defs/guard/defs.yaml", "k = 4 is not evaluated")
