"""The model files: each is a document and one statement, and the tables they make are known."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from rag_assets.errors import InputError
from rag_assets.project import models_folder
from rag_assets.warehouse.base import BASE
from rag_assets.warehouse.build import build, empty_table, summarize
from rag_assets.warehouse.models import Model, load_models
from rag_assets_tests.warehouse.examples import MODELS

TABLES = {
    "active_space": "space_id since switched_by why evaluation_id contract_signature",
    "active_space_log": "switch_no space_id contract_signature kind switched_by switched_at why "
    "evaluation_id forced",
    "ann_recall_by_query": "space_id index_name case_id k eligible_count selectivity "
    "selectivity_band nprobe path ann_recall_at_k "
    "tie_aware_ann_recall_at_k short_results status ndcg_at_k "
    "exact_ndcg_at_k ndcg_cost",
    "ann_recall_by_selectivity": "space_id index_name selectivity_band k query_count "
    "defined_count empty_eligible_count not_executed_count "
    "mean_ann_recall_at_k min_ann_recall_at_k "
    "mean_tie_aware_ann_recall_at_k short_cases mean_nprobe "
    "ndcg_defined_count mean_ndcg_cost",
    "ann_recall_by_space": "space_id index_name k query_count defined_count "
    "empty_eligible_count not_executed_count mean_ann_recall_at_k "
    "min_ann_recall_at_k mean_tie_aware_ann_recall_at_k short_cases "
    "mean_nprobe ndcg_defined_count mean_ndcg_cost",
    "ann_recall_by_subgroup": "space_id index_name subgroup k query_count defined_count "
    "empty_eligible_count not_executed_count mean_ann_recall_at_k "
    "min_ann_recall_at_k mean_tie_aware_ann_recall_at_k short_cases "
    "mean_nprobe ndcg_defined_count mean_ndcg_cost",
    "answer_thresholds": "space_id contract_signature status reason threshold "
    "false_answer_cost false_refusal_cost dev_split dev_digest "
    "dev_answerable dev_unanswerable dev_false_answers "
    "dev_false_refusals dev_precision dev_recall dev_expected_cost "
    "test_split test_digest test_answerable test_unanswerable "
    "test_false_answers test_false_refusals test_precision "
    "test_recall test_expected_cost sentence refusal",
    "canonical_items": "item_id role text acl source_revision content_sha256",
    "case_measures": "scope space_no index_name case_no k relevant_count recall_at_k "
    "precision_at_k reciprocal_rank ndcg_at_k",
    "check_results": "check_name asset passed severity evaluated_at details",
    "comparison_statistics": "comparison_id subgroup measure k query_count defined_count "
    "changed_count better_count worse_count old_mean new_mean "
    "mean_difference interval_low interval_high p_value p_method "
    "family_size p_adjusted smallest_detectable verdict sentence "
    "seed",
    "decisions": "item decision decided_by decided_at evaluation_id why status reason",
    "default_index": "space_id index_name decided_by decided_at why evidence",
    "index_benchmark": "space_id index_name kind params seed k query_count build_ms "
    "index_bytes bytes_per_vector memory_bytes compression p50_ms "
    "p95_ms p99_ms best_p50_ms best_p95_ms speedup "
    "queries_per_second queries_per_second_parallel threads "
    "filter_ms search_ms rerank_ms other_ms mean_ann_recall_at_k "
    "status status_reason rounds note",
    "index_promotion": "space_id index_name condition status evidence threshold verdict",
    "manifest": "key value",
    "metric_intervals": "space_id index_name subgroup measure k query_count defined_count "
    "mean interval_low interval_high seed",
    "metric_by_query": "space_id index_name case_id k relevant_count recall_at_k "
    "precision_at_k reciprocal_rank ndcg_at_k",
    "metric_by_space": "space_id index_name k query_count defined_count "
    "mean_recall_at_k mean_precision_at_k mrr mean_ndcg_at_k",
    "metric_by_subgroup": "space_id index_name subgroup k query_count defined_count "
    "mean_recall_at_k mean_precision_at_k mrr mean_ndcg_at_k",
    "migration_audit": "old_space_id new_space_id index_name k status status_reason "
    "vectors_directly_comparable inventory_match canonical_match "
    "only_old only_old_count only_new only_new_count "
    "canonical_mismatches canonical_mismatch_count "
    "mechanical_gates_pass quality_scope query_count defined_count "
    "jaccard_count delta_mean_recall_at_k delta_mrr "
    "delta_mean_ndcg_at_k mean_top_k_jaccard "
    "quality_decision_required quality_note",
    "migration_by_query": "old_space_id new_space_id index_name case_id k quality_scope "
    "top_k_jaccard old_recall_at_k new_recall_at_k "
    "delta_recall_at_k old_reciprocal_rank new_reciprocal_rank "
    "delta_reciprocal_rank old_ndcg_at_k new_ndcg_at_k "
    "delta_ndcg_at_k",
    "migration_by_subgroup": "old_space_id new_space_id index_name subgroup k query_count "
    "defined_count old_mean_ndcg_at_k new_mean_ndcg_at_k "
    "delta_mean_recall_at_k delta_mrr delta_mean_ndcg_at_k better "
    "worse mean_top_k_jaccard",
    "migration_changed_queries": "old_space_id new_space_id index_name k change_rank case_id "
    "query_text delta_ndcg_at_k delta_reciprocal_rank top_k_jaccard "
    "old_results new_results",
    "migration_differences": "old_space_id new_space_id item_id field old_value new_value",
    "migration_pairs": "pair_no old_space_no new_space_no old_space_id new_space_id "
    "vectors_directly_comparable inventories_known "
    "shared_document_count quality_status quality_reason "
    "quality_scope measures_scope",
    "operating_points": "sweep space_id index_name parameter need need_p95_ms "
    "need_min_recall value mean_ann_recall mean_p95_ms reason",
    "qrels": "case_id item_id grade",
    "query_cases": "case_id query_item_id subject_groups subgroups split",
    "query_results": "space_id index_name case_id rank item_id score",
    "regression_gates": "space_id index_name subgroup measure k rule bound value baseline_value "
    "difference defined_count changed_count p_value p_adjusted status sentence "
    "worse_queries baseline_evaluation",
    "release_budgets": "space_id index_name measure budget_limit measured status source",
    "release_checklist": "item_no item status evidence how_to_get_it decided_by decided_at",
    "tombstones": "item_id",
    "space_inventory": "space_id contract_signature status status_reason item_count "
    "document_count query_item_count dimension "
    "estimated_raw_vector_bytes norm_min norm_median norm_max",
    "space_items": "space_id item_id role acl source_revision content_sha256 l2_norm",
    "spaces": "space_no space_id provider model revision dimension metric "
    "normalized query_role document_role dtype contract_signature "
    "query_prompt document_prompt pooling truncation "
    "max_input_tokens derivation derived_from licence looked_up_at "
    "looked_up_on status status_reason",
    "sweep_results": "sweep space_id index_name parameter value seed status reason "
    "query_count defined_count mean_ann_recall "
    "mean_tie_aware_ann_recall recall_low recall_high short_results "
    "p50_ms p95_ms best_p50_ms best_p95_ms exact_best_p95_ms "
    "build_ms index_bytes",
    "sweep_values": "sweep space_id index_name parameter value seeds failed "
    "mean_ann_recall min_ann_recall max_ann_recall std_ann_recall "
    "mean_p95_ms mean_best_p95_ms on_pareto_front",
    "sweep_verdicts": "sweep space_id index_name parameter k seeds verdict reason "
    "stopped_at claim stop_rule plan plan_digest registered_at",
    "threshold_curve": "space_id threshold true_answers false_answers true_refusals "
    "false_refusals precision recall expected_cost chosen",
    "audit_history": "evaluated_at evaluation_id old_space_id new_space_id index_name k status "
    "status_reason vectors_directly_comparable inventory_match canonical_match "
    "only_old_count only_new_count canonical_mismatch_count mechanical_gates_pass "
    "defined_count delta_mean_recall_at_k delta_mrr delta_mean_ndcg_at_k "
    "mean_top_k_jaccard quality_decision_required",
    "case_digests": "case_id case_digest",
    "check_history": "evaluation_id dagster_run_id asset check_name passed "
    "severity evaluated_at details",
    "content_changes": "kind id change old_value new_value",
    "contract_changes": "space_id change old_model new_model old_revision "
    "new_revision old_signature "
    "new_signature",
    "evaluation_comparison": "space_id index_name subgroup measure k latest_value "
    "previous_value difference baseline_value baseline_difference",
    "evaluations": "evaluation_id evaluated_at dagster_run_id data_version code_version "
    "contract_signatures manifest is_latest is_previous heartbeat_count last_seen_at",
    "heartbeats": "evaluation_id seen_at dagster_run_id",
    "metric_history": "evaluation_id evaluated_at space_id index_name subgroup k "
    "query_count defined_count "
    "mean_recall_at_k mean_precision_at_k mrr mean_ndcg_at_k",
}


def test_the_tables_and_columns_are_the_known_ones_and_empty_over_nothing() -> None:
    con = duckdb.connect()
    build(con, {name: empty_table(name) for name in BASE}, MODELS)
    found = summarize(con)
    assert {
        name: " ".join(column for column, _ in summary.columns) for name, summary in found.items()
    } == TABLES
    assert [name for name, summary in found.items() if summary.row_count] == ["active_space"]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_model_file_says_what_one_row_is(model: Model) -> None:
    assert model.description.startswith("One row: ")


def test_a_reader_can_run_every_model_again_in_the_database_it_made() -> None:
    con = duckdb.connect()
    build(con, {name: empty_table(name) for name in BASE}, MODELS)
    for model in MODELS:
        assert con.sql(model.sql).columns == TABLES[model.name].split()


def test_models_come_after_what_they_read() -> None:
    models = load_models(models_folder())
    position = {model.name: number for number, model in enumerate(models)}
    for model in models:
        assert all(position[name] < position[model.name] for name in model.depends_on)
    audit = models[position["migration_audit"]]
    assert audit.depends_on == ("migration_by_query", "migration_differences", "migration_pairs")
    assert audit.reads == ("evaluated_k", "indexes")


def test_a_cte_with_the_name_of_a_table_is_not_that_table(tmp_path: Path) -> None:
    (tmp_path / "spaces.sql").write_text("-- One row: a space.\nFROM base.spaces")
    (tmp_path / "other.sql").write_text(
        "-- One row: a k.\nWITH spaces AS (SELECT k FROM base.evaluated_k) SELECT k FROM spaces"
    )
    (tmp_path / "outer.sql").write_text(
        "-- One row: a space.\nWITH spaces AS (SELECT * FROM spaces) SELECT * FROM spaces;\n-- end"
    )
    models = {model.name: model for model in load_models(tmp_path)}
    assert (models["other"].depends_on, models["other"].reads) == ((), ("evaluated_k",))
    assert (models["outer"].depends_on, models["outer"].reads) == (("spaces",), ())


@pytest.mark.parametrize(
    ("files", "code", "words"),
    [
        ({}, "no_models", "no .sql file"),
        ({"a-b": "-- One row: x.\nSELECT 1"}, "model_name", "a-b"),
        ({"a": "SELECT 1"}, "no_header", "a.sql"),
        ({"a": "-- One row: x.\nSELECT 1; SELECT 2"}, "not_one_select", "SELECT, SELECT"),
        ({"a": "-- One row: x.\n"}, "not_one_select", "no statement"),
        ({"a": "-- One row: x.\nCREATE TABLE b AS SELECT 1"}, "not_one_select", "CREATE"),
        ({"a": "-- One row: x.\nSELECT FROM FROM"}, "not_sql", "a.sql"),
        ({"a": "-- One row: x.\nSELECT 1 FROM nowhere"}, "unknown_table", "'nowhere'"),
        ({"a": "-- One row: x.\nSELECT 1 FROM base.nowhere"}, "unknown_table", "'base.nowhere'"),
        ({"a": "-- One row: x.\nFROM read_parquet('x')"}, "unknown_table", "read_parquet"),
        (
            {
                "a": "-- One row: x.\nFROM c",
                "b": "-- One row: x.\nFROM a",
                "c": "-- One row: x.\nFROM b",
            },
            "circle",
            "a reads c reads b reads a",
        ),
        ({"a": "-- One row: x.\nFROM a"}, "circle", "a reads a"),
    ],
)
def test_a_bad_model_file_is_refused_by_name(
    tmp_path: Path, files: dict[str, str], code: str, words: str
) -> None:
    for name, sql in files.items():
        (tmp_path / f"{name}.sql").write_text(sql)
    with pytest.raises(InputError) as refused:
        load_models(tmp_path)
    assert refused.value.problems[0].code == code
    assert words.lower() in str(refused.value).lower()


def test_every_bad_file_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("SELECT 1")
    (tmp_path / "b.sql").write_text("-- One row: x.\nFROM nowhere")
    with pytest.raises(InputError) as refused:
        load_models(tmp_path)
    assert [problem.file for problem in refused.value.problems] == ["a.sql", "b.sql"]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_case_counts_once_in_a_subgroup_that_it_names_twice(model: Model) -> None:
    """Wherever a model takes subgroups apart; what it does to a mean is tested per model."""
    taken_apart = re.findall(r"unnest\((.*?subgroups)\b", model.sql)
    assert all("list_distinct(" in inner for inner in taken_apart)
