from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rag_assets_tests.decisions.releases import Decided, calibrate, new_suite


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Decided:
    """A suite with thresholds and a release, about which nobody has decided; only read it."""
    suite = new_suite(tmp_path_factory.mktemp("decided"))
    assert suite.run().success
    calibrate(suite)
    assert suite.run().success
    return suite


@pytest.fixture
def suite(released: Decided, tmp_path: Path) -> Decided:
    """A copy of that suite to decide on."""
    shutil.copytree(released.folder, tmp_path / "suite", symlinks=True)
    return Decided(tmp_path / "suite")


@pytest.fixture
def ready(suite: Decided) -> Decided:
    """The copy with everything signed that a first activation needs."""
    suite.sign("shadow_and_rollback", why="two weeks in shadow, drilled on Friday")
    suite.sign("approvals", why="licence, privacy, retention and deletion: ticket 12")
    return suite


@pytest.fixture
def serving(ready: Decided) -> Decided:
    """The copy with `old` active and the migration to `new` decided."""
    assert ready.activate("old").exit_code == 0
    ready.sign("quality", "old:new", why="equal")
    return ready
