"""The report of one release: sections read from its tables, laid out by template.html and others.

The same release gives the same bytes, with equal library versions: nothing here asks for the time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import duckdb
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rag_assets.report import (
    approximate,
    changes,
    checks,
    comparisons,
    history,
    intervals,
    numbers,
    pictures,
    regression,
    relevance,
    signed,
    verdicts,
)
from rag_assets.report.conclusion import conclusion
from rag_assets.report.reading import Row
from rag_assets.statistics.sentences import MIN_QUERIES

# What a report begins with, so that no other file is ever replaced by one.
FIRST_LINE = "<!doctype html><!-- rag-assets report -->\n"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Report:
    """`passed` is true if every mechanical gate passed and no check failed (warnings aside).

    `pictures`: table -> title -> the picture of its numbers. What has no defined number, or nothing
    to conclude, has none.
    """

    release_id: str
    html: str
    passed: bool
    pictures: Mapping[str, Mapping[str, Markup]]


@dataclass(frozen=True, slots=True)
class Section:
    anchor: str
    title: str


def report_of(
    con: duckdb.DuckDBPyConnection, suite: str, release_id: str, *, redact: bool
) -> Report:
    """The report of an open release. With `redact` it holds no text of any item."""
    k = relevance.largest_k(con)
    migrations = comparisons.migrations(con, k)
    pairs = [
        _pair(con, number, rows, k, migrations, redact=redact)
        for number, rows in enumerate(verdicts.audits(con), 1)
    ]
    ran = checks.checks(con, redact=redact)
    gates = regression.regression(con, redact=redact)
    decided = signed.signed_off(con)
    found = {
        "suite": suite,
        "release_id": release_id,
        "redact": redact,
        "k": k,
        "pairs": pairs,
        "conclusion": conclusion(pairs, gates, ran, decided),
        "regression": gates,
        "signed": decided,
        "history": history.history(con, k, redact=redact),
        "decides": verdicts.A_PERSON_DECIDES,
        "promotions": verdicts.promotions(con),
        "defaults": verdicts.defaults(con),
        "spaces": relevance.spaces(con),
        "measures": relevance.measures(con),
        "means_picture": intervals.means_picture(con, k),
        "comparisons": [*migrations, *comparisons.indexes(con, k)],
        "subgroups_picture": intervals.subgroups_picture(con, k),
        "lone_subgroups": None if pairs else relevance.subgroups_without_pair(con, k),
        "recall": approximate.recall_tables(con),
        "benchmark": approximate.benchmark(con),
        "benchmark_picture": approximate.benchmark_picture(con),
        "sweeps": approximate.sweeps(con),
        "checks": ran,
        "manifest": checks.manifest(con),
        "dash": numbers.DASH,
        "few": MIN_QUERIES,
        "text_counts": _text_counts(pairs, gates),
        "shown_ranks": changes.SHOWN_RANKS,
        "excerpt_width": changes.EXCERPT,
    }
    html = (
        _environment()
        .get_template("template.html")
        .render(**found, sections=_sections(found), tally=_tally)
    )
    passed = all(pair.state == verdicts.PASSED for pair in pairs)
    passed = passed and not _tally(ran, verdicts.FAILED)
    return Report(release_id, FIRST_LINE + html.strip() + "\n", passed, _by_table(found))


def _by_table(found: Row) -> dict[str, dict[str, Markup]]:
    compared = {one.title: one for one in found["comparisons"]}
    forests = {title: one.picture for title, one in compared.items()}
    migrations = {title: one.picture for title, one in compared.items() if not one.of_index}
    over = f"means at k = {found['k']} over the evaluations"
    moved = found["history"].picture if found["history"] else Markup()
    titled = {
        "metric_by_space": {f"means at k = {found['k']}": found["means_picture"]},
        "metric_by_subgroup": {f"nDCG@{found['k']} by subgroup": found["subgroups_picture"]},
        "migration_audit": migrations,
        "comparison_statistics": forests,
        "metric_history": {over: moved},
        "index_benchmark": {"recall, latency and size": found["benchmark_picture"]},
    }
    return {
        table: {title: picture for title, picture in pictures.items() if picture}
        for table, pictures in titled.items()
    }


def _pair(
    con: duckdb.DuckDBPyConnection,
    number: int,
    rows: Sequence[Row],
    k: int,
    migrations: Sequence[comparisons.Comparison],
    *,
    redact: bool,
) -> verdicts.Pair:
    first = rows[0]
    old, new = first["old_space_id"], first["new_space_id"]
    evaluated = first["status"] == "evaluated"
    compared = (old, new, first["index_name"], k)
    deltas = changes.changes_of_ndcg(con, *compared) if evaluated else []
    sides = (old, new, first["index_name"])
    told = [one for one in migrations if (one.before, one.after, one.where) == sides]
    comparison = told[0] if told else None
    differing = verdicts.differing_items(con, old, new)
    return verdicts.Pair(
        anchor=f"pair-{number}",
        old=old,
        new=new,
        state=verdicts.pair_state(first),
        sentence=verdicts.sentence_on(first),
        gates=verdicts.gates_of(first),
        differing=differing[: verdicts.SHOWN_IDS],
        differing_count=len(differing),
        comparable=first["vectors_directly_comparable"],
        index_name=first["index_name"] if evaluated else None,
        at_k=first,
        quality=relevance.audit_changes(con, old, new),
        comparison=comparison,
        subgroups=relevance.subgroup_changes(con, *compared, comparison) if evaluated else [],
        changed=changes.changed_queries(con, *compared, redact=redact) if evaluated else [],
        picture=pictures.changes(deltas, k, f"changes{number}") if any(deltas) else "",
        better=sum(numbers.direction(delta) > 0 for delta in deltas),
        worse=sum(numbers.direction(delta) < 0 for delta in deltas),
        defined=len(deltas),
    )


def _sections(found: Row) -> list[Section]:
    """The table of contents: what this release has something to say about."""
    pairs = found["pairs"]
    there = (
        ("verdict", "What may be decided", True),
        ("gates", "Gates", pairs),
        ("regression", "Regression gates", found["regression"].gates),
        ("checklist", "Release checklist", found["signed"].anything),
        ("spaces", "Spaces", found["spaces"].rows),
        ("measures", "Measures", found["measures"]),
        ("statistics", "Change or chance", found["comparisons"]),
        ("subgroups", "Subgroups", found["lone_subgroups"] or any(p.subgroups for p in pairs)),
        ("changes", "Changed queries", any(pair.changed for pair in pairs)),
        ("indexes", "Approximate indexes", found["recall"] or found["promotions"]),
        ("history", "History", found["history"]),
        ("checks", "Checks", found["checks"]),
        ("manifest", "Manifest", found["manifest"]),
    )
    return [Section(anchor, title) for anchor, title, present in there if present]


class _Judged(Protocol):
    @property
    def state(self) -> str: ...


def _tally(things: Sequence[_Judged], state: str) -> int:
    return sum(thing.state == state for thing in things)


def _text_counts(pairs: Sequence[verdicts.Pair], gates: regression.Regression) -> tuple[int, int]:
    """(queries, documents) whose texts the page holds."""
    changed = [query for pair in pairs for query in pair.changed]
    worst = [query for gate in gates.loud for query in gate.worst]
    queries = {query.case_id for query in changed if query.text is not None}
    queries |= {query.case_id for query in worst if query.text is not None}
    results = [result for query in changed for result in (*query.old, *query.new)]
    return len(queries), len({result.item_id for result in results if result.text is not None})


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for show in (numbers.change, numbers.change_interval, numbers.count, numbers.measure):
        environment.filters[show.__name__] = show
    environment.filters["moment"] = numbers.moment
    environment.filters["direction"] = numbers.direction
    environment.globals["counted"] = numbers.counted
    return environment


def _shown(value: object) -> object:
    """None as a dash; a control character as its code, since HTML may hold none."""
    if value is None:
        return numbers.DASH
    if isinstance(value, str) and not isinstance(value, Markup):
        return _CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode(), value)
    return value
