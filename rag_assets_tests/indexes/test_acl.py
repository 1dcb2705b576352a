"""Numbering of access lists."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rag_assets.indexes.acl import document_access, number_lists
from rag_assets_tests.results.spaces import embedded_space, item_table


def test_equal_lists_share_a_number_across_chunks_and_slices() -> None:
    column = pa.chunked_array([[["x"], ["a"], ["a", "b"]], [["b"], None, ["a"], []]]).slice(1)
    numbers, lists = number_lists(column)
    assert numbers.tolist() == [0, 1, 2, -1, 0, 3]
    assert lists == (frozenset("a"), frozenset("ab"), frozenset("b"), frozenset())


def test_a_groups_name_cannot_imitate_two_groups() -> None:
    numbers, lists = number_lists(pa.chunked_array([[["a,b"], ["a", "b"], ["0", "1"]]]))
    assert numbers.tolist() == [0, 1, 2]
    assert lists[0] == frozenset({"a,b"})


def test_rows_follow_the_pair_of_lists() -> None:
    space = embedded_space(np.ones((4, 1)), np.ones((1, 1)), "dot", [["a"], ["a"], ["b"], []])
    access = document_access(space, item_table(4, 1, [["a"], ["b"], ["b"], ["a"]]))

    def rows(*groups: str) -> list[int]:
        return [int(row) for row in access.rows(access.allowed_pairs(groups))]

    assert rows("a") == [0]
    assert rows("b") == [2]
    assert rows("a", "b") == [0, 1, 2]
    assert rows() == []
