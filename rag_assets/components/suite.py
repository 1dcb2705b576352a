"""The plain description of a suite that the asset builders share, and the names of its assets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import dagster as dg

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.canonical.corpus import Corpus
from rag_assets.decisions.tables import Budget
from rag_assets.embeddings.plans import SpacePlan
from rag_assets.errors import RagAssetsError
from rag_assets.evaluation import EXACT, AuditedPair
from rag_assets.indexes.specs import IndexSpec
from rag_assets.laboratory.promotion import Thresholds
from rag_assets.laboratory.sweeps import Sweep
from rag_assets.quality.report import CheckReport
from rag_assets.regression.gates import Regression
from rag_assets.sources.collection import Collection
from rag_assets.store import AssetPath, Store


@dataclass(frozen=True)
class SourceRead:
    """A source's corpus, and the report of its data checks where it has any."""

    corpus: Corpus
    report: CheckReport | None = None


@dataclass(frozen=True)
class Source:
    """Where a suite's corpus comes from. `shown` names it to people; `judged`: every case must
    have a judgement; `holds`: what comes with it, contracts with vectors, vectors of one space, or
    only texts; `read` is given the contracts that the YAML states; `data_checks`: reading also
    reports on the collection itself, which `collection` reads once more. `path`: the file or folder
    it is read from, relative to the project, if there is one; `corpus` then reads without data
    checks."""

    shown: str
    kind: str
    read: Callable[[Sequence[SpaceContract]], SourceRead]
    data_checks: bool = False
    judged: bool = True
    holds: Literal["contracts", "vectors", "texts"] = "contracts"
    collection: Callable[[], Collection] | None = None
    path: str | None = None
    corpus: Callable[[Sequence[SpaceContract]], Corpus] | None = None


@dataclass(frozen=True)
class DeclaredIndex:
    """An approximate index of the suite, over every space or over those named."""

    name: str
    spec: IndexSpec
    space_ids: tuple[str, ...]


@dataclass(frozen=True)
class DeclaredRun:
    """A TREC run file, evaluated under an index name of its own beside one space's indexes."""

    name: str
    space_id: str
    path: str


@dataclass(frozen=True)
class DeclaredSweep:
    """An experiment on one declared index of one space."""

    space_id: str
    index_name: str
    sweep: Sweep


@dataclass(frozen=True)
class Suite:
    """A checked EvaluationSuite. `folder` holds its defs.yaml and recorded decisions."""

    name: str
    source: Source
    spaces: tuple[SpacePlan, ...]
    ks: tuple[int, ...]
    pairs: tuple[AuditedPair, ...]
    owners: tuple[str, ...]
    kept_releases: int
    notice: str
    folder: Path
    indexes: tuple[DeclaredIndex, ...] = ()
    sweeps: tuple[DeclaredSweep, ...] = ()
    runs: tuple[DeclaredRun, ...] = ()
    thresholds: Thresholds = field(default_factory=Thresholds)
    budgets: tuple[Budget, ...] = ()
    tombstones: str | None = None  # path of a file of ids, relative to the project's folder
    regression: Regression = field(default_factory=Regression)
    benchmark_budget_s: float = 60.0
    sweep_budget_s: float = 600.0
    kept_evaluations: int = 1000

    @property
    def job_name(self) -> str:
        return f"evaluate_{asset_group(self.name)}"

    @property
    def space_ids(self) -> tuple[str, ...]:
        return tuple(space.space_id for space in self.spaces)

    def indexes_of(self, space_id: str) -> tuple[DeclaredIndex, ...]:
        return tuple(index for index in self.indexes if space_id in index.space_ids)

    def result_names(self, space_id: str) -> tuple[str, ...]:
        """Index names of everything that has results in a space: exact, approximate, external."""
        indexes = [index.name for index in self.indexes_of(space_id)]
        return (EXACT, *indexes, *(run.name for run in self.runs if run.space_id == space_id))

    @property
    def contracts(self) -> list[SpaceContract]:
        """The contracts that the YAML states."""
        return [plan.contract for plan in self.spaces if plan.contract is not None]

    def key(self, *path: str) -> dg.AssetKey:
        return dg.AssetKey([self.name, *path])


# Text in YAML that must stay as it is: Dagster's templates would turn the revision "1.10" into 1.1.
AS_WRITTEN = dg.Resolver.passthrough()
SUITE_TAG = "rag_assets/suite"  # on a suite's job: its name
CANONICAL: AssetPath = ("canonical_items",)


def embeddings_path(space_id: str) -> AssetPath:
    return (space_id, "embeddings")


def index_path(space_id: str, index_name: str = EXACT) -> AssetPath:
    return (space_id, f"{index_name}_index")


def results_path(space_id: str, index_name: str = EXACT) -> AssetPath:
    return (space_id, f"{index_name}_results")


def benchmark_path(space_id: str) -> AssetPath:
    return (space_id, "index_times")


def sweep_path(declared: DeclaredSweep) -> AssetPath:
    return (declared.space_id, f"sweep_{declared.sweep.name.replace('-', '_')}")


# The UI lists groups by name; the number keeps them in the order in which data flows.
_STAGES = {"corpus": 1, "measures": 3, "audits": 4, "history": 5}
_SPACE_STAGE = 2


def asset_group(suite: str, member: str = "") -> str:
    """The Dagster name of a suite, or the group of one of its spaces or stages.

    Letters, digits and underscores only: "toy", "toy__2_toy_v1".
    """
    names = [suite, f"{_STAGES.get(member, _SPACE_STAGE)} {member}"] if member else [suite]
    return "__".join(re.sub(r"[^A-Za-z0-9]+", "_", name) for name in names)


class StoreResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Where every asset reads and writes its artifacts, and where releases are published."""

    root: str

    def of(self, suite: Suite, run_id: str) -> Store:
        return Store(Path(self.root), suite.name, run_id)

    @property
    def warehouse(self) -> Path:
        return Path(self.root)


@contextmanager
def failures_in_plain_words() -> Iterator[None]:
    """Turn an error meant for users into a step failure that shows its message, not a traceback."""
    try:
        yield
    except RagAssetsError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from None
