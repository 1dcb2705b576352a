"""What the README promises: its queries run, and its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from rag_assets.components import EvaluationSuite
from rag_assets.fixture_evaluation import evaluate_fixture
from rag_assets.project import project_root
from rag_assets.warehouse.release import query

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
QUERIES = re.findall(r"```sql\n(.*?)```", README, flags=re.DOTALL)
EMPTY = {
    "5.": "the toy suite's spaces agree about every item",
    "7.": "every relevant document is in the top 3",
    "8.": "nothing leaks",
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("readme") / "toy.duckdb"
    fixture = project_root() / "data" / "toy" / "toy.json"
    evaluate_fixture(fixture, ks=(3,), audits=None, max_bytes=5 << 20, db=path)[1].close()
    return path


def test_there_are_ten_queries() -> None:
    assert len(QUERIES) == 10


@pytest.mark.parametrize("statement", QUERIES, ids=lambda s: s.split(" ", 2)[1])
def test_each_query_of_the_readme_answers_its_question(statement: str, database: Path) -> None:
    rows = query(database, statement)
    number = statement.split()[1]
    assert (len(rows) == 0) == (number in EMPTY), EMPTY.get(number, "should return rows")


def test_the_query_for_leaks_finds_a_planted_one(database: Path) -> None:
    """Query 8 returns nothing on good data; with the rights of every item gone it returns all."""
    [leaks] = [statement for statement in QUERIES if statement.startswith("-- 8.")]
    planted = leaks.replace(
        "JOIN canonical_items i", "JOIN (SELECT item_id, ['nobody'] AS acl FROM canonical_items) i"
    )
    assert planted != leaks
    [[results]] = query(database, "SELECT count(*) AS n FROM query_results").to_pandas().to_numpy()
    assert len(query(database, planted)) == results > 0


def test_every_linked_file_exists() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (project_root() / target).exists(), target


YAML = re.findall(r"```yaml\n(.*?)```", README, flags=re.DOTALL)


def test_the_gates_to_copy_fit_the_suite_to_copy() -> None:
    gates = yaml.safe_load(YAML[1])
    attributes = yaml.safe_load(YAML[0])["attributes"] | gates
    suite = EvaluationSuite.resolve_from_dict(attributes).suite(Path())
    spaces = len(suite.space_ids)
    assert len(suite.regression.questions) == 2 * spaces + 1 + spaces


def test_the_yaml_to_copy_is_a_suite_that_loads() -> None:
    written = YAML[0]
    declared = yaml.safe_load(written)
    assert declared["type"] == "rag_assets.components.EvaluationSuite"
    suite = EvaluationSuite.resolve_from_dict(declared["attributes"]).suite(Path())
    assert suite.space_ids == ("old", "new", "new-int8", "words")
    assert [(pair.old, pair.new) for pair in suite.pairs] == [("old", "new"), ("new", "new-int8")]
