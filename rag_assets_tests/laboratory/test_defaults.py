"""The default index of a space: a recorded decision, or exact."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_assets.errors import InputError, UsageError
from rag_assets.laboratory.defaults import default_decisions, set_default_index

EVIDENCE = "a" * 64


def choose(folder: Path, space_id: str, index_name: str, **changes: Any) -> None:
    given = {"by": "Ada", "why": "measured", "evidence_digest": EVIDENCE, "eligible": True}
    set_default_index(folder, space_id, index_name, **{**given, **changes})


def chosen(folder: Path) -> dict[str, str]:
    return {decision.space_id: decision.index_name for decision in default_decisions(folder)}


def test_exact_is_the_default_until_somebody_decides(tmp_path: Path) -> None:
    assert chosen(tmp_path) == {}
    choose(tmp_path, "s", "ivf_pq", by=" Ada ", why="recall 0.97, 3 times as fast")
    assert chosen(tmp_path) == {"s": "ivf_pq"}
    choose(tmp_path, "t", "hnsw")
    choose(tmp_path, "s", "exact", evidence_digest=None, eligible=False)
    assert chosen(tmp_path) == {"s": "exact", "t": "hnsw"}
    first, second, third = default_decisions(tmp_path)
    assert (first.by, first.why, first.evidence) == (
        "Ada",
        "recall 0.97, 3 times as fast",
        EVIDENCE,
    )
    assert datetime.datetime.fromisoformat(first.when).utcoffset() == datetime.timedelta(0)
    assert (first.previous, second.previous, third.previous) == (None, first.digest, second.digest)
    assert [path.name for path in tmp_path.iterdir()] == ["default_index.json"]


def test_an_index_that_is_not_eligible_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'ivf_pq' is not eligible as the default of space 's'"):
        choose(tmp_path, "s", "ivf_pq", eligible=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"by": " "}, "by is ' '"),
        ({"why": ""}, "why is ''"),
        ({"why": "two\nlines"}, "why is"),
        ({"evidence_digest": None}, "evidence is None"),
        ({"evidence_digest": "A" * 64}, "evidence is"),
    ],
)
def test_a_decision_says_who_why_and_on_what_evidence(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        choose(tmp_path, "s", "ivf_pq", **changes)


def test_a_missing_folder_is_an_error_of_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder 'gone'"):
        choose(tmp_path / "gone", "s", "ivf_pq")


def _switched(tree: Any) -> None:
    tree["decisions"][0]["index_name"] = "hnsw"


def _dropped_last(tree: Any) -> None:
    tree["decisions"].pop()


def _dropped_first(tree: Any) -> None:
    tree["decisions"].pop(0)


def _reordered(tree: Any) -> None:
    tree["decisions"].reverse()


def _added(tree: Any) -> None:
    tree["decisions"].append({**tree["decisions"][-1], "space_id": "t"})


def _new_key(tree: Any) -> None:
    tree["decisions"][0]["note"] = "x"


def _not_text(tree: Any) -> None:
    tree["decisions"][0]["by"] = 7


def _other_format(tree: Any) -> None:
    tree["format"] = 2


def _no_head(tree: Any) -> None:
    del tree["head"]


@pytest.mark.parametrize(
    ("edit", "place"),
    [
        (_switched, r"decisions\[0\]"),
        (_dropped_last, "head"),
        (_dropped_first, r"decisions\[0\]"),
        (_reordered, r"decisions\[0\]"),
        (_added, r"decisions\[2\]"),
        (_new_key, r"decisions\[0\]"),
        (_not_text, r"decisions\[0\].by"),
        (_other_format, "format"),
        (_no_head, "whole file"),
    ],
)
def test_a_file_edited_by_hand_is_refused_for_reading_and_writing(
    tmp_path: Path, edit: Callable[[Any], None], place: str
) -> None:
    choose(tmp_path, "s", "ivf_pq")
    choose(tmp_path, "s", "exact")
    path = tmp_path / "default_index.json"
    tree = json.loads(path.read_text("utf-8"))
    edit(tree)
    path.write_text(json.dumps(tree), "utf-8")
    before = path.read_bytes()
    with pytest.raises(InputError, match=rf"default_index\.json: {place}: edited_default"):
        default_decisions(tmp_path)
    with pytest.raises(InputError, match="edited_default"):
        choose(tmp_path, "s", "exact")
    assert path.read_bytes() == before


def test_a_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "default_index.json").write_text("{", "utf-8")
    with pytest.raises(InputError, match="syntax_error"):
        default_decisions(tmp_path)
    (tmp_path / "default_index.json").write_text('{"format": 1, "format": 1}', "utf-8")
    with pytest.raises(InputError):
        default_decisions(tmp_path)
