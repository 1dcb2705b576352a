"""`rag-assets import`: check a collection and its vectors, and write the suite for it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_assets.canonical.contracts import STATED_DEFAULTS, SpaceContract, contract_from
from rag_assets.canonical.corpus import digest_array
from rag_assets.errors import InputError, Problem, UsageError
from rag_assets.quality.report import CheckReport
from rag_assets.sources.collection import Collection
from rag_assets.sources.formats import READERS, read_collection
from rag_assets.sources.numbering import corpus_of
from rag_assets.sources.options import source_options
from rag_assets.sources.vector_files import load_npy, read_vector_folder

UNSTATED = "unstated"
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
) -> Imported:
    """Write `<defs>/<suite>/defs.yaml` after everything it names was read and checked.

    `vectors` maps space ids to vector folders, `contracts` to stated contract fields. InputError
    for bad data, UsageError for a suite that exists or settings that cannot work; nothing is
    written then.
    """
    folder = defs / suite
    if folder.exists():
        raise UsageError(f"the suite {suite} exists already; name another or remove {folder.name}/")
    if source_format not in READERS:
        raise UsageError(f"unknown format {source_format!r}; known are {', '.join(READERS)}")
    if not vectors:
        raise UsageError("name at least one space: --vectors SPACE_ID=FOLDER")
    if unknown := sorted(contracts.keys() - vectors.keys()):
        raise UsageError(f"a contract is given for {unknown[0]!r}, which has no --vectors")
    options = source_options(settings)
    options.document_groups()
    options.asking_groups()
    collection = read_collection(source_format, path, options, os.fspath(path))
    stated = {
        space_id: stated_contract(space_id, at, contracts.get(space_id, {}))
        for space_id, at in vectors.items()
    }
    made = [contract_from(space_id, stated[space_id]) for space_id in vectors]
    corpus = corpus_of(collection, made)
    for contract in made:
        read_vector_folder(vectors[contract.space_id], corpus, contract)
    report = _checked(collection, path)

    attributes = _attributes(source_format, path, suite, root, settings, vectors, made, stated, ks)
    folder.mkdir(parents=True)
    file = folder / "defs.yaml"
    draft = folder / ".defs.yaml.draft"
    draft.write_text(
        _yaml(attributes, unstated=any(UNSTATED in s.values() for s in stated.values())), "utf-8"
    )
    os.replace(draft, file)
    return Imported(file, collection, report)


def stated_contract(space_id: str, folder: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Contract fields: those given, and what the vectors themselves can tell."""
    documents = load_npy(folder / "doc_vectors.npy", os.path.join(folder, "doc_vectors.npy"))
    norms = np.linalg.norm(documents[:1000].astype(np.float64), axis=1)
    found = {
        "provider": UNSTATED,
        "model": UNSTATED,
        # Two spaces that say nothing of their models must not pass for the same one.
        "revision": f"{UNSTATED}, vectors sha256:{digest_array(documents)}",
        "dimension": int(documents.shape[1]),
        "metric": "cosine",
        "normalized": bool(np.abs(norms - 1).max(initial=0.0) <= _UNIT),
        "dtype": documents.dtype.name
        if documents.dtype.name in ("float32", "float64")
        else "float32",
    }
    if "dimension" in given and given["dimension"] != found["dimension"]:
        raise UsageError(
            f"space {space_id}: the contract says dimension {given['dimension']}, its vectors have "
            f"{found['dimension']}"
        )
    stated = {**found, **{name: value for name, value in given.items() if value is not None}}
    return {name: value for name, value in stated.items() if STATED_DEFAULTS.get(name) != value}


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


def _checked(collection: Collection, path: Path) -> CheckReport:
    from rag_assets.quality.collection import check_collection

    report = check_collection(collection)
    if report.blocks:
        raise InputError(
            Problem(
                "data_checks",
                os.fspath(path),
                outcome.column or outcome.table,
                f"{outcome.observed} ({', '.join(outcome.sample[:3])})",
                outcome.meaning,
            )
            for outcome in report.outcomes
            if outcome.blocks
        )
    return report


def _attributes(
    source_format: str,
    path: Path,
    suite: str,
    root: Path,
    settings: Mapping[str, Any],
    vectors: Mapping[str, Path],
    contracts: Sequence[SpaceContract],
    stated: Mapping[str, Mapping[str, Any]],
    ks: Sequence[int],
) -> dict[str, Any]:
    def from_root(place: Path) -> str:
        return Path(os.path.relpath(place.absolute(), root)).as_posix()

    return {
        "name": suite,
        "description": f"Imported from a {source_format} collection.",
        "source": {"format": source_format, "path": from_root(path), **settings},
        "spaces": [
            {
                "space_id": contract.space_id,
                "contract": dict(stated[contract.space_id]),
                "vectors": {
                    "provider": "precomputed",
                    "folder": from_root(vectors[contract.space_id]),
                },
            }
            for contract in contracts
        ],
        "k": list(ks),
    }


def _yaml(attributes: Mapping[str, Any], *, unstated: bool) -> str:
    import yaml

    head = "# Written by `rag-assets import`; change it as you like and reload the definitions.\n"
    if unstated:
        head += (
            f"# State provider, model and revision where they are `{UNSTATED}`: they are part of\n"
            "# a space's signature, and nobody can compare spaces whose models are unknown.\n"
        )
    body = {"type": "rag_assets.components.EvaluationSuite", "attributes": dict(attributes)}
    return head + yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=96)
