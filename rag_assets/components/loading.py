"""One suite by its name, as its YAML declares it, and whether its release is of its source now."""

from __future__ import annotations

from pathlib import Path

import yaml

from rag_assets.components.chain import versions_now
from rag_assets.components.evaluation_suite import EvaluationSuite
from rag_assets.components.suite import Suite
from rag_assets.embeddings.cache import EmbeddingCache
from rag_assets.errors import StoreError, UsageError
from rag_assets.project import SUITE_TYPE, shown_path, suite_folder
from rag_assets.run import suite_fault
from rag_assets.warehouse.release import current_release, reading


def load_suite(name: str) -> Suite:
    """The suite `name`. UsageError if there is none, or if its YAML is at fault."""
    folder = suite_folder(name)
    file = folder / "defs.yaml"
    [attributes] = [
        document["attributes"]
        for document in yaml.safe_load_all(file.read_text("utf-8"))
        if document.get("type") == SUITE_TYPE and document["attributes"].get("name") == name
    ]
    try:
        return EvaluationSuite.from_attributes_dict(attributes=attributes).suite(folder)
    except Exception as error:
        if (message := suite_fault(error)) is None:
            raise
        raise UsageError(f"{shown_path(file)}: {message}") from None


def check_current(suite: Suite, warehouse: Path) -> Path:
    """The suite's current release. StoreError if there is none, or if it was made from other
    content or vectors than the suite's files hold now, or by other code that reads them."""
    release = current_release(warehouse, suite.name)
    with reading(release) as connection:
        made_of = dict(connection.sql("SELECT key, value FROM manifest").fetchall())
    now = versions_now(suite, EmbeddingCache(warehouse / "embedding_cache"))
    stale = [name for name, version in now.items() if made_of.get(f"version {name}") != version]
    if stale:
        raise StoreError(
            f"the current release of {suite.name} was made from other content than the suite's "
            f"files hold now, or by other code ({', '.join(stale)}); "
            f"run: rag-assets run {suite.name}"
        )
    return release
