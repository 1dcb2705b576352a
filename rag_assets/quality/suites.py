"""The checks. Each takes domain objects and returns a CheckReport."""

from __future__ import annotations

from rag_assets.quality.changes import (
    check_access_changes,
    check_content_changes,
    check_contract_changes,
)
from rag_assets.quality.embeddings import check_embeddings
from rag_assets.quality.gates import check_mechanical_gates
from rag_assets.quality.items import check_canonical_items
from rag_assets.quality.release_checklist import check_release_checklist
from rag_assets.quality.results import check_results

__all__ = [
    "check_access_changes",
    "check_canonical_items",
    "check_content_changes",
    "check_contract_changes",
    "check_embeddings",
    "check_mechanical_gates",
    "check_release_checklist",
    "check_results",
]
