"""EvaluationSuite: one YAML file describes a data set, its spaces and what is audited."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import dagster as dg
from pydantic import Field, StrictInt, field_validator, model_validator

from rag_assets.components.approximate import (
    approximate_index_asset,
    approximate_results_asset,
)
from rag_assets.components.chain import (
    canonical_items_asset,
    embeddings_asset,
    exact_index_asset,
    exact_results_asset,
)
from rag_assets.components.checks import chain_checks
from rag_assets.components.laboratory import index_benchmark_asset, sweep_asset
from rag_assets.components.sources import FixtureSource, SyntheticSource
from rag_assets.components.suite import (
    SUITE_TAG,
    DeclaredIndex,
    DeclaredSweep,
    Suite,
    asset_group,
)
from rag_assets.components.tables import tables_asset
from rag_assets.errors import UsageError
from rag_assets.evaluation import EXACT, audited_pairs, check_ks
from rag_assets.indexes.specs import spec_from
from rag_assets.laboratory.promotion import Thresholds
from rag_assets.laboratory.sweeps import Claim, Need, StopRule, Sweep
from rag_assets.project import models_folder
from rag_assets.warehouse.models import Model, load_models

_THRESHOLDS = Thresholds()


class Space(dg.Model, dg.Resolvable):
    """One embedding space of the suite."""

    space_id: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        description="The space's id in the source: letters, digits, '.', '_' and '-', because it "
        "names assets and folders.",
    )


class Index(dg.Model, dg.Resolvable):
    """An approximate index beside the exact one."""

    kind: Literal["ivf_pq", "ivf_flat", "ivf_rabitq", "hnsw"]
    name: str | None = Field(default=None, description="Name in the tables; its kind if left out.")
    spaces: Sequence[str] | None = Field(
        default=None, description="Ids of the spaces that get it; all if left out."
    )
    parameters: Mapping[str, Any] = Field(
        default_factory=dict,
        description="The field's names: n_clusters, nprobe, n_subvectors, n_bits, n_iters, seed, "
        "opq, refine, policy; for hnsw m, ef_construction, ef_search, seed, policy.",
    )


class StopRuleFields(dg.Model, dg.Resolvable):
    """When the walk through a sweep's values ends."""

    min_recall_gain: float = Field(description="Stop where mean recall rises by less.")
    max_p95_growth: float = Field(description="Stop where p95 grows by more; 0.5 is 50%.")


class NeedFields(dg.Model, dg.Resolvable):
    """A use of the index and its bounds."""

    name: str
    p95_ms: float
    min_recall: float


class SweepFields(dg.Model, dg.Resolvable):
    """An experiment on one parameter of one declared index, fixed before its first run."""

    name: str
    space: str
    index: str = Field(description="Name of a declared index: what stays fixed is taken from it.")
    vary: Mapping[str, Sequence[Any]] = Field(description="Exactly one parameter and its values.")
    seeds: Sequence[StrictInt] = Field(description="At least three.")
    k: int = 10
    stop_rule: StopRuleFields
    min_mean_recall: float = Field(
        description="The claim: mean ANN Recall@k of at least this is reached before the stop."
    )
    needs: Sequence[NeedFields] = ()
    query_sample: int | None = Field(
        default=None, description="How many queries, drawn at random; all if left out."
    )
    sample_seed: int = 0


class PromotionFields(dg.Model, dg.Resolvable):
    """What an approximate index must show before it may become a default."""

    min_recall: float = _THRESHOLDS.min_recall
    min_latency_gain: float = _THRESHOLDS.min_latency_gain
    min_memory_gain: float = _THRESHOLDS.min_memory_gain
    max_judgement_loss: float = _THRESHOLDS.max_judgement_loss


class Audit(dg.Model, dg.Resolvable):
    """A migration from an old to a new space, to be audited."""

    old: str
    new: str


class DailySchedule(dg.Model, dg.Resolvable):
    """When the suite is evaluated again."""

    cron: str = "0 5 * * *"
    timezone: str = "UTC"
    enabled: bool = Field(default=False, description="Whether the schedule starts switched on.")


