"""Releases: immutable DuckDB files behind a symlink, so that readers never wait and never break.

    <warehouse>/releases/<suite>/<release>.duckdb    one release, mode 0444
    <warehouse>/<suite>.duckdb                       symlink to the current release

A reader keeps the file it opened; whoever opens the symlink next gets the next release. Replacing
the file itself would not do: a `.wal` that somebody's read-write session leaves beside it would
then be replayed into a database that it does not belong to.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from rag_assets import clock
from rag_assets.errors import StoreError, UsageError
from rag_assets.warehouse.build import in_one_line
from rag_assets.whole_files import flush

BuildInto = Callable[[duckdb.DuckDBPyConnection], None]

_SUITE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_DRAFT = ".draft-"  # drafts belong to a running publisher, or to one that was killed


@dataclass(frozen=True, slots=True)
class Release:
    """One published database. `release_id` starts with its UTC time, so that ids sort by age."""

    suite: str
    release_id: str
    path: Path
    size_bytes: int


def publish(
    build_into: BuildInto,
    *,
    warehouse: Path,
    suite: str,
    keep: int = 10,
    content: str | None = None,
) -> Release:
    """Build a database, make it the suite's current release, and keep the last `keep` releases.

    `content`: a hexadecimal digest of what the release shows. A release takes the place of the one
    before it where theirs are equal, so that unchanged content does not push others out.

    Publishers of one suite wait for each other. If `build_into` raises, or the process dies, the
    current release stays; what a dead publisher left behind is removed by the next one.
    """
    if keep < 1:
        raise UsageError(f"at least one release must be kept, not {keep}")
    link = _link(warehouse, suite)
    folder = warehouse / "releases" / suite
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / ".lock"):
        _remove_drafts(folder, link)
        moment = clock.utc_now().strftime("%Y%m%dT%H%M%S.%fZ")
        label = secrets.token_hex(4) if content is None else content[:12]
        release_id = f"{moment}-{label}"
        path = folder / f"{release_id}.duckdb"
        with _built(folder / f"{_DRAFT}{release_id}.duckdb", build_into) as draft:
            draft.chmod(0o444)
            os.replace(draft, path)
        flush(folder)
        _point(link, path)
        _prune(folder, link, keep)
        return Release(suite, release_id, path, path.stat().st_size)


def current_release(warehouse: Path, suite: str) -> Path:
    """The suite's current release file, with the symlink resolved. StoreError if there is none."""
    link = _link(warehouse, suite)
    try:
        return link.resolve(strict=True)
    except FileNotFoundError:
        published = ", ".join(sorted(p.stem for p in warehouse.glob("*.duckdb"))) or "none"
        raise StoreError(
            f"suite {suite!r} has no release yet (published: {published}); "
            f"run: rag-assets run {suite}"
        ) from None


def check_fresh(path: Path) -> None:
    """UsageError if something is there already, the folder does not exist, or the name is no text.

    DuckDB takes names as text; bytes that are no text in the user's locale are not printable.
    """
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; name a new file in it")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist; create it first")
    if not str(path).isprintable():
        raise UsageError(f"{path}: the name is not text in this locale; name another file")
    # A stale write-ahead log would be replayed into the new database.
    for taken in (path, path.with_name(path.name + ".wal")):
        if os.path.lexists(taken):
            raise UsageError(f"{taken}: exists already; name a new file or remove it first")


def write_database(path: Path, build_into: BuildInto) -> None:
    """Build a fresh database at a path of the user's choice: written whole or not at all.

    UsageError as check_fresh, and if the folder cannot be written to.
    """
    check_fresh(path)
    draft = path.with_name(f".{path.name}{_DRAFT}{secrets.token_hex(4)}")
    try:
        with _built(draft, build_into):
            os.link(draft, path)  # unlike a rename, fails if somebody else was faster
    except FileExistsError:
        raise UsageError(f"{path}: exists already; it was created meanwhile") from None
    except duckdb.IOException as error:
        raise UsageError(f"{path}: cannot be written: {in_one_line(error)}") from None
    flush(path.parent)


@contextmanager
def reading(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A read-only connection to a release, also while somebody has it open for writing.

    Files are 0444, but their owner, or root, can still open one read-write and so lock others out.
    A copy of the file is read then: what was published, without what that session has not saved.
    """
    try:
        con = duckdb.connect(str(path), read_only=True)
    except duckdb.IOException as error:
        if "lock" not in str(error):
            raise
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / path.name
            shutil.copyfile(path, copy)
            with duckdb.connect(str(copy), read_only=True) as con:
                yield con
        return
    with con:
        yield con


def query(path: Path, sql: str) -> pa.Table:
    """The result of one SQL statement that reads a database.

    UsageError, in one line, for SQL that DuckDB refuses, more or less than one statement, and
    anything that writes, including files: a query sees this database and nothing else.
    """
    try:
        with reading(path) as con:
            con.execute("SET enable_external_access = false")
            con.execute("SET lock_configuration = true")
            statements = con.extract_statements(sql)
            if len(statements) != 1:
                raise UsageError(f"one SQL statement is needed, found {len(statements)}")
            relation = con.sql(statements[0].query)
            if relation is None:
                raise UsageError("the statement returns no table; write a SELECT")
            return relation.to_arrow_table()
    except duckdb.Error as error:
        raise UsageError(in_one_line(error)) from None


def _link(warehouse: Path, suite: str) -> Path:
    if not _SUITE.fullmatch(suite):
        raise UsageError(
            f"{suite!r} is not the name of a suite: letters, digits, '-', '_' and '.' are allowed"
        )
    return warehouse / f"{suite}.duckdb"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _built(draft: Path, build_into: BuildInto) -> Iterator[Path]:
    """A closed, flushed database at `draft`; whatever is left of it at the end is removed."""
    try:
        with duckdb.connect(str(draft)) as con:
            build_into(con)
            con.execute("CHECKPOINT")
        flush(draft)
        yield draft
    finally:
        _remove(draft)
        _remove(draft.with_name(draft.name + ".wal"))
        _remove(draft.with_name(draft.name + ".tmp"))  # where DuckDB spills to


def _point(link: Path, path: Path) -> None:
    """Swap the symlink in one step. It is relative, so that the warehouse can be moved."""
    draft = link.with_name(f".{link.name}{_DRAFT}{secrets.token_hex(4)}")
    draft.symlink_to(path.relative_to(link.parent))
    os.replace(draft, link)
    flush(link.parent)


def _remove_drafts(folder: Path, link: Path) -> None:
    for leftover in (*folder.glob(f"{_DRAFT}*"), *link.parent.glob(f".{link.name}{_DRAFT}*")):
        _remove(leftover)


def _prune(folder: Path, link: Path, keep: int) -> None:
    """Delete the oldest releases, the last but one if the last shows the same, and write-ahead
    logs whose database is gone."""
    releases = sorted(folder.glob("[!.]*.duckdb"))
    current = link.resolve()
    labels = [release.stem.partition("-")[2] for release in releases]
    same = releases[-2:-1] if labels[-2:-1] == labels[-1:] else []
    for release in (*releases[:-keep], *same):
        if release.resolve() != current:
            _remove(release)
    for log in folder.glob("[!.]*.duckdb.wal"):
        if not log.with_suffix("").exists():
            _remove(log)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
