"""A suite of two precomputed spaces in which every item of the checklist can be met, and its runs.

Six documents d0..d5 stand on the axes of six dimensions. In each of the splits dev and test, six
queries stand where their relevant document does (cosine 1) and six, which nobody judged, are
between all documents (cosine 1/sqrt(6) = 0.41 with each), so that a threshold makes no mistake.
The space `new` holds the same vectors with the axes in another order.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pytest
from click.testing import CliRunner, Result

from rag_assets.cli import main
from rag_assets_tests.components.suites import declared, ran, rows
from rag_assets_tests.conftest import ROOT

CONTRACT = {
    "provider": "sentence_transformers",
    "model": "m",
    "dimension": 6,
    "metric": "cosine",
    "normalized": True,
    "query_prompt": "",
    "document_prompt": "passage: ",
}
BUDGETS = {
    "p95_ms": {"limit": 10_000},
    "queries_per_second": {"limit": 0.001},
    "index_bytes": {"limit": 1_000_000, "source": "the serving machine's memory"},
    "build_ms": {"limit": 60_000},
    "cost_per_month": {"limit": 100, "estimate": 40, "source": "the provider's calculator"},
}
ATTRIBUTES: dict[str, Any] = {
    "name": "decided",
    "source": {
        "format": "beir",
        "path": "data/decided",
        "acl": {"field": "metadata.groups"},
        "subject_groups": ["staff"],
        "subgroups": ["metadata.kind"],
        "split_field": "metadata.split",
    },
    "spaces": [
        {
            "space_id": space_id,
            "contract": {**CONTRACT, "revision": space_id},
            "vectors": {"provider": "precomputed", "folder": f"data/decided/{space_id}"},
        }
        for space_id in ("old", "new")
    ],
    "k": [2],
    "audits": [{"old": "old", "new": "new"}, {"old": "new", "new": "old"}],
    "indexes": [{"kind": "hnsw", "parameters": {"m": 4}}],
    "benchmark_budget_s": 5,
    "budgets": BUDGETS,
}
COUNT = 6


def queries() -> Iterator[tuple[str, str, bool, int]]:
    for split in ("dev", "test"):
        for answerable in (True, False):
            for number in range(COUNT):
                kind = "yes" if answerable else "no"
                yield f"{split}-{kind}-{number}", split, answerable, number


def write_source(folder: Path) -> None:
    (folder / "qrels").mkdir(parents=True)
    documents = [
        {"_id": f"d{n}", "text": f"document {n}", "metadata": {"groups": ["staff"]}}
        for n in range(COUNT)
    ]
    asked = [
        {"_id": case_id, "text": f"what is {case_id}?", "metadata": {"kind": kind, "split": split}}
        for case_id, split, answerable, _ in queries()
        for kind in (["answerable"] if answerable else ["unanswerable"])
    ]
    for name, records in (("corpus", documents), ("queries", asked)):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines, "utf-8")
    for split in ("dev", "test"):
        judged = [f"{c}\td{n}\t1\n" for c, s, yes, n in queries() if s == split and yes]
        text = "query-id\tcorpus-id\tscore\n" + "".join(judged)
        (folder / "qrels" / f"{split}.tsv").write_text(text, "utf-8")
    axes = np.eye(COUNT, dtype=np.float32)
    between = np.full(COUNT, COUNT**-0.5, np.float32)
    for space_id, order in (("old", range(COUNT)), ("new", reversed(range(COUNT)))):
        columns = list(order)
        at = folder / space_id
        at.mkdir()
        np.save(at / "doc_vectors.npy", axes[:, columns])
        asking = [axes[n] if yes else between for _, _, yes, n in queries()]
        np.save(at / "query_vectors.npy", np.array(asking)[:, columns])
        (at / "doc_ids.txt").write_text("".join(f"d{n}\n" for n in range(COUNT)), "utf-8")
        ids = "".join(f"{case_id}\n" for case_id, *_ in queries())
        (at / "query_ids.txt").write_text(ids, "utf-8")


@dataclass(frozen=True)
class Decided:
    """A project's folder, which is the suite's folder too, with its warehouse in it."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "RAG_ASSETS_PROJECT": str(self.folder),
            "RAG_ASSETS_WAREHOUSE": str(self.folder / "warehouse"),
        }

    @property
    def source(self) -> Path:
        return self.folder / "data" / "decided"

    def run(self, **changes: Any) -> dg.ExecuteInProcessResult:
        """Materialize the suite."""
        with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.ephemeral() as instance:
            for name, value in self.environment.items():
                patch.setenv(name, value)
            return ran(declared({**ATTRIBUTES, **changes}, self.folder), instance)

    def command(self, *arguments: object) -> Result:
        """`rag-assets ...` in this process, on a suite in this folder."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("rag_assets.project.suite_folder", lambda name: self.folder)
            return CliRunner().invoke(main, [str(a) for a in arguments], env=self.environment)

    def done(self, *arguments: object) -> str:
        result = self.command(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    def sign(self, *item: str, why: str = "seen") -> str:
        return self.done("sign", "decided", *item, "--by", "Ada", "--why", why)

    def activate(self, space_id: str) -> Result:
        return self.command("activate", "decided", space_id, "--by", "Ada", "--why", "ready")

    def edit_a_text(self) -> None:
        """Other content from the next run on: all data versions that were decided on are gone."""
        path = self.source / "corpus.jsonl"
        path.write_text(path.read_text("utf-8").replace("document 0", "document nil"), "utf-8")

    @property
    def evaluation(self) -> str:
        [row] = self.rows("SELECT value FROM manifest WHERE key = 'evaluation_id'")
        return str(row["value"])

    def rows(self, statement: str) -> list[dict[str, Any]]:
        return rows(self.folder, "decided", statement)

    def statuses(self) -> dict[str, str]:
        return {row["item"]: row["status"] for row in self.rows("FROM release_checklist")}


def new_suite(folder: Path) -> Decided:
    shutil.copytree(ROOT / "dbt_like_sql", folder / "dbt_like_sql")
    write_source(folder / "data" / "decided")
    (folder / "defs.yaml").write_text("# declared by a test\n", "utf-8")
    return Decided(folder)


def calibrate(suite: Decided, space_ids: Sequence[str] = ("old", "new")) -> None:
    for space_id in space_ids:
        costs = ("--false-answer-cost", 2, "--false-refusal-cost", 1)
        suite.done("calibrate", "decided", space_id, *costs)