class EvaluationSuite(dg.Component, dg.Model, dg.Resolvable):
    """Evaluates embedding spaces on one source: canonical items, embeddings, indexes, results,
    measures, migration audits and a DuckDB release that people query."""

    name: str = Field(description="Short name: letters, digits, '-' and '_'. Names the database.")
    description: str = ""
    owners: Sequence[str] = Field(
        default=(), description="Owners of every asset: an e-mail address or team:NAME."
    )
    source: FixtureSource | SyntheticSource
    spaces: Sequence[Space] = Field(description="In order: the first one's rows are canonical.")
    k: Sequence[StrictInt] = Field(default=(3,), description="Cut-offs of all measures.")
    indexes: Sequence[Index] = Field(
        default=(), description="Approximate indexes, compared with exact search."
    )
    sweeps: Sequence[SweepFields] = Field(
        default=(), description="Experiments on the parameters of approximate indexes."
    )
    promotion: PromotionFields = Field(default_factory=PromotionFields)
    benchmark_budget_s: float = Field(
        default=20, gt=0, description="Seconds for timing the indexes of one space."
    )
    sweep_budget_s: float = Field(
        default=300, gt=0, description="Seconds for the latencies of one sweep."
    )
    audits: Sequence[Audit] | None = Field(
        default=None, description="Pairs to audit; every two neighbouring spaces if left out."
    )
    schedule: DailySchedule = Field(default_factory=DailySchedule)
    kept_releases: int = Field(default=10, ge=1, description="How many releases are kept.")
    notice: str = Field(
        default="", description="What a reader must know before reading any number of this suite."
    )

    @field_validator("name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        if not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
            raise ValueError("use lower-case letters, digits, '-' and '_', starting with a letter")
        return name

    @model_validator(mode="after")
    def _consistent(self) -> EvaluationSuite:
        # UsageError is for calls; inside a YAML file pydantic names the place.
        try:
            self.suite(Path())
        except UsageError as error:
            raise ValueError(str(error)) from None
        return self

    def suite(self, folder: Path) -> Suite:
        """The checked, plain description that the asset builders use."""
        space_ids = tuple(space.space_id for space in self.spaces)
        if not space_ids:
            raise UsageError("a suite needs at least one space")
        groups = [asset_group(self.name, space_id) for space_id in space_ids]
        if len(set(groups)) != len(groups):
            raise UsageError(
                "two spaces have the same id, or ids that differ only in punctuation: "
                + ", ".join(space_ids)
            )
        indexes = _declared_indexes(self.indexes, space_ids)
        declared = None if self.audits is None else [(a.old, a.new) for a in self.audits]
        return Suite(
            name=self.name,
            source=self.source.source(),
            space_ids=space_ids,
            ks=check_ks(self.k),
            pairs=audited_pairs(declared, space_ids),
            owners=tuple(self.owners),
            kept_releases=self.kept_releases,
            notice=self.notice,
            folder=folder,
            indexes=indexes,
            sweeps=_declared_sweeps(self.sweeps, indexes),
            thresholds=Thresholds(**self.promotion.model_dump()),
            benchmark_budget_s=self.benchmark_budget_s,
            sweep_budget_s=self.sweep_budget_s,
        )

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        suite = self.suite(context.path)
        models = _models()
        assets = [canonical_items_asset(suite)]
        for space_id in suite.space_ids:
            assets += [
                embeddings_asset(suite, space_id),
                exact_index_asset(suite, space_id),
                exact_results_asset(suite, space_id),
            ]
            for index in suite.indexes_of(space_id):
                assets += [
                    approximate_index_asset(suite, space_id, index),
                    approximate_results_asset(suite, space_id, index),
                ]
            if suite.indexes_of(space_id):
                assets.append(index_benchmark_asset(suite, space_id))
        assets += [sweep_asset(suite, sweep) for sweep in suite.sweeps]
        assets.append(tables_asset(suite, models))
        job = dg.define_asset_job(
            name=suite.job_name,
            selection=dg.AssetSelection.assets(*assets),
            description=f"Evaluate the suite {suite.name} from its source to a release. "
            + self.description,
            tags={SUITE_TAG: suite.name},
        )
        schedule = dg.ScheduleDefinition(
            name=f"{suite.job_name}_schedule",
            job=job,
            cron_schedule=self.schedule.cron,
            execution_timezone=self.schedule.timezone,
            default_status=dg.DefaultScheduleStatus.RUNNING
            if self.schedule.enabled
            else dg.DefaultScheduleStatus.STOPPED,
            description=f"Re-evaluates the suite {suite.name}. Set cron, time zone and default "
            "state in the suite's defs.yaml.",
        )
        return dg.Definitions(
            assets=assets, asset_checks=chain_checks(suite), jobs=[job], schedules=[schedule]
        )


@cache
def _models() -> tuple[Model, ...]:
    """The SQL models: read once for all suites of a process."""
    return load_models(models_folder())


def _declared_indexes(
    declared: Sequence[Index], space_ids: tuple[str, ...]
) -> tuple[DeclaredIndex, ...]:
    """UsageError for a name that is taken, an unknown space or parameters that make no sense."""
    taken: set[tuple[str, str]] = {(space_id, EXACT) for space_id in space_ids}
    indexes = []
    for index in declared:
        name = index.name or index.kind
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise UsageError(f"index name {name!r}: use lower-case letters, digits and '_'")
        for space_id in index.spaces or space_ids:
            if space_id not in space_ids:
                raise UsageError(f"index {name}: unknown space {space_id!r}")
            if (space_id, name) in taken:
                raise UsageError(f"index {name}: the space {space_id!r} has an index of that name")
            taken.add((space_id, name))
        spec = spec_from(index.kind, index.parameters)
        indexes.append(DeclaredIndex(name, spec, tuple(index.spaces or space_ids)))
    return tuple(indexes)


def _declared_sweeps(
    declared: Sequence[SweepFields], indexes: tuple[DeclaredIndex, ...]
) -> tuple[DeclaredSweep, ...]:
    """UsageError for an index that the space does not have, or a sweep that is no experiment."""
    sweeps = []
    for fields in declared:
        matching = [i for i in indexes if i.name == fields.index and fields.space in i.space_ids]
        if not matching:
            raise UsageError(
                f"sweep {fields.name}: the space {fields.space!r} has no index {fields.index!r}"
            )
        sweep = Sweep(
            name=fields.name,
            index=matching[0].spec,
            vary=fields.vary,
            seeds=fields.seeds,
            k=fields.k,
            stop_rule=StopRule(**fields.stop_rule.model_dump()),
            claim=Claim(fields.min_mean_recall),
            needs=[Need(**need.model_dump()) for need in fields.needs],
            query_sample=fields.query_sample,
            sample_seed=fields.sample_seed,
        )
        sweeps.append(DeclaredSweep(fields.space, fields.index, sweep))
    names = [sweep.sweep.name for sweep in sweeps]
    if len(set(names)) != len(names):
        raise UsageError("two sweeps have the same name")
    return tuple(sweeps)
