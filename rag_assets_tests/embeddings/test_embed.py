"""Embedding a space: batches, retries, isolation of bad items, and what may be stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.canonical.corpus import ITEMS
from rag_assets.embeddings.embed import RetryPolicy, checked_vectors
from rag_assets.embeddings.providers import BadResponse, RefusedBatch, TransientFailure
from rag_assets.errors import InputError, ProviderMissing
from rag_assets_tests.embeddings.corpora import (
    DOCUMENTS,
    QUERIES,
    Known,
    contract,
    corpus_of,
    embedded,
    expected,
    vectors_of,
)

ALL = [*DOCUMENTS.values(), *QUERIES.values()]


def failing(times: int, failure: Exception) -> Callable[[Sequence[str]], np.ndarray]:
    """Fails that often, then answers rightly."""
    left = [failure] * times

    def answer(texts: Sequence[str]) -> np.ndarray:
        if left:
            raise left.pop()
        return vectors_of(texts)

    return answer


def refusing(*bad: str) -> Callable[[Sequence[str]], np.ndarray]:
    def answer(texts: Sequence[str]) -> np.ndarray:
        if set(bad) & set(texts):
            raise RefusedBatch("400 Bad Request")
        return vectors_of(texts)

    return answer


def spoiling(spoiled: str, vector: Sequence[float]) -> Callable[[Sequence[str]], np.ndarray]:
    """Answers one text with that vector."""

    def answer(texts: Sequence[str]) -> np.ndarray:
        vectors = vectors_of(texts)
        vectors[[text == spoiled for text in texts]] = vector
        return vectors

    return answer


def test_documents_then_queries_each_with_the_vector_of_its_own_text(tmp_path: Path) -> None:
    space, report = embedded(Known(), tmp_path)
    assert space.items["item_id"].to_pylist() == [*DOCUMENTS, *QUERIES]
    np.testing.assert_array_equal(space.vectors, expected(ALL))
    assert space.vectors.flags.c_contiguous
    assert space.vectors.dtype == np.float32
    # 10 documents in batches of 4 are 3 calls, and queries are never in one batch with them.
    assert (report.items, report.inputs, report.embedded, report.requests) == (12, 12, 12, 4)


def test_prompts_belong_to_roles_and_are_part_of_what_is_sent(tmp_path: Path) -> None:
    of = contract(query_prompt="q: ", document_prompt="d: ")
    provider = Known(max_items=100)
    space, _ = embedded(provider, tmp_path, of=of)
    sent = [f"d: {text}" for text in DOCUMENTS.values()] + [f"q: {t}" for t in QUERIES.values()]
    assert provider.calls == [("document", sent[:10]), ("query", sent[10:])]
    np.testing.assert_array_equal(space.vectors, expected(sent))


def test_equal_texts_are_embedded_once_and_all_get_the_vector(tmp_path: Path) -> None:
    provider = Known()
    corpus = corpus_of({"d0": "same", "d1": "other", "d2": "same"}, {"q0": "same"})
    space, report = embedded(provider, tmp_path, corpus)
    np.testing.assert_array_equal(space.vectors, expected(["same", "other", "same", "same"]))
    # The query has its own role, so "same" is sent once as a document and once as a query.
    assert provider.calls == [("document", ["same", "other"]), ("query", ["same"])]
    assert (report.items, report.inputs) == (4, 3)


@settings(max_examples=40, deadline=None)
@given(
    texts=st.lists(st.text(st.sampled_from("aé漢"), min_size=1, max_size=9), max_size=20),
    max_items=st.integers(1, 5),
    max_bytes=st.integers(1, 30),
)
def test_batches_keep_both_limits_and_the_order(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], max_items: int, max_bytes: int
) -> None:
    provider = Known(max_items=max_items, max_bytes=max_bytes)
    corpus = corpus_of({f"d{n:02}": text for n, text in enumerate(texts)}, {})
    embedded(provider, tmp_path_factory.mktemp("cache"), corpus)
    assert provider.texts == list(dict.fromkeys(texts))
    for _, batch in provider.calls:
        assert len(batch) <= max_items
        # A text above the limit goes alone, since it cannot be made shorter.
        assert sum(len(text.encode()) for text in batch) <= max_bytes or len(batch) == 1


def test_a_transient_failure_waits_twice_as_long_each_time(tmp_path: Path) -> None:
    waits: list[float] = []
    provider = Known(failing(3, TransientFailure("busy")))
    space, report = embedded(provider, tmp_path, waits=waits)
    np.testing.assert_array_equal(space.vectors, expected(ALL))
    assert waits == [1.0, 2.0, 4.0]
    assert (report.requests, report.retries) == (7, 3)


def test_the_wait_that_a_service_asks_for_is_kept(tmp_path: Path) -> None:
    waits: list[float] = []
    embedded(Known(failing(2, TransientFailure("busy", retry_after=7.5))), tmp_path, waits=waits)
    assert waits == [7.5, 7.5]


def test_too_long_a_wait_makes_the_provider_missing_at_once(tmp_path: Path) -> None:
    waits: list[float] = []
    provider = Known(failing(1, TransientFailure("429", retry_after=3600)))
    with pytest.raises(ProviderMissing, match="asks to wait 3600 s, more than the 120 s allowed"):
        embedded(provider, tmp_path, waits=waits)
    assert waits == []
    assert len(provider.calls) == 1


def test_a_service_that_stays_away_ends_the_run_and_keeps_what_was_made(tmp_path: Path) -> None:
    good = Known()

    def dies(texts: Sequence[str]) -> np.ndarray:
        if "document 8" in texts:  # the third batch
            raise TransientFailure("no connection")
        return vectors_of(texts)

    provider = Known(dies)
    with pytest.raises(ProviderMissing, match="no connection, 3 times in a row"):
        embedded(provider, tmp_path, retry=RetryPolicy(attempts=3))
    _, report = embedded(good, tmp_path)
    # Two batches of 4 documents are kept; 2 documents and 2 queries are left.
    assert (report.cache_hits, report.embedded) == (8, 4)


def test_a_refused_item_is_named_and_costs_no_other_item(tmp_path: Path) -> None:
    provider = Known(refusing("document 2", "query one"))
    with pytest.raises(InputError) as error:
        embedded(provider, tmp_path)
    assert str(error.value).splitlines() == [
        f"space s: item {item_id}: not_embedded: found 400 Bad Request; "
        "correct or remove the item; the vectors of the others are kept"
        for item_id in ("d2", "q1")
    ]
    assert "document 2" not in str(error.value)
    again = Known()
    _, report = embedded(again, tmp_path)
    assert again.texts == ["document 2", "query one"]
    assert report.cache_hits == 10


def test_every_item_with_a_refused_text_is_named(tmp_path: Path) -> None:
    corpus = corpus_of({"d0": "bad", "d1": "good", "d2": "bad"}, {"q0": "fine"})
    with pytest.raises(InputError) as error:
        embedded(Known(refusing("bad")), tmp_path, corpus)
    assert [problem.place for problem in error.value.problems] == ["item d0", "item d2"]


def test_a_failure_that_one_text_may_cause_is_isolated_after_its_retries(tmp_path: Path) -> None:
    def answer(texts: Sequence[str]) -> np.ndarray:
        if "document 5" in texts:
            raise TransientFailure("500", service_wide=False)
        return vectors_of(texts)

    with pytest.raises(InputError) as error:
        embedded(Known(answer), tmp_path, retry=RetryPolicy(attempts=2))
    assert [problem.place for problem in error.value.problems] == ["item d5"]


def test_a_service_that_refuses_everything_is_not_asked_about_every_item(tmp_path: Path) -> None:
    texts = {f"d{number:03}": f"text {number}" for number in range(500)}
    provider = Known(refusing(*texts.values()), max_items=64)
    with pytest.raises(InputError) as error:
        embedded(provider, tmp_path, corpus_of(texts, {}))
    assert len(error.value.problems) == 20
    assert error.value.truncated
    # 21 single items, and the 25 batches on the way down to them (64 to 2 in a binary tree).
    assert len(provider.calls) < 60


@pytest.mark.parametrize(
    ("vector", "reason"),
    [
        ([np.nan, 0, 0, 1], "a vector that is not finite"),
        ([np.inf, 0, 0, 1], "a vector that is not finite"),
        ([1e200, 0, 0, 0], "a vector that is not finite"),  # beyond float32
        ([0, 0, 0, 0], "a vector of zeros"),
        ([0.5, 0, 0, 0], "length 0.5"),
    ],
)
def test_a_bad_vector_names_its_item_and_is_never_stored(
    tmp_path: Path, vector: list[float], reason: str
) -> None:
    with pytest.raises(InputError) as error:
        embedded(Known(spoiling("document 6", vector)), tmp_path)
    (problem,) = error.value.problems
    assert problem.place == "item d6"
    assert reason in problem.found
    again = Known()
    space, _ = embedded(again, tmp_path)
    assert again.texts == ["document 6"]
    np.testing.assert_array_equal(space.vectors, expected(ALL))


def test_a_bad_response_is_tried_once_more(tmp_path: Path) -> None:
    waits: list[float] = []
    space, report = embedded(Known(failing(1, BadResponse("half"))), tmp_path, waits=waits)
    np.testing.assert_array_equal(space.vectors, expected(ALL))
    assert report.retries == 1
    assert waits == []


@pytest.mark.parametrize("count", [-1, 1])
def test_too_few_or_too_many_vectors_are_never_stored(tmp_path: Path, count: int) -> None:
    def answer(texts: Sequence[str]) -> np.ndarray:
        vectors = vectors_of([*texts, "more"])
        return vectors[: len(texts) + count]

    with pytest.raises(InputError):
        embedded(Known(answer), tmp_path)
    assert not list(tmp_path.rglob("*.npz"))


def test_a_wrong_dimension_is_the_contracts_fault_and_ends_the_run(tmp_path: Path) -> None:
    provider = Known(lambda texts: np.ones((len(texts), 3)))
    with pytest.raises(InputError, match="dimension 3 where the contract says 4"):
        embedded(provider, tmp_path)
    assert len(provider.calls) == 2
    assert not list(tmp_path.rglob("*.npz"))


def test_vectors_that_break_the_promise_of_unit_length_end_the_run(tmp_path: Path) -> None:
    provider = Known(lambda texts: 3 * vectors_of(texts))
    with pytest.raises(InputError, match="length 3 where the contract promises 1"):
        embedded(provider, tmp_path)
    space, _ = embedded(provider, tmp_path, of=contract(normalized=False))
    np.testing.assert_allclose(np.linalg.norm(space.vectors, axis=1), 3, rtol=1e-6)


def test_half_precision_unit_vectors_are_made_exact() -> None:
    # 0.6 and 0.8 in half precision: the length is off by about 2e-4.
    vectors = np.array([[0.6, 0.8]]).astype(np.float16).astype(np.float64)
    made = checked_vectors(vectors, 1, contract(dimension=2))
    assert abs(np.linalg.norm(vectors) - 1) > 1e-5
    assert abs(np.linalg.norm(made.astype(np.float64)) - 1) < 1e-7


def test_progress_counts_distinct_inputs_to_the_end(tmp_path: Path) -> None:
    from rag_assets.embeddings.cache import EmbeddingCache
    from rag_assets.embeddings.embed import embed_space

    seen: list[tuple[int, int]] = []
    embed_space(
        corpus_of(),
        contract(),
        Known(),
        EmbeddingCache(tmp_path),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(4, 12), (8, 12), (10, 12), (12, 12)]


def test_an_item_whose_declared_version_has_no_text_is_refused(tmp_path: Path) -> None:
    corpus = corpus_of({"d0": "old", "d1": "fine"}, {})
    rows = corpus.items.to_pylist()
    rows[0]["content_sha256"] = "0" * 64
    other = pa.Table.from_pylist(rows, schema=ITEMS)
    provider = Known()
    changed = type(corpus)(
        corpus.contracts, other, corpus.space_items, corpus.cases, corpus.qrels, {}
    )
    with pytest.raises(InputError, match="item d0: no_text"):
        embedded(provider, tmp_path, changed)
    assert provider.calls == []
