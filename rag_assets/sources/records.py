"""Records with named fields (a JSON line, a table's row) turned into canonical items and cases."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from rag_assets.canonical.text import content_sha256, normalize_text
from rag_assets.sources.collection import CASES_READ, DOCUMENT, ITEMS_READ, QUERY
from rag_assets.sources.faults import Faults
from rag_assets.sources.fixture_fields import CONTROL_IN_TEXT
from rag_assets.sources.options import Groups, SourceOptions
from rag_assets.sources.strict_json import Faulty, excerpt, load_strict
from rag_assets.sources.text_lines import TextFile

ID_FIELDS = ("_id", "id")
_BATCH = 32_768
_ABSENT = object()


class Record(NamedTuple):
    """One record; `place` counts lines of a text file or rows of a table, from 1."""

    place: int
    fields: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where records come from: the file as shown, and what their places count."""

    file: str
    unit: str = "line"  # or "row"
    id_field: str = "_id"


def json_records(text: TextFile, faults: Faults) -> Iterator[Record]:
    """The objects of a JSON Lines file; lines that are not one are faults."""
    remedy = "each line holds one JSON object"
    for lines in text.batches():
        for number, line in enumerate(lines.text.to_pylist(), lines.first):
            if faults.full:
                return
            try:
                tree = load_strict(line)
            except json.JSONDecodeError as error:
                found = f"a syntax error at column {error.colno} ({error.msg})"
                faults.add("syntax_error", text.shown, f"line {number}", found, remedy)
            except RecursionError:
                faults.add("too_deep", text.shown, f"line {number}", "deep nesting", remedy)
            else:
                if isinstance(tree, dict):
                    yield Record(number, tree)
                else:
                    faults.add("wrong_type", text.shown, f"line {number}", excerpt(tree), remedy)


@dataclass
class Reader:
    """Reads fields of records from one origin; what is unsound becomes a fault."""

    origin: Origin
    faults: Faults
    record: Record = field(default_factory=lambda: Record(0, {}))

    def refuse(self, code: str, name: str, found: str, remedy: str) -> None:
        item_id = self.record.fields.get(self.origin.id_field)
        known = f" ({excerpt(item_id)})" if isinstance(item_id, str) and item_id else ""
        place = f"{self.origin.unit} {self.record.place}{known}, {name}"
        self.faults.add(code, self.origin.file, place, found, remedy)

    def value(self, path: str) -> object:
        """What a dotted path leads to; _ABSENT where there is nothing or null."""
        first, *rest = path.split(".") if "." in path else (path,)
        at = self.record.fields.get(first)
        for step in rest:
            if isinstance(at, str):  # metadata that a table holds as JSON text
                at = _parsed(at)
            at = at.get(step) if isinstance(at, Mapping) else None
        if at is None:
            return _ABSENT
        if isinstance(at, Faulty):
            self.refuse(at.code, path, at.found, at.remedy)
            return _ABSENT
        return at

    def identifier(self) -> str | None:
        name = self.origin.id_field
        value = self.value(name)
        if value is _ABSENT:
            self.refuse("missing_field", name, f"no {name}", "every record has an id")
        elif not isinstance(value, str):
            remedy = "an id is a string, written in quotes; nothing is cast"
            self.refuse("id_not_text", name, excerpt(value), remedy)
        elif not value.strip():
            self.refuse("blank_identifier", name, excerpt(value), "visible characters are needed")
        else:
            return self.encodable(name, value)
        return None

    def text(self, path: str, *, needed: bool) -> str | None:
        """A string; "" where it is absent and not needed."""
        value = self.value(path)
        if value is _ABSENT:
            if not needed:
                return ""
            self.refuse("missing_field", path, f"no {path}", f"{path} is a string")
            return None
        if not isinstance(value, str):
            self.refuse("wrong_type", path, excerpt(value), f"{path} is a string")
            return None
        return self.encodable(path, value)

    def encodable(self, path: str, value: str) -> str | None:
        if value.isascii():
            return value
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            found = f"the escape \\u{ord(value[error.start]):04x}"
            remedy = "half of a surrogate pair is no character: write both halves"
            self.refuse("lone_surrogate", path, found, remedy)
            return None
        return value

    def names(self, path: str, *, integers: bool = False) -> list[str] | None:
        """Strings (and integers, if allowed) of a field, sorted and distinct; [] if absent."""
        value = self.value(path)
        if value is _ABSENT:
            return []
        names = []
        for entry in value if isinstance(value, list) else [value]:
            if integers and type(entry) is int:
                names.append(str(entry))
            elif isinstance(entry, str) and entry.strip() and self.encodable(path, entry):
                names.append(entry)
            else:
                allowed = "strings or integers" if integers else "strings"
                remedy = f"one string that is not blank, or a list of {allowed}"
                self.refuse("wrong_type", path, excerpt(entry), remedy)
                return None
        return sorted(set(names))

    def groups(self, setting: Groups, what: str) -> list[str] | None:
        if setting.field is None:
            return sorted(setting.constant)
        names = self.names(setting.field)
        if names == []:
            names = sorted(setting.constant)
            if not names:
                remedy = f"every record names its {what}, or state a constant for those without"
                self.refuse("no_groups", setting.field, "no group", remedy)
                return None
        return names

    def revision(self, options: SourceOptions) -> str | None:
        setting = options.source_revision
        if setting.field is None:
            return setting.constant
        text = self.text(setting.field, needed=False)
        return setting.constant if text == "" else text


