"""Vectors of two spaces never meet, whatever their dimensions."""

from __future__ import annotations

import numpy as np
import pytest

from rag_assets.embeddings.isolation import check_same_space
from rag_assets.errors import UsageError
from rag_assets.indexes.exact import ExactIndex
from rag_assets.results.search import search_cases
from rag_assets_tests.embeddings.corpora import CONTRACT, contract
from rag_assets_tests.results.spaces import case_table, embedded_space, item_table


def test_an_alias_does_not_part_spaces_but_a_revision_does() -> None:
    check_same_space(CONTRACT, contract(space_id="other", licence="MIT"))
    with pytest.raises(UsageError, match="not comparable, even with the same dimension"):
        check_same_space(CONTRACT, contract(revision="r2"))


def test_a_search_of_one_space_with_the_index_of_another_is_refused() -> None:
    """Both spaces have dimension 2; only their metrics, and so their signatures, differ."""
    vectors = np.eye(2)
    acls = [["all"], ["all"]]
    here, there = (embedded_space(vectors, vectors, metric, acls) for metric in ("dot", "cosine"))
    cases, items = case_table([0], [["all"]], 2), item_table(2, 2, acls)
    search_cases(here, items, cases, 1, exact=ExactIndex.build(here))
    with pytest.raises(UsageError, match="vectors of two spaces are not comparable"):
        search_cases(here, items, cases, 1, exact=ExactIndex.build(there))
