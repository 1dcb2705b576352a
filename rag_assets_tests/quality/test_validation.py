from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from rag_assets.quality.rules import between, columns_equal, in_set, not_null
from rag_assets.quality.validation import Frame, Rule, validate
from rag_assets_tests.quality.examples import only


def frame(*rules: Rule, **columns: object) -> Frame:
    return Frame("things", pd.DataFrame(columns), lambda row: f"#{row}", rules)


@pytest.mark.parametrize(
    "rule",
    [
        not_null("absent", "m"),
        in_set("absent", [1], "m"),
        columns_equal("size", "absent", "m"),
        in_set("absent", [1], "m", severity="warn"),
    ],
)
def test_a_missing_column_is_a_crash_and_never_a_pass(rule: Rule) -> None:
    report = validate("check", [frame(rule, not_null("size", "m"), size=[1, 2])])
    outcome = only(report)
    assert outcome.status == "crashed"
    assert "absent" in outcome.observed
    assert outcome.failing_count is None
    assert report.severity == "error"
    assert report.blocks
    assert report.numbers["crashed_expectations"] == 1
    assert report.numbers["failed_expectations"] == 0


def test_a_rule_that_cannot_compare_is_a_crash() -> None:
    report = validate("check", [frame(between("name", "m", min_value=0), name=["a", "b"])])
    assert only(report).status == "crashed"


def test_outcomes_keep_the_declared_order_around_a_crash() -> None:
    rules = (not_null("size", "m"), between("absent", "m", min_value=0), in_set("size", [1], "m"))
    report = validate("check", [frame(*rules, size=[1, 2])])
    assert [outcome.status for outcome in report.outcomes] == ["passed", "crashed", "failed"]


def test_a_sample_holds_the_first_twenty_and_the_count_all() -> None:
    report = validate("check", [frame(in_set("size", [0], "m"), size=[0, *range(1, 31)])])
    outcome = only(report)
    assert outcome.sample == tuple(f"#{row}" for row in range(1, 21))
    assert outcome.failing_count == 30
    assert report.numbers["failing_records"] == 30


def test_positions_are_right_where_nulls_stand_between() -> None:
    sizes = [np.nan, 1.0, np.nan, 9.0]
    outcome = only(validate("check", [frame(between("size", "m", max_value=5), size=sizes)]))
    assert outcome.sample == ("#3",)
    assert (outcome.expected, outcome.observed) == ("at most 5", "9")


def test_nan_passes_between_and_fails_not_null() -> None:
    rules = (between("size", "m", min_value=0, max_value=1), not_null("size", "m"))
    assert only(validate("check", [frame(*rules, size=[0.5, np.nan])])).sample == ("#1",)


PROBE = """
import socket, sys
import rag_assets.quality.suites, rag_assets.quality.report
loaded = [name for name in sys.modules if name.split(".")[0] == "great_expectations"]
assert not loaded, loaded

def refuse(*arguments):
    raise AssertionError("network access")

socket.socket.connect = refuse
socket.getaddrinfo = refuse
import pandas as pd
from rag_assets.quality.rules import in_set, not_null
from rag_assets.quality.validation import Frame, validate
rules = (not_null("absent", "m"), in_set("size", [1], "m"), in_set("size", [1, 2], "m"))
report = validate("c", [Frame("t", pd.DataFrame({"size": [1, 2]}), str, rules)])
print([outcome.status for outcome in report.outcomes])
"""


def test_checks_load_the_engine_late_and_are_silent_and_offline() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == "['crashed', 'failed', 'passed']\n"
