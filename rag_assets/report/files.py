"""Reports as files: where they lie, what they may replace, and that the newest one stays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rag_assets.errors import UsageError
from rag_assets.report.page import FIRST_LINE, Report, report_of
from rag_assets.warehouse.release import current_release, reading
from rag_assets.whole_files import locked_folder, replace_text


@dataclass(frozen=True, slots=True)
class ReportFile:
    """A report that was written."""

    path: Path
    report: Report


def report_path(warehouse: Path, suite: str, *, redact: bool = False) -> Path:
    """Where a suite's report lies if nobody says otherwise."""
    return warehouse / "reports" / f"{suite}{'.redacted' if redact else ''}.html"


def write_report(
    warehouse: Path,
    suite: str,
    *,
    output: Path | None = None,
    redact: bool = False,
    made: Report | None = None,
) -> ReportFile:
    """Write the report of the suite's current release, whole or not at all, over an earlier one.

    Writers into one folder wait for each other, and each reads the release that is current when its
    turn comes: an older report never replaces a newer one. `made`, with texts unless `redact`, is
    taken where it is of that release. StoreError without a release; UsageError
    where the file would replace something that is no report, or its folder does not exist.
    """
    current_release(warehouse, suite)
    path = output or report_path(warehouse, suite, redact=redact)
    if output is None:
        path.parent.mkdir(parents=True, exist_ok=True)
    _check_replaceable(path)  # before the work, not only after it
    with locked_folder(path.parent):
        release = current_release(warehouse, suite)
        report = made
        if report is None or report.release_id != release.stem:
            with reading(release) as con:
                report = report_of(con, suite, release.stem, redact=redact)
        _check_replaceable(path)
        replace_text(path, report.html)
    return ReportFile(path, report)


def _check_replaceable(path: Path) -> None:
    """UsageError if a report cannot be written to `path`, or would replace something else."""
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; name a file in it")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist; create it first")
    if not path.exists():
        return
    begins = FIRST_LINE.encode()
    with path.open("rb") as file:
        if file.read(len(begins)) != begins:
            raise UsageError(f"{path}: exists and is no report; name another file or remove it")
