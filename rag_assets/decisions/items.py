"""The items of the release checklist, and how each is got."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Status = Literal["pass", "fail", "not_executed", "needs_decision"]
PASS: Status = "pass"
FAIL: Status = "fail"
NOT_EXECUTED: Status = "not_executed"
NEEDS_DECISION: Status = "needs_decision"

SPLITS = "splits_kept_apart"
CONTENT = "content_reconciled"
SPACES = "spaces_signed_and_isolated"
ROLES = "roles_as_contracted"
REPORT = "report_complete"
THRESHOLDS = "thresholds_calibrated"
BUDGETS = "budgets_met"
ACCESS = "no_unauthorized_results"
SHADOW = "shadow_and_rollback"
APPROVALS = "approvals"
NOTICE = "fixtures_not_presented_as_quality"
SIGNED_ITEMS = (SHADOW, APPROVALS)  # what no table can show

# In the order of their numbers, from 1. SUITE stands for the suite's name.
HOW_TO_GET: Mapping[str, str] = {
    SPLITS: "give every query a split, dev or test (one judgement file each, or split_field in the "
    "suite's YAML), no query or text in both, and run the suite",
    CONTENT: "bring every space to the canonical items and out of it what was deleted "
    "(migration_differences lists what differs), embed again and run the suite",
    SPACES: "state each space's contract in full with an exact revision, no contract twice, and "
    "run the suite",
    ROLES: "embed queries and documents in the roles of the contract, state query_prompt and "
    "document_prompt in it ('' for none), and run the suite",
    REPORT: "judge queries, name their subgroups (subgroups in the suite's YAML), and run the "
    "suite",
    THRESHOLDS: "for each space: rag-assets calibrate SUITE SPACE --false-answer-cost COST "
    "--false-refusal-cost COST (needs dev and test queries with and without an answer), and run "
    "the suite",
    BUDGETS: "declare budgets (p95_ms, queries_per_second, index_bytes, build_ms, cost_per_month) "
    "in the suite's YAML, and an approximate index, so that its spaces are timed; run the suite; "
    "release_budgets shows each number",
    ACCESS: "do not serve from an index that leaks; correct the access lists or the index, and "
    "run the suite",
    SHADOW: "run the space in shadow, drill the atomic switch of the alias, its monitoring and the "
    "way back; then: rag-assets sign SUITE shadow_and_rollback --by NAME --why TEXT",
    APPROVALS: "have licence, privacy, retention and deletion approved; then: rag-assets sign "
    "SUITE approvals --by NAME --why TEXT",
    NOTICE: "state in `notice` of the suite's YAML that fixture or synthetic vectors show nothing "
    "about a model's quality",
}
ITEMS = tuple(HOW_TO_GET)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about one item. `evidence` is in words, with the numbers that matter."""

    item: str
    status: Status
    evidence: str


def found(item: str, faults: list[str], gaps: list[str], seen: str) -> Finding:
    """FAIL with all faults; else NOT_EXECUTED with what could not be looked at; else PASS.

    What was seen stands in the evidence of every outcome but a failure.
    """
    if faults:
        return Finding(item, FAIL, "; ".join([*faults, *gaps]))
    if gaps:
        return Finding(item, NOT_EXECUTED, "; ".join([*gaps, seen] if seen else gaps))
    return Finding(item, PASS, seen)
