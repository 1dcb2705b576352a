"""The pinned baseline: one file in the suite's folder, to be committed, that shows any edit.

`baseline.parquet` holds the rows BY_QUERY of one evaluation. Its schema metadata holds, as JSON,
what that evaluation was, who pinned it and why, and a SHA-256 over all of this and the rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rag_assets.canonical.contracts import canonical_json
from rag_assets.canonical.corpus import digest, digest_table
from rag_assets.canonical.files import write_parquet
from rag_assets.errors import InputError, Problem
from rag_assets.regression.rows import BY_QUERY
from rag_assets.whole_files import locked_folder, replace_file

FILE = "baseline.parquet"
_FORMAT = 1
_KEY = b"rag_assets_baseline"


@dataclass(frozen=True, slots=True)
class Header:
    """What was pinned, by whom and why. `contract_signatures` are by space; times are ISO, UTC."""

    suite: str
    evaluation_id: str
    evaluated_at: str
    data_version: str
    code_version: str
    contract_signatures: Mapping[str, str]
    pinned_by: str
    pinned_at: str
    why: str


# One row where a baseline is pinned; contract_signatures is JSON, by space.
BASELINE = pa.schema(
    [*((field.name, pa.string()) for field in fields(Header)), ("digest", pa.string())]
)


@dataclass(frozen=True)
class Baseline:
    """An evaluation to compare with. `rows` has the schema BY_QUERY."""

    header: Header
    rows: pa.Table

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over the header and every row."""
        return digest(canonical_json(asdict(self.header)), digest_table(self.rows))


def write_baseline(baseline: Baseline, folder: Path) -> Path:
    """Put the baseline in place of an earlier one, in one step, and return its path."""
    record = {"format": _FORMAT, "digest": baseline.digest, "header": asdict(baseline.header)}
    table = baseline.rows.replace_schema_metadata({_KEY: canonical_json(record)})
    path = folder / FILE
    with locked_folder(folder):  # whoever decides something there removes the drafts of the dead
        replace_file(path, lambda draft: write_parquet(table, draft))
    return path


def read_baseline(folder: Path, suite: str) -> Baseline | None:
    """The suite's baseline, None where none is pinned.

    InputError, with the remedy, for a file that is no Parquet, is of another format or suite, or
    does not match its digest.
    """
    path = folder / FILE
    if not path.exists():
        return None
    refused = partial(_refused, path, suite)
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise refused("whole file", f"a file that cannot be read as Parquet ({reason})") from None
    try:
        record = json.loads((table.schema.metadata or {})[_KEY])
        stored_format, stored_digest = record["format"], record["digest"]
        header = _header(record["header"])
    except (KeyError, TypeError, ValueError):
        raise refused("metadata", "no header that says what was pinned") from None
    if stored_format != _FORMAT:
        raise refused("metadata.format", f"{stored_format!r}, not format {_FORMAT}")
    rows = table.replace_schema_metadata()
    if not rows.schema.equals(BY_QUERY):
        raise refused("columns", ", ".join(rows.column_names))
    baseline = Baseline(header, rows)
    try:
        edited = baseline.digest != stored_digest
    except ValueError:  # a NaN, which no evaluation writes
        edited = True
    if edited:
        raise refused("metadata.digest", "rows or a header that it does not match")
    if header.suite != suite:
        raise refused("metadata.header.suite", f"a baseline of the suite {header.suite!r}")
    return baseline


def _header(record: Any) -> Header:
    if set(record) != {field.name for field in fields(Header)}:
        raise ValueError
    return Header(**record)


def _refused(path: Path, suite: str, place: str, found: str) -> InputError:
    remedy = (
        "baselines are pinned, not written by hand: restore the file from version control, or "
        f"pin the current release: rag-assets pin-baseline {suite} --by NAME --why TEXT"
    )
    file = f"{path.parent.name}/{path.name}"
    return InputError([Problem("damaged_baseline", file, place, found, remedy)])


def baseline_tables(baseline: Baseline | None) -> dict[str, pa.Table]:
    """Rows of base.baseline (its header, one row) and base.baseline_by_query; {} without one."""
    if baseline is None:
        return {}
    header = {
        **asdict(baseline.header),
        "contract_signatures": canonical_json(dict(baseline.header.contract_signatures)),
        "digest": baseline.digest,
    }
    return {
        "baseline": pa.Table.from_pylist([header], schema=BASELINE),
        "baseline_by_query": baseline.rows,
    }
