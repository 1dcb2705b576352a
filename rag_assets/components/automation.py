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

from rag_assets.components.suite import SUITE_TAG, Suite

C = dg.AutomationCondition
Condition = Any  # Dagster's classes of conditions that can be labelled are not public
Quantifier = Callable[[Condition], Condition]


class OnlyWarns(dg.AutomationCondition[dg.AssetCheckKey]):
    """True for a check whose latest evaluation does not block: Dagster's own conditions count a
    warning as a failure, and a space that could not be executed would stop its suite for ever."""

    @property
    def name(self) -> str:
        return "only_warns"

    def evaluate(
        self, context: dg.AutomationContext[dg.AssetCheckKey]
    ) -> dg.AutomationResult[dg.AssetCheckKey]:
        instance = context.asset_graph_view.instance
        record = instance.get_latest_asset_check_evaluation_record(context.key)
        found = record.evaluation if record else None
        # A check that is planned, or whose run failed before it, has something else in its place.
        warns = (
            isinstance(found, dg.AssetCheckEvaluation)
            and found.severity == dg.AssetCheckSeverity.WARN
        )
        return dg.AutomationResult(
            context, context.candidate_subset if warns else context.get_empty_subset()
        )


# Said of every check, or runs would leave out those that are defined apart from their assets: the
# guard builds only on versions whose checks ran.
WITH_ITS_ASSET = C.any_deps_match(C.will_be_requested()).with_label("asset_will_be_requested")

_CHECKED = C.all_checks_match(
    C.check_passed() | (C.check_failed() & OnlyWarns()), blocking_only=True
).with_label("all_blocking_checks_passed")


def _wanted(any_input: Quantifier, any_output: Quantifier) -> Condition:
    """Something has changed since the outputs were last requested or made."""
    return (
        (
            any_input(C.data_version_changed())
            | any_output(C.code_version_changed() | C.newly_missing())
        )
        .since(C.newly_requested() | C.newly_updated())
        .with_label("wanted")
    )


def _condition(any_input: Quantifier, any_output: Quantifier) -> Condition:
    """Wanted, and every input is there, checked, and will stay as it is.

    An input that is itself wanted is waited for, also while it waits for something else: results
    must not be searched with yesterday's index because today's is made only after the embeddings.
    """
    not_yet = (
        C.missing()
        | C.in_progress()
        | C.execution_failed()
        | ~_CHECKED
        | _wanted(C.any_deps_match, lambda asset: asset)
    )
    return (
        _wanted(any_input, any_output)
        & ~any_input(not_yet).with_label("any_deps_missing_unchecked_or_unsettled")
        & ~C.in_progress()
    )


def automated(definition: dg.AssetsDefinition) -> dg.AssetsDefinition:
    """The same assets with the condition under which they are materialized without being asked.

    Where one step makes several assets, the last one carries the condition for all of them, and
    over the inputs of all: Dagster requests them together.
    """
    outputs = [spec.key for spec in definition.specs]
    if len(outputs) == 1:
        condition = _condition(C.any_deps_match, lambda asset: asset)
    else:
        deps = {dep.asset_key for spec in definition.specs for dep in spec.deps}
        condition = _condition(_any_of(sorted(deps - {*outputs})), _any_of(outputs))
    return definition.map_asset_specs(
        lambda spec: (
            spec.replace_attributes(automation_condition=condition)
            if spec.key == outputs[-1]
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
        use_user_code_server=True,  # for OnlyWarns
    )
