"""When Dagster materializes an asset by itself: content or code it depends on has changed.

Content, not time: every asset states a hash of what it holds as its data version, so that what was
made again with the same outcome changes nothing downstream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import Any

import dagster as dg

from rag_assets.canonical.corpus import digest
from rag_assets.components.suite import SUITE_TAG, Suite

C = dg.AutomationCondition
Condition = Any  # Dagster's classes of conditions that can be labelled are not public
Quantifier = Callable[[Condition], Condition]


class Unblocked(dg.AutomationCondition[dg.AssetKey]):
    """True for an asset whose blocking checks ran on its latest materialization and let it pass.

    Dagster's own condition counts a warning as a failure: a space that could not be executed would
    stop its suite for ever.
    """

    @property
    def name(self) -> str:
        return "passed_or_warned_by_blocking_checks"

    async def evaluate(  # type: ignore[override]
        self, context: dg.AutomationContext[dg.AssetKey]
    ) -> dg.AutomationResult[dg.AssetKey]:
        view, graph = context.asset_graph_view, context.asset_graph
        for key in graph.get(context.key).check_keys:
            if not graph.get(key).blocking:
                continue
            record = view.instance.get_latest_asset_check_evaluation_record(key)
            found = record.evaluation if record else None
            # A check that is planned, or whose run failed before it, has something else there.
            if (
                record is None
                or not isinstance(found, dg.AssetCheckEvaluation)
                or not (found.passed or found.severity == dg.AssetCheckSeverity.WARN)
                or not await record.targets_latest_materialization(view)
            ):
                return dg.AutomationResult(context, context.get_empty_subset())
        return dg.AutomationResult(context, context.candidate_subset)


# Said of every check, or runs would leave out those that are defined apart from their assets: the
# guard builds only on versions whose checks ran.
WITH_ITS_ASSET = C.any_deps_match(C.will_be_requested()).with_label("asset_will_be_requested")


def _wanted(any_input: Quantifier) -> Condition:
    """Something has changed since the asset was last requested or made."""
    return (
        (any_input(C.data_version_changed()) | C.code_version_changed() | C.newly_missing())
        .since(C.newly_requested() | C.newly_updated())
        .with_label("wanted")
    )


def _condition(any_input: Quantifier) -> Condition:
    """Wanted, and every input is there, checked, and will stay as it is.

    An input that is itself wanted is waited for, also while it waits for something else: results
    must not be searched with yesterday's index because today's is made only after the embeddings.
    """
    absent = C.missing() | C.in_progress() | C.execution_failed()
    not_yet = absent | ~Unblocked() | _wanted(C.any_deps_match)
    return (
        _wanted(any_input)
        & ~any_input(not_yet).with_label("any_deps_missing_unchecked_or_unsettled")
        & ~C.in_progress()
    )


def automated(definition: dg.AssetsDefinition) -> dg.AssetsDefinition:
    """The same assets with the condition under which they are materialized without being asked.

    Where one step makes several assets, Dagster requests them together: the last one carries the
    condition for all of them, over the inputs of all and with the code of all.
    """
    specs = list(definition.specs)
    if len(specs) == 1:
        condition, code = _condition(C.any_deps_match), specs[0].code_version
    else:
        outputs = {spec.key for spec in specs}
        inputs = {dep.asset_key for spec in specs for dep in spec.deps} - outputs
        condition = _condition(_any_of(sorted(inputs)))
        code = digest(*(str(spec.code_version) for spec in specs))[:12]
    return definition.map_asset_specs(
        lambda spec: (
            spec.replace_attributes(automation_condition=condition, code_version=code)
            if spec.key == specs[-1].key
            else spec
        )
    )


def _any_of(keys: Sequence[dg.AssetKey]) -> Quantifier:
    def any_of(condition: Condition) -> Condition:
        return reduce(or_, (C.asset_matches(key, condition) for key in keys))

    return any_of


def automation_name(suite: Suite) -> str:
    return f"{suite.job_name}_automation"


def automation_sensor(
    suite: Suite, assets: Sequence[dg.AssetsDefinition], *, enabled: bool
) -> dg.AutomationConditionSensorDefinition:
    """Evaluates the conditions of a suite's assets and checks every half minute."""
    chosen = dg.AssetSelection.assets(*assets)
    return dg.AutomationConditionSensorDefinition(
        name=automation_name(suite),
        target=chosen | dg.AssetSelection.checks_for_assets(*assets),
        description=f"Materializes what content or code that has changed in the suite {suite.name} "
        "concerns, step by step, and nothing else. Set its default state in the suite's "
        "defs.yaml.",
        default_status=dg.DefaultSensorStatus.RUNNING
        if enabled
        else dg.DefaultSensorStatus.STOPPED,
        run_tags={SUITE_TAG: suite.name},
        use_user_code_server=True,  # for a condition of our own
    )
