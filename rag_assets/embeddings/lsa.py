"""Latent semantic analysis: TF-IDF and truncated SVD, fitted on the documents of the corpus.

The space needs no download, and it moves with its corpus: one changed document changes every
vector. Its revision is therefore a hash over the settings, the library's version and all documents
in order, so that the signature, and with it the cache, knows spaces of two corpora apart.
Fitted on one BLAS thread and from a seed, equal inputs give equal bytes on one machine; on another
processor the last bits may differ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib import metadata
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from rag_assets.canonical.contracts import SpaceContract, canonical_json
from rag_assets.canonical.corpus import Corpus
from rag_assets.embeddings.inputs import space_inputs
from rag_assets.embeddings.providers import Limits, LsaConfig
from rag_assets.errors import ProviderMissing, UsageError

# In a YAML contract: the revision is whatever the fit on the present corpus gives.
FITTED = "fitted"

_HAN = "\u3400-\u4dbf\u4e00-\u9fff"
# Words of two or more characters, as scikit-learn has them, and Han characters one by one: Chinese
# does not part its words, and whole clauses would be terms that occur once.
_TOKENS = rf"(?u)[{_HAN}]|[^\W{_HAN}]{{2,}}"


@dataclass(frozen=True)
class LsaProvider:
    """See Provider; fitted at the first batch. A text without any known term is given the mean
    document's direction: it has a vector, as every text has in every model, and prefers nothing."""

    config: LsaConfig
    contract: SpaceContract
    corpus: Corpus

    @property
    def limits(self) -> Limits:
        return Limits(max_items=2_048, max_bytes=16_000_000)

    def embed(self, texts: Sequence[str], role: str) -> np.ndarray:
        """float64[n_texts, d]; of unit length if the contract says normalized."""
        terms, components, mean = self._fit
        vectors: np.ndarray = terms.transform(texts) @ components.T
        vectors[~vectors.any(axis=1)] = mean
        if self.contract.normalized:
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    @cached_property
    def _fit(self) -> tuple[Any, np.ndarray, np.ndarray]:
        """(vectorizer, components float64[d, n_terms], mean document float64[d])."""
        try:
            from sklearn.decomposition import TruncatedSVD
            from sklearn.feature_extraction.text import TfidfVectorizer
        except ImportError:
            raise _missing(self.contract) from None
        config, space = self.config, f"space {self.contract.space_id!r}"
        documents = space_inputs(self.corpus, self.contract).documents
        terms = TfidfVectorizer(
            analyzer=config.analyzer,
            token_pattern=_TOKENS if config.analyzer == "word" else None,
            ngram_range=(config.ngram_min, config.ngram_max),
            min_df=min(config.min_df, max(len(documents), 1)),
            sublinear_tf=config.sublinear_tf,
        )
        try:
            weights = terms.fit_transform(documents)
        except ValueError:
            weights = None
        if weights is None:
            raise UsageError(f"{space}: its documents hold no terms to fit on")
        possible = min(weights.shape)
        if self.contract.dimension > possible:
            raise UsageError(
                f"{space}: dimension is {self.contract.dimension}; {weights.shape[0]} documents "
                f"with {weights.shape[1]} terms allow at most {possible}"
            )
        svd = TruncatedSVD(
            self.contract.dimension, n_iter=config.iterations, random_state=config.seed
        )
        with threadpool_limits(limits=1):
            vectors = svd.fit_transform(weights)
        return terms, svd.components_, vectors.mean(axis=0)


def fitted_contract(contract: SpaceContract, config: LsaConfig, corpus: Corpus) -> SpaceContract:
    """`contract` with the revision of the fit on this corpus.

    UsageError if the contract names a revision other than FITTED and it is not this one: then the
    corpus, the settings or the library changed. ProviderMissing without scikit-learn.
    """
    try:
        version = metadata.version("scikit-learn")
    except metadata.PackageNotFoundError:
        raise _missing(contract) from None
    settings = asdict(config) | {
        "scikit_learn": version,
        "dimension": contract.dimension,
        "tokens": _TOKENS,
    }
    fit = hashlib.sha256(canonical_json(settings).encode("utf-8"))
    for text in space_inputs(corpus, contract).documents:
        fit.update(hashlib.sha256(text.encode("utf-8")).digest())
    revision = f"sha256:{fit.hexdigest()}"
    if contract.revision not in (FITTED, revision):
        raise UsageError(
            f"space {contract.space_id!r}: the contract pins revision {contract.revision!r}, but "
            f"this corpus, these settings and scikit-learn {version} give {revision!r}; "
            f"write {FITTED!r} to accept any"
        )
    return replace(contract, revision=revision)


def _missing(contract: SpaceContract) -> ProviderMissing:
    return ProviderMissing(
        f"space {contract.space_id!r}: the package scikit-learn is not installed; "
        "install rag-assets[lsa]"
    )
