"""The sources that a suite's YAML can name, each with what reads it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import dagster as dg
from pydantic import Field

from rag_assets.canonical.corpus import Corpus
from rag_assets.components.suite import Source
from rag_assets.errors import InputError
from rag_assets.laboratory.synthetic import synthetic_corpus
from rag_assets.project import project_root
from rag_assets.sources.fixture import load_fixture


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
        return Source(shown=self.path, kind="json", read=self._read)

    def _read(self) -> Corpus:
        try:
            return load_fixture(project_root() / self.path, max_bytes=int(self.max_mib * 2**20))
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

    def _read(self) -> Corpus:
        return synthetic_corpus(self.n_vectors, self.dim, self.n_queries, self.seed, self.noise)
