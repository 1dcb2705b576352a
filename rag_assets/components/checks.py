"""Great Expectations reports as Dagster asset checks, and the guard that makes them binding."""

# Dagster reads annotations at run time, so they are not postponed here.

from collections.abc import Callable

import dagster as dg
import pyarrow.parquet as pq

from rag_assets.canonical.files import read_corpus
from rag_assets.components.automation import WITH_ITS_ASSET
from rag_assets.components.suite import (
    CANONICAL,
    StoreResource,
    Suite,
    embeddings_path,
    failures_in_plain_words,
    index_path,
    results_path,
)
from rag_assets.embeddings.files import read_embeddings
from rag_assets.errors import StoreError
from rag_assets.evaluation import RESULTS_FILE, check_scoped_results
from rag_assets.history.blocked import log_blocked
from rag_assets.history.evaluations import history_folder
from rag_assets.indexes.builds import read_index_build
from rag_assets.measures import MAX_GRADE, MIN_GRADE
from rag_assets.quality.execution import check_execution
from rag_assets.quality.ground_truth import check_ground_truth
from rag_assets.quality.report import CheckReport, summary
from rag_assets.quality.suites import check_canonical_items, check_embeddings
from rag_assets.quality.training import check_index_training
from rag_assets.regression.rows import REGRESSION_GATES
from rag_assets.store import Artifact, AssetPath, Store

CONTRACT_VALIDATION = "contract_validation"
DATA_CHECKS = "data_checks"
RESULT_VALIDATION = "result_validation"
GROUND_TRUTH = "ground_truth_agrees"
INDEX_TRAINING = "index_training"
MECHANICAL_GATES = "mechanical_gates"
RELEASE_CHECKLIST = "release_checklist"
CHANGES = ("content_changes", "access_changes", "contract_changes")

_DESCRIPTIONS = {
    CONTRACT_VALIDATION: "Great Expectations suite: every rule of the contract holds. On failure: "
    "open the evaluation, find the failing expectation and the sample of ids, correct the source "
    "and materialize again. Nothing downstream runs on a version that did not pass.",
    DATA_CHECKS: "Great Expectations suite: what is wrong or odd in the collection itself, with "
    "sample ids. Errors stop the chain; warnings are kept and measured all the same.",
    RESULT_VALIDATION: "Great Expectations suite: result lists are well formed, and no subject got "
    "a document that its groups may not read (leaked pairs must be 0). On failure: do not serve "
    "from this index; no release is published.",
    GROUND_TRUTH: "Great Expectations suite: our exact results are the nearest neighbours that the "
    "source itself states, up to ties. On failure: the metric or the vectors are not what the "
    "source was made with.",
    INDEX_TRAINING: "Great Expectations suite: the index had enough vectors to train on. It warns "
    "and never blocks: ann_recall_by_space says how good the index is.",
    "content_changes": "Great Expectations suite: the source holds what it held in the evaluation "
    "before. It warns and never blocks. When it warns: look whether the items and cases named were "
    "meant to change; the table content_changes lists them all.",
    "access_changes": "Great Expectations suite: every item may be read by the groups that could "
    "read it in the evaluation before. It warns and never blocks. When it warns: confirm with the "
    "owner of the items named.",
    "contract_changes": "Great Expectations suite: every space has the contract that it had in the "
    "evaluation before. It warns and never blocks. When it warns: calibrate thresholds again and "
    "decide anew; what was decided under the old contract has expired.",
    MECHANICAL_GATES: "Great Expectations suite: in every audited pair both spaces hold the same "
    "items, and each agrees with the canonical items. On failure: read only_old, only_new and "
    "canonical_mismatches in the audit, bring the sources into line and materialize again. The "
    "release is published all the same and says that its gates failed.",
    RELEASE_CHECKLIST: "Great Expectations suite: no item of the release checklist fails. What was "
    "not executed or needs a decision warns. Until every item passes, or a person accepted that it "
    "was not executed, `rag-assets activate` refuses. The release is published all the same.",
    REGRESSION_GATES: "Great Expectations suite: no declared measure is below its floor or fell, "
    "against the pinned baseline, by more than is allowed and by more than chance. On failure: "
    "look at worse_queries; mend the cause, or accept it as a person: change the bound in the "
    "suite's defs.yaml, or pin this evaluation with `rag-assets pin-baseline`. The release is "
    "published all the same. A warning says that a drop may be chance, or why a gate could not be "
    "examined.",
}


def check_spec(suite: Suite, asset: AssetPath, check_name: str) -> dg.AssetCheckSpec:
    return dg.AssetCheckSpec(
        check_name,
        asset=suite.key(*asset),
        blocking=check_name not in (INDEX_TRAINING, *CHANGES),
        description=_DESCRIPTIONS[check_name],
        automation_condition=WITH_ITS_ASSET,
    )


def check_result(suite: Suite, asset: AssetPath, report: CheckReport) -> dg.AssetCheckResult:
    """A report as Dagster shows it: the table of expectations, and numbers to plot over time."""
    return dg.AssetCheckResult(
        asset_key=suite.key(*asset),
        check_name=report.check_name,
        passed=report.passed,
        severity=dg.AssetCheckSeverity.WARN
        if report.severity == "warn"
        else dg.AssetCheckSeverity.ERROR,
        description=summary(report),
        metadata={
            "expectations": dg.MetadataValue.md(report.markdown()),
            **{name: dg.MetadataValue.float(float(n)) for name, n in report.numbers.items()},
        },
    )


