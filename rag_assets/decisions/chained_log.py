"""A JSON file that logs what people decided, each record bound to the one before by its digest.

A record is a mapping of texts. It carries the digest of the record before it (`previous`) and its
own; `head` is the digest of the last. Whoever edits, removes or reorders a record breaks the chain,
and the file is refused as a whole: the chain is no proof against forgery, it shows that something
was done beside the command that writes the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_assets.canonical.contracts import canonical_json
from rag_assets.canonical.corpus import digest
from rag_assets.errors import InputError, Problem, UsageError
from rag_assets.sources.strict_json import parse_json, read_limited
from rag_assets.whole_files import DRAFT, locked_folder, replace_text

_FORMAT = 1
_LARGEST_FILE = 5 * 2**20
Record = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class LogFile:
    """How one log is spelled. `records` is the key of its list, `fields` what a record holds beside
    `previous`, `optional` those that may be null. `shown` maps further keys of the file to the
    field of the last record that they repeat, for readers that do not care about the log. `code`
    and `remedy` answer an edited file.
    """

    name: str
    records: str
    fields: tuple[str, ...]
    optional: frozenset[str]
    code: str
    remedy: str
    shown: Mapping[str, str] = field(default_factory=dict)

    def refusal(self, place: str, found: str) -> InputError:
        return InputError([Problem(self.code, self.name, place, found, self.remedy)])


def record_digest(record: Mapping[str, str | None]) -> str:
    """SHA-256 (hex) over everything that a record says, `previous` included."""
    return digest(canonical_json(dict(record)))


def read_log(folder: Path, log: LogFile) -> list[Record]:
    """Every record, oldest first; none if there is no file. InputError for an edited file."""
    path = folder / log.name
    if not path.exists():
        return []
    tree = parse_json(read_limited(path, _LARGEST_FILE), path.name)
    keys = ["format", *log.shown, "head", log.records]
    if not isinstance(tree, dict) or set(tree) != set(keys):
        raise log.refusal("whole file", f"other keys than {', '.join(keys)}")
    if tree["format"] != _FORMAT or not isinstance(tree[log.records], list):
        raise log.refusal("format", f"not format {_FORMAT} with a list of {log.records}")
    records: list[Record] = []
    previous = None
    for number, entry in enumerate(tree[log.records]):
        place = f"{log.records}[{number}]"
        record = _record(entry, log, place)
        if record["previous"] != previous:
            raise log.refusal(place, "a record that does not follow the one before it")
        previous = record_digest(record)
        if entry["digest"] != previous:
            raise log.refusal(place, "a record that its digest does not match")
        records.append(record)
    if tree["head"] != previous:
        raise log.refusal("head", "a digest that is not the last record's")
    for key, of_last in log.shown.items():
        if tree[key] != (records[-1][of_last] if records else None):
            raise log.refusal(key, f"{key} is not what the last record says")
    return records


def append_record(folder: Path, log: LogFile, record: Mapping[str, str | None]) -> Record:
    """Add a record, which gets its `previous` here. The caller holds the lock of `folder`."""
    records = read_log(folder, log)
    added: Record = {**record, "previous": record_digest(records[-1]) if records else None}
    _write(folder, log, [*records, added])
    return added


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One writer at a time; the folder itself is the lock, so that no lock file stays behind.

    Drafts of whoever was killed while it held the lock are removed. UsageError without a folder.
    """
    if not folder.is_dir():
        raise UsageError(f"no folder {folder.name!r} to record the decision in")
    with locked_folder(folder):
        for left in folder.glob(f"{DRAFT}*"):
            left.unlink()
        yield


def one_line(name: str, text: str) -> str:
    """`text` without white space at its ends. UsageError unless it is a line with words."""
    if not text.strip() or not text.isprintable():
        raise UsageError(f"{name} is {text!r}; it must be a line of text that says something")
    return text.strip()


def _record(entry: Any, log: LogFile, place: str) -> Record:
    names = [*log.fields, "previous"]
    if not isinstance(entry, dict) or set(entry) != {*names, "digest"}:
        raise log.refusal(place, f"other keys than {', '.join([*names, 'digest'])}")
    for name in [*names, "digest"]:
        may_be_null = name == "previous" or name in log.optional
        if not isinstance(entry[name], str) and not (may_be_null and entry[name] is None):
            raise log.refusal(f"{place}.{name}", "a value that is not text")
    return {name: entry[name] for name in names}


def _write(folder: Path, log: LogFile, records: Sequence[Record]) -> None:
    tree = {
        "format": _FORMAT,
        **{key: records[-1][of_last] for key, of_last in log.shown.items()},
        "head": record_digest(records[-1]),
        log.records: [{**record, "digest": record_digest(record)} for record in records],
    }
    replace_text(folder / log.name, json.dumps(tree, indent=1, ensure_ascii=False) + "\n")
