"""Running cases: access rights, grouping, restriction, and the door for one question."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from rag_assets.canonical.corpus import RESULTS
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.errors import UsageError
from rag_assets.indexes.exact import ExactIndex, top_k
from rag_assets.indexes.ranking import GRID
from rag_assets.results.search import SEARCHES, exact_search, search_cases
from rag_assets_tests.results.spaces import case_table, corpus_of, embedded_space, item_table

# Dot products with query 0 = (1, 0): 4, 3, 2, 1; with query 1 = (0, 1): 1, 2, 3, 4.
DOCUMENTS = [[4.0, 1.0], [3.0, 2.0], [2.0, 3.0], [1.0, 4.0]]
QUERIES = [[1.0, 0.0], [0.0, 1.0]]
ACLS = [["red"], ["blue", "red"], ["blue"], ["green"]]


@pytest.fixture
def space() -> EmbeddedSpace:
    return embedded_space(DOCUMENTS, QUERIES, "dot", ACLS)


def ranked(*arguments: object, **options: object) -> pa.Table:
    results, _ = search_cases(*arguments, **options)  # type: ignore[arg-type]
    return results.select(RESULTS.names)


def rows_of(table: object) -> list[tuple[int, int, int, float]]:
    return [tuple(row.values()) for row in table.to_pylist()]  # type: ignore[attr-defined]


def test_each_case_sees_its_own_documents_in_case_and_rank_order(space: EmbeddedSpace) -> None:
    cases = case_table([0, 1, 0, 1], [["red"], ["blue"], ["blue", "green"], []], 4)
    table = ranked(space, item_table(4, 2, ACLS), cases, 2)
    assert table.schema == RESULTS
    # red sees d0, d1; blue sees d1, d2; blue and green see d1, d2, d3; no group sees nothing.
    assert rows_of(table) == [
        (0, 1, 0, 4.0),
        (0, 2, 1, 3.0),
        (1, 1, 2, 3.0),
        (1, 2, 1, 2.0),
        (2, 1, 1, 3.0),
        (2, 2, 2, 2.0),
    ]


def test_the_canonical_list_and_the_spaces_own_must_both_admit(space: EmbeddedSpace) -> None:
    cases = case_table([0], [["red", "green"]], 4)
    # d0: the space says red, the canonical item blue. d1: the canonical item has no list.
    # d3: both admit, through different groups.
    items = item_table(4, 2, [["blue"], None, ["red"], ["red"]])
    assert rows_of(ranked(space, items, cases, 4)) == [(0, 1, 3, 1.0)]
    # d2 and d3 without a canonical row; d0 admitted by both.
    items = item_table(2, 0, [["red"], ["blue"]])
    assert rows_of(ranked(space, items, cases, 4)) == [(0, 1, 0, 4.0)]


def test_candidates_can_be_restricted_to_shared_items(space: EmbeddedSpace) -> None:
    cases = case_table([0], [["red", "blue"]], 4)
    table = ranked(space, item_table(4, 2, ACLS), cases, 3, among=np.array([1, 2, 3]))
    assert [row[2] for row in rows_of(table)] == [1, 2]


def test_a_given_index_is_asked_once_for_cases_that_see_the_same(space: EmbeddedSpace) -> None:
    asked: list[tuple[int, list[int]]] = []
    exact = ExactIndex.build(space)

    class Recording:
        contract = space.contract

        def search_detailed(
            self,
            queries: np.ndarray,
            k: int,
            eligible: np.ndarray | None = None,
            *,
            threads: int | None = None,
        ) -> SimpleNamespace:
            assert eligible is not None
            asked.append((len(queries), eligible.tolist()))
            rows, scores = exact.search(queries, k, eligible, threads=threads)
            nprobe = np.full(len(queries), 3, dtype=np.int32)
            return SimpleNamespace(rows=rows, scores=scores - 1, nprobe=nprobe, path="index")

    # "other" admits to nothing, so ["other", "red"] sees what ["red"] sees.
    cases = case_table([0, 1, 0], [["red"], ["blue"], ["other", "red"]], 4)
    items = item_table(4, 2, ACLS)
    results, searches = search_cases(space, items, cases, 2, index=Recording())
    assert asked == [(2, [0, 1]), (1, [1, 2])]
    # What the index reported stays as it is; the exact score stands beside it.
    true = ranked(space, items, cases, 2)
    assert results["exact_score"].to_pylist() == true["score"].to_pylist()
    assert results["score"].to_pylist() == [score - 1 for score in true["score"].to_pylist()]
    assert searches["nprobe"].to_pylist() == [3, 3, 3]


def test_each_search_says_what_it_looked_at(space: EmbeddedSpace) -> None:
    cases = case_table([0, 1, 0], [["red"], [], ["blue"]], 4)
    _, searches = search_cases(space, item_table(4, 2, ACLS), cases, 2)
    assert searches.schema == SEARCHES
    # |q| = 1; red sees d0, d1 and blue d1, d2, all of norm sqrt(17) or sqrt(13): below 8 = 2^3.
    assert [tuple(row.values()) for row in searches.to_pylist()] == [
        (0, 2, None, "exact", 8 * GRID),
        (1, 0, None, "empty", 1.0),
        (2, 2, None, "exact", 4 * GRID),
    ]


@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e38])
def test_an_unauthorized_twin_of_the_query_never_enters_scoring(poison: float) -> None:
    rng = np.random.default_rng(1)
    documents = rng.standard_normal((30, 4))
    acls = [["secret"] if row % 3 == 0 else ["all"] for row in range(30)]
    queries = documents[:1]  # the twin of d000, which only "secret" may see
    cases, items = case_table([0], [["all"]], 30), item_table(30, 1, acls)
    clean = ranked(embedded_space(documents, queries, "dot", acls), items, cases, 10)
    poisoned = documents.copy()
    poisoned[::3] = poison
    dirty = ranked(embedded_space(poisoned, queries, "dot", acls), items, cases, 10)
    assert clean.num_rows == 10
    assert clean == dirty
    assert all(row[2] % 3 for row in rows_of(clean))


def test_many_cases_agree_with_one_search_per_case() -> None:
    rng = np.random.default_rng(2)
    names = ["a", "b", "c", "d"]
    acls = [sorted(rng.choice(names, rng.integers(1, 3), replace=False)) for _ in range(80)]
    groups = [sorted(rng.choice(names, rng.integers(0, 3), replace=False)) for _ in range(40)]
    asked = rng.integers(0, 10, 40).tolist()
    space = embedded_space(
        rng.standard_normal((80, 5)), rng.standard_normal((10, 5)), "euclidean", acls
    )
    table = ranked(space, item_table(80, 10, acls), case_table(asked, groups, 80), 7)
    wanted = []
    for case, (query, held) in enumerate(zip(asked, groups, strict=True)):
        seen = np.array([row for row in range(80) if set(acls[row]) & set(held)], dtype=np.int64)
        query_vector = space.vectors[80 + query : 81 + query]
        rows, scores = top_k(space.documents, query_vector, 7, "euclidean", eligible=seen)
        for rank, (row, score) in enumerate(zip(rows[0], scores[0], strict=True), start=1):
            if row >= 0:
                wanted.append((case, rank, int(row), float(score)))
    assert rows_of(table) == wanted


def test_cases_and_k_that_make_no_sense_are_refused(space: EmbeddedSpace) -> None:
    items = item_table(4, 2, ACLS)
    with pytest.raises(UsageError, match=r"'c0'.*'q009' is not a query of space 's'"):
        ranked(space, items, case_table([9], [["red"]], 4), 1)
    with pytest.raises(UsageError, match="'c0'"):
        ranked(space, items, case_table([-1], [["red"]], 4), 1)  # item 3, a document
    with pytest.raises(UsageError, match="positive integer"):
        ranked(space, items, case_table([0], [["red"]], 4), 0)


def test_no_case_gives_an_empty_table(space: EmbeddedSpace) -> None:
    table = ranked(space, item_table(4, 2, ACLS), case_table([], [], 4), 3)
    assert table.schema == RESULTS
    assert table.num_rows == 0


def test_one_question_returns_ids_and_scores(space: EmbeddedSpace) -> None:
    corpus = corpus_of(space, item_table(4, 2, ACLS), case_table([], [], 4))
    assert exact_search(corpus, "s", "q000", ["red"], 5) == [("d000", 4.0), ("d001", 3.0)]
    assert exact_search(corpus, "s", "q001", ["blue", "green"], 1) == [("d003", 4.0)]
    assert exact_search(corpus, "s", "q001", ["blue"], np.int32(1)) == [("d002", 3.0)]  # type: ignore[arg-type]
    assert exact_search(corpus, "s", "q000", [], 5) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"space_id": "t"}, "no space 't'; the spaces are s"),
        ({"query_item_id": "q7"}, "no item 'q7'"),
        ({"query_item_id": "d001"}, "'d001' has role 'document'.*only items with role 'query'"),
        ({"k": 0}, "k is 0"),
        ({"k": -2}, "k is -2"),
        ({"k": True}, "k is True"),
        ({"k": 2.0}, "k is 2.0"),
        ({"k": "3"}, "k is '3'"),
        ({"subject_groups": ["red", "red"]}, "repeat 'red'"),
        ({"subject_groups": "red"}, "'red'; they must be a list"),
        ({"subject_groups": [1]}, "each must be a group name"),
        ({"subject_groups": None}, "must be a list"),
    ],
)
def test_one_question_refuses(
    space: EmbeddedSpace, change: dict[str, object], message: str
) -> None:
    corpus = corpus_of(space, item_table(4, 2, ACLS), case_table([], [], 4))
    question: dict[str, object] = {
        "space_id": "s",
        "query_item_id": "q000",
        "subject_groups": ["red"],
        "k": 1,
    }
    with pytest.raises(UsageError, match=message):
        exact_search(corpus, **(question | change))  # type: ignore[arg-type]
