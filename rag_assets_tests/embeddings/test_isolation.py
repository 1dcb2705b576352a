"""Vectors of two spaces never meet, whatever their dimensions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rag_assets.embeddings.isolation import check_same_space, same_space, space_of_parts
from rag_assets.errors import UsageError
from rag_assets_tests.embeddings.corpora import (
    CONTRACT,
    DOCUMENTS,
    QUERIES,
    Known,
    contract,
    corpus_of,
    embedded,
)


def test_an_alias_does_not_part_spaces_but_a_revision_does() -> None:
    assert same_space(CONTRACT, contract(space_id="other", licence="MIT"))
    assert not same_space(CONTRACT, contract(revision="r2"))


def test_parts_of_one_space_make_that_space(tmp_path: Path) -> None:
    whole, _ = embedded(Known(), tmp_path)
    documents, _ = embedded(Known(), tmp_path, corpus_of(DOCUMENTS, {}))
    queries, _ = embedded(Known(), tmp_path, corpus_of({"d0": "left out"}, QUERIES))
    joined = space_of_parts(documents, queries)
    np.testing.assert_array_equal(joined.vectors, whole.vectors)
    assert joined.items["item_id"].to_pylist() == [*DOCUMENTS, *QUERIES]
    assert joined.document_count == 10


def test_queries_of_another_space_are_refused_with_equal_dimension_too(tmp_path: Path) -> None:
    of = contract(revision="r2")
    documents, _ = embedded(Known(), tmp_path)
    queries, _ = embedded(Known(), tmp_path, of=of)
    with pytest.raises(UsageError, match="not comparable, even with the same dimension"):
        space_of_parts(documents, queries)
    with pytest.raises(UsageError, match=of.signature[:12]):
        check_same_space(documents, of.signature)
    check_same_space(documents, CONTRACT.signature)