def guarded(store: Store, asset: AssetPath, check_name: str) -> Artifact:
    """The artifact to build on, provided that its checks ran and none blocks this very version.

    Dagster's blocking checks gate only within one run; a later run of only the downstream asset
    would ignore them. The guard goes by version, so it holds across runs and executors.
    """
    artifact = store.read(asset)
    reports = store.read_checks(artifact)
    where = f"{store.suite}/{artifact.name}"
    if check_name not in reports:
        raise StoreError(
            f"the check {check_name} has not run on the current version of {where}; "
            f"materialize {where} together with its checks first"
        )
    for name, report in reports.items():
        if report.blocks:
            raise StoreError(
                f"the check {name} failed on the current version of {where}: "
                f"{summary(report)}; correct the source and materialize {where} again"
            )
    return artifact


def built_on(artifact: Artifact, upstream: Artifact) -> None:
    """StoreError unless `artifact` was built from what `upstream` holds.

    By content, not by version: where judgements change, embeddings are stored anew with the same
    vectors, and the indexes over them stay valid.
    """
    if artifact.inputs.get(upstream.name) != upstream.content:
        raise StoreError(
            f"{artifact.name} was built from another version of {upstream.name}; "
            f"materialize {artifact.name} again"
        )


def chain_checks(suite: Suite) -> list[dg.AssetChecksDefinition]:
    """The blocking checks on canonical items, embeddings and results of a suite."""
    checks = [_check(suite, CANONICAL, CONTRACT_VALIDATION, _validate_canonical)]
    for space_id in suite.space_ids:
        checks.append(
            _check(suite, embeddings_path(space_id), CONTRACT_VALIDATION, _validate_embeddings)
        )
        checks.append(_check(suite, results_path(space_id), RESULT_VALIDATION, _validate_results))
        for index in suite.indexes_of(space_id):
            built, searched = index_path(space_id, index.name), results_path(space_id, index.name)
            checks.append(_check(suite, built, INDEX_TRAINING, _validate_training))
            checks.append(_check(suite, searched, RESULT_VALIDATION, _validate_approximate))
        if suite.source.holds == "vectors":
            found = results_path(space_id)
            checks.append(_check(suite, found, GROUND_TRUTH, _validate_ground_truth))
    for run in suite.runs:
        found = results_path(run.space_id, run.name)
        checks.append(_check(suite, found, RESULT_VALIDATION, _validate_approximate))
    return checks


def note_blocked(
    store: StoreResource, suite: Suite, run_id: str, asset: str, report: CheckReport
) -> None:
    """Keep in the history that a check stopped this run: it will have no evaluation."""
    folder = history_folder(store.warehouse, suite.name)
    log_blocked(folder, run_id, f"{suite.name}/{asset}", report)


Validation = Callable[[Suite, Store, Artifact], CheckReport]


def _check(
    suite: Suite, asset: AssetPath, check_name: str, validate: Validation
) -> dg.AssetChecksDefinition:
    spec = check_spec(suite, asset, check_name)

    @dg.multi_asset_check(
        specs=[spec],
        name=f"{'__'.join(suite.key(*asset).path)}__{check_name}".replace("-", "_").replace(
            ".", "_"
        ),
    )
    def evaluate(context: dg.AssetCheckExecutionContext, store: StoreResource):  # type: ignore[no-untyped-def]
        with failures_in_plain_words():
            artifacts = store.of(suite, context.run.run_id)
            artifact = artifacts.read(asset)
            if artifact.not_executed:
                shown = f"{suite.name}/{artifact.name}"
                report = check_execution(check_name, shown, artifact.not_executed)
            else:
                report = validate(suite, artifacts, artifact)
            artifacts.write_check(artifact, report)
            if report.blocks:
                note_blocked(store, suite, context.run.run_id, artifact.name, report)
            yield check_result(suite, asset, report)

    return evaluate


def _validate_canonical(suite: Suite, store: Store, artifact: Artifact) -> CheckReport:
    corpus = read_corpus(artifact.folder)
    if suite.source.judged:
        return check_canonical_items(corpus)
    # Collections of the field judge some queries, and grade as they like.
    return check_canonical_items(corpus, judgements_required=False, grades=(MIN_GRADE, MAX_GRADE))


def _validate_embeddings(suite: Suite, store: Store, artifact: Artifact) -> CheckReport:
    canonical = store.read(CANONICAL)
    built_on(artifact, canonical)
    return check_embeddings(read_embeddings(artifact.folder), read_corpus(canonical.folder))


def _validate_ground_truth(suite: Suite, store: Store, artifact: Artifact) -> CheckReport:
    canonical = store.read(CANONICAL)
    embeddings = store.read(embeddings_path(artifact.asset[0]))
    built_on(artifact, embeddings)
    assert suite.source.collection is not None  # it holds vectors
    results = pq.read_table(artifact.folder / RESULTS_FILE)
    return check_ground_truth(
        suite.source.collection(),
        read_corpus(canonical.folder),
        read_embeddings(embeddings.folder),
        results,
    )


def _validate_training(suite: Suite, store: Store, artifact: Artifact) -> CheckReport:
    return check_index_training(read_index_build(artifact.folder))


def _validate_results(suite: Suite, store: Store, artifact: Artifact) -> CheckReport:
    return _scoped(suite, store, artifact, complete=True)


def _validate_approximate(suite: Suite, store: Store, artifact: Artifact) -> CheckReport:
    return _scoped(suite, store, artifact, complete=False)


def _scoped(suite: Suite, store: Store, artifact: Artifact, *, complete: bool) -> CheckReport:
    canonical = store.read(CANONICAL)
    embeddings = store.read(embeddings_path(artifact.asset[0]))
    built_on(artifact, canonical)
    built_on(artifact, embeddings)
    return check_scoped_results(
        pq.read_table(artifact.folder / RESULTS_FILE),
        read_embeddings(embeddings.folder),
        read_corpus(canonical.folder),
        suite.ks,
        suite.pairs,
        complete=complete,
    )
