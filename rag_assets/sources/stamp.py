"""Whether files may have changed, without reading them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Stamp:
    """`value` changes with the name, size or modification time of any file; `size` is in bytes."""

    value: str
    size: int


def stamp_of(path: Path) -> Stamp:
    """The stamp of a file, or of all files below a folder. Nothing there has a stamp too.

    Equal stamps mean that nobody wrote; different stamps do not mean that the content differs.
    """
    sha = hashlib.sha256()
    size = 0
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        try:
            status = file.stat()
        except OSError:  # taken away between the two calls, or never there
            continue
        if file.is_file():
            name = file.relative_to(path).as_posix()
            sha.update(f"{name!r} {status.st_size} {status.st_mtime_ns}\n".encode())
            size += status.st_size
    return Stamp(sha.hexdigest(), size)
