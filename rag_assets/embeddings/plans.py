"""How a suite gets the vectors of each of its spaces, and making them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.canonical.corpus import Corpus
from rag_assets.embeddings.cache import EmbeddingCache
from rag_assets.embeddings.derive import Derivation, derive
from rag_assets.embeddings.embed import embed_space
from rag_assets.embeddings.providers import (
    PrecomputedConfig,
    ProviderConfig,
    complete_contract,
    open_provider,
)
from rag_assets.embeddings.space import EmbeddedSpace, declared_embeddings
from rag_assets.errors import ProviderMissing
from rag_assets.sources.mteb import read_table_vectors
from rag_assets.sources.vector_files import read_vector_folder


@dataclass(frozen=True)
class SpacePlan:
    """Where a space's vectors come from: one of

    - the source itself, which also holds the contract (`contract` is None),
    - a provider (`vectors`), under a `contract`,
    - another space (`parent`), by a `derivation`; `matryoshka_dimensions` are those that the
      parent's model was trained to be cut to.
    """

    space_id: str
    contract: SpaceContract | None = None
    vectors: ProviderConfig | None = None
    parent: str | None = None
    derivation: Derivation | None = None
    matryoshka_dimensions: tuple[int, ...] = ()


@dataclass(frozen=True)
class MadeSpace:
    """`space` is None where it was not executed, and `reason` says why; `facts` are for people."""

    contract: SpaceContract
    space: EmbeddedSpace | None
    reason: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def make_space(
    plan: SpacePlan,
    corpus: Corpus,
    *,
    root: Path,
    cache: EmbeddingCache,
    parent: EmbeddedSpace | None = None,
    parent_reason: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> MadeSpace:
    """The vectors of one space; paths of vector files are relative to `root`.

    A provider without its package, key or network gives a space that was not executed, and so does
    a parent that was not. InputError for vectors that break the contract, UsageError for settings
    that cannot work.
    """
    if plan.derivation is not None:
        contract = corpus.contract(plan.space_id)
        if parent is None:
            return MadeSpace(contract, None, f"{plan.parent}: {parent_reason}")
        made = derive(
            parent,
            plan.derivation,
            plan.space_id,
            matryoshka_dimensions=plan.matryoshka_dimensions,
        )
        return MadeSpace(
            made.space.contract,
            made.space,
            facts={"stored_bytes_per_vector": made.stored_bytes_per_vector},
        )
    if plan.contract is None or plan.vectors is None:
        space = declared_embeddings(corpus, plan.space_id)
        return MadeSpace(space.contract, space)
    if isinstance(plan.vectors, PrecomputedConfig):
        files = plan.vectors
        read = (
            read_vector_folder
            if files.column is None
            else partial(read_table_vectors, column=files.column)
        )
        space = read(
            root / files.folder,
            corpus=corpus,
            contract=plan.contract,
            shown=files.folder,
            ignore_extra=files.ignore_extra,
        )
        return MadeSpace(space.contract, space)
    try:
        contract = complete_contract(plan.contract, plan.vectors, corpus)
        provider = open_provider(plan.vectors, contract, corpus)
        space, report = embed_space(corpus, contract, provider, cache, progress=progress)
    except ProviderMissing as missing:
        return MadeSpace(plan.contract, None, str(missing))
    facts = {
        name: ", ".join(value) if isinstance(value, tuple) else value
        for name, value in asdict(report).items()
        if value not in ((), None)
    }
    return MadeSpace(contract, space, facts=facts)
