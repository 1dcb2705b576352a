"""The `vectors:` mapping of a space: what it may say, and what it is told when it is wrong."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rag_assets.embeddings.providers import (
    LsaConfig,
    OpenAICompatibleConfig,
    PrecomputedConfig,
    SentenceTransformersConfig,
    open_provider,
    provider_config,
)
from rag_assets.errors import UsageError
from rag_assets_tests.embeddings.corpora import CONTRACT, corpus_of

URL = "https://host/v1"


def test_each_provider_has_its_settings() -> None:
    assert provider_config({"provider": "lsa", "seed": 0, "min_df": 2}) == LsaConfig(min_df=2)
    assert provider_config({"provider": "precomputed", "folder": "v"}) == PrecomputedConfig("v")
    assert provider_config(
        {"provider": "openai_compatible", "base_url": URL, "api_key_env": None,
         "timeout_seconds": 5}
    ) == OpenAICompatibleConfig(URL, api_key_env=None, timeout_seconds=5)  # fmt: skip
    assert provider_config({"provider": "sentence_transformers"}) == SentenceTransformersConfig()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "vectors.provider is None; it must be one of precomputed, sentence_transformers, "),
        ({"provider": "magic"}, "vectors.provider is 'magic'"),
        ({"provider": "lsa", "sed": 1}, "vectors.sed is not a setting of lsa; the settings are"),
        ({"provider": "precomputed"}, "vectors.folder is missing"),
        ({"provider": "lsa", "seed": True}, "vectors.seed is a bool; it must be of type int"),
        ({"provider": "lsa", "seed": -1}, "vectors.seed is -1"),
        ({"provider": "lsa", "min_df": 0}, "vectors.min_df is 0"),
        ({"provider": "lsa", "analyzer": "x"}, "must be one of word, char_wb"),
        ({"provider": "lsa", "ngram_min": 2}, "ngram_max is 1; it must be at least ngram_min, 2"),
        ({"provider": "sentence_transformers", "model": 3}, "must be of type str or null"),
        ({"provider": "sentence_transformers", "device": ""}, "vectors.device is empty"),
        ({"provider": "openai_compatible", "base_url": URL, "timeout_seconds": 0},
         "vectors.timeout_seconds is 0"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as error:
        provider_config(settings)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"base_url": "https://user:sk-secret@host/v1"},
        {"base_url": "https://host/v1?key=sk-secret"},
        {"base_url": "sk-secret"},
        {"base_url": URL, "api_key_env": "sk-secret"},
        {"base_url": URL, "timeout_seconds": "sk-secret"},
    ],
)
def test_a_key_in_the_wrong_place_is_refused_and_not_repeated(settings: dict[str, object]) -> None:
    with pytest.raises(UsageError) as error:
        provider_config({"provider": "openai_compatible", **settings})
    assert "sk-secret" not in str(error.value)


def test_precomputed_vectors_are_not_embedded() -> None:
    with pytest.raises(UsageError, match="precomputed vectors are read, not embedded"):
        open_provider(PrecomputedConfig("folder"), CONTRACT, corpus_of())


def test_opening_a_provider_imports_none_of_the_heavy_packages() -> None:
    script = (
        "import sys\n"
        "from rag_assets.embeddings import embed, derive, isolation\n"
        "from rag_assets.embeddings.providers import *\n"
        "from rag_assets_tests.embeddings.corpora import CONTRACT, corpus_of\n"
        "for config in (LsaConfig(), OpenAICompatibleConfig('http://h/v1'),\n"
        "               SentenceTransformersConfig()):\n"
        "    open_provider(config, CONTRACT, corpus_of())\n"
        "heavy = {'sklearn', 'openai', 'torch', 'sentence_transformers', 'dagster'}\n"
        "print(*sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")
