from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.errors import InputError
from rag_assets.sources.text_lines import TextFile

_LINE = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), min_size=1)


def read(content: bytes, block_bytes: int = 1 << 20) -> tuple[list[tuple[int, str]], TextFile]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "lines.txt"
        path.write_bytes(content)
        text = TextFile(path, "lines.txt")
        found = [
            (number, line)
            for lines in text.batches(block_bytes)
            for number, line in enumerate(lines.text.to_pylist(), lines.first)
        ]
    return found, text


@given(
    st.lists(st.tuples(_LINE.filter(lambda t: t[0] != "\ufeff"), st.sampled_from(["\n", "\r\n"]))),
    st.booleans(),
    st.integers(1, 9),
)
def test_any_lines_come_back_numbered_whatever_the_block(
    rows: list[tuple[str, str]], unended: bool, block_bytes: int
) -> None:
    content = "".join(line + end for line, end in rows)
    if unended and rows:
        content = content.removesuffix(rows[-1][1])
    found, text = read(content.encode(), block_bytes)
    assert found == list(enumerate((line for line, _ in rows), 1))
    assert text.lines == len(rows)
    assert text.lf_ends + text.crlf_ends == len(rows) - (unended and bool(rows))


@pytest.mark.parametrize("block_bytes", [1, 3, 100])
def test_blank_lines_at_the_end_are_counted(block_bytes: int) -> None:
    found, text = read(b"a\nb\n\n\r\n\n", block_bytes)
    assert found == [(1, "a"), (2, "b")]
    assert text.blank_at_end == 3


@pytest.mark.parametrize("block_bytes", [1, 3, 100])
@pytest.mark.parametrize(
    ("content", "line"),
    [(b"\na\n", 1), (b"a\n\nb\n", 2), (b"a\n\n\n\nb", 2), (b"a\nb\n\r\nc\n", 3)],
)
def test_a_blank_line_before_the_end_is_named(content: bytes, line: int, block_bytes: int) -> None:
    with pytest.raises(InputError) as caught:
        read(content, block_bytes)
    (problem,) = caught.value.problems
    assert (problem.code, problem.place) == ("blank_line", f"line {line}")


def test_an_empty_file_has_no_lines() -> None:
    assert read(b"")[0] == []
    assert read(b"\xef\xbb\xbf")[0] == []


def test_utf16_is_refused() -> None:
    with pytest.raises(InputError, match="line 1: not_utf8"):
        read("a\nb\n".encode("utf-16"))
