"""The base tables of what people state and decide."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa


def _texts(*names: str) -> Sequence[tuple[str, pa.DataType]]:
    return [(name, pa.string()) for name in names]


# What a release must stay within; `estimate` only where nothing can be measured.
BUDGETS = pa.schema(
    [
        ("measure", pa.string()),
        ("budget_limit", pa.float64()),
        ("estimate", pa.float64()),
        ("source", pa.string()),
    ]
)
# Items that the source states as deleted.
TOMBSTONES = pa.schema([("item_id", pa.string())])
# Signed decisions, in the order of their file. `status` is 'valid' or 'expired'; `reason` says why
# one expired.
DECISIONS = pa.schema(
    [
        ("decision_no", pa.int32()),
        *_texts("item", "decision", "decided_by", "decided_at", "evaluation_id", "why"),
        *_texts("status", "reason"),
    ]
)
CHECKLIST = pa.schema(
    [
        ("item_no", pa.int16()),
        *_texts("item", "status", "evidence", "how_to_get_it", "decided_by", "decided_at"),
    ]
)
# Switches of the space that serves, the oldest first; `kind` is 'activate' or 'roll_back'.
SPACE_SWITCHES = pa.schema(
    [
        ("switch_no", pa.int32()),
        *_texts("space_id", "contract_signature", "kind", "switched_by", "switched_at", "why"),
        *_texts("evaluation_id", "forced"),
    ]
)
