"""Where the project's files are: bundled data, SQL models, suites and the warehouse."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from rag_assets.errors import UsageError

SUITE_TYPE = "rag_assets.components.EvaluationSuite"


def project_root() -> Path:
    """The folder that holds workspace.yaml, dbt_like_sql/ and data/.

    `RAG_ASSETS_PROJECT` names it; otherwise it is the folder above this package, or the nearest
    one above the current folder. UsageError if there is none.
    """
    named = os.environ.get("RAG_ASSETS_PROJECT")
    if named:
        candidates = [Path(named).absolute()]
    else:
        here = Path.cwd()
        candidates = [Path(__file__).parents[1], here, *here.parents]
    for folder in candidates:
        if (folder / "dbt_like_sql").is_dir():
            return folder
    raise UsageError(
        "no rag-assets project found; run this inside a clone of the project, "
        "or set RAG_ASSETS_PROJECT to its folder"
    )


def warehouse_root() -> Path:
    """Where artifacts and releases live: `RAG_ASSETS_WAREHOUSE`, or data/warehouse/."""
    named = os.environ.get("RAG_ASSETS_WAREHOUSE")
    return Path(named).absolute() if named else project_root() / "data" / "warehouse"


def plans_folder() -> Path:
    """Where plans of sweeps are registered: not in the warehouse, which may be thrown away."""
    return project_root() / "data" / "plans"


def models_folder() -> Path:
    return project_root() / "dbt_like_sql"


def shown_path(path: Path) -> str:
    """`path` as a person types it: relative to the current folder or the project if inside."""
    for base in (Path.cwd(), project_root()):
        if path.is_relative_to(base):
            return path.relative_to(base).as_posix()
    return str(path)


def readable(path: str | Path) -> str:
    """`path` as text that can be stored and printed, whatever bytes its name holds."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def source_version(*packages: str) -> str:
    """Short hash over the code and YAML of packages or modules, e.g. ("canonical", "store.py").

    Used as an asset's code version: a changed computation is visible without anybody having to
    remember to bump a number.
    """
    sha = hashlib.sha256()
    home = Path(__file__).parent
    for name in packages:
        path = home / name
        files = sorted((*path.rglob("*.py"), *path.rglob("*.yaml"))) if path.is_dir() else [path]
        for file in files:
            sha.update(file.relative_to(home).as_posix().encode())
            sha.update(file.read_bytes())
    return sha.hexdigest()[:12]


def suites_folder() -> Path:
    """Where suites are: one folder with a defs.yaml each."""
    return Path(__file__).parent / "defs"


def check_suite_name(name: str) -> str:
    """`name`, which names folders, assets and a database. UsageError if it cannot."""
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
        raise UsageError(
            f"a suite cannot be called {name!r}; use lower-case letters, digits, '-' and '_', "
            "starting with a letter"
        )
    return name


def suite_folder(name: str) -> Path:
    """The folder of a suite's defs.yaml. UsageError for an unknown suite, naming the known ones."""
    folders = suite_folders()
    if name not in folders:
        raise UsageError(f"unknown suite {name!r}; known suites are {', '.join(sorted(folders))}")
    return folders[name]


def suite_folders() -> dict[str, Path]:
    """The folder of every suite, by name.

    UsageError for a defs.yaml that is no YAML mapping, or two suites of one name: Dagster reads all
    suites or none, and does not always say which file is at fault.
    """
    folders: dict[str, Path] = {}
    for file in sorted(suites_folder().glob("*/defs.yaml")):
        for name in _suite_names(file):
            if name in folders:
                raise UsageError(
                    f"{shown_path(file)}: a suite {name!r} is in {shown_path(folders[name])} "
                    "already; name each suite differently"
                )
            folders[name] = file.parent
    return folders


def _suite_names(file: Path) -> list[str]:
    """Names in one file, as far as there are any; its other fields are the component's matter."""
    import yaml

    try:
        documents = list(yaml.safe_load_all(file.read_text("utf-8")))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{shown_path(file)}: {' '.join(str(error).split())}") from None
    if not documents:
        documents = [None]
    names = []
    for document in documents:
        if not isinstance(document, dict):
            found = "nothing" if document is None else f"a {type(document).__name__}"
            raise UsageError(
                f"{shown_path(file)}: found {found}; a suite is a YAML mapping of type and "
                "attributes: fill the file in or remove its folder"
            )
        attributes = document.get("attributes")
        name = attributes.get("name") if isinstance(attributes, dict) else None
        if document.get("type") == SUITE_TYPE and isinstance(name, str):
            names.append(name)
    return names
