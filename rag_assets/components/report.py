"""The report of a suite: one HTML file, an asset of its own, and its pictures on the tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import dagster as dg
from markupsafe import Markup

from rag_assets.canonical.corpus import digest
from rag_assets.components.suite import Suite, asset_group
from rag_assets.project import shown_path, source_version
from rag_assets.report.canvas import data_uri
from rag_assets.report.files import report_path, write_report
from rag_assets.report.page import Report

REPORT = "report"
# Pictures are links of more than 1000 characters, which the UI keeps behind a button.
Metadata = dict[str, dg.MetadataValue[str]]


def report_spec(suite: Suite) -> dg.AssetSpec:
    return dg.AssetSpec(
        suite.key(REPORT),
        # The manifest stands for the release, of which the report reads most tables: naming each
        # would hide the graph behind 50 edges, and cost half a second of every run.
        deps=[suite.key("manifest")],
        group_name=asset_group(suite.name, "audits"),
        description="The release as one HTML file that needs no network: what may be decided, "
        "gates, the release checklist and decisions, measures with intervals, changes against "
        "chance, the most changed queries side by side, approximate indexes, the history of "
        "evaluations, checks and manifest. Copy its path from the metadata and open "
        "it in a browser. It holds the beginnings of texts: to pass it on to people who may not "
        f"read them, write one without by `rag-assets report {suite.name} --redact`.",
        kinds={"html"},
        owners=list(suite.owners),
        code_version=source_version("report"),
    )


def written_report(suite: Suite, warehouse: Path, made: Report) -> dg.MaterializeResult[None]:
    """Write the report of the current release, as `rag-assets report` does."""
    report = write_report(warehouse, suite.name, made=made).report
    return dg.MaterializeResult(
        asset_key=suite.key(REPORT),
        metadata={
            **report_link(suite, warehouse),
            "release": report.release_id,
            "gates_and_checks": "passed" if report.passed else "not all passed",
            "bytes": len(report.html.encode()),
            "without texts": f"rag-assets report {suite.name} --redact",
            **{
                title: value
                for shown in report.pictures.values()
                for title, value in shown_pictures(shown).items()
            },
        },
        data_version=dg.DataVersion(digest(report.html)),
    )


def report_link(suite: Suite, warehouse: Path) -> Metadata:
    """Where the report of a suite is. A page served over http may not open a file: it is copied."""
    return {REPORT: dg.MetadataValue.path(shown_path(report_path(warehouse, suite.name)))}


def shown_pictures(pictures: Mapping[str, Markup]) -> Metadata:
    return {
        title: dg.MetadataValue.md(f"![{title}]({data_uri(picture)})")
        for title, picture in pictures.items()
    }
