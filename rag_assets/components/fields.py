"""The fields of a suite's YAML, and the plain, checked descriptions that they become."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import dagster as dg
from pydantic import Field, StrictInt

from rag_assets.canonical.contracts import SpaceContract, canonical_json, contract_from
from rag_assets.components.suite import (
    AS_WRITTEN,
    DeclaredIndex,
    DeclaredRun,
    DeclaredSweep,
)
from rag_assets.decisions.tables import Budget
from rag_assets.embeddings.derive import derivation_of
from rag_assets.embeddings.plans import SpacePlan
from rag_assets.embeddings.providers import provider_config
from rag_assets.errors import UsageError
from rag_assets.evaluation import EXACT
from rag_assets.indexes.specs import spec_from
from rag_assets.laboratory.promotion import Thresholds
from rag_assets.laboratory.sweeps import Claim, Need, StopRule, Sweep
from rag_assets.regression.gates import LEVEL, Gate

_THRESHOLDS = Thresholds()
_INDEX_NAME = r"[a-z][a-z0-9_]*"


class DeriveFields(dg.Model, dg.Resolvable):
    """A space made from another one, so that an audit can change one thing at a time."""

    parent: Annotated[str, AS_WRITTEN] = Field(
        description="Id of a space declared before this one."
    )
    truncate: int | None = Field(default=None, description="Keep so many first components.")
    float16: bool | None = None
    int8: Literal["vector", "dimension"] | None = None


class Space(dg.Model, dg.Resolvable):
    """One embedding space of the suite."""

    space_id: Annotated[str, AS_WRITTEN] = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        description="The space's id in the source: letters, digits, '.', '_' and '-', because it "
        "names assets and folders.",
    )
    contract: Annotated[Mapping[str, Any] | None, AS_WRITTEN] = Field(
        default=None,
        description="provider, model, revision (immutable; `fitted` for lsa), dimension, metric, "
        "normalized; optional dtype, query_role, document_role, query_prompt, document_prompt, "
        "pooling, truncation, max_input_tokens, licence, looked_up_at, looked_up_on. Left out "
        "where the source holds contracts, as a fixture does.",
    )
    vectors: Mapping[str, Any] | None = Field(
        default=None,
        description="Where the vectors come from: `provider` is precomputed, lsa, "
        "sentence_transformers or openai_compatible, with the settings of that provider.",
    )
    derive: DeriveFields | None = Field(
        default=None, description="Make the vectors from those of another space."
    )
    matryoshka_dimensions: Sequence[int] = Field(
        default=(), description="Dimensions that the model was trained to be cut to."
    )


class Index(dg.Model, dg.Resolvable):
    """An approximate index beside the exact one."""

    kind: Literal["ivf_pq", "ivf_flat", "ivf_rabitq", "hnsw"]
    name: str | None = Field(default=None, description="Name in the tables; its kind if left out.")
    spaces: Annotated[Sequence[str] | None, AS_WRITTEN] = Field(
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
    space: Annotated[str, AS_WRITTEN]
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


class GateFields(dg.Model, dg.Resolvable):
    """How low a measure may be, or how far it may fall below the pinned baseline."""

    measure: Literal["recall_at_k", "precision_at_k", "reciprocal_rank", "ndcg_at_k"]
    k: int = Field(description="One of the suite's k.")
    floor: float | None = Field(default=None, description="The mean must be at least this.")
    max_drop: float | None = Field(
        default=None,
        description="The mean may fall by this much below the baseline; more fails, unless it may "
        "be chance.",
    )
    subgroup: Annotated[str | None, AS_WRITTEN] = Field(
        default=None,
        description="One subgroup, or `each` for every one that no other gate names; all queries "
        "if left out.",
    )
    spaces: Annotated[Sequence[str] | None, AS_WRITTEN] = Field(
        default=None, description="Ids of the spaces that it is asked of; all if left out."
    )
    index: str = EXACT


class RegressionFields(dg.Model, dg.Resolvable):
    """Gates that fail when measures are low, or got worse since the pinned baseline."""

    level: float = Field(
        default=LEVEL,
        description="How likely any max_drop may raise a false alarm when nothing but chance "
        "changed: at most this, over all of them.",
    )
    gates: Sequence[GateFields] = ()


class ExternalRun(dg.Model, dg.Resolvable):
    """Results of another search, from a TREC run file."""

    name: str = Field(description="Its index name in the tables.")
    space: Annotated[str, AS_WRITTEN] = Field(
        description="The space beside whose indexes it is shown."
    )
    path: str = Field(description="Path of the run file, relative to the project's folder.")


class Audit(dg.Model, dg.Resolvable):
    """A migration from an old to a new space, to be audited."""

    old: Annotated[str, AS_WRITTEN]
    new: Annotated[str, AS_WRITTEN]


class BudgetFields(dg.Model, dg.Resolvable):
    """A bound on something that is measured."""

    limit: float = Field(gt=0, allow_inf_nan=False)
    source: str | None = Field(default=None, description="Who set it, or where it is written.")


class CostFields(dg.Model, dg.Resolvable):
    """A bound on cost, which nothing here measures: an estimate and where it comes from."""

    limit: float = Field(gt=0, allow_inf_nan=False)
    estimate: float = Field(ge=0, allow_inf_nan=False)
    source: str = Field(min_length=1, description="What the estimate is based on.")


class BudgetsFields(dg.Model, dg.Resolvable):
    """What serving must stay within, for the default index of each space."""

    p95_ms: BudgetFields | None = Field(default=None, description="At most.")
    queries_per_second: BudgetFields | None = Field(default=None, description="At least.")
    index_bytes: BudgetFields | None = Field(default=None, description="At most.")
    build_ms: BudgetFields | None = Field(default=None, description="At most.")
    cost_per_month: CostFields | None = Field(default=None, description="At most, in any currency.")


class DailySchedule(dg.Model, dg.Resolvable):
    """When the suite is evaluated again."""

    cron: str = "0 5 * * *"
    timezone: str = "UTC"
    enabled: bool = Field(default=False, description="Whether the schedule starts switched on.")


class SourceWatch(dg.Model, dg.Resolvable):
    """A sensor that asks for a run once when the content of the source has changed."""

    enabled: bool = Field(default=False, description="Whether the sensor starts switched on.")
    every_seconds: int = Field(default=60, ge=1, description="How often it looks, at most.")


class Automation(dg.Model, dg.Resolvable):
    """Materializes what depends on content or code that has changed, and nothing else."""

    enabled: bool = Field(default=False, description="Whether it starts switched on.")


def space_plans(
    spaces: Sequence[Space], *, source_holds: Literal["contracts", "vectors", "texts"]
) -> tuple[SpacePlan, ...]:
    """UsageError for a space without vectors, with two sources of them, or an unknown parent."""
    plans: dict[str, SpacePlan] = {}
    for space in spaces:
        where = f"space {space.space_id}"
        if space.derive is not None:
            if space.contract is not None or space.vectors is not None:
                raise UsageError(f"{where}: a derived space has no contract or vectors of its own")
            if space.derive.parent not in plans:
                raise UsageError(
                    f"{where}: its parent {space.derive.parent!r} is not declared before it"
                )
            settings = space.derive.model_dump(exclude={"parent"}, exclude_none=True)
            parent = next(other for other in spaces if other.space_id == space.derive.parent)
            plan = SpacePlan(
                space.space_id,
                _derived_contract(space.space_id, plans[space.derive.parent].contract, settings),
                parent=space.derive.parent,
                derivation=derivation_of(settings),
                matryoshka_dimensions=tuple(parent.matryoshka_dimensions),
            )
        elif source_holds == "contracts":
            if space.contract is not None or space.vectors is not None:
                raise UsageError(f"{where}: contract and vectors come from the source itself")
            plan = SpacePlan(space.space_id)
        elif source_holds == "vectors":
            if space.contract is None or space.vectors is not None:
                raise UsageError(f"{where}: state its contract; the source itself holds vectors")
            plan = SpacePlan(space.space_id, contract_from(space.space_id, space.contract))
        elif space.contract is None or space.vectors is None:
            raise UsageError(f"{where}: state its contract and where its vectors come from")
        else:
            contract = contract_from(space.space_id, space.contract)
            plan = SpacePlan(space.space_id, contract, provider_config(space.vectors))
        plans[space.space_id] = plan
    return tuple(plans.values())


def _derived_contract(
    space_id: str, parent: SpaceContract | None, settings: Mapping[str, Any]
) -> SpaceContract | None:
    """The contract until the vectors are made, which completes it."""
    if parent is None:
        return None
    return replace(parent, space_id=space_id, derivation=canonical_json(dict(settings)))


def declared_budgets(fields: BudgetsFields) -> tuple[Budget, ...]:
    stated = fields.model_dump(exclude_none=True)
    return tuple(
        Budget(name, one["limit"], one.get("estimate"), one.get("source"))
        for name, one in stated.items()
    )


def declared_indexes(
    declared: Sequence[Index], space_ids: tuple[str, ...]
) -> tuple[DeclaredIndex, ...]:
    """UsageError for a name that is taken, an unknown space or parameters that make no sense."""
    taken: set[tuple[str, str]] = {(space_id, EXACT) for space_id in space_ids}
    indexes = []
    for index in declared:
        name = index.name or index.kind
        if not re.fullmatch(_INDEX_NAME, name):
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


def declared_runs(
    declared: Sequence[ExternalRun],
    indexes: tuple[DeclaredIndex, ...],
    space_ids: tuple[str, ...],
) -> tuple[DeclaredRun, ...]:
    """UsageError for a name that an index has, or an unknown space."""
    taken = {(space_id, index.name) for index in indexes for space_id in index.space_ids}
    runs = []
    for run in declared:
        if run.space not in space_ids:
            raise UsageError(f"run {run.name}: unknown space {run.space!r}")
        if not re.fullmatch(_INDEX_NAME, run.name):
            raise UsageError(f"run name {run.name!r}: use lower-case letters, digits and '_'")
        if run.name == EXACT or (run.space, run.name) in taken:
            raise UsageError(f"run {run.name}: the space {run.space!r} has an index of that name")
        taken.add((run.space, run.name))
        runs.append(DeclaredRun(run.name, run.space, run.path))
    return tuple(runs)


def declared_gates(declared: Sequence[GateFields]) -> list[Gate]:
    """The YAML's gates, not yet checked: see declared_regression."""
    return [
        Gate(
            measure=gate.measure,
            k=gate.k,
            floor=gate.floor,
            max_drop=gate.max_drop,
            subgroup=gate.subgroup,
            space_ids=None if gate.spaces is None else tuple(gate.spaces),
            index_name=gate.index,
        )
        for gate in declared
    ]


def declared_sweeps(
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
