"""Signed decisions: read strictly, appended, valid for what was decided on and nothing else."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rag_assets import clock
from rag_assets.decisions.release import ReleaseFacts
from rag_assets.decisions.signed import (
    check_item,
    judged,
    last_expired,
    read_signed,
    sign,
    standing,
)
from rag_assets.errors import InputError, UsageError

RELEASE = ReleaseFacts(
    {"old": "1" * 64, "new": "2" * 64},
    {"old": "evaluated", "new": "evaluated"},
    {"evaluation_id": "e1", "data_version": "d" * 64},
)
ENTRY: dict[str, Any] = {
    "item": "approvals",
    "decision": "approve",
    "by": "Ada",
    "when": "2026-11-30T21:55:00+00:00",
    "evaluation": "e1",
    "data_version": "d" * 64,
    "signatures": dict(RELEASE.signatures),
    "why": "seen",
}


def written(folder: Path, *entries: dict[str, Any]) -> Path:
    (folder / "decisions.yaml").write_text(yaml.safe_dump(list(entries)), "utf-8")
    return folder


def test_without_a_file_or_entries_nothing_is_decided(tmp_path: Path) -> None:
    assert read_signed(tmp_path) == []
    (tmp_path / "decisions.yaml").write_text("# nothing yet\n", "utf-8")
    assert read_signed(tmp_path) == []
    assert standing(judged([], RELEASE), "approvals") is None


def test_what_is_signed_is_read_back_and_what_was_there_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        clock, "utc_now", lambda: datetime.datetime(2026, 12, 1, tzinfo=datetime.UTC)
    )
    path = written(tmp_path, ENTRY) / "decisions.yaml"
    path.write_text("# agreed in the meeting\n" + path.read_text("utf-8").rstrip(), "utf-8")
    before = path.read_text("utf-8")
    made = sign(tmp_path, "quality old:new", "refuse", RELEASE, by=" Bo ", why="worse: №2")
    assert path.read_text("utf-8").startswith(before + "\n- item: quality old:new\n")
    earlier, last = read_signed(tmp_path)
    assert (earlier.by, earlier.when) == ("Ada", ENTRY["when"])
    assert last == made
    assert (last.by, last.why, last.decision) == ("Bo", "worse: №2", "refuse")
    assert last.when == "2026-12-01T00:00:00+00:00"
    assert (last.evaluation, last.data_version) == ("e1", "d" * 64)
    assert last.signatures == RELEASE.signatures
    assert [path.name for path in tmp_path.iterdir()] == ["decisions.yaml"]


@given(
    why=st.text(min_size=1).filter(lambda text: text.strip() and text.isprintable()),
    by=st.sampled_from(["Ada", "yes", "1.10", "null", "- a: b", "'", "# x"]),
)
def test_any_line_of_text_survives(
    why: str, by: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("signed")
    for item in ("approvals", "shadow_and_rollback"):
        made = sign(folder, item, "approve", RELEASE, by=by, why=why)
    assert [one.item for one in read_signed(folder)] == ["approvals", "shadow_and_rollback"]
    assert read_signed(folder)[-1] == made
    assert (made.by, made.why) == (by, why.strip())


@pytest.mark.parametrize("layout", ["[]\n", "  - {item: x}\n", "--- []\n...\n"])
def test_a_layout_that_cannot_be_appended_to_is_left_alone(tmp_path: Path, layout: str) -> None:
    path = tmp_path / "decisions.yaml"
    path.write_text(layout, "utf-8")
    with pytest.raises((UsageError, InputError), match=r"decisions\.yaml"):
        sign(tmp_path, "approvals", "approve", RELEASE, by="Ada", why="seen")
    assert path.read_text("utf-8") == layout


@pytest.mark.parametrize(("by", "why"), [(" ", "x"), ("Ada", ""), ("Ada", "two\nlines")])
def test_a_decision_says_who_and_why(tmp_path: Path, by: str, why: str) -> None:
    with pytest.raises(UsageError, match="it must be a line of text"):
        sign(tmp_path, "approvals", "approve", RELEASE, by=by, why=why)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "item", ["", "quality", "quality old", "quality a:b:c", "accept", "accept x", "approval"]
)
def test_an_unknown_item_is_refused_with_those_that_there_are(item: str) -> None:
    with pytest.raises(UsageError, match=r"quality OLD:NEW.*approvals.*budgets_met"):
        check_item(item)


FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({"note": "x"}, "unknown_key", "line 6, note"),
    ({"why": ...}, "missing_key", "no why"),
    ({"signatures": ...}, "missing_key", "no signatures"),
    ({"by": "  "}, "wrong_type", "by is a text"),
    ({"by": ["Ada"]}, "wrong_type", "by is a text"),
    ({"item": "approval"}, "wrong_value", "shadow_and_rollback"),
    ({"decision": "yes"}, "wrong_value", "approve or refuse"),
    ({"when": "2026-11-30"}, "wrong_value", "a UTC time such as"),
    ({"when": "2026-11-30T21:55:00"}, "wrong_value", "a UTC time such as"),
    ({"when": "2026-11-30T21:55:00+01:00"}, "wrong_value", "a UTC time such as"),
    ({"when": "yesterday"}, "wrong_value", "a UTC time such as"),
    ({"data_version": "D" * 64}, "wrong_value", "64 hexadecimal digits"),
    ({"signatures": {}}, "wrong_value", "name each space"),
    ({"signatures": ["old"]}, "wrong_type", "maps texts"),
    ({"signatures": {"old": "1"}}, "wrong_value", "contract_signature"),
    ({"item": "quality old:new", "signatures": {"old": "1" * 64}}, "wrong_spaces", "old and new"),
]


@pytest.mark.parametrize(("change", "code", "said"), FAULTS)
def test_a_faulty_file_is_refused_as_a_whole(
    tmp_path: Path, change: dict[str, Any], code: str, said: str
) -> None:
    faulty = {key: value for key, value in {**ENTRY, **change}.items() if value is not ...}
    written(tmp_path, faulty, ENTRY)
    before = (tmp_path / "decisions.yaml").read_bytes()
    with pytest.raises(InputError, match=rf"decisions\.yaml: line .*{code}.*found") as caught:
        read_signed(tmp_path)
    assert [problem.code for problem in caught.value.problems].count(code) == 1
    with pytest.raises(InputError, match=said):
        sign(tmp_path, "approvals", "approve", RELEASE, by="Ada", why="seen")
    assert (tmp_path / "decisions.yaml").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "syntax_error"),
        ("item: approvals\n", "wrong_type"),
        ("- approvals\n", "wrong_type"),
        ("- {item: approvals, item: approvals}\n", "duplicate_key"),
        ("- {[1]: x}\n", "wrong_type"),
    ],
)
def test_a_file_that_is_no_list_of_decisions_is_refused(
    tmp_path: Path, text: str, code: str
) -> None:
    (tmp_path / "decisions.yaml").write_text(text, "utf-8")
    with pytest.raises(InputError) as caught:
        read_signed(tmp_path)
    assert code in [problem.code for problem in caught.value.problems]


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "decisions.yaml").write_bytes(b"# \xff\n")
    with pytest.raises(InputError, match="not_utf8: found the byte 0xff"):
        read_signed(tmp_path)


def facts(**changes: Any) -> ReleaseFacts:
    manifest = {**RELEASE.manifest, **changes.pop("manifest", {})}
    return ReleaseFacts({**RELEASE.signatures, **changes}, RELEASE.statuses, manifest)


@pytest.mark.parametrize(
    ("release", "reason"),
    [
        (facts(manifest={"data_version": "e" * 64}), "the data changed since evaluation e1"),
        (facts(manifest={"data_version": None}), "does not state its data version"),
        (facts(new="3" * 64), "the contract signature of space new changed"),
        (facts(third="3" * 64), "space third was not part of it"),
        (
            ReleaseFacts({"old": "1" * 64}, RELEASE.statuses, RELEASE.manifest),
            "space new is no longer in the suite",
        ),
    ],
)
def test_a_decision_expires_with_what_it_was_about(
    tmp_path: Path, release: ReleaseFacts, reason: str
) -> None:
    signed = read_signed(written(tmp_path, ENTRY))
    now = judged(signed, facts(manifest={"evaluation_id": "e2"}))
    assert standing(now, "approvals") == signed[0]  # another evaluation of the same data
    later = judged(signed, release)
    assert standing(later, "approvals") is None
    expired = last_expired(later, "approvals")
    assert expired is not None
    assert expired.expired is not None
    assert reason in expired.expired


def test_a_decision_on_a_migration_is_not_about_other_spaces(tmp_path: Path) -> None:
    signed = read_signed(written(tmp_path, {**ENTRY, "item": "quality old:new"}))
    assert standing(judged(signed, facts(third="3" * 64)), "quality old:new") == signed[0]
    assert standing(judged(signed, RELEASE), "quality new:old") is None


def test_the_last_valid_decision_counts(tmp_path: Path) -> None:
    entries = [
        ENTRY,
        {**ENTRY, "decision": "refuse"},
        {**ENTRY, "data_version": "e" * 64},  # expired
    ]
    last = standing(judged(read_signed(written(tmp_path, *entries)), RELEASE), "approvals")
    assert last is not None
    assert last.decision == "refuse"