def read_documents(
    records: Iterable[Record], origin: Origin, options: SourceOptions, faults: Faults
) -> pa.Table:
    """Documents as ITEMS_READ, in order of the file.

    The text is the title, one space and the text; where one of them is blank, the other alone.
    Raises UsageError where nobody has said who may read them.
    """
    reader, groups = Reader(origin, faults), options.document_groups()
    rows = _ItemRows(DOCUMENT)
    for record in records:
        reader.record = record
        item_id = reader.identifier()
        title = reader.text("title", needed=False)
        body = reader.text("text", needed=False)
        acl = reader.groups(groups, "readers")
        revision = reader.revision(options)
        if None not in (item_id, title, body, acl, revision):
            text = _joined(title or "", body or "")
            rows.add((item_id, text, acl, revision, record.place))
        if faults.full:
            break
    return rows.table()


def read_queries(
    records: Iterable[Record], origin: Origin, options: SourceOptions, faults: Faults
) -> tuple[pa.Table, pa.Table]:
    """Query items as ITEMS_READ and their cases as CASES_READ, row by row, in order of the file.

    A query's item may be read by those who ask it. `split` is NULL unless `split_field` gives one.
    """
    reader, groups = Reader(origin, faults), options.asking_groups()
    rows = _ItemRows(QUERY)
    cases: list[tuple[object, ...]] = []
    for record in records:
        reader.record = record
        case_id = reader.identifier()
        text = reader.text("text", needed=True)
        asking = reader.groups(groups, "groups")
        subgroups = [reader.names(path, integers=True) for path in options.subgroups]
        split = reader.text(options.split_field, needed=False) if options.split_field else ""
        revision = reader.revision(options)
        if None not in (case_id, text, asking, split, revision, *subgroups):
            item_id = f"{options.query_prefix}{case_id}"
            rows.add((item_id, text, asking, revision, record.place))
            named = dict.fromkeys(name for names in subgroups for name in names or ())
            cases.append((case_id, item_id, asking, list(named), split or None))
        if faults.full:
            break
    columns = zip(*cases, strict=True) if cases else [()] * len(CASES_READ)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, CASES_READ, strict=True)]
    return rows.table(), pa.table(arrays, schema=CASES_READ)


def _joined(title: str, body: str) -> str:
    if not title or title.isspace():
        return body
    return title if not body or body.isspace() else f"{title} {body}"


class _ItemRows:
    """Rows (id, text, acl, revision, place) of items of one role, turned to Arrow in batches."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.rows: list[tuple[object, ...]] = []
        self.batches: list[pa.RecordBatch] = []

    def add(self, row: tuple[object, ...]) -> None:
        self.rows.append(row)
        if len(self.rows) == _BATCH:
            self._flush()

    def table(self) -> pa.Table:
        if self.rows:
            self._flush()
        return pa.Table.from_batches(self.batches, ITEMS_READ)

    def _flush(self) -> None:
        ids, texts, acls, revisions, places = zip(*self.rows, strict=True)
        self.batches.append(item_batch(self.role, ids, texts, acls, revisions, places))
        self.rows = []


def item_batch(
    role: str,
    ids: Iterable[str],
    texts: Iterable[str],
    acls: Iterable[list[str]],
    revisions: Iterable[str],
    places: Iterable[int],
) -> pa.RecordBatch:
    """A batch of ITEMS_READ; texts are brought into their canonical form and hashed."""
    raw = list(texts)
    normal = [normalize_text(text) for text in raw]
    columns = {
        "item_id": list(ids),
        "role": [role] * len(raw),
        "text": normal,
        "acl": list(acls),
        "source_revision": list(revisions),
        "content_sha256": [content_sha256(text) for text in normal],
        "place": list(places),
        "was_nfc": [unicodedata.is_normalized("NFC", text) for text in raw],
        "was_lf": ["\r" not in text for text in raw],
        "is_blank": [not text.strip() for text in normal],
        "has_controls": [_has_controls(text) for text in normal],
    }
    return pa.RecordBatch.from_pydict(columns, schema=ITEMS_READ)


def _has_controls(text: str) -> bool:
    return not text.isprintable() and CONTROL_IN_TEXT.search(text) is not None


def _parsed(text: str) -> object:
    try:
        return load_strict(text)
    except (json.JSONDecodeError, RecursionError):
        return None
