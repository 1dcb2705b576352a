"""Local models, with a stand-in for the sentence-transformers package."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rag_assets.embeddings.local_models import SentenceTransformersProvider
from rag_assets.embeddings.providers import SentenceTransformersConfig
from rag_assets.errors import InputError, ProviderMissing, UsageError
from rag_assets_tests.embeddings.corpora import (
    CONTRACT,
    DOCUMENTS,
    QUERIES,
    contract,
    corpus_of,
    embedded,
    expected,
    vectors_of,
)


class StandIn:
    """What the provider uses of a SentenceTransformer; `made` and `encoded` remember arguments."""

    made: list[tuple[str, dict[str, Any]]] = []  # noqa: RUF012
    encoded: list[dict[str, Any]] = []  # noqa: RUF012

    def __init__(self, name: str, **settings: Any) -> None:
        if name == "unknown/model":
            raise OSError("no network")
        self.made.append((name, settings))
        self.max_seq_length = 512
        self.tokenizer = SimpleNamespace(truncation_side="right")

    def __iter__(self) -> Iterator[object]:
        return iter([SimpleNamespace(), SimpleNamespace(pooling_mode="mean")])

    def get_embedding_dimension(self) -> int:
        return 4

    def encode(self, texts: Sequence[str], prompt: str, **settings: Any) -> np.ndarray:
        limits = {"length": self.max_seq_length, "side": self.tokenizer.truncation_side}
        self.encoded.append({"texts": list(texts), "prompt": prompt, **settings, **limits})
        if any("poison" in text for text in texts):
            raise RuntimeError(f"cannot encode {texts}")
        return vectors_of([prompt + text for text in texts]).astype(np.float32)


@pytest.fixture(autouse=True)
def _package(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = StandIn  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.setattr(StandIn, "made", [])
    monkeypatch.setattr(StandIn, "encoded", [])


def provider(of: Any = CONTRACT, **settings: Any) -> SentenceTransformersProvider:
    return SentenceTransformersProvider(SentenceTransformersConfig(**settings), of)


def test_the_contract_decides_how_the_model_runs(tmp_path: Path) -> None:
    of = contract(
        model="org/model", query_prompt="query: ", max_input_tokens=256, truncation="start",
        pooling="mean",
    )  # fmt: skip
    space, _ = embedded(provider(of), tmp_path, of=of)
    prompted = [f"query: {text}" for text in QUERIES.values()]
    np.testing.assert_array_equal(space.vectors, expected([*DOCUMENTS.values(), *prompted]))
    ((name, settings),) = StandIn.made
    assert name == "org/model"
    assert (settings["revision"], settings["device"]) == ("r1", "cpu")
    documents, queries = StandIn.encoded
    assert (documents["prompt"], queries["prompt"]) == ("", "query: ")
    assert queries["texts"] == list(QUERIES.values())
    assert documents["normalize_embeddings"] is True
    assert (documents["length"], documents["side"]) == (256, "left")


def test_a_cached_space_loads_no_model(tmp_path: Path) -> None:
    embedded(provider(), tmp_path)
    embedded(provider(), tmp_path)
    assert len(StandIn.made) == 1


def test_a_folder_is_loaded_without_a_network(tmp_path: Path) -> None:
    embedded(provider(model=str(tmp_path)), tmp_path / "cache")
    ((name, settings),) = StandIn.made
    assert (name, settings["revision"], settings["local_files_only"]) == (str(tmp_path), None, True)


def test_a_model_can_come_out_of_an_installed_package(tmp_path: Path) -> None:
    embedded(provider(package="rag_assets_tests", model="embeddings"), tmp_path)
    assert StandIn.made[0][0] == str(Path(__file__).parent)
    for settings in ({"package": "not_installed_here"}, {"package": "json", "model": "nowhere"}):
        with pytest.raises(ProviderMissing, match="is not installed"):
            embedded(provider(**settings), tmp_path / "other")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pooling": "cls"}, "pooling is 'cls', but the model has 'mean'"),
        ({"dimension": 3}, "dimension is 3, but the model has 4"),
        ({"truncation": "middle"}, "truncation is 'middle'"),
    ],
)
def test_a_contract_that_is_not_the_models_is_refused_before_any_text(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    of = contract(**changes)
    with pytest.raises(UsageError, match=message):
        embedded(provider(of), tmp_path, of=of)
    assert StandIn.encoded == []


def test_a_text_that_breaks_the_model_is_named_by_its_item_only(tmp_path: Path) -> None:
    corpus = corpus_of({"d0": "fine", "d1": "poison pill", "d2": "good"}, {})
    with pytest.raises(InputError) as error:
        embedded(provider(), tmp_path, corpus)
    (problem,) = error.value.problems
    assert (problem.place, problem.found) == ("item d1", "the model failed with RuntimeError")


def test_a_model_that_cannot_be_loaded_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ProviderMissing, match=r"'unknown/model' at revision 'r1' cannot be loaded"):
        embedded(provider(model="unknown/model"), tmp_path)


def test_without_the_package_the_provider_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ProviderMissing, match=r"install rag-assets\[sentence-transformers\]"):
        embedded(provider(), tmp_path)
