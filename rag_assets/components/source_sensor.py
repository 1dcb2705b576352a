"""A sensor per suite that asks for a run once when the content of the source has changed."""

# Dagster reads annotations at run time, so they are not postponed here.

import json
import time
from dataclasses import asdict, dataclass, replace

import dagster as dg

from rag_assets.canonical.files import corpus_digest
from rag_assets.components.automation import automation_name
from rag_assets.components.ended_runs import report_dead_runs
from rag_assets.components.suite import CANONICAL, SUITE_TAG, StoreResource, Suite
from rag_assets.errors import RagAssetsError, StoreError
from rag_assets.project import project_root
from rag_assets.sources.stamp import Stamp, stamp_of
from rag_assets.store import Store

# More than that is not read within a sensor's tick, which Dagster ends after 60 seconds.
READ_AT_MOST_MIB = 256
_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


@dataclass(frozen=True)
class Seen:
    """What the sensor remembers: the files it judged last, their content, the last request.

    Requests are numbered from the time of the first look on, so that no number comes again when
    the sensor's cursor is reset.
    """

    stamp: str = ""
    content: str = ""
    request: int = 0


def source_sensor(
    suite: Suite,
    *,
    enabled: bool,
    every_seconds: int,
    automation_enabled: bool,
) -> dg.SensorDefinition:
    """Requests the whole job, or canonical items alone where the automation does the rest."""

    @dg.sensor(
        name=f"{suite.job_name}_source_sensor",
        job_name=suite.job_name,
        minimum_interval_seconds=every_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING
        if enabled
        else dg.DefaultSensorStatus.STOPPED,
        description=f"Watches `{suite.source.shown}` and requests one run when its canonical "
        "content has changed; spelling and time of the files do not count. Set its default "
        "state in the suite's defs.yaml.",
    )
    def watch(
        context: dg.SensorEvaluationContext, store: StoreResource
    ) -> dg.SensorResult | dg.SkipReason:
        if run_id := _unfinished_run(context.instance, suite):
            return dg.SkipReason(f"waits until the run {run_id[:8]} of this suite has ended")
        seen = Seen(**json.loads(context.cursor)) if context.cursor else Seen()
        automation = _runs(context.instance, automation_name(suite), automation_enabled)
        held = _held(Store(store.warehouse, suite.name))
        now, said = _looked(suite, seen, held, automation)
        request = dg.RunRequest(
            run_key=f"{now.content[:16]}-{now.request}",
            asset_selection=[suite.key(*CANONICAL)] if automation and held else None,
            tags={SUITE_TAG: suite.name},
        )
        return dg.SensorResult(
            run_requests=[request] if now.request != seen.request else [],
            skip_reason=said if now.request == seen.request else None,
            cursor=json.dumps(asdict(now)),
        )

    return watch


def _looked(suite: Suite, seen: Seen, held: str | None, automation: bool) -> tuple[Seen, str]:
    """What is now seen, with a new number if it must be evaluated, and why if it must not.

    `held` is the content of the canonical items in the store.
    """
    assert suite.source.path is not None and suite.source.corpus is not None
    path = project_root() / suite.source.path
    stamp = stamp_of(path)
    if stamp.value == seen.stamp:
        return seen, f"nobody wrote to {suite.source.shown}"
    judged = replace(seen, stamp=stamp.value)
    if stamp.size > READ_AT_MOST_MIB * 2**20:
        return _unread(suite, judged, stamp, first=not seen.stamp, automation=automation)
    try:
        content = corpus_digest(suite.source.corpus(suite.contracts))
    except (RagAssetsError, OSError) as error:
        return judged, f"not readable, waits for the next change: {str(error).splitlines()[0]}"
    if stamp_of(path) != stamp:
        return seen, f"{suite.source.shown} changed while it was read"
    judged = replace(judged, content=content)
    if content == seen.content:
        return judged, f"{suite.source.shown} was written, its content is the same"
    if content == held:
        return judged, f"the content of {suite.source.shown} has been evaluated already"
    return _requested(judged), ""


def _unread(
    suite: Suite, judged: Seen, stamp: Stamp, *, first: bool, automation: bool
) -> tuple[Seen, str]:
    """A source too large for a tick: materializing its canonical items tells whether it changed."""
    if not automation:
        return judged, (
            f"{suite.source.shown} has more than {READ_AT_MOST_MIB} MiB, too many to read here; "
            "switch the automation on, which decides by content, or use the schedule"
        )
    if first:
        return judged, f"{suite.source.shown} is watched from now on"
    return _requested(replace(judged, content=stamp.value)), ""


def _requested(judged: Seen) -> Seen:
    return replace(judged, request=judged.request + 1 if judged.request else int(time.time()))


def _held(store: Store) -> str | None:
    try:
        return store.read(CANONICAL).content
    except StoreError:
        return None


def _unfinished_run(instance: dg.DagsterInstance, suite: Suite) -> str | None:
    """A run that reads the source or builds on it now: what it leaves is not known yet."""
    report_dead_runs(instance)
    for run in instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED)):
        selected = run.asset_selection or ()
        if run.tags.get(SUITE_TAG) == suite.name or any(
            key.path[0] == suite.name for key in selected
        ):
            return run.run_id
    return None


def _runs(instance: dg.DagsterInstance, sensor: str, default: bool) -> bool:
    """Whether a sensor is switched on: by somebody in the UI, or else by default."""
    for state in instance.all_instigator_state():
        if state.instigator_name == sensor and state.status.value in ("RUNNING", "STOPPED"):
            return state.status.value == "RUNNING"
    return default
