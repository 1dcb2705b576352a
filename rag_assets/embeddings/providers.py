"""Where vectors come from: the interface of a provider, its failures, and its settings.

A provider turns texts into vectors and knows nothing of corpora, caches and retries; `embed` drives
it. Opening one loads and checks nothing: a space whose vectors are all cached needs neither package
nor key. No failure or log line holds a text, a key, or what a server said about either.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import numpy as np

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.canonical.corpus import Corpus
from rag_assets.errors import UsageError


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest batch of a provider. Bytes are UTF-8 and bound tokens too: no tokenizer of bytes
    or characters makes more tokens than bytes. A longer single text is sent alone."""

    max_items: int
    max_bytes: int


class Provider(Protocol):
    """`embed` gets the texts as sent (prompt included) and the contract's name of their role, and
    returns vectors float[n_texts, dimension] in the order of the texts. It raises ProviderMissing
    where vectors cannot be made at all, or one of the failures below for this batch."""

    @property
    def limits(self) -> Limits: ...

    def embed(self, texts: Sequence[str], role: str) -> np.ndarray: ...


class BatchFailure(Exception):
    """A batch gave no vectors. `reason` is safe to show."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TransientFailure(BatchFailure):
    """Worth trying again, not before `retry_after` seconds. `service_wide` tells an overloaded or
    unreachable service from a failure that one of the texts may have caused."""

    def __init__(
        self, reason: str, *, retry_after: float | None = None, service_wide: bool = True
    ) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        self.service_wide = service_wide


class RefusedBatch(BatchFailure):
    """The provider will not embed these texts together, however often it is asked."""


class BadResponse(BatchFailure):
    """What came back is not one valid vector for each text."""


@dataclass(frozen=True, slots=True)
class PrecomputedConfig:
    """Vectors in files: .npy with ids beside it, or a `column` of the Parquet or Arrow tables of
    documents and queries. `ignore_extra`: vectors of unknown ids are left out, not refused."""

    provider: ClassVar[str] = "precomputed"
    folder: str
    column: str | None = None
    ignore_extra: bool = False


@dataclass(frozen=True, slots=True)
class SentenceTransformersConfig:
    """A local model. `model` is a name or a folder, by default the contract's model; with `package`
    it is a folder inside that installed Python package. `batch_items` texts are encoded, and
    cached, together."""

    provider: ClassVar[str] = "sentence_transformers"
    model: str | None = None
    package: str | None = None
    device: str = "cpu"
    local_files_only: bool = False
    batch_items: int = 64


@dataclass(frozen=True, slots=True)
class OpenAICompatibleConfig:
    """Any server with /v1/embeddings. `model` is the server's name for it, by default the
    contract's. The key comes from the environment variable `api_key_env`; null sends none.
    `send_dimensions` asks for the contract's dimension, where a model can shorten its vectors."""

    provider: ClassVar[str] = "openai_compatible"
    base_url: str
    model: str | None = None
    api_key_env: str | None = "OPENAI_API_KEY"
    send_dimensions: bool = False
    timeout_seconds: float = 60.0
    batch_items: int = 128
    batch_bytes: int = 250_000


@dataclass(frozen=True, slots=True)
class LsaConfig:
    """TF-IDF and truncated SVD, fitted on the documents of the corpus. Terms are words of two or
    more letters or digits and single Chinese characters (`word`), or runs of characters within
    words (`char_wb`), in n-grams of `ngram_min` to `ngram_max`."""

    provider: ClassVar[str] = "lsa"
    analyzer: Literal["word", "char_wb"] = "word"
    ngram_min: int = 1
    ngram_max: int = 1
    min_df: int = 1
    sublinear_tf: bool = True
    iterations: int = 5
    seed: int = 0


ProviderConfig: TypeAlias = (
    PrecomputedConfig | SentenceTransformersConfig | OpenAICompatibleConfig | LsaConfig
)
_CONFIGS: dict[str, type[ProviderConfig]] = {
    config.provider: config for config in get_args(ProviderConfig)
}
PROVIDERS = tuple(_CONFIGS)


