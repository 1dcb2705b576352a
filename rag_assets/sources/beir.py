"""Folders in BEIR's layout, and the same layout with judgements in TREC's form.

    corpus.jsonl    {"_id": "d1", "title": "...", "text": "...", "metadata": {...}}
    queries.jsonl   {"_id": "q1", "text": "...", "metadata": {...}}
    qrels/test.tsv  query-id <tab> corpus-id <tab> score, with this header

Any file may end in .gz or .zst. The document's text is title, one space, text (see
records.read_documents). Each file of judgements is a split of its name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rag_assets.sources.assembly import JudgedFile, assemble
from rag_assets.sources.collection import Collection, file_facts
from rag_assets.sources.faults import Faults, refuse
from rag_assets.sources.judgements import Form, read_judgements
from rag_assets.sources.options import SourceOptions
from rag_assets.sources.records import Origin, json_records, read_documents, read_queries
from rag_assets.sources.strict_json import WHOLE_FILE
from rag_assets.sources.text_lines import SUFFIXES, TextFile, base_name, find_file

_ENDINGS: dict[Form, tuple[str, ...]] = {"beir": (".tsv",), "trec": (".qrels", ".txt", ".trec")}


def read_beir(folder: str | Path, options: SourceOptions, shown: str | None = None) -> Collection:
    """The collection in a folder of BEIR's layout; `shown` is what problems call the folder.

    Raises InputError for faults in the files, UsageError where the options do not say who may
    read the documents.
    """
    return _read(Path(folder), shown or os.fspath(folder), options, "beir")


def read_trec(folder: str | Path, options: SourceOptions, shown: str | None = None) -> Collection:
    """As `read_beir`, with judgements in qrels/<split>.qrels, .txt or .trec: four columns."""
    return _read(Path(folder), shown or os.fspath(folder), options, "trec")


def _read(folder: Path, shown: str, options: SourceOptions, form: Form) -> Collection:
    faults = Faults(options.max_problems)
    corpus = find_file(folder, shown, "corpus.jsonl")
    queries = find_file(folder, shown, "queries.jsonl")
    qrels = judgement_files(folder / "qrels", os.path.join(shown, "qrels"), _ENDINGS[form])
    chosen = chosen_splits(qrels, options.splits, os.path.join(shown, "qrels"))
    origin, query_origin = Origin(corpus.shown), Origin(queries.shown)
    documents = read_documents(json_records(corpus, faults), origin, options, faults)
    query_items, cases = read_queries(json_records(queries, faults), query_origin, options, faults)
    judged = [
        JudgedFile(split, text.shown, read_judgements(text, form, faults), split in chosen)
        for split, text in qrels.items()
    ]
    collection = assemble(
        (documents, origin), (query_items, cases, query_origin), judged, options, faults
    )
    return replace(collection, files=file_facts([corpus, queries, *qrels.values()]))


def judgement_files(folder: Path, shown: str, endings: Sequence[str]) -> dict[str, TextFile]:
    """The files of judgements in a folder by the name of their split, in order of name."""
    found: dict[str, TextFile] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        split, ending = os.path.splitext(base_name(path))
        if not path.is_file() or ending not in endings:
            continue
        if split in found:
            names = f"{os.path.basename(found[split].shown)} and {path.name}"
            refuse("ambiguous_file", shown, WHOLE_FILE, names, "keep one file for each split")
        found[split] = TextFile(path, os.path.join(shown, path.name))
    if not found:
        there = "no such folder" if not folder.is_dir() else "no file of judgements"
        allowed = " or ".join(f"<split>{ending}" for ending in endings)
        remedy = f"judgements are in {allowed}, also with {' or '.join(SUFFIXES[1:])}"
        refuse("file_not_found", shown, WHOLE_FILE, there, remedy)
    return found


def chosen_splits(
    there: Sequence[str] | dict[str, TextFile], wanted: Sequence[str], shown: str
) -> set[str]:
    """The splits to read: those wanted, or all. Raises InputError for one that is not there."""
    if missing := [split for split in wanted if split not in there]:
        found = f"no split {', '.join(missing)}"
        refuse("unknown_split", shown, WHOLE_FILE, found, f"the splits are {', '.join(there)}")
    return set(wanted or there)
