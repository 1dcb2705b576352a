"""The check `index_training`: whether an approximate index had enough to learn from."""

from __future__ import annotations

import pandas as pd

from rag_assets.indexes.builds import IndexBuild
from rag_assets.quality.report import CheckReport
from rag_assets.quality.validation import Frame, Rule, row_count, validate


def check_index_training(build: IndexBuild) -> CheckReport:
    """A warning, never blocking: recall and not this check decides whether an index is good."""
    name = f"{build.space_id} / {build.index_name}"
    data = pd.DataFrame(
        {
            "training_warnings": [len(build.warnings)],
            "warning": ["; ".join(build.warnings)],
        }
    )
    rules = (
        row_count("One index is looked at.", min_value=1, max_value=1),
        Rule(
            "expect_column_values_to_be_in_set",
            {"column": "training_warnings", "value_set": [0]},
            "There were enough vectors to train on: about 39 for each centroid, as FAISS advises;"
            " use fewer clusters or bits, or more vectors.",
            "warn",
            ("warning",),
        ),
    )
    frame = Frame("index", data, lambda row: name, rules)
    return validate("index_training", (frame,), {"training_warnings": float(len(build.warnings))})
