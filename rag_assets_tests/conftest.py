"""Workshops: a project folder, a warehouse and a Dagster home of a test's own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rag_assets.cli import main

ROOT = Path(__file__).parents[1]
Tree = dict[str, Any]


@dataclass(frozen=True)
class Workshop:
    """Copies of what the suite `toy` reads, and the variables that point the command line there."""

    project: Path
    warehouse: Path
    environment: dict[str, str]

    @property
    def source(self) -> Path:
        return self.project / "data" / "toy" / "toy.json"

    @property
    def link(self) -> Path:
        return self.warehouse / "toy.duckdb"

    def write(self, tree: Tree) -> None:
        self.source.write_text(json.dumps(tree), "utf-8")

    def command(self, *arguments: object) -> Result:
        """`rag-assets ...` in this process."""
        return CliRunner().invoke(main, [str(a) for a in arguments], env=self.environment)

    def started(self, *arguments: object) -> subprocess.Popen[str]:
        """`rag-assets ...` in a process of its own."""
        return started(*arguments, **self.environment)

    def rows(self, statement: str) -> list[dict[str, Any]]:
        result = self.command("sql", "toy", statement, "--format", "json")
        assert result.exit_code == 0, result.stderr
        rows: list[dict[str, Any]] = json.loads(result.stdout)
        return rows

    def releases(self) -> dict[str, bytes]:
        """Every release by name, with the bytes of its file."""
        folder = self.warehouse / "releases" / "toy"
        return {path.name: path.read_bytes() for path in folder.glob("*.duckdb")}


def started(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "rag_assets.cli", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


@pytest.fixture(scope="session")
def dagster_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One instance for all tests, with the project's settings: creating one takes seconds."""
    home = tmp_path_factory.mktemp("dagster_home")
    shutil.copy(ROOT / "dagster_home" / "dagster.yaml", home)
    return home


@pytest.fixture(scope="session")
def new_workshop(dagster_home: Path) -> Callable[[Path], Workshop]:
    def create(folder: Path) -> Workshop:
        project, warehouse = folder / "project", folder / "warehouse"
        for name in ("dbt_like_sql", "data/toy"):
            shutil.copytree(ROOT / name, project / name)
        environment = {
            "RAG_ASSETS_PROJECT": str(project),
            "RAG_ASSETS_WAREHOUSE": str(warehouse),
            "DAGSTER_HOME": str(dagster_home),
        }
        return Workshop(project, warehouse, environment)

    return create


@pytest.fixture
def workshop(tmp_path: Path, new_workshop: Callable[[Path], Workshop]) -> Workshop:
    return new_workshop(tmp_path)


@pytest.fixture(scope="session")
def first_run(
    tmp_path_factory: pytest.TempPathFactory, new_workshop: Callable[[Path], Workshop]
) -> tuple[Workshop, Result]:
    """A workshop in which the bundled suite was run once, and what the command said."""
    workshop = new_workshop(tmp_path_factory.mktemp("published"))
    result = workshop.command("run", "toy")
    assert result.exit_code == 0, result.output
    return workshop, result


@pytest.fixture(scope="session")
def published(first_run: tuple[Workshop, Result]) -> Workshop:
    """The workshop of the first run; tests only read it."""
    return first_run[0]


@pytest.fixture(scope="session")
def republished(
    published: Workshop, new_workshop: Callable[[Path], Workshop]
) -> Callable[[Path], Workshop]:
    """Workshops whose warehouse is a copy of the first run's."""

    def create(folder: Path) -> Workshop:
        workshop = new_workshop(folder)
        shutil.copytree(published.warehouse, workshop.warehouse, symlinks=True)
        return workshop

    return create


@pytest.fixture
def toy() -> Tree:
    """The bundled fixture, free to change."""
    tree: Tree = json.loads((ROOT / "data" / "toy" / "toy.json").read_text("utf-8"))
    return tree


def item_in(tree: Tree, space_id: str, item_id: str) -> Tree:
    """One item of one space of a fixture."""
    [item] = [
        item for item in tree["items"] if (item["space_id"], item["item_id"]) == (space_id, item_id)
    ]
    found: Tree = item
    return found
