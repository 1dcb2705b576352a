"""What the UI shows as Markdown: tables that fit the page, and SQL headers that read as text."""

from __future__ import annotations

import pyarrow as pa

from rag_assets.components.markdown import (
    column_meanings,
    markdown_fields,
    markdown_header,
    markdown_table,
)

MEASURES = pa.table(
    {
        "space_id": ["old", "new"],
        "k": [3, 3],
        "mean_recall": [0.5, None],
        "passed": [True, False],
        "groups": [["a", "b"], []],
        "signature": ["0123456789abcdef" * 4, "x|y\nz"],
    }
)
HEADER = """\
One row: one case at one
cut-off k.
recall_at_k    : found / relevant,
                 of those that are readable
delta_x = new - old
only_old, only_new: ids. See other_table.
Undefined: NULL where status is 'not_executed'.

Sums run in order."""


def test_a_row_is_a_line() -> None:
    assert markdown_table(MEASURES).splitlines() == [
        "|space_id|k|mean_recall|passed|groups|signature|",
        "|---|---|---|---|---|---|",
        "|old|3|0.5000|true|a, b|0123456789ab…|",
        "|new|3|–|false|none|x\\|y z|",
    ]


def test_labels_choose_columns_and_rows_are_grouped_under_what_they_share() -> None:
    text = markdown_table(MEASURES, {"mean_recall": "recall"}, above=["space_id", "k"])
    assert text.split("\n\n") == [
        "**old k=3**",
        "|recall|\n|---|\n|0.5000|",
        "**new k=3**",
        "|recall|\n|---|\n|–|",
    ]


def test_a_table_without_rows_keeps_its_heading() -> None:
    assert markdown_table(MEASURES.slice(0, 0), {"k": "cut"}, above=["k"]) == "|cut|\n|---|"


def test_wide_rows_stand_upright() -> None:
    upright = markdown_fields(
        MEASURES.select(["space_id", "k", "mean_recall", "passed"]), ["space_id", "k"]
    )
    assert upright.splitlines() == [
        "||old k=3|new k=3|",
        "|---|---|---|",
        "|mean recall|0.5000|–|",
        "|passed|true|false|",
    ]
    stacked = markdown_fields(MEASURES, [], {"passed": "gate"}, above=["space_id"])
    assert stacked.split("\n\n")[::2] == ["**old**", "**new**"]
    assert stacked.split("\n\n")[3] == "|||\n|---|---|\n|gate|false|"
    assert markdown_fields(MEASURES, ["space_id"], {"passed": "gate"}).splitlines()[2:] == [
        "|gate|true|false|"
    ]


def test_a_header_becomes_paragraphs_and_a_list_of_definitions() -> None:
    assert markdown_header(HEADER).split("\n\n") == [
        "One row: one case at one cut-off k.",
        "- `recall_at_k`: found / relevant, of those that are readable\n"
        "- `delta_x` = new - old\n"
        "- `only_old`, `only_new`: ids. See `other_table`.",
        "Undefined: NULL where status is `'not_executed'`.",
        "Sums run in order.",
    ]


def test_a_header_tells_what_the_columns_mean_that_it_defines() -> None:
    assert column_meanings(HEADER) == {
        "recall_at_k": "found / relevant, of those that are readable",
        "delta_x": "new - old",
        "only_old": "ids. See other_table.",
        "only_new": "ids. See other_table.",
    }
