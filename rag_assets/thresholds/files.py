"""A threshold as a JSON file that shows whether it was edited."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rag_assets.canonical.contracts import canonical_json
from rag_assets.canonical.corpus import digest
from rag_assets.errors import InputError, Problem
from rag_assets.sources.strict_json import parse_json, read_limited
from rag_assets.thresholds.threshold import Costs, Outcome, Threshold
from rag_assets.whole_files import replace_text

_FORMAT = 1
_LARGEST_FILE = 50 * 2**20
# JSON has no infinity.
_WORDS = {math.inf: "refuse all", -math.inf: "answer all"}
_VALUES = {word: value for value, word in _WORDS.items()}


def write_threshold(threshold: Threshold, path: Path) -> None:
    """Replace the file in one step; its digest covers everything the threshold says."""
    record = asdict(threshold)
    record["value"] = _WORDS.get(record["value"], record["value"])
    record["dev_case_ids"] = list(record["dev_case_ids"])
    tree = {"format": _FORMAT, "digest": digest(canonical_json(record)), "threshold": record}
    text = json.dumps(tree, indent=1, ensure_ascii=False, allow_nan=False)
    replace_text(path, text + "\n")


def read_threshold(path: Path) -> Threshold:
    """Raises InputError for a file that is missing, no JSON, or does not match its digest."""
    tree = parse_json(read_limited(path, _LARGEST_FILE), path.name)
    if not isinstance(tree, dict) or set(tree) != {"format", "digest", "threshold"}:
        raise _edited(path, "whole file", "other keys than format, digest and threshold")
    if tree["format"] != _FORMAT:
        raise _edited(path, "format", f"not format {_FORMAT}")
    try:
        if digest(canonical_json(tree["threshold"])) != tree["digest"]:
            raise _edited(path, "digest", "a threshold that its digest does not match")
        return _threshold(tree["threshold"])
    except (TypeError, KeyError):  # a value that is not plain JSON, or fields of another version
        raise _edited(path, "threshold", "other fields than a threshold has") from None


def _threshold(record: dict[str, Any]) -> Threshold:
    value = record["value"]
    return Threshold(
        **{
            **record,
            "value": _VALUES[value] if isinstance(value, str) else value,
            "costs": Costs(**record["costs"]),
            "dev_case_ids": tuple(record["dev_case_ids"]),
            **{split: record[split] and Outcome(**record[split]) for split in ("dev", "test")},
        }
    )


def _edited(path: Path, place: str, found: str) -> InputError:
    remedy = "thresholds are calibrated, not written by hand: calibrate again"
    return InputError([Problem("edited_threshold", path.name, place, found, remedy)])
