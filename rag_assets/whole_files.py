"""Files that are written whole or not at all: to a draft beside them, flushed, then renamed."""

from __future__ import annotations

import fcntl
import os
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
