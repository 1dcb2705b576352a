"""The check `index_training`: whether an approximate index had enough to learn from."""

from __future__ import annotations

import pandas as pd

from rag_assets.indexes.builds import IndexBuild
from rag_assets.quality.report import CheckReport
from rag_assets.quality.rules import rules
from rag_assets.quality.validation import Frame, validate


def check_index_training(build: IndexBuild) -> CheckReport:
    """A warning, never blocking: recall and not this check decides whether an index is good."""
    name = f"{build.space_id} / {build.index_name}"
    data = pd.DataFrame(
        {
            "training_warnings": [len(build.warnings)],
            "warning": ["; ".join(build.warnings)],
        }
    )
    frame = Frame("index", data, lambda row: name, rules("index"))
    return validate("index_training", (frame,), {"training_warnings": float(len(build.warnings))})
