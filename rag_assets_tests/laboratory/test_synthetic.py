"""The synthetic corpus: unit vectors, queries beside their documents, equal for equal seeds."""

from __future__ import annotations

import numpy as np
import pytest

from rag_assets.canonical.files import corpus_digest
from rag_assets.canonical.text import content_sha256
from rag_assets.embeddings.space import declared_embeddings
from rag_assets.errors import UsageError
from rag_assets.indexes.exact import ExactIndex
from rag_assets.laboratory.synthetic import synthetic_corpus, synthetic_vectors
from rag_assets.quality.embeddings import check_embeddings
from rag_assets.quality.items import check_canonical_items


def test_its_items_and_vectors_pass_the_checks_of_every_suite() -> None:
    corpus = synthetic_corpus(40, 8, 5, seed=7)
    space = declared_embeddings(corpus, "synthetic")
    assert check_canonical_items(corpus, judgements_required=False).passed
    assert check_embeddings(space, corpus).passed
    assert space.document_count == 40
    assert space.vectors.dtype == np.float32
    assert corpus.items["item_id"][0].as_py() == "doc-0000000"
    assert corpus.items["item_id"][40].as_py() == "query-0000000"
    assert len(corpus.qrels) == 0
    assert len(corpus.cases) == 5
    contract = corpus.contracts[0]
    assert (contract.provider, contract.model, contract.metric) == (
        "synthetic",
        "unit-gaussian",
        "cosine",
    )
    assert contract.revision == "n_vectors=40 dim=8 n_queries=5 noise=0.01 seed=7"
    text = corpus.items["text"][3].as_py()
    assert "ynthetic" in text
    assert corpus.items["content_sha256"][3].as_py() == content_sha256(text)


def test_each_query_finds_the_document_it_was_made_from_and_no_two_share_one() -> None:
    corpus = synthetic_corpus(200, 64, 50, seed=3)
    space = declared_embeddings(corpus, "synthetic")
    rows, scores = ExactIndex.build(space).search(space.vectors[200:], 1)
    # Noise of 0.01 in each of 64 components moves a unit vector by about 0.08: cosine 1 - 0.0032.
    assert scores.min() > 0.990
    assert abs(scores.mean() - (1 - 0.08**2 / 2)) < 0.001
    assert len(set(rows[:, 0].tolist())) == 50


def test_vectors_have_unit_norm_and_no_preferred_direction() -> None:
    documents, queries = synthetic_vectors(4000, 16, 10, seed=1)
    np.testing.assert_allclose(np.linalg.norm(documents.astype(float), axis=1), 1, atol=2e-7)
    np.testing.assert_allclose(np.linalg.norm(queries.astype(float), axis=1), 1, atol=2e-7)
    # A component has mean 0 and variance 1/16: the mean of 4000 has standard error 0.004.
    assert np.abs(documents.mean(axis=0)).max() < 0.02
    np.testing.assert_allclose(documents.var(axis=0), 1 / 16, rtol=0.15)


def test_without_noise_a_query_is_a_document() -> None:
    documents, queries = synthetic_vectors(9, 5, 9, seed=2, noise=0.0)
    closest = (queries @ documents.T).argmax(axis=1)
    np.testing.assert_allclose(queries, documents[closest], atol=1e-7)


def test_equal_seeds_give_equal_corpora_and_other_seeds_other_ones() -> None:
    digests = [corpus_digest(synthetic_corpus(20, 4, 3, seed)) for seed in (5, 5, 6)]
    assert digests[0] == digests[1]
    assert digests[0] != digests[2]


def test_more_queries_than_documents_are_made_from_repeated_ones() -> None:
    assert synthetic_vectors(2, 3, 7, seed=0)[1].shape == (7, 3)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((0, 4, 1, 1), "n_vectors is 0"),
        ((4, True, 1, 1), "dim is True"),
        ((4, 4, -1, 1), "n_queries is -1"),
        ((4, 200_000, 1, 1), "dim is 200000"),
        ((4, 4, 1, -1), "seed is -1"),
        ((4, 4, 1, 2**31), "seed is 2147483648"),
        ((4, 4, 1, 1, -0.1), "noise is -0.1"),
        ((4, 4, 1, 1, float("nan")), "noise is nan"),
    ],
)
def test_impossible_arguments_are_refused_by_name(
    arguments: tuple[int, int, int, int], named: str
) -> None:
    with pytest.raises(UsageError, match=named):
        synthetic_vectors(*arguments)
