"""Files and folders that are there whole or not at all: a draft beside them, flushed, renamed."""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

DRAFT = ".draft-"  # what a killed process leaves begins with this


def draft_name() -> str:
    return f"{DRAFT}{uuid.uuid4().hex}"


def replace_text(path: Path, text: str) -> None:
    """Write `text` (UTF-8, line ends as they are) in place of what was at `path`, in one step."""
    replace_file(path, lambda draft: draft.write_text(text, "utf-8", newline=""))


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Put the file that `write` makes at the path it is given in place of `path`, in one step."""
    draft = path.with_name(draft_name())
    try:
        write(draft)
        flush(draft)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def write_folder(folder: Path, write: Callable[[Path], object]) -> None:
    """Make a new folder that `write` fills, in one step. OSError where something is in it."""
    draft = folder.with_name(draft_name())
    draft.mkdir(parents=True)
    try:
        write(draft)
        for path in (*draft.rglob("*"), draft):
            flush(path)
        os.replace(draft, folder)
        flush(folder.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def remove(path: Path) -> None:
    """Take away a file or folder. FileNotFoundError where there is none.

    Out of the way in one step first: half of it must never stand under its name.
    """
    doomed = path.rename(path.with_name(draft_name()))
    if doomed.is_dir():
        shutil.rmtree(doomed, ignore_errors=True)
    else:
        doomed.unlink(missing_ok=True)


def flush(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """One writer at a time; the folder itself is the lock, so that no lock file stays behind."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
