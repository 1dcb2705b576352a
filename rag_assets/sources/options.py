"""What a user states about a source that its files do not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from rag_assets.errors import UsageError

Handling = Literal["refuse", "leave_out"]
Unjudged = Literal["keep", "leave_out"]
UNSTATED_REVISION = "unstated"


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of a record: `constant` for all; or what `field` holds, and `constant` without it.

    `field` is a path such as ``metadata.groups``; it holds a list of strings or one string.
    """

    constant: tuple[str, ...] = ()
    field: str | None = None

    def __post_init__(self) -> None:
        if not self.constant and self.field is None:
            raise UsageError("groups need a constant (a list of names) or a field that holds them")


@dataclass(frozen=True, slots=True)
class Revision:
    """Source revision of a record: what `field` holds (a string), `constant` without it."""

    constant: str = UNSTATED_REVISION
    field: str | None = None


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How to read a source of any format but the fixture.

    `acl`: who may read a document. There is no default: nothing is public by accident.
    `subject_groups`: who asks a query; where absent, the constant groups of `acl`.
    `subgroups`: fields of a query whose values (strings, integers, lists of them) are its
    subgroups, as they stand. `splits`: names of judgement files; empty for all that are there.
    `split_field`: field of a query that names the split of one that nobody judged.
    `query_prefix`: the item id of a query is this prefix and its id in the source, always, so that
    it cannot be a document's id; the case id is the id in the source.
    `unjudged_queries`: those in no judgement file of any split are kept, their measures undefined.
    `blank_documents`, `orphan_judgements`: refused unless they are to be left out (and counted).
    """

    acl: Groups | None = None
    subject_groups: Groups | None = None
    subgroups: tuple[str, ...] = ()
    source_revision: Revision = Revision()
    splits: tuple[str, ...] = ()
    split_field: str | None = None
    query_prefix: str = "query:"
    unjudged_queries: Unjudged = "keep"
    blank_documents: Handling = "refuse"
    orphan_judgements: Handling = "refuse"
    max_problems: int = 100

    def document_groups(self) -> Groups:
        """Raises UsageError where the user has not said who may read the documents."""
        if self.acl is None:
            raise UsageError(
                "the source does not say who may read its documents; state it: "
                "acl: public, acl: [group, ...] or acl: {field: metadata.groups}"
            )
        return self.acl

    def asking_groups(self) -> Groups:
        """Raises UsageError where neither a statement nor a constant `acl` says who asks."""
        if self.subject_groups is not None:
            return self.subject_groups
        acl = self.document_groups()
        if acl.field is not None:
            raise UsageError(
                "access lists come from a field, so the groups of those who ask must be stated: "
                "subject_groups: [group, ...] or subject_groups: {field: metadata.groups}"
            )
        return acl


def source_options(settings: Mapping[str, object]) -> SourceOptions:
    """Options from plain values, as YAML or a command line gives them.

        acl: public | [g1, g2] | {field: metadata.groups, constant: [g1]}
        subject_groups: likewise
        source_revision: text | {field: metadata.revision, constant: text}
        subgroups, splits (or split): text | [text, ...]
        split_field, query_prefix, unjudged_queries, blank_documents, orphan_judgements

    Raises UsageError for an unknown setting or a value of another form.
    """
    given = dict(settings)
    if "split" in given:
        if "splits" in given:
            raise UsageError("split and splits are both given; give one of them")
        given["splits"] = given.pop("split")
    known = [f.name for f in fields(SourceOptions)]
    if unknown := [name for name in given if name not in known]:
        raise UsageError(f"unknown setting {', '.join(unknown)}; allowed are {', '.join(known)}")
    ready: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        if name in ("acl", "subject_groups"):
            ready[name] = _groups(name, value)
        elif name == "source_revision":
            ready[name] = _revision(value)
        elif name in ("subgroups", "splits"):
            ready[name] = _names(name, value)
        elif name == "unjudged_queries":
            ready[name] = _one_of(name, value, get_args(Unjudged))
        elif name in ("blank_documents", "orphan_judgements"):
            ready[name] = _one_of(name, value, get_args(Handling))
        elif name == "max_problems":
            if type(value) is not int or value < 1:
                raise UsageError(f"max_problems is {value!r}; it must be a positive integer")
            ready[name] = value
        else:
            ready[name] = _text(name, value)
    return SourceOptions(**ready)


def _groups(name: str, value: object) -> Groups:
    if not isinstance(value, Mapping):
        return Groups(_names(name, value))
    _only(name, value, ("field", "constant"))
    constant = _names(f"{name}.constant", value["constant"]) if "constant" in value else ()
    field = _text(f"{name}.field", value["field"]) if "field" in value else None
    return Groups(constant, field)


def _revision(value: object) -> Revision:
    name = "source_revision"
    if not isinstance(value, Mapping):
        return Revision(_text(name, value))
    _only(name, value, ("field", "constant"))
    return Revision(**{key: _text(f"{name}.{key}", entry) for key, entry in value.items()})


def _only(name: str, value: Mapping[Any, object], allowed: tuple[str, ...]) -> None:
    if not value or not set(value) <= set(allowed):
        raise UsageError(f"{name} is {dict(value)!r}; its keys are {' and '.join(allowed)}")


def _names(name: str, value: object) -> tuple[str, ...]:
    entries = value if isinstance(value, list | tuple) else [value]
    names = tuple(_text(name, entry) for entry in entries)
    if not names or len(set(names)) != len(names):
        raise UsageError(f"{name} is {value!r}; it must name one or more, each once")
    return names


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or value != value.strip():
        raise UsageError(f"{name} is {value!r}; it must be text without white space at its ends")
    return value


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise UsageError(f"{name} is {value!r}; it must be {' or '.join(allowed)}")
    return str(value)
