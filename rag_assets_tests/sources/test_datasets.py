"""Real data sets give the figures that are published or were found with other tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.canonical.corpus import Corpus
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.indexes.exact import ExactIndex
from rag_assets.measures import evaluate_run
from rag_assets.quality.collection import check_collection
from rag_assets.quality.items import check_canonical_items
from rag_assets.results.search import search_cases
from rag_assets.sources.beir import read_beir
from rag_assets.sources.numbering import corpus_of
from rag_assets.sources.options import source_options
from rag_assets.sources.vector_files import read_vector_folder
from rag_assets_tests.quality.examples import bad
from rag_assets_tests.sources.folders import DATASETS

TEST = source_options({"acl": "public", "split": "test", "subgroups": "metadata.answer"})


def folder(name: str) -> Path:
    if not (DATASETS / name).is_dir():
        pytest.skip(f"../shared/datasets/{name} is not there")
    return DATASETS / name


def contract(dimension: int) -> SpaceContract:
    return SpaceContract(
        "s", "p", "m", "1", dimension, "cosine", True, "query", "document", "float32"
    )


def means(corpus: Corpus, space: EmbeddedSpace) -> dict[str, float]:
    """Measures at 10, rounded to 4 decimals."""
    exact = ExactIndex.build(space)
    results, _ = search_cases(space, corpus.items, corpus.cases, 10, exact=exact)
    items, cases = corpus.items["item_id"].to_pylist(), corpus.cases["case_id"].to_pylist()
    run: dict[str, list[tuple[str, float]]] = {case: [] for case in cases}
    for row in results.to_pylist():
        run[cases[row["case_no"]]].append((items[row["item_no"]], -float(row["rank"])))
    qrels: dict[str, dict[str, int]] = {case: {} for case in cases}
    for row in corpus.qrels.to_pylist():
        qrels[cases[row["case_no"]]][items[row["item_no"]]] = row["grade"]
    measured = evaluate_run(run, qrels, [10])
    names = ("recall_at_k", "reciprocal_rank", "ndcg_at_k")
    return {name: round(measured[name].to_pandas().mean(), 4) for name in names}


@pytest.mark.parametrize(
    ("name", "model", "dimension", "figures"),
    [
        ("scifact", "minilm", 384, (0.7833, 0.6047, 0.6451)),
        ("scifact", "wordllama", 256, (0.6588, 0.4770, 0.5132)),
        ("pubmedqa_l", "minilm", 384, (0.9970, 0.9807, 0.9847)),
    ],
)
def test_given_vectors_give_the_known_figures(
    name: str, model: str, dimension: int, figures: tuple[float, float, float]
) -> None:
    at = folder(name)
    corpus = corpus_of(read_beir(at, TEST), [contract(dimension)])
    space = read_vector_folder(at / "vectors" / model, corpus, corpus.contracts[0])
    assert tuple(means(corpus, space).values()) == figures


@pytest.mark.parametrize(
    ("name", "documents", "queries", "judgements"),
    [("scifact", 5183, 300, 339), ("pubmedqa_l", 1000, 1000, 1000), ("xquad_en", 240, 1190, 1190)],
)
def test_real_sets_are_sound_and_their_oddities_are_named(
    name: str, documents: int, queries: int, judgements: int
) -> None:
    collection = read_beir(folder(name), TEST)
    assert collection.document_count == documents
    assert len(collection.cases) == queries
    assert len(collection.qrels) == judgements
    report = check_collection(collection)
    assert not report.blocks
    odd = {(table, column): o.failing_count for (table, column, _), o in bad(report).items()}
    assert (
        odd
        == {
            "scifact": {
                ("documents", "text_was_not_nfc"): 1,
                ("documents", "text_has_control_characters"): 2,
            },
            "pubmedqa_l": {},
            "xquad_en": {("queries", "text_repeats"): 6},
        }[name]
    )
    corpus = corpus_of(collection, [contract(384)])
    assert check_canonical_items(corpus, judgements_required=False, grades=(-128, 53)).passed


def test_answers_are_subgroups_of_pubmedqa() -> None:
    cases = read_beir(folder("pubmedqa_l"), TEST).cases
    counts: dict[str, int] = {}
    for (subgroup,) in cases["subgroups"].to_pylist():
        counts[subgroup] = counts.get(subgroup, 0) + 1
    assert counts == {"yes": 552, "no": 338, "maybe": 110}  # as PubMedQA's paper has it


def test_both_splits_of_scifact() -> None:
    collection = read_beir(folder("scifact"), source_options({"acl": "public"}))
    splits = collection.cases["split"].to_pylist()
    assert (splits.count("test"), splits.count("train")) == (300, 809)
