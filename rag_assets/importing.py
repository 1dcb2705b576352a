"""`rag-assets import`: check a collection and its vectors, and write the suite for it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_assets.canonical.contracts import STATED_DEFAULTS, contract_from
from rag_assets.canonical.corpus import Corpus, digest_array
from rag_assets.errors import InputError, Problem, UsageError
from rag_assets.project import SUITE_TYPE, check_suite_name
from rag_assets.quality.report import CheckReport
from rag_assets.sources.beir_export import EXPORT_SETTINGS, write_beir
from rag_assets.sources.collection import Collection, GivenVectors
from rag_assets.sources.columnar import read_vector_column
from rag_assets.sources.fixture import load_fixture
from rag_assets.sources.formats import READERS, read_collection
from rag_assets.sources.mteb import read_table_vectors, tables
from rag_assets.sources.numbering import corpus_of
from rag_assets.sources.options import source_options
from rag_assets.sources.vector_files import load_npy, read_vector_folder
from rag_assets.whole_files import write_folder

UNSTATED = "unstated"
# Where no vectors are given: a space that needs no model, so that there is something to look at.
LSA_SPACE: dict[str, Any] = {
    "space_id": "words",
    "contract": {
        "provider": "scikit-learn",
        "model": "TF-IDF and truncated SVD",
        "revision": "fitted",
        "dimension": 128,
        "metric": "cosine",
        "normalized": True,
    },
    "vectors": {"provider": "lsa"},
}
_UNIT = 1e-6


@dataclass(frozen=True)
class Imported:
    """A suite that was written: its YAML file, and what the data checks said."""

    file: Path
    collection: Collection
    report: CheckReport


def import_suite(
    source_format: str,
    path: Path,
    *,
    suite: str,
    root: Path,
    defs: Path,
    settings: Mapping[str, Any],
    vectors: Mapping[str, Path],
    contracts: Mapping[str, Mapping[str, Any]],
    ks: Sequence[int],
    column: str | None = None,
    convert_to: Path | None = None,
) -> Imported:
    """Write `<defs>/<suite>/defs.yaml` after everything it names was read and checked.

    `vectors` maps space ids to vector folders, `contracts` to stated contract fields; with `column`
    the folders hold tables of documents and queries, and the vectors are in that column. Without
    vectors, and where the source holds none, the suite gets one LSA space. With `convert_to`, the
    collection is written there as a BEIR folder, which the suite then reads. InputError for bad
    data, UsageError for a suite that exists or settings that cannot work; nothing is written then.
    """
    folder = _new_folder(defs, suite)
    if source_format not in READERS:
        raise UsageError(f"unknown format {source_format!r}; known are {', '.join(READERS)}")
    if unknown := sorted(contracts.keys() - vectors.keys()):
        raise UsageError(f"a contract is given for {unknown[0]!r}, which has no --vectors")
    from rag_assets.quality.collection import sound_collection

    options = source_options(settings)
    options.document_groups()
    options.asking_groups()
    collection = read_collection(source_format, path, options, os.fspath(path))
    report = sound_collection(collection, os.fspath(path))
    if collection.vectors is not None:
        if vectors:
            raise UsageError(f"{source_format} holds vectors of its own; leave --vectors out")
        spaces = [_own_space(collection.vectors)]
    elif vectors:
        spaces = [
            {
                "space_id": space_id,
                "contract": stated_contract(space_id, at, contracts.get(space_id, {}), column),
                "vectors": {
                    "provider": "precomputed",
                    "folder": _from_root(at, root),
                    **({"column": column} if column else {}),
                },
            }
            for space_id, at in vectors.items()
        ]
    else:
        spaces = [LSA_SPACE]
    made = [contract_from(space["space_id"], space["contract"]) for space in spaces]
    corpus = corpus_of(collection, made)
    for contract in made:
        if contract.space_id in vectors:
            at = vectors[contract.space_id]
            if column is None:
                read_vector_folder(at, corpus, contract)
            else:
                read_table_vectors(at, column, corpus, contract)
    attributes: dict[str, Any] = {
        "name": suite,
        "description": f"Imported from a {source_format} collection.",
        "source": {"format": source_format, "path": _from_root(path, root), **settings},
        "spaces": spaces,
        "k": list(ks),
    }
    if convert_to is not None:
        if collection.vectors is not None:
            raise UsageError("a BEIR folder holds no vectors; leave --convert-to out")
        convert_to.mkdir(parents=True)
        write_beir(collection, convert_to)
        attributes["source"] = {
            "format": "beir",
            "path": _from_root(convert_to, root),
            **EXPORT_SETTINGS,
        }
    unstated = any(UNSTATED in space["contract"].values() for space in spaces)
    return Imported(_written(folder, attributes, unstated=unstated), collection, report)


def import_fixture(
    path: Path, *, suite: str, root: Path, defs: Path, ks: Sequence[int]
) -> tuple[Path, Corpus]:
    """Write the suite of a JSON fixture: (its YAML file, the fixture's corpus).

    InputError for a fixture that its loader refuses, UsageError as `import_suite`.
    """
    folder = _new_folder(defs, suite)
    corpus = load_fixture(path)
    attributes = {
        "name": suite,
        "description": "Imported from a fixture.",
        "source": {"format": "fixture", "path": _from_root(path, root)},
        "spaces": [{"space_id": contract.space_id} for contract in corpus.contracts],
        "k": list(ks),
    }
    return _written(folder, attributes, unstated=False), corpus


def _new_folder(defs: Path, suite: str) -> Path:
    folder = defs / check_suite_name(suite)
    if folder.exists():
        raise UsageError(f"the suite {suite} exists already; name another or remove {folder.name}/")
    return folder


def _written(folder: Path, attributes: Mapping[str, Any], *, unstated: bool) -> Path:
    """The YAML file, whole: the folder appears with it or not at all."""
    _check_attributes(attributes)
    text = _yaml(attributes, unstated=unstated)
    write_folder(folder, lambda draft: (draft / "defs.yaml").write_text(text, "utf-8"))
    return folder / "defs.yaml"


def _check_attributes(attributes: Mapping[str, Any]) -> None:
    """UsageError for a suite that Dagster would refuse: it would take all other suites with it."""
    from rag_assets.components import EvaluationSuite
    from rag_assets.run import suite_fault

    try:
        EvaluationSuite.from_attributes_dict(attributes=dict(attributes))
    except Exception as error:
        if (message := suite_fault(error)) is None:
            raise
        raise UsageError(message) from None


def stated_contract(
    space_id: str, folder: Path, given: Mapping[str, Any], column: str | None = None
) -> dict[str, Any]:
    """Contract fields: those given, and what the vectors themselves can tell."""
    if column is None:
        documents = load_npy(folder / "doc_vectors.npy", os.path.join(folder, "doc_vectors.npy"))
    else:
        files = tables(folder, os.fspath(folder), "corpus")
        documents = read_vector_column(*files, column).vectors
    found = _told(documents, "cosine")
    if "dimension" in given and given["dimension"] != found["dimension"]:
        raise UsageError(
            f"space {space_id}: the contract says dimension {given['dimension']}, its vectors have "
            f"{found['dimension']}"
        )
    stated = {**found, **{name: value for name, value in given.items() if value is not None}}
    return {name: value for name, value in stated.items() if STATED_DEFAULTS.get(name) != value}


def _told(documents: np.ndarray, metric: str) -> dict[str, Any]:
    """What vectors tell of their contract."""
    norms = np.linalg.norm(documents[:1000].astype(np.float64), axis=1)
    return {
        "provider": UNSTATED,
        "model": UNSTATED,
        # Two spaces that say nothing of their models must not pass for the same one.
        "revision": f"{UNSTATED}, vectors sha256:{digest_array(documents)}",
        "dimension": int(documents.shape[1]),
        "metric": metric,
        "normalized": bool(np.abs(norms - 1).max(initial=0.0) <= _UNIT),
        "dtype": "float64" if documents.dtype == np.float64 else "float32",
    }


def read_contract_file(path: Path) -> dict[str, Any]:
    """A YAML mapping of contract fields. InputError if it is none."""
    import yaml

    try:
        stated = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise _bad_contract(path, " ".join(str(error).split())) from None
    if not isinstance(stated, dict):
        raise _bad_contract(path, f"a {type(stated).__name__}")
    return {str(name): value for name, value in stated.items()}


def _bad_contract(path: Path, found: str) -> InputError:
    remedy = "write a YAML mapping such as model: NAME, revision: TEXT, metric: cosine"
    return InputError([Problem("contract_file", os.fspath(path), "whole file", found, remedy)])


def _own_space(given: GivenVectors) -> dict[str, Any]:
    """The one space of a source that holds vectors, as far as the vectors can tell."""
    return {
        "space_id": "given",
        "contract": _told(given.documents, given.metric or "cosine"),
    }


def _from_root(place: Path, root: Path) -> str:
    return Path(os.path.relpath(place.absolute(), root)).as_posix()


def _yaml(attributes: Mapping[str, Any], *, unstated: bool) -> str:
    import yaml

    head = "# Written by `rag-assets import`; change it as you like and reload the definitions.\n"
    if unstated:
        head += (
            f"# State provider, model and revision where they are `{UNSTATED}`: they are part of\n"
            "# a space's signature, and nobody can compare spaces whose models are unknown.\n"
        )
    body = {"type": SUITE_TYPE, "attributes": dict(attributes)}
    return head + yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=96)
