"""Thresholds as files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_assets.errors import InputError
from rag_assets.thresholds.calibration import calibrate
from rag_assets.thresholds.files import read_threshold, write_threshold
from rag_assets.thresholds.threshold import Costs, Threshold, evaluate_on_test
from rag_assets_tests.thresholds.examples import DEV, TEST, contract, top_scores


def thresholds() -> list[Threshold]:
    calibrated = calibrate(contract(), DEV, Costs(3, 1)).threshold
    hopeless = top_scores([0.1] * 5, [0.9] * 6)
    return [
        calibrated,
        evaluate_on_test(calibrated, contract(), TEST, split="test"),
        calibrate(contract(), hopeless, Costs(1, 1)).threshold,  # inf: refuse all
        calibrate(contract(), hopeless, Costs(0.1, 9.5)).threshold,  # -inf: answer all
        calibrate(contract(space_id="größe/1"), DEV.slice(0, 2), Costs(1, 1)).threshold,
    ]


@pytest.mark.parametrize("number", range(5))
def test_a_threshold_is_read_as_it_was_written(tmp_path: Path, number: int) -> None:
    path = tmp_path / "threshold.json"
    written = thresholds()[number]
    write_threshold(thresholds()[0], path)
    write_threshold(written, path)
    assert read_threshold(path) == written
    assert [file.name for file in tmp_path.iterdir()] == ["threshold.json"]


def _lower(tree: Any) -> None:
    tree["threshold"]["value"] = 0.5


def _other_signature(tree: Any) -> None:
    tree["threshold"]["contract_signature"] = "0" * 64


def _untested(tree: Any) -> None:
    tree["threshold"]["test"] = None


def _forgotten_case(tree: Any) -> None:
    tree["threshold"]["dev_case_ids"].pop()


def _new_key(tree: Any) -> None:
    tree["note"] = "x"


def _other_format(tree: Any) -> None:
    tree["format"] = 2


@pytest.mark.parametrize(
    ("edit", "place"),
    [
        (_lower, "digest"),
        (_other_signature, "digest"),
        (_untested, "digest"),
        (_forgotten_case, "digest"),
        (_new_key, "whole file"),
        (_other_format, "format"),
    ],
)
def test_an_edited_file_is_refused(tmp_path: Path, edit: Callable[[Any], None], place: str) -> None:
    path = tmp_path / "threshold.json"
    write_threshold(thresholds()[1], path)
    tree = json.loads(path.read_text("utf-8"))
    edit(tree)
    path.write_text(json.dumps(tree), "utf-8")
    with pytest.raises(InputError, match=f"threshold.json: {place}: edited_threshold"):
        read_threshold(path)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 1, "digest": 1, "threshold": NaN}'])
def test_what_is_no_threshold_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "threshold.json"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError):
        read_threshold(path)


def test_a_missing_file_is_an_error_of_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="file_not_found"):
        read_threshold(tmp_path / "threshold.json")
