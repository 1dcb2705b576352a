"""Lines of a UTF-8 text file, plain or compressed, in Arrow batches of bounded size.

A line ends in LF or CRLF. A byte order mark and blank lines at the end are tolerated and counted;
bytes that are not UTF-8 and blank lines before the end are refused with their line number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from rag_assets.sources.faults import refuse
from rag_assets.sources.strict_json import WHOLE_FILE, excerpt

BLOCK_BYTES = 16 << 20
MAX_LINE_BYTES = 64 << 20
SUFFIXES = ("", ".gz", ".zst")

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_NAMED = {".gz": "gzip", ".zst": "zstd"}
_LF, _CR = 10, 13


class Lines(NamedTuple):
    """Consecutive lines without their ends; `first` is the number of the first one, from 1."""

    first: int
    text: pa.StringArray


@dataclass(slots=True)
class TextFile:
    """A text file and what reading it has shown. `shown` is the path that problems name."""

    path: Path
    shown: str
    lines: int = 0
    byte_order_mark: bool = False
    lf_ends: int = 0
    crlf_ends: int = 0
    blank_at_end: int = 0
    comments: int = 0  # counted by readers of formats that have them

    def batches(self, block_bytes: int = BLOCK_BYTES) -> Iterator[Lines]:
        """All lines, in order. Raises InputError."""
        rest = b""
        for block in _blocks(self.path, self.shown, block_bytes):
            if not self.lines and not rest and block.startswith(_BYTE_ORDER_MARK):
                self.byte_order_mark = True
                block = block[len(_BYTE_ORDER_MARK) :]
            data = rest + block
            cut = data.rfind(b"\n") + 1
            rest = data[cut:]
            if len(rest) > MAX_LINE_BYTES:
                remedy = f"a line holds at most {MAX_LINE_BYTES} bytes"
                place = f"after line {self.lines + self.blank_at_end}"
                refuse("line_too_long", self.shown, place, "a longer line", remedy)
            if cut:
                yield from self._lines(data[:cut])
        if rest:
            yield from self._lines(rest)

    def _lines(self, data: bytes) -> Iterator[Lines]:
        raw = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(raw == _LF)
        crlf = ends[(ends > 0) & (raw[ends - 1] == _CR)]
        self.crlf_ends += len(crlf)
        self.lf_ends += len(ends) - len(crlf)
        kept = raw != _LF
        kept[crlf - 1] = False
        stops = ends if len(ends) and ends[-1] == len(raw) - 1 else np.append(ends, len(raw))
        lengths = np.diff(stops, prepend=-1) - 1
        lengths[np.searchsorted(ends, crlf)] -= 1
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        filled = np.flatnonzero(lengths)
        if not len(filled):
            self.blank_at_end += len(stops)
            return
        first = self.lines + 1
        count = int(filled[-1]) + 1
        if self.blank_at_end or len(filled) < count:
            gap = (
                0 if self.blank_at_end else int(np.flatnonzero(np.diff(filled, prepend=-1) > 1)[0])
            )
            place = f"line {first if self.blank_at_end else first + gap}"
            refuse("blank_line", self.shown, place, "a blank line", "remove it")
        self.lines += count
        self.blank_at_end += len(stops) - count
        bytes_ = pa.Array.from_buffers(
            pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(raw[kept])]
        )
        yield Lines(first, self._decoded(bytes_, first))

    def _decoded(self, lines: pa.BinaryArray, first: int) -> pa.StringArray:
        try:
            return lines.cast(pa.string())
        except pa.ArrowInvalid:
            for number, line in enumerate(lines.to_pylist(), first):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as error:
                    found = f"the byte 0x{line[error.start]:02x} ({error.reason})"
                    refuse("not_utf8", self.shown, f"line {number}", found, "save it as UTF-8")
            raise


def find_file(folder: Path, shown: str, *names: str) -> TextFile:
    """The one file in `folder` with one of these names, plain, .gz or .zst. Raises InputError."""
    there = [name + end for name in names for end in SUFFIXES if (folder / (name + end)).is_file()]
    if not there:
        found = "no such folder" if not folder.is_dir() else f"no {names[0]}"
        remedy = f"the folder holds {' or '.join(names)}, plain, .gz or .zst"
        refuse("file_not_found", shown, WHOLE_FILE, found, remedy)
    if len(there) > 1:
        refuse("ambiguous_file", shown, WHOLE_FILE, " and ".join(there), "keep one of them")
    return TextFile(folder / there[0], os.path.join(shown, there[0]))


def base_name(path: Path) -> str:
    """A file's name without the suffix of a compression."""
    return path.stem if path.suffix in _NAMED else path.name


def _blocks(path: Path, shown: str, block_bytes: int) -> Iterator[bytes]:
    try:
        with open(path, "rb") as stream:
            head = stream.read(4)
        compression = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)
        named = _NAMED.get(path.suffix)
        if named and named != compression:
            found = f"bytes that are not {named}"
            refuse("not_compressed", shown, WHOLE_FILE, found, "name the file as what it is")
        with pa.input_stream(str(path), compression=compression) as stream:
            while block := stream.read(block_bytes):
                yield block
    except FileNotFoundError:
        refuse("file_not_found", shown, WHOLE_FILE, "no such file", "name an existing file")
    except IsADirectoryError:
        refuse("not_a_file", shown, WHOLE_FILE, "a directory", "name a file")
    except OSError as error:
        reason = error.strerror or excerpt(str(error))
        refuse("unreadable_file", shown, WHOLE_FILE, reason, "name a complete, readable file")
