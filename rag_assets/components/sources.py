"""The sources that a suite's YAML can name, each with what reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import dagster as dg
from pydantic import Field

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.components.suite import AS_WRITTEN, Source, SourceRead
from rag_assets.errors import InputError
from rag_assets.laboratory.synthetic import synthetic_corpus
from rag_assets.project import project_root
from rag_assets.sources.collection import Collection
from rag_assets.sources.fixture import load_fixture
from rag_assets.sources.formats import read_collection
from rag_assets.sources.numbering import corpus_of
from rag_assets.sources.options import source_options


class FixtureSource(dg.Model, dg.Resolvable):
    """A JSON fixture that holds contracts, items with vectors, and graded queries."""

    format: Literal["fixture"] = "fixture"
    path: str = Field(description="Path of the JSON file, relative to the project's folder.")
    max_mib: float = Field(
        default=5,
        gt=0,
        allow_inf_nan=False,
        description="Files larger than this many MiB are refused.",
    )

    def source(self) -> Source:
        return Source(
            shown=self.path,
            kind="json",
            read=self._read,
            path=self.path,
            corpus=lambda contracts: self._read(contracts).corpus,
        )

    def _read(self, contracts: Sequence[SpaceContract]) -> SourceRead:
        try:
            path = project_root() / self.path
            return SourceRead(load_fixture(path, max_bytes=int(self.max_mib * 2**20)))
        except InputError as error:
            # Named by the path that the YAML gives, whatever folder the project is in.
            shown = [replace(problem, file=self.path) for problem in error.problems]
            raise InputError(shown, truncated=error.truncated) from None


class SyntheticSource(dg.Model, dg.Resolvable):
    """Random unit vectors without judgements, to measure indexes and nothing else."""

    format: Literal["synthetic"]
    n_vectors: int = 5000
    dim: int = 64
    n_queries: int = 100
    noise: float = Field(default=0.01, description="What a query is off a corpus vector.")
    seed: int = 42

    def source(self) -> Source:
        shown = f"{self.n_vectors} synthetic vectors, seed {self.seed}"
        return Source(shown=shown, kind="numpy", read=self._read, judged=False)

    def _read(self, contracts: Sequence[SpaceContract]) -> SourceRead:
        return SourceRead(
            synthetic_corpus(self.n_vectors, self.dim, self.n_queries, self.seed, self.noise)
        )


class CollectionSource(dg.Model, dg.Resolvable):
    """Documents, queries and judgements in a layout of the field; vectors come from providers."""

    format: Literal["beir", "trec", "mteb", "ann_hdf5", "vecs"]
    path: str = Field(description="Folder or file, relative to the project's folder.")
    acl: Annotated[Any, AS_WRITTEN] = Field(
        default=None,
        description="Who may read the documents: a group, a list of groups or {field: "
        "metadata.groups}. Must be stated; nothing is public by accident.",
    )
    subject_groups: Annotated[Any, AS_WRITTEN] = Field(
        default=None, description="Who asks, likewise; the groups of acl if left out."
    )
    subgroups: Annotated[Any, AS_WRITTEN] = Field(
        default=None, description="Fields of a query that name its subgroups."
    )
    source_revision: Annotated[Any, AS_WRITTEN] = Field(
        default=None, description="A text or {field: ...}."
    )
    splits: Annotated[Any, AS_WRITTEN] = Field(
        default=None, description="Names of judgement files; all if left out."
    )
    split_field: str | None = None
    query_prefix: str | None = None
    unjudged_queries: Literal["keep", "leave_out"] | None = None
    blank_documents: Literal["refuse", "leave_out"] | None = None
    orphan_judgements: Literal["refuse", "leave_out"] | None = None

    def source(self) -> Source:
        settings = self.model_dump(exclude={"format", "path"}, exclude_none=True)
        options = source_options(settings)
        options.document_groups()  # a missing statement is a fault of the YAML, not of the data
        options.asking_groups()

        def collected() -> Collection:
            return read_collection(self.format, project_root() / self.path, options, self.path)

        def read(contracts: Sequence[SpaceContract]) -> SourceRead:
            from rag_assets.quality.collection import sound_collection

            collection = collected()
            report = sound_collection(collection, self.path)
            return SourceRead(corpus_of(collection, contracts), report)

        return Source(
            shown=self.path,
            kind=self.format,
            read=read,
            data_checks=True,
            judged=False,
            holds="vectors" if self.format in ("ann_hdf5", "vecs") else "texts",
            collection=collected,
            path=self.path,
            corpus=lambda contracts: corpus_of(collected(), contracts),
        )
