"""The command line as its users meet it: exit statuses, streams, bytes."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import Result

from rag_assets_tests.conftest import ROOT, Tree, Workshop, started

TOY = ROOT / "data" / "toy" / "toy.json"


def assert_refused(result: Result, *said: str) -> None:
    """Status 2, nothing on stdout, one line on stderr."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("error: ")
    for words in said:
        assert words in line


# --- evaluate -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--k", "0"], "k must be an integer from 1 to 10000, not 0"),
        (["--k", "-3"], "k must be an integer from 1 to 10000, not -3"),
        (["--k", "2.0"], "'2.0' is not a valid integer"),
        (["--k", "true"], "'true' is not a valid integer"),
        (["--k", "10001"], "k must be an integer from 1 to 10000, not 10001"),
        (["--k", "3", "--k", "3"], "the same k is given twice"),
        (["--audit", "toy-v1"], "'toy-v1' is not of the form OLD:NEW"),
        (["--audit", ":toy-v1"], "':toy-v1' is not of the form OLD:NEW"),
        (["--audit", "toy-v1:x"], "unknown space 'x'; known spaces are toy-v1, toy-v2"),
        (["--audit", "toy-v1:toy-v1"], "a space cannot be audited against itself"),
        (["--audit", "toy-v1:toy-v2"] * 2, "the same pair of spaces is audited twice"),
        (["--format", "xml"], "'xml' is not one of 'table', 'json'"),
        (["--max-mib", "0"], "0.0 is not in the range x>0"),
        (["--max-mib", "nan"], "nan is not a finite number"),
        (["--max-mib", "inf"], "inf is not a finite number"),
        (["--max-mib", "0.001"], "file_too_large"),
        (["--db", "no/such/folder/x.duckdb"], "the folder no/such/folder does not exist"),
        (["--db", "."], "is a folder; name a new file in it"),
        (["--db", "/proc/x.duckdb"], "/proc/x.duckdb: cannot be written"),
        (["--frobnicate"], "No such option '--frobnicate'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_options_of_evaluate_are_refused(
    options: list[str], said: str, workshop: Workshop
) -> None:
    assert_refused(workshop.command("evaluate", TOY, *options), said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["evaluate"], "Missing argument 'FIXTURE'"),
        (["evaluate", "absent.json"], "absent.json: whole file: file_not_found"),
        (["evaluate", "."], "not_a_file: found a directory"),
        (["evaluate", "/dev/null"], "empty_file"),
        (["run"], "Missing argument 'SUITE'"),
        (["run", "absent"], "unknown suite 'absent'; known suites are "),
        (["run", "../toy"], "unknown suite '../toy'"),
        (["sql", "toy"], "Missing argument"),
        (["sql", "toy", "SELECT 1"], "suite 'toy' has no release yet (published: none)"),
        (["sql", "../toy", "SELECT 1"], "is not the name of a suite"),
        (["frobnicate"], "No such command 'frobnicate'"),
        (["--frobnicate"], "No such option '--frobnicate'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_commands_are_refused(arguments: list[str], said: str, workshop: Workshop) -> None:
    assert_refused(workshop.command(*arguments), said)


def test_every_fault_of_a_fixture_has_its_own_line(workshop: Workshop, toy: Tree) -> None:
    toy["items"][0]["role"] = "author"
    toy["items"][1]["text"] = " \n "
    toy["queries"][0]["relevance"]["doc-first-week"] = 4
    workshop.write(toy)
    result = workshop.command("evaluate", workshop.source)
    assert (result.exit_code, result.stdout) == (2, "")
    lines = result.stderr.splitlines()
    assert [line.split(": ")[3] for line in lines] == [
        "unknown_role",
        "blank_text",
        "bad_grade",
    ]
    assert all(line.startswith(f"error: {workshop.source}: $.") for line in lines)


def test_a_failed_gate_is_status_1_with_the_output_complete(workshop: Workshop, toy: Tree) -> None:
    toy["items"][0]["text"] += " Changed."
    workshop.write(toy)
    result = workshop.command("evaluate", workshop.source, "--format", "json")
    assert (result.exit_code, result.stderr) == (1, "")
    [audit] = json.loads(result.stdout)["migration_audits"]
    assert audit["mechanical_gates_pass"] is False
    table = workshop.command("evaluate", workshop.source)
    assert table.exit_code == 1
    assert "Relevance" in table.stdout


def test_the_json_has_the_documented_shape(workshop: Workshop) -> None:
    result = workshop.command("evaluate", TOY, "--format", "json", "--k", "10", "--k", "3")
    assert (result.exit_code, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    assert list(document) == ["notice", "k", "spaces", "migration_audits"]
    assert "show nothing about the quality of any model" in document["notice"]
    assert document["k"] == [3, 10]
    assert list(document["spaces"]) == ["toy-v1", "toy-v2"]
    for space_id, raw_bytes in (("toy-v1", 160), ("toy-v2", 200)):  # 10 items x 4 or 5 x 4 bytes
        space = document["spaces"][space_id]
        assert space["contract"]["space_id"] == space_id
        assert space["inventory"]["estimated_raw_vector_bytes"] == raw_bytes
        assert [evaluation["k"] for evaluation in space["evaluation"]] == [3, 10]
        for evaluation in space["evaluation"]:
            assert {
                "k",
                "query_count",
                "mean_recall_at_k",
                "mean_precision_at_k",
                "mrr",
                "mean_ndcg_at_k",
                "subgroups",
                "details",
            } <= set(evaluation)
            assert evaluation["query_count"] == len(evaluation["details"]) == 4
            for case in evaluation["details"]:
                assert {
                    "case_id",
                    "query_item_id",
                    "result_ids",
                    "scores",
                    "recall_at_k",
                    "precision_at_k",
                    "reciprocal_rank",
                    "ndcg_at_k",
                    "subgroups",
                } <= set(case)
                assert len(case["result_ids"]) == len(case["scores"]) <= evaluation["k"]
        first = space["evaluation"][0]
        means = [first[name] for name in ("mean_recall_at_k", "mrr", "mean_ndcg_at_k")]
        assert means == [1, 1, 1]
        assert first["subgroups"]["incident"]["query_count"] == 2
    audit = document["migration_audits"][0]
    promised: dict[str, Any] = {
        "old_space_id": "toy-v1",
        "new_space_id": "toy-v2",
        "k": 3,
        "inventory_match": True,
        "canonical_match": True,
        "mechanical_gates_pass": True,
        "vectors_directly_comparable": False,
        "delta_mean_recall_at_k": 0,
        "delta_mrr": 0,
        "delta_mean_ndcg_at_k": 0,
        "mean_top_k_jaccard": 0.875,  # (1 + 1 + 2/4 + 1) / 4
        "quality_decision_required": True,
    }
    assert audit | promised == audit


def test_3_is_the_default_k_and_the_table_says_what_the_numbers_are_worth(
    workshop: Workshop,
) -> None:
    document = json.loads(workshop.command("evaluate", TOY, "--format", "json").stdout)
    assert document["k"] == [3]
    table = workshop.command("evaluate", TOY).stdout
    assert "show nothing about the quality of any model" in table
    assert "0.8750" in table


# DESIGN.md, "Names users see", without the tables of approximate indexes.
PROMISED_TABLES = {
    "spaces": "space_id provider model revision dimension metric normalized query_role "
    "document_role dtype contract_signature status status_reason",
    "canonical_items": "item_id role text acl source_revision content_sha256",
    "space_items": "space_id item_id role acl source_revision content_sha256 l2_norm",
    "query_cases": "case_id query_item_id subject_groups subgroups split",
    "qrels": "case_id item_id grade",
    "query_results": "space_id index_name case_id rank item_id score",
    "metric_by_query": "space_id index_name case_id k recall_at_k precision_at_k reciprocal_rank "
    "ndcg_at_k",
    "metric_by_space": "space_id index_name k query_count defined_count mean_recall_at_k "
    "mean_precision_at_k mrr mean_ndcg_at_k",
    "metric_by_subgroup": "space_id index_name k subgroup query_count defined_count "
    "mean_recall_at_k mean_precision_at_k mrr mean_ndcg_at_k",
    "space_inventory": "space_id contract_signature item_count document_count query_item_count "
    "dimension estimated_raw_vector_bytes norm_min norm_median norm_max",
    "migration_audit": "old_space_id new_space_id index_name k vectors_directly_comparable "
    "inventory_match canonical_match only_old only_new canonical_mismatches mechanical_gates_pass "
    "delta_mean_recall_at_k delta_mrr delta_mean_ndcg_at_k mean_top_k_jaccard "
    "quality_decision_required",
    "migration_by_query": "old_space_id new_space_id index_name case_id k top_k_jaccard "
    "delta_recall_at_k delta_reciprocal_rank delta_ndcg_at_k",
    "check_results": "check_name asset passed severity evaluated_at details",
    "manifest": "key value",
}


def test_db_writes_every_promised_table_to_a_fresh_file(workshop: Workshop, tmp_path: Path) -> None:
    path = tmp_path / "it's ü.duckdb"
    result = workshop.command("evaluate", TOY, "--db", path)
    assert (result.exit_code, result.stderr) == (0, "")
    with duckdb.connect(str(path), read_only=True) as con:
        for table, columns in PROMISED_TABLES.items():
            assert set(columns.split()) <= set(con.table(table).columns), table
        checks = con.sql("SELECT check_name, count(*) FROM check_results GROUP BY 1").fetchall()
    # One on the items, one on each space's vectors and results, one on the audit.
    assert dict(checks) == {
        "contract_validation": 3,
        "result_validation": 2,
        "mechanical_gates": 1,
    }
    before = path.read_bytes()
    assert_refused(workshop.command("evaluate", TOY, "--db", path), "exists already")
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["it's ü.duckdb", "project"]


def test_db_is_left_alone_on_bad_input(workshop: Workshop, toy: Tree, tmp_path: Path) -> None:
    del toy["queries"]
    workshop.write(toy)
    path = tmp_path / "out.duckdb"
    for source, *options in (
        [workshop.source],
        [TOY, "--k", "0"],
        [TOY, "--audit", "toy-v1:toy-v1"],
    ):
        assert_refused(workshop.command("evaluate", source, *options, "--db", path))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["project"]


def test_a_relative_path_in_another_folder_stays_as_the_user_wrote_it(
    workshop: Workshop, toy: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "else where" / "données 新"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder.parent)
    relative = "données 新/it's.json"
    Path(relative).write_text(json.dumps(toy), "utf-8")
    good = workshop.command("evaluate", relative, "--db", "out.duckdb")
    assert (good.exit_code, good.stderr) == (0, "")
    with duckdb.connect("out.duckdb", read_only=True) as con:
        source = con.sql("SELECT value FROM manifest WHERE key = 'source'").fetchall()
    assert source == [(relative,)]
    toy["contracts"][0]["metric"] = "manhattan"
    Path(relative).write_text(json.dumps(toy), "utf-8")
    bad = workshop.command("evaluate", relative)
    assert_refused(bad, f"error: {relative}: $.contracts[0].metric")
    assert str(tmp_path) not in good.output + bad.output


def test_a_database_called_memory_is_a_file(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert workshop.command("evaluate", TOY, "--db", ":memory:").exit_code == 0
    assert (tmp_path / ":memory:").is_file()


def test_names_that_are_not_text_are_read_and_shown(workshop: Workshop, tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), b"not \xff text.json")
    try:
        Path(os.fsdecode(path)).write_bytes(TOY.read_bytes())
    except OSError:
        pytest.skip("this file system takes only text as names")
    assert workshop.command("evaluate", os.fsdecode(path)).exit_code == 0
    absent = workshop.command("evaluate", os.fsdecode(path) + "x")
    assert_refused(absent, "not \\xff text.jsonx: whole file: file_not_found")
    database = os.fsdecode(path.replace(b".json", b".duckdb"))
    assert_refused(workshop.command("evaluate", TOY, "--db", database), "not text in this locale")


# --- processes ------------------------------------------------------------------------------------


def test_json_is_equal_to_the_byte_in_any_process(tmp_path: Path) -> None:
    def printing(*flags: str, seed: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, *flags, "-m", "rag_assets.cli", "evaluate", str(TOY)]
        return subprocess.Popen(
            [*command, "--format", "json", "--k", "3", "--k", "5"],
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
        )

    processes = printing(seed="1"), printing("-O", seed="2"), printing("-OO", seed="random")
    first, optimized, stripped = (process.communicate()[0] for process in processes)
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert first == optimized == stripped
    assert json.loads(first)["k"] == [3, 5]


def test_output_is_utf_8_in_a_locale_that_is_not(workshop: Workshop, toy: Tree) -> None:
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": ""}
    toy["queries"][0]["subgroups"] = ["中文"]
    source = workshop.source.with_name("données.json")
    source.write_text(json.dumps(toy), "utf-8")
    good = started("evaluate", source, "--audit", "toy-v2:toy-v1", **locale)
    bad = started("evaluate", source.with_name("é新.json"), **locale)
    unknown = started("evaluate", source, "--audit", "toy-v1:é新", **locale)
    out, err = good.communicate()
    assert (good.returncode, err) == (0, "")
    assert "中文" in out
    out, err = bad.communicate()
    assert (bad.returncode, out) == (2, "")
    assert "é新.json: whole file: file_not_found" in err
    out, err = unknown.communicate()
    assert (unknown.returncode, out) == (2, "")
    assert "unknown space 'é新'" in err


def test_a_reader_that_goes_away_ends_the_command_quietly() -> None:
    process = started("evaluate", TOY, "--format", "json")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 141


def test_a_full_disk_is_one_line() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "rag_assets.cli", "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    assert done.returncode == 2
    assert done.stderr == "error: No space left on device\n"


def loaded_after(statement: str, *heavy: str) -> set[str]:
    script = f"{statement}\nimport sys\nprint(*[m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    )
    return set(done.stdout.split())


def test_the_command_line_starts_without_heavy_libraries() -> None:
    heavy = ("dagster", "duckdb", "faiss", "great_expectations", "numpy", "pandas", "pyarrow")
    assert loaded_after("import rag_assets.cli", *heavy) == set()


def test_help_and_version_are_on_stdout(workshop: Workshop) -> None:
    for arguments in (["--help"], ["-h"], ["evaluate", "--help"], ["--version"]):
        result = workshop.command(*arguments)
        assert (result.exit_code, result.stderr) == (0, "")
    for command in ("evaluate", "run", "sql"):
        assert command in workshop.command("--help").stdout


# --- sql ------------------------------------------------------------------------------------------


def test_sql_prints_a_table_csv_and_json(published: Workshop) -> None:
    statement = (
        "SELECT space_id, mrr, NULL AS missing, [1, 2] AS numbers, 'é新, \"quoted\"' AS words "
        "FROM metric_by_space WHERE index_name = 'exact' ORDER BY space_id"
    )
    table = published.command("sql", "toy", statement)
    assert table.stderr == ""
    header, _, first, *_ = table.stdout.splitlines()
    assert header.split() == ["space_id", "mrr", "missing", "numbers", "words"]
    assert first.split() == ["toy-v1", "1.0000", "NULL", "[1,", "2]", "é新,", '"quoted"']
    printed = published.command("sql", "toy", statement, "--format", "csv").stdout
    assert list(csv.reader(io.StringIO(printed))) == [
        ["space_id", "mrr", "missing", "numbers", "words"],
        ["toy-v1", "1.0", "", "[1, 2]", 'é新, "quoted"'],
        ["toy-v2", "1.0", "", "[1, 2]", 'é新, "quoted"'],
    ]
    assert published.rows(statement)[0] == {
        "space_id": "toy-v1",
        "mrr": 1.0,
        "missing": None,
        "numbers": [1, 2],
        "words": 'é新, "quoted"',
    }


def test_sql_without_rows_still_names_its_columns(published: Workshop) -> None:
    statement = "SELECT space_id, k FROM metric_by_space WHERE false"
    assert published.command("sql", "toy", statement).stdout.split()[:2] == ["space_id", "k"]
    csv_text = published.command("sql", "toy", statement, "--format", "csv").stdout
    assert csv_text == "space_id,k\n"
    assert published.command("sql", "toy", statement, "--format", "json").stdout == "[]\n"


def test_sql_keeps_columns_of_one_name_apart(published: Workshop) -> None:
    statement = "SELECT 1 AS a, 2 AS a, 3 AS a_1"
    printed = published.command("sql", "toy", statement, "--format", "csv").stdout
    assert printed == "a,a,a_1\n1,2,3\n"
    assert published.command("sql", "toy", statement).stdout.split()[-3:] == ["1", "2", "3"]
    assert list(published.rows(statement)[0].values()) == [1, 2, 3]


def test_sql_gives_json_that_every_parser_reads(published: Workshop) -> None:
    statement = (
        "SELECT 'nan'::DOUBLE AS n, '-inf'::DOUBLE AS i, sum(k) AS s, 1.25::DECIMAL(4,2) AS d, "
        "2::HUGEINT ** 0 AS p, TIMESTAMP '2024-03-19 22:40:00' AS t, true AS b, "
        "[{'at': DATE '2024-03-19', 'x': 'inf'::DOUBLE}] AS l "
        "FROM (VALUES (3), (4)) AS v(k)"
    )
    result = published.command("sql", "toy", statement, "--format", "json")
    assert result.exit_code == 0, result.stderr

    def refuse(word: str) -> None:
        raise AssertionError(word)

    [row] = json.loads(result.stdout, parse_constant=refuse)
    assert (row["n"], row["i"], row["s"], row["d"]) == ("nan", "-inf", 7, 1.25)
    assert isinstance(row["s"], int)
    assert (row["t"], row["b"]) == ("2024-03-19T22:40:00", True)
    assert row["l"] == [{"at": "2024-03-19", "x": "inf"}]
    as_csv = published.command("sql", "toy", "SELECT true AS b, NULL AS n", "--format", "csv")
    assert as_csv.stdout == "b,n\ntrue,\n"


def test_sql_shows_names_with_brackets_and_control_characters_as_they_are(
    published: Workshop,
) -> None:
    statement = "SELECT 1 AS \"[bold]x[/b]\", 'a' || chr(27) || '[31m' || chr(10) || 'b' AS c"
    result = published.command("sql", "toy", statement)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "[bold]x[/b]" in result.stdout
    assert "a\\x1b[31m\\nb" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    "statement",
    [
        "SELEC 1",
        "SELECT nothing FROM metric_by_space",
        "SELECT * FROM no_such_table",
        "SELECT ?",
        "SELECT error('two\nlines')",
        "",
        ";",
        "SELECT 1; SELECT 2",
    ],
)
def test_sql_that_fails_is_one_line(statement: str, published: Workshop) -> None:
    assert_refused(published.command("sql", "toy", statement))


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO manifest VALUES ('k', 'v')",
        "UPDATE manifest SET value = 'x'",
        "DELETE FROM check_results",
        "DROP TABLE migration_audit",
        "CREATE TABLE t AS SELECT 1",
        "COPY manifest TO 'copied.csv'",
        "EXPORT DATABASE 'exported'",
        "ATTACH 'other.duckdb'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "SELECT * FROM read_text('/etc/hostname')",
    ],
)
def test_sql_writes_nothing_and_sees_no_other_file(
    statement: str, published: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = published.releases()
    assert_refused(published.command("sql", "toy", statement))
    assert published.releases() == before
    assert list(tmp_path.iterdir()) == []


def test_sql_names_the_suites_that_have_a_release(published: Workshop) -> None:
    assert_refused(
        published.command("sql", "toys", "SELECT 1"),
        "suite 'toys' has no release yet (published: toy); run: rag-assets run toys",
    )


# --- run ------------------------------------------------------------------------------------------


def test_run_tells_what_came_out_where_it_is_and_what_to_do_next(
    first_run: tuple[Workshop, Result],
) -> None:
    published, result = first_run
    for words in (
        "Relevance",
        "Migrations",
        "show nothing",
        "Checks:",
        "make ui",
        "rag-assets sql",
    ):
        assert words in result.stdout
    assert str(published.link) in result.stdout
    # Progress is on stderr, one line per step.
    assert "done toy__canonical_items (" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_suite_s_mistake_is_one_line_that_names_it(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rag_assets import definitions
    from rag_assets.components import EvaluationSuite

    def broken(folder: Path) -> None:
        attributes = {
            "name": folder.name,
            "source": {"path": "x.json"},
            "spaces": [{"space_id": "a"}],
            "k": [0],
        }
        EvaluationSuite.from_attributes_dict(attributes=attributes)

    monkeypatch.setattr(definitions, "definitions_in", broken)
    result = workshop.command("run", "toy")
    assert_refused(result, "k must be an integer from 1 to 10000, not 0")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "found nothing; a suite is a YAML mapping"),
        (b"# to be written\n", "found nothing; a suite is a YAML mapping"),
        (b"- a\n", "found a list; a suite is a YAML mapping"),
        (b"attributes: [", "line 1, column 14"),
        (b"\xff\xfe", "can't decode"),
        (
            b"type: rag_assets.components.EvaluationSuite\nattributes: {name: toy}\n",
            "a suite 'toy' is in",
        ),
    ],
)
@pytest.mark.parametrize(
    "command",
    [["run", "toy"], ["default-index", "toy", "toy-v1", "exact", "--by", "me", "--why", "it is"]],
)
def test_another_suite_s_broken_file_is_one_line_that_names_it(
    command: list[str],
    content: bytes,
    said: str,
    workshop: Workshop,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rag_assets import project

    sound = (project.suites_folder() / "toy" / "defs.yaml").read_bytes()
    for name, written in (("toy", sound), ("unwell", content)):
        (tmp_path / "defs" / name).mkdir(parents=True)
        (tmp_path / "defs" / name / "defs.yaml").write_bytes(written)
    monkeypatch.setattr(project, "suites_folder", lambda: tmp_path / "defs")
    assert_refused(workshop.command(*command), "unwell/defs.yaml", said)
