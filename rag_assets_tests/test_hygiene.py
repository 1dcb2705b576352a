"""What must hold of the repository as a whole: nothing dead, nothing of one machine only."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rag_assets.warehouse.models import header_comment
from rag_assets_tests.conftest import ROOT

PACKAGE = ROOT / "rag_assets"
# What a user starts: the command, the code location, and components that YAML files name.
DOORS = ("rag_assets.cli", "rag_assets.definitions", "rag_assets.components")


def tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in done.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def tracked_text() -> dict[str, str]:
    texts = {}
    for path in tracked():
        try:
            texts[path.relative_to(ROOT).as_posix()] = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
    return texts


# Written in pieces, so that this file does not hold what it looks for.
_ABSOLUTE = re.compile(
    "|".join(
        [
            "/" + "home/",
            "/" + "root/",
            "/" + "Users/",
            "/" + "work/",
            "/" + "tmp/w",
            r"[A-Z]:\\Users",
        ]
    )
)
_REGISTRY = re.compile(
    "|".join(["--index" + "-url", "--extra-index" + "-url", "files.python" + "hosted"])
)


def test_no_file_names_a_place_on_somebody_s_machine_or_a_registry() -> None:
    found = {
        f"{name}:{number}"
        for name, text in tracked_text().items()
        for number, line in enumerate(text.splitlines(), 1)
        if _ABSOLUTE.search(line) or _REGISTRY.search(line)
    }
    assert found == set()


def test_files_are_utf_8_with_unix_line_ends() -> None:
    for path in tracked():
        if path.suffix in {".py", ".sql", ".md", ".yaml", ".toml", ".txt"}:
            data = path.read_bytes()
            assert b"\r" not in data, path
            assert not data or data.endswith(b"\n"), path
            data.decode("utf-8")


def test_every_sql_model_starts_with_what_one_row_is() -> None:
    models = sorted((ROOT / "dbt_like_sql").glob("*.sql"))
    assert models
    for path in models:
        assert header_comment(path.read_text("utf-8")).startswith("One row: "), path.name


def test_no_module_is_longer_than_400_lines() -> None:
    long = {
        path.relative_to(ROOT).as_posix(): lines
        for path in PACKAGE.rglob("*.py")
        if (lines := len(path.read_text("utf-8").splitlines())) > 400
    }
    assert long == {}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path, modules: set[str]) -> set[str]:
    """Modules of the package that a file imports, anywhere in it, with the packages around them."""
    named: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    for name in tuple(named):
        parts = name.split(".")
        named |= {".".join(parts[:end]) for end in range(1, len(parts))}
    return named & modules


def test_every_module_is_reached_from_the_command_line_or_the_ui() -> None:
    files = {module_name(path): path for path in PACKAGE.rglob("*.py")}
    reached: set[str] = set()
    waiting = [*DOORS]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += imports_of(files[name], set(files))
    assert set(files) - reached == set()


def test_every_public_function_of_the_package_is_used_somewhere_in_it() -> None:
    texts = {path: path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}
    words = {path: set(re.findall(r"\w+", text)) for path, text in texts.items()}
    unused = set()
    for path, text in texts.items():
        for node in ast.parse(text).body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.decorator_list:
                continue
            elsewhere = any(node.name in found for other, found in words.items() if other != path)
            here = len(re.findall(rf"\b{node.name}\b", text)) > 1
            if not elsewhere and not here:
                unused.add(f"{module_name(path)}.{node.name}")
    assert unused - PYTHON_DOORS == set()


# Functions that the README offers to Python callers; the package itself does not need them.
PYTHON_DOORS = {
    "rag_assets.measures.evaluate_run",
    "rag_assets.measures.ndcg_at_k",
    "rag_assets.measures.precision_at_k",
    "rag_assets.measures.recall_at_k",
    "rag_assets.measures.reciprocal_rank_at_k",
    "rag_assets.results.search.exact_search",
}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_constraints_pin_every_dependency_and_name_no_index() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = {}
    for line in lines:
        if line.startswith("#") or not line:
            continue
        pin = re.fullmatch(r"([A-Za-z0-9._-]+)==([0-9][^\s;@]*)( ; .+)?", line)
        assert pin, f"{line!r} is not NAME==VERSION"
        pins[canonical(pin[1])] = pin[2]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"]]
    for name, extra in project["optional-dependencies"].items():
        # PyTorch comes with it, and its build depends on the machine.
        wanted += extra if name != "sentence-transformers" else []
    names = {canonical(re.match(r"[A-Za-z0-9._-]+", requirement)[0]) for requirement in wanted}
    assert names - pins.keys() - {canonical(project["name"])} == set()


def test_type_stubs_that_are_pinned_are_installed_by_the_development_extra() -> None:
    """A pin installs nothing: without them, mypy fails on a fresh clone and nowhere else."""
    pinned = {
        canonical(line.split("==")[0])
        for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
        if re.match(r"types-|[A-Za-z0-9._-]+-stubs==", line)
    }
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    installed = {
        canonical(re.match(r"[A-Za-z0-9._-]+", requirement)[0])
        for requirement in extras["optional-dependencies"]["dev"]
    }
    assert pinned
    assert pinned - installed == set()


def test_pinned_versions_are_those_that_the_tests_run_with() -> None:
    """Only for what is installed: a platform may lack some of it."""
    from importlib import metadata

    pins = dict(
        line.split(" ;")[0].split("==")
        for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
        if "==" in line and not line.startswith("#")
    )
    for name in ("dagster", "duckdb", "great_expectations", "numpy", "pyarrow", "pandas"):
        assert metadata.version(name) == pins[name], name


def test_the_package_declares_what_it_imports() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = {
        canonical(re.match(r"[A-Za-z0-9._-]+", requirement)[0])
        for requirement in (
            *project["dependencies"],
            *(each for extra in project["optional-dependencies"].values() for each in extra),
        )
    }
    imported: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.split(".")[0])
    foreign = imported - set(sys.stdlib_module_names) - {"rag_assets"}
    names = {"faiss": "faiss-cpu", "yaml": "pyyaml", "sklearn": "scikit-learn"}
    # Part of what others are used with: Dagster's components and their YAML, Jinja's markup.
    of_others = {"markupsafe", "pydantic", "pyyaml"}
    needed = {canonical(names.get(name, name)) for name in foreign}
    assert needed - declared - of_others == set()
