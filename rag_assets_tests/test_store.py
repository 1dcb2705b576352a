"""The store: whole or not at all, whatever is killed or runs at the same time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rag_assets.errors import StoreError
from rag_assets.quality.report import CheckReport
from rag_assets.store import KEPT_SECONDS, KEPT_VERSIONS, Artifact, Store

ASSET = ("space", "embeddings")


def containing(text: str) -> Callable[[Path], None]:
    """Two files that must be seen together, with the same text."""

    def write_files(folder: Path) -> None:
        (folder / "a.txt").write_text(text)
        (folder / "b.txt").write_text(text)

    return write_files


def text_of(artifact: Artifact) -> str:
    texts = {(artifact.folder / name).read_text() for name in ("a.txt", "b.txt")}
    [text] = texts
    return text


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def report(passed: bool) -> CheckReport:
    return CheckReport("contract_validation", passed, "error", datetime.now(UTC), 1, (), {})


def test_what_was_written_is_read_with_its_inputs_and_facts(tmp_path: Path) -> None:
    store = Store(tmp_path, "toy")
    upstream = store.write(("canonical_items",), "v0", containing("items"))
    written = store.write(ASSET, "v1", containing("one"), inputs=(upstream,), info={"rows": 3})
    assert store.read(ASSET) == written
    assert text_of(written) == "one"
    assert (written.name, written.version) == ("space/embeddings", "v1")
    assert (written.inputs, written.info) == ({"canonical_items": "v0"}, {"rows": 3})


def test_an_asset_that_was_never_written_is_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"^toy/space/embeddings has never been mat"):
        Store(tmp_path, "toy", "run-1").read(ASSET)


def test_a_version_is_written_once(tmp_path: Path) -> None:
    store = Store(tmp_path, "toy")
    store.write(ASSET, "v1", containing("one"))
    store.write(ASSET, "v1", containing("never written"))
    assert text_of(store.read(ASSET)) == "one"


def test_a_write_that_fails_leaves_no_trace_and_the_version_before(tmp_path: Path) -> None:
    store = Store(tmp_path, "toy", "run-1")
    store.write(ASSET, "v1", containing("one"))
    before = files_below(tmp_path)

    def fails_halfway(folder: Path) -> None:
        (folder / "a.txt").write_text("two")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        store.write(ASSET, "v2", fails_halfway)
    assert files_below(tmp_path) == before
    assert text_of(store.read(ASSET)) == "one"


@pytest.mark.parametrize("failing", ["run pointer", "current pointer"])
def test_a_crash_between_files_and_pointer_leaves_the_version_before_and_heals(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store(tmp_path, "toy", "run-1").write(ASSET, "v1", containing("one"))
    replace, left = os.replace, {"run pointer": 1, "current pointer": 2}[failing]

    def crash(source: Path, target: Path) -> None:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        replace(source, target)

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path, "toy", "run-2").write(ASSET, "v2", containing("two"))
    monkeypatch.undo()
    assert text_of(Store(tmp_path, "toy").read(ASSET)) == "one"
    assert text_of(Store(tmp_path, "toy", "run-1").read(ASSET)) == "one"
    assert text_of(Store(tmp_path, "toy", "run-3").write(ASSET, "v2", containing("2"))) == "two"


def test_a_writer_killed_while_writing_leaves_the_version_before(tmp_path: Path) -> None:
    Store(tmp_path, "toy").write(ASSET, "v1", containing("one"))
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from rag_assets.store import Store\n"
        "def write(folder):\n"
        "    (folder / 'a.txt').write_text('two')\n"
        "    print('half', flush=True)\n"
        "    time.sleep(60)\n"
        "Store(Path(sys.argv[1]), 'toy', 'run-2').write(('space', 'embeddings'), 'v2', write)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "half\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    store = Store(tmp_path, "toy", "run-3")
    assert text_of(store.read(ASSET)) == "one"
    assert text_of(store.write(ASSET, "v2", containing("whole"))) == "whole"
    # Its draft goes once no slow run can be behind it.
    [draft] = (store.root / "store" / "toy" / "space" / "embeddings").glob(".draft-*")
    age(draft, KEPT_SECONDS + 60)
    store.write(ASSET, "v3", containing("three"))
    assert not draft.exists()


def test_a_run_reads_what_it_wrote_itself_and_the_current_version_of_the_rest(
    tmp_path: Path,
) -> None:
    first, second = Store(tmp_path, "toy", "run-1"), Store(tmp_path, "toy", "run-2")
    other = ("other", "embeddings")
    first.write(ASSET, "v1", containing("one"))
    second.write(ASSET, "v2", containing("two"))
    second.write(other, "w2", containing("other"))
    assert text_of(first.read(ASSET)) == "one"
    assert text_of(second.read(ASSET)) == "two"
    assert text_of(first.read(other)) == "other"
    assert text_of(Store(tmp_path, "toy").read(ASSET)) == "two"  # the last to finish
    first.write(ASSET, "v1", containing("one"))
    assert text_of(second.read(ASSET)) == "two"


def test_writers_of_one_version_at_once_all_get_the_whole_of_it(tmp_path: Path) -> None:
    texts: list[str] = []
    gate = threading.Barrier(8)

    def write(number: int) -> None:
        def write_files(folder: Path) -> None:
            gate.wait()  # everybody has found the version missing by now
            containing("same content")(folder)

        store = Store(tmp_path, "toy", f"run-{number}")
        texts.append(text_of(store.write(ASSET, "v1", write_files)))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["same content"] * 8
    assert not list(tmp_path.rglob(".draft-*"))


def test_two_runs_at_once_with_different_content_never_mix(tmp_path: Path) -> None:
    chain = (("canonical_items",), ("space", "embeddings"), ("space", "exact_results"))
    mixed: list[tuple[str, ...]] = []
    finished: list[int] = []

    def run(number: int) -> None:
        for turn in range(15):
            store = Store(tmp_path, "toy", f"run-{number}-{turn}")
            text = f"{number}.{turn}"
            made: tuple[Artifact, ...] = ()
            for asset in chain:
                made = (store.write(asset, f"{asset[-1]}-{text}", containing(text), inputs=made),)
                store.write_check(made[0], report(passed=True))
            seen = tuple(text_of(store.read(asset)) for asset in chain)
            if set(seen) != {text}:
                mixed.append(seen)
        finished.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(finished) == [0, 1]
    assert mixed == []


def test_old_versions_go_with_their_checks_and_neither_young_nor_current_ones(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path, "toy")
    home = tmp_path / "store" / "toy" / "space" / "embeddings"
    for number in range(KEPT_VERSIONS + 3):
        store.write_check(store.write(ASSET, f"v{number}", containing("x")), report(passed=True))
        # The two oldest are past the limit; the third is one too many, and young.
        age(home / f"v{number}", KEPT_SECONDS + 100 - number if number < 2 else 50 - number)
    last = KEPT_VERSIONS + 3
    store.write(ASSET, f"v{last}", containing("x"))
    kept = {f"v{number}" for number in range(2, last + 1)}
    assert {path.parent.name for path in home.glob("*/artifact.json")} == kept
    assert {path.name for path in (home / "checks").iterdir()} == kept - {f"v{last}"}
    # However old, the current one stays.
    for path in home.glob("v*"):
        age(path, KEPT_SECONDS + 1000)
    age(home / f"v{last}", KEPT_SECONDS + 9999)
    current = store.read(ASSET)
    store.write(ASSET, current.version, containing("x"))
    assert store.read(ASSET) == current
    assert len(list(home.glob("*/artifact.json"))) == KEPT_VERSIONS


def test_a_version_in_use_again_is_young_again(tmp_path: Path) -> None:
    mine, others = Store(tmp_path, "toy", "mine"), Store(tmp_path, "toy", "others")
    home = tmp_path / "store" / "toy" / "space" / "embeddings"
    mine.write(ASSET, "v0", containing("mine"))
    for number in range(1, KEPT_VERSIONS + 2):
        others.write(ASSET, f"v{number}", containing("x"))
    for path in home.glob("v*"):
        age(path, KEPT_SECONDS + 60)
    Store(tmp_path, "toy", "again").write(ASSET, "v0", containing("mine"))
    for number in range(6, 12):  # other runs publish meanwhile
        others.write(ASSET, f"v{number}", containing("x"))
    assert text_of(Store(tmp_path, "toy", "again").read(ASSET)) == "mine"


def test_a_version_half_deleted_by_a_killed_run_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, "toy")
    home = tmp_path / "store" / "toy" / "space" / "embeddings"
    for number in range(KEPT_VERSIONS):
        store.write(ASSET, f"v{number}", containing("x"))
    for number in range(KEPT_VERSIONS):
        age(home / f"v{number}", KEPT_SECONDS + 100 - number)

    def killed(folder: Path, **_: object) -> None:
        if folder.exists():
            (folder / "artifact.json").unlink()
            raise KeyboardInterrupt

    monkeypatch.setattr("rag_assets.store.shutil.rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        store.write(ASSET, f"v{KEPT_VERSIONS}", containing("x"))  # v0 is one too many now
    monkeypatch.undo()
    assert text_of(store.write(ASSET, "v0", containing("again"))) == "again"


def test_pins_of_old_runs_go_and_those_of_running_ones_stay(tmp_path: Path) -> None:
    for run in ("old", "running"):
        Store(tmp_path, "toy", run).write(ASSET, run, containing(run))
    pins = {path.name: path for path in (tmp_path / "store" / "toy" / ".runs").iterdir()}
    assert set(pins) == {"old", "running"}
    age(pins["old"], KEPT_SECONDS + 60)
    Store(tmp_path, "toy").write(ASSET, "next", containing("next"))
    assert not pins["old"].exists()
    assert text_of(Store(tmp_path, "toy", "running").read(ASSET)) == "running"


def test_a_pin_whose_version_is_gone_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    store = Store(tmp_path, "toy", "run-1")
    artifact = store.write(ASSET, "v1", containing("one"))
    artifact.folder.rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="version v1 is no longer in the store; materialize it"):
        store.read(ASSET)


def test_a_check_belongs_to_the_version_it_looked_at(tmp_path: Path) -> None:
    store = Store(tmp_path, "toy")
    first = store.write(ASSET, "v1", containing("one"))
    second = store.write(ASSET, "v2", containing("two"))
    store.write_check(first, report(passed=True))
    assert store.read_checks(second) == {}
    store.write_check(first, report(passed=False))  # the latest evaluation counts
    found = store.read_checks(first)["contract_validation"]
    assert found is not None
    assert not found.passed
    assert list(store.read_checks(first)) == ["contract_validation"]


def test_suites_are_stored_apart(tmp_path: Path) -> None:
    Store(tmp_path, "toy").write(ASSET, "v1", containing("toy"))
    Store(tmp_path, "other").write(ASSET, "v1", containing("other"))
    assert text_of(Store(tmp_path, "toy").read(ASSET)) == "toy"


def test_the_record_of_a_version_is_plain_json(tmp_path: Path) -> None:
    artifact = Store(tmp_path, "toy").write(ASSET, "v1", containing("one"), info={"rows": 1})
    record = json.loads((artifact.folder / "artifact.json").read_text("utf-8"))
    assert record == {"version": "v1", "content": "v1", "inputs": {}, "info": {"rows": 1}}


def test_what_is_built_records_the_content_of_its_inputs(tmp_path: Path) -> None:
    store = Store(tmp_path, "toy")
    parts = [
        store.write(ASSET, version, containing("one"), content="same") for version in ("v1", "v2")
    ]
    built = [
        store.write(("built",), f"on-{p.version}", containing("b"), inputs=(p,)) for p in parts
    ]
    assert [artifact.content for artifact in parts] == ["same", "same"]
    assert built[0].inputs == built[1].inputs == {parts[0].name: "same"}
