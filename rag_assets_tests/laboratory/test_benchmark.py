"""`rag-assets benchmark`: the published configuration, its CSV, and what it refuses."""

from __future__ import annotations

import csv
import datetime
import io
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rag_assets.cli import main
from rag_assets.laboratory.benchmark import BenchmarkOptions

SMALL = ("--n-vectors", "300", "--dim", "8", "--n-queries", "4", "--n-clusters", "4")
SMALL = (*SMALL, "--nprobe", "2", "--n-subvectors", "4", "--n-bits", "2", "--top-k", "3")
HEADER = (
    "timestamp,python,platform,seed,n_vectors,dim,n_queries,top_k,n_clusters,nprobe,n_subvectors,"
    "n_bits,n_iters,backend,status,status_reason,build_ms,query_total_ms,query_avg_ms,"
    "queries_per_second,recall_at_k,index_data_bytes"
)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["benchmark", *arguments])


def rows_in(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("seed", [42, 43, 44, 45, 46])
def test_the_published_configuration_gives_the_published_result(seed: int) -> None:
    pytest.importorskip("faiss")
    result = run("--seed", str(seed))
    assert result.exit_code == 0, result.stderr
    exact, approximate = rows_in(result.stdout)
    assert (exact["backend"], exact["status"]) == ("exact", "ok")
    assert float(exact["recall_at_k"]) == 1.0
    assert int(exact["index_data_bytes"]) == 5000 * 64 * 4 == 1_280_000
    assert (approximate["backend"], approximate["status"]) == ("ivf_pq", "ok")
    # Published: 0.23. The negative result is the point: this index finds a quarter.
    assert 0.20 <= float(approximate["recall_at_k"]) <= 0.27
    assert int(approximate["index_data_bytes"]) == pytest.approx(81_172, rel=0.01)


def test_rows_state_every_parameter_and_times_that_agree() -> None:
    pytest.importorskip("faiss")
    result = run(*SMALL)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[0] == HEADER
    rows = rows_in(result.stdout)
    assert [row["backend"] for row in rows] == ["exact", "ivf_pq"]
    for row in rows:
        assert (row["n_vectors"], row["dim"], row["seed"]) == ("300", "8", "42")
        assert (row["n_subvectors"], row["n_bits"], row["n_iters"]) == ("4", "2", "8")
        assert datetime.datetime.fromisoformat(row["timestamp"]).utcoffset() == datetime.timedelta()
        assert row["python"] == ".".join(map(str, sys.version_info[:3]))
        average = float(row["query_avg_ms"])
        assert float(row["query_total_ms"]) == pytest.approx(4 * average)
        assert float(row["queries_per_second"]) == pytest.approx(1000 / average)
        assert float(row["build_ms"]) > 0
    # Codes of 4 * 2 bits, ids, centroids, codebooks, and about 2 kB of header.
    expected = 300 * 1 + 8 * 300 + 4 * 4 * 8 + 4 * 4 * 8
    assert expected < int(rows[1]["index_data_bytes"]) < expected + 3000


def test_without_its_engine_the_row_says_so_and_nothing_stands_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    result = run(*SMALL)
    assert result.exit_code == 0
    exact, approximate = rows_in(result.stdout)
    assert (exact["status"], exact["recall_at_k"]) == ("ok", "1.0")
    assert approximate["status"] == "not_executed"
    assert "FAISS cannot be imported" in approximate["status_reason"]
    measured = HEADER.split(",")[HEADER.split(",").index("build_ms") :]
    assert [approximate[name] for name in measured] == [""] * 6


def test_options_default_to_the_published_configuration() -> None:
    command = main.commands["benchmark"]  # type: ignore[attr-defined]
    defaults = {option.name: option.default for option in command.params if option.name != "output"}
    assert defaults == asdict(BenchmarkOptions())
    assert list(defaults.values()) == [5000, 64, 100, 10, 64, 8, 8, 4, 8, 42]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--n-vectors", "0"), "n_vectors is 0; it must be a positive integer"),
        (("--dim", "63"), "n_subvectors is 8; it must divide the dimension 63"),
        (("--n-bits", "9"), "n_bits is 9; it must be from 1 to 8"),
        (("--nprobe", "65"), "nprobe is 65, more than n_clusters"),
        (("--n-queries", "0"), "n_queries is 0"),
        (("--top-k", "0"), "top_k is 0; it must be from 1 to the 5000 vectors"),
        (("--top-k", "5001"), "top_k is 5001; it must be from 1 to the 5000 vectors"),
        (("--seed", "-1"), "seed is -1"),
        (("--n-iters", "x"), "'x' is not a valid integer"),
    ],
)
def test_impossible_parameters_are_one_line_of_error(arguments: tuple[str, ...], said: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert said in result.stderr


def test_output_is_a_new_file_or_one_more_run_in_an_earlier_one(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    path = tmp_path / "runs.csv"
    for seed in ("1", "2"):
        result = run(*SMALL, "--seed", seed, "--output", str(path))
        assert (result.exit_code, result.stdout) == (0, "")
    text = path.read_text("utf-8")
    assert text.count(HEADER) == 1
    assert [(row["seed"], row["backend"]) for row in rows_in(text)] == [
        ("1", "exact"),
        ("1", "ivf_pq"),
        ("2", "exact"),
        ("2", "ivf_pq"),
    ]
    assert [entry.name for entry in tmp_path.iterdir()] == ["runs.csv"]


@pytest.mark.parametrize("content", [b"", b"notes", HEADER.encode(), b"\xff\xfe"])
def test_a_file_that_no_benchmark_wrote_is_not_touched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    result = run(*SMALL, "--output", str(path))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "exists and is not a benchmark's CSV" in result.stderr
    assert path.read_bytes() == content


def test_a_folder_that_does_not_exist_is_named_before_any_work(tmp_path: Path) -> None:
    result = run("--output", str(tmp_path / "gone" / "runs.csv"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "its folder does not exist" in result.stderr
