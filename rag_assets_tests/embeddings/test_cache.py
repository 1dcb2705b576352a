"""The embedding cache: what is embedded again, and what survives damage and kills."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from rag_assets.embeddings.cache import EmbeddingCache, input_key
from rag_assets_tests.embeddings.corpora import (
    CONTRACT,
    DOCUMENTS,
    QUERIES,
    Known,
    contract,
    corpus_of,
    embedded,
    expected,
)

ALL = [*DOCUMENTS.values(), *QUERIES.values()]


def test_a_second_run_embeds_nothing(tmp_path: Path) -> None:
    first, _ = embedded(Known(), tmp_path)
    provider = Known()
    second, report = embedded(provider, tmp_path)
    assert provider.calls == []
    assert (report.cache_hits, report.embedded, report.requests) == (12, 0, 0)
    np.testing.assert_array_equal(first.vectors, second.vectors)


def test_a_changed_document_embeds_one_item(tmp_path: Path) -> None:
    embedded(Known(), tmp_path)
    provider = Known()
    changed = DOCUMENTS | {"d3": "document 3, revised"}
    space, report = embedded(provider, tmp_path, corpus_of(changed))
    assert provider.texts == ["document 3, revised"]
    assert (report.cache_hits, report.embedded) == (11, 1)
    np.testing.assert_array_equal(space.vectors[3:4], expected(["document 3, revised"]))


@pytest.mark.parametrize("change", [{"revision": "r2"}, {"truncation": "end"}, {"pooling": "cls"}])
def test_a_changed_contract_embeds_all(tmp_path: Path, change: dict[str, str]) -> None:
    embedded(Known(), tmp_path)
    _, report = embedded(Known(), tmp_path, of=contract(**change))
    assert (report.cache_hits, report.embedded) == (0, 12)


def test_a_new_alias_or_licence_embeds_nothing(tmp_path: Path) -> None:
    embedded(Known(), tmp_path)
    _, report = embedded(Known(), tmp_path, of=contract(space_id="renamed", licence="MIT"))
    assert report.embedded == 0


def test_the_two_roles_of_one_text_are_kept_apart(tmp_path: Path) -> None:
    embedded(Known(), tmp_path, corpus_of({"d0": "text"}, {}))
    _, report = embedded(Known(), tmp_path, corpus_of({"d0": "other"}, {"q0": "text"}))
    assert report.embedded == 2


@pytest.mark.parametrize("place", [0.0, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_a_damaged_file_is_noted_once_and_its_batch_embedded_again(
    tmp_path: Path, damage: str, place: float
) -> None:
    embedded(Known(), tmp_path)
    path = max(tmp_path.rglob("documents/*.npz"), key=lambda path: path.stat().st_size)
    with np.load(path) as arrays:
        lost = len(arrays["keys"])
    whole = path.read_bytes()
    at = int(len(whole) * place)
    broken = {
        "cut": whole[:at],
        "flip": whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :],
        "empty": b"",
    }[damage]
    path.write_bytes(broken)
    space, report = embedded(Known(), tmp_path)
    # A flipped byte may stand where the container holds nothing that matters, such as a time stamp.
    assert (report.embedded, len(report.notes)) in (
        [(lost, 1)] if damage != "flip" else [(lost, 1), (0, 0)]
    )
    np.testing.assert_array_equal(space.vectors, expected(ALL))
    _, report = embedded(Known(), tmp_path)
    assert (report.embedded, report.notes) == (0, ())


def test_a_flipped_vector_component_never_comes_back(tmp_path: Path) -> None:
    embedded(Known(), tmp_path)
    path = next(iter(tmp_path.rglob("queries/*.npz")))
    whole = path.read_bytes()
    stored = expected([QUERIES["q0"]]).tobytes()
    at = whole.index(stored)
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    space, report = embedded(Known(), tmp_path)
    assert len(report.notes) == 1
    np.testing.assert_array_equal(space.vectors, expected(ALL))


@pytest.mark.parametrize(
    "arrays",
    [
        {"keys": np.zeros((1, 32), np.uint8), "vectors": np.ones((1, 3), np.float32)},
        {"keys": np.zeros((1, 32), np.uint8), "vectors": np.ones((1, 4), np.float64)},
        {"keys": np.zeros((2, 32), np.uint8), "vectors": np.ones((1, 4), np.float32)},
        {"keys": np.zeros((1, 32), np.uint8), "vectors": np.full((1, 4), np.nan, np.float32)},
        {"vectors": np.ones((1, 4), np.float32)},
    ],
)
def test_a_file_of_the_wrong_form_is_not_believed(
    tmp_path: Path, arrays: dict[str, np.ndarray]
) -> None:
    folder = tmp_path / CONTRACT.signature / "documents"
    folder.mkdir(parents=True)
    np.savez(folder / "odd.npz", **arrays)  # type: ignore[arg-type]
    notes: list[str] = []
    assert list(EmbeddingCache(tmp_path).batches(CONTRACT, "documents", notes)) == []
    assert len(notes) == 1


def test_writers_and_readers_at_once_never_see_half_a_batch(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path)
    batches = [[f"{batch}-{number}" for number in range(20)] for batch in range(10)]

    def write(number: int) -> None:
        texts = batches[number % len(batches)]
        cache.store(CONTRACT, "documents", [input_key(text) for text in texts], expected(texts))

    def read(_: int) -> None:
        notes: list[str] = []
        for keys, vectors in cache.batches(CONTRACT, "documents", notes):
            assert len(keys) == len(vectors) == 20
        assert notes == []

    with ThreadPoolExecutor(8) as pool:
        work = [pool.submit(task, number) for number in range(40) for task in (write, read)]
        for future in work:
            future.result()
    files = sorted(path.name for path in (tmp_path / CONTRACT.signature / "documents").iterdir())
    assert len(files) == 10
    assert all(name.endswith(".npz") for name in files)


def test_a_killed_process_loses_no_more_than_one_batch(tmp_path: Path) -> None:
    script = """
        import os, signal, sys
        from pathlib import Path
        from rag_assets_tests.embeddings.corpora import Known, embedded, vectors_of

        def answer(texts):
            if "document 8" in texts:  # the third batch
                os.kill(os.getpid(), signal.SIGKILL)
            return vectors_of(texts)

        embedded(Known(answer), Path(sys.argv[1]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)], check=False, timeout=60
    )
    assert done.returncode == -9
    space, report = embedded(Known(), tmp_path)
    assert report.cache_hits == 8
    np.testing.assert_array_equal(space.vectors, expected(ALL))