def provider_config(settings: Mapping[str, object]) -> ProviderConfig:
    """The settings of a space's `vectors:` mapping. UsageError names what is wrong in it."""
    name = settings.get("provider")
    if not isinstance(name, str) or name not in _CONFIGS:
        raise UsageError(f"vectors.provider is {name!r}; it must be one of {', '.join(PROVIDERS)}")
    kind = _CONFIGS[name]
    given: dict[str, Any] = {key: value for key, value in settings.items() if key != "provider"}
    known = [field.name for field in fields(kind)]
    for key in given:
        if key not in known:
            raise UsageError(
                f"vectors.{key} is not a setting of {name}; the settings are {', '.join(known)}"
            )
    for field in fields(kind):
        if field.default is MISSING and field.name not in given:
            raise UsageError(f"vectors.{field.name} is missing; {name} needs it")
    expected = get_type_hints(kind)
    for key, value in given.items():
        _check_setting(key, value, expected[key])
    config = kind(**given)
    if isinstance(config, OpenAICompatibleConfig):
        _check_url(config.base_url)
        _check_variable(config.api_key_env)
    if isinstance(config, LsaConfig) and config.ngram_max < config.ngram_min:
        raise UsageError(
            f"vectors.ngram_max is {config.ngram_max}; "
            f"it must be at least ngram_min, {config.ngram_min}"
        )
    return config


def open_provider(config: ProviderConfig, contract: SpaceContract, corpus: Corpus) -> Provider:
    """The provider of one space; nothing is loaded or reached before it embeds.

    `contract` comes from `complete_contract`. UsageError for `precomputed`, whose files are read
    and not embedded.
    """
    if isinstance(config, LsaConfig):
        from rag_assets.embeddings.lsa import LsaProvider

        return LsaProvider(config, contract, corpus)
    if isinstance(config, OpenAICompatibleConfig):
        from rag_assets.embeddings.openai_server import OpenAICompatibleProvider

        return OpenAICompatibleProvider(config, contract)
    if isinstance(config, SentenceTransformersConfig):
        from rag_assets.embeddings.local_models import SentenceTransformersProvider

        return SentenceTransformersProvider(config, contract)
    raise UsageError(f"space {contract.space_id!r}: precomputed vectors are read, not embedded")


def complete_contract(
    contract: SpaceContract, config: ProviderConfig, corpus: Corpus
) -> SpaceContract:
    """`contract` with what only the corpus can tell: the revision of a space fitted on it.

    Raises as `lsa.fitted_contract`; other providers' contracts are complete as they are.
    """
    if isinstance(config, LsaConfig):
        from rag_assets.embeddings.lsa import fitted_contract

        return fitted_contract(contract, config, corpus)
    return contract


def _check_setting(key: str, value: object, expected: Any) -> None:
    """UsageError unless a YAML value is of the declared type and, if a number, in its range."""
    if get_origin(expected) is Literal:
        if value not in get_args(expected):
            allowed = ", ".join(get_args(expected))
            raise UsageError(f"vectors.{key} is {value!r}; it must be one of {allowed}")
        return
    allowed_types = get_args(expected) if isinstance(expected, types.UnionType) else (expected,)
    # YAML writes 60 for 60.0, and Python takes True for 1.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = type(value) in allowed_types or (float in allowed_types and number)
    if not fits:
        # The value is not shown: a key may have been pasted into the wrong place.
        kinds = " or ".join(
            "null" if kind is type(None) else kind.__name__ for kind in allowed_types
        )
        raise UsageError(f"vectors.{key} is a {type(value).__name__}; it must be of type {kinds}")
    least = 0 if key == "seed" else 1 if isinstance(value, int) else 1e-3
    if isinstance(value, int | float) and number and not least <= value < 2**32:
        raise UsageError(f"vectors.{key} is {value}; it must be from {least} to {2**32 - 1}")
    if value == "":
        raise UsageError(f"vectors.{key} is empty; leave it out or give it a value")


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname)
        bare = not (parts.username or parts.password or parts.query or parts.fragment)
    except ValueError:
        fine = bare = False
    if not (fine and bare):
        raise UsageError(
            "vectors.base_url must look like https://host/v1, without user, password or query; "
            "a key belongs in the environment variable that api_key_env names"
        )


def _check_variable(name: str | None) -> None:
    if name is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name):
        raise UsageError(
            "vectors.api_key_env must be the name of an environment variable, not a key itself"
        )
