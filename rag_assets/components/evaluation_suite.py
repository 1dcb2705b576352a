"""EvaluationSuite: one YAML file describes a data set, its spaces and what is audited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import dagster as dg
from pydantic import Field, StrictInt, field_validator, model_validator

from rag_assets.components.approximate import (
    approximate_index_asset,
    approximate_results_asset,
)
from rag_assets.components.automation import automated, automation_sensor
from rag_assets.components.chain import (
    canonical_items_asset,
    embeddings_asset,
    exact_index_asset,
    exact_results_asset,
)
from rag_assets.components.checks import chain_checks
from rag_assets.components.external_runs import external_run_asset
from rag_assets.components.fields import (
    Audit,
    Automation,
    BudgetsFields,
    DailySchedule,
    ExternalRun,
    Index,
    PromotionFields,
    RegressionFields,
    SourceWatch,
    Space,
    SweepFields,
    declared_budgets,
    declared_gates,
    declared_indexes,
    declared_runs,
    declared_sweeps,
    space_plans,
)
from rag_assets.components.laboratory import index_benchmark_asset, sweep_asset
from rag_assets.components.source_sensor import source_sensor
from rag_assets.components.sources import CollectionSource, FixtureSource, SyntheticSource
from rag_assets.components.suite import (
    SUITE_TAG,
    Suite,
    asset_group,
)
from rag_assets.components.tables import tables_asset
from rag_assets.errors import UsageError
from rag_assets.evaluation import NOTICE, audited_pairs, check_ks
from rag_assets.laboratory.promotion import Thresholds
from rag_assets.project import check_suite_name, models_folder
from rag_assets.regression.gates import declared_regression
from rag_assets.warehouse.models import Model, load_models


class EvaluationSuite(dg.Component, dg.Model, dg.Resolvable):
    """Evaluates embedding spaces on one source: canonical items, embeddings, indexes, results,
    measures, migration audits and a DuckDB release that people query."""

    name: str = Field(description="Short name: letters, digits, '-' and '_'. Names the database.")
    description: str = ""
    owners: Sequence[str] = Field(
        default=(), description="Owners of every asset: an e-mail address or team:NAME."
    )
    source: FixtureSource | SyntheticSource | CollectionSource
    spaces: Sequence[Space] = Field(description="In order: the first one's rows are canonical.")
    k: Sequence[StrictInt] = Field(default=(3,), description="Cut-offs of all measures.")
    indexes: Sequence[Index] = Field(
        default=(), description="Approximate indexes, compared with exact search."
    )
    runs: Sequence[ExternalRun] = Field(
        default=(), description="TREC run files of other searches, evaluated beside the indexes."
    )
    sweeps: Sequence[SweepFields] = Field(
        default=(), description="Experiments on the parameters of approximate indexes."
    )
    promotion: PromotionFields = Field(default_factory=PromotionFields)
    budgets: BudgetsFields = Field(
        default_factory=BudgetsFields, description="What serving must stay within."
    )
    tombstones: str | None = Field(
        default=None,
        description="Text file of ids of deleted items, one a line, relative to the project's "
        "folder: none of them may be in any space or result.",
    )
    benchmark_budget_s: float = Field(
        default=20, gt=0, description="Seconds for timing the indexes of one space."
    )
    sweep_budget_s: float = Field(
        default=300, gt=0, description="Seconds for the latencies of one sweep."
    )
    audits: Sequence[Audit] | None = Field(
        default=None, description="Pairs to audit; every two neighbouring spaces if left out."
    )
    regression: RegressionFields = Field(default_factory=RegressionFields)
    schedule: DailySchedule = Field(default_factory=DailySchedule)
    watch: SourceWatch = Field(default_factory=SourceWatch)
    automation: Automation = Field(default_factory=Automation)
    kept_releases: int = Field(default=10, ge=1, description="How many releases are kept.")
    kept_evaluations: int = Field(
        default=1000, ge=2, description="How many evaluations the history keeps."
    )
    notice: str = Field(
        default="", description="What a reader must know before reading any number of this suite."
    )

    @field_validator("name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        try:
            return check_suite_name(name)
        except UsageError as error:
            raise ValueError(str(error)) from None

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
        source = self.source.source()
        plans = space_plans(self.spaces, source_holds=source.holds)
        indexes = declared_indexes(self.indexes, space_ids)
        declared = None if self.audits is None else [(a.old, a.new) for a in self.audits]
        suite = Suite(
            name=self.name,
            source=source,
            spaces=plans,
            ks=check_ks(self.k),
            pairs=audited_pairs(declared, space_ids),
            owners=tuple(self.owners),
            kept_releases=self.kept_releases,
            # What comes from a fixture is never shown without saying so.
            notice=self.notice or (NOTICE if isinstance(self.source, FixtureSource) else ""),
            folder=folder,
            indexes=indexes,
            sweeps=declared_sweeps(self.sweeps, indexes),
            runs=declared_runs(self.runs, indexes, space_ids),
            thresholds=Thresholds(**self.promotion.model_dump()),
            budgets=declared_budgets(self.budgets),
            tombstones=self.tombstones,
            benchmark_budget_s=self.benchmark_budget_s,
            sweep_budget_s=self.sweep_budget_s,
            kept_evaluations=self.kept_evaluations,
        )
        regression = declared_regression(
            self.regression.level,
            declared_gates(self.regression.gates),
            ks=suite.ks,
            index_names={space_id: suite.result_names(space_id) for space_id in space_ids},
        )
        return replace(suite, regression=regression)

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        suite = self.suite(context.path)
        models = _models()
        assets = [canonical_items_asset(suite)]
        for plan in suite.spaces:
            space_id = plan.space_id
            assets += [
                embeddings_asset(suite, plan),
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
        assets += [external_run_asset(suite, run) for run in suite.runs]
        assets.append(tables_asset(suite, models))
        assets = [automated(definition) for definition in assets]
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
        sensors: list[dg.SensorDefinition] = [
            automation_sensor(suite, assets, enabled=self.automation.enabled)
        ]
        if suite.source.path is not None:
            sensors.append(
                source_sensor(
                    suite,
                    enabled=self.watch.enabled,
                    every_seconds=self.watch.every_seconds,
                    automation_enabled=self.automation.enabled,
                )
            )
        return dg.Definitions(
            assets=assets,
            asset_checks=chain_checks(suite),
            jobs=[job],
            schedules=[schedule],
            sensors=sensors,
        )


@cache
def _models() -> tuple[Model, ...]:
    """The SQL models: read once for all suites of a process."""
    return load_models(models_folder())
