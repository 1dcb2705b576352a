"""Changes against chance: what comparison_statistics holds, per audited pair and per index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb
from markupsafe import Markup

from rag_assets.report.interval_pictures import MOST_ROWS, forest
from rag_assets.report.numbers import (
    change,
    change_interval,
    count,
    measure,
    probability,
    told,
)
from rag_assets.report.reading import Row, rows_of
from rag_assets.report.table import Column, Table
from rag_assets.statistics.evidence import index_comparison, migration_comparison
from rag_assets.statistics.sentences import (
    BETTER,
    INCONCLUSIVE,
    MIN_QUERIES,
    TOO_FEW,
    UNCHANGED,
    WORSE,
    measure_label,
)

ALL_QUERIES = "all queries"
WORDS: Mapping[str, str] = {
    WORSE: "worse",
    BETTER: "better",
    INCONCLUSIVE: "may be chance",
    UNCHANGED: "unchanged",
    TOO_FEW: "too few queries",
}
_MEASURES = ["ndcg_at_k", "reciprocal_rank", "recall_at_k"]  # the decisive one first


@dataclass(frozen=True, slots=True)
class Comparison:
    """One family of differences between `before` and `after`; `where` is an index, or a space.

    `rows` are those of comparison_statistics with `label`, `result` and `told`, their sentence as
    one. `lead` says what came out as a whole, `overall` are the rows at the largest k over all
    queries, `concluded` the other rows that are more than chance. `tally` is (result, how many
    rows), without zeros. The picture is empty where there is nothing to conclude.
    """

    before: str
    after: str
    where: str
    of_index: bool
    rows: Sequence[Row]
    k: int
    picture: Markup

    @property
    def title(self) -> str:
        return f"{self.before} → {self.after} {'on' if self.of_index else 'with'} {self.where}"

    @property
    def ndcg_rows(self) -> list[Row]:
        """nDCG at the largest k: over all queries, then by subgroup."""
        return [row for row in self.rows if _main(row, self.k)]

    @property
    def overall(self) -> list[Row]:
        return [row for row in self.rows if row["subgroup"] is None and row["k"] == self.k]

    @property
    def concluded(self) -> list[Row]:
        told = self.overall
        return [row for row in self.rows if row["verdict"] in (WORSE, BETTER) and row not in told]

    @property
    def tally(self) -> list[tuple[str, int]]:
        counts = Counter(row["result"] for row in self.rows)
        return [(word, counts[word]) for word in WORDS.values() if counts[word]]

    @property
    def nothing_to_conclude(self) -> bool:
        return all(row["verdict"] == TOO_FEW for row in self.rows)

    @property
    def lead(self) -> str:
        if self.nothing_to_conclude:
            most = max(row["defined_count"] for row in self.rows)
            if most == 0:
                return (
                    "Nothing can be concluded: no query has a relevant document that its subject "
                    "may read."
                )
            only = "1 query is" if most == 1 else f"{most} queries are"
            return f"Nothing can be concluded: {only} defined, at least {MIN_QUERIES} are needed."
        if any(row["verdict"] in (WORSE, BETTER) for row in self.rows):
            return ""
        return (
            "No difference is more than chance. That does not show that the two are equal: each "
            "sentence says which change would often have gone unseen."
        )

    @property
    def table(self) -> Table:
        return Table(
            f"Every difference of {self.title}",
            (
                Column("queries", "group"),
                Column("measure", "notation"),
                Column("defined", "defined_count", count, numeric=True),
                Column("changed", "changed_count", count, numeric=True),
                Column("difference", "mean_difference", change, numeric=True),
                Column("95% interval", "interval", numeric=True),
                Column(
                    "p",
                    "p_adjusted",
                    probability,
                    numeric=True,
                    means="after Holm's correction over this table",
                ),
                Column(
                    "would be seen",
                    "smallest_detectable",
                    measure,
                    numeric=True,
                    means="the smallest true difference that would be found with 80% power",
                ),
                Column("result", "result"),
            ),
            self.rows,
            undefined=f"not computed below {MIN_QUERIES} queries, or all differences are equal.",
        )


def migrations(con: duckdb.DuckDBPyConnection, k: int) -> list[Comparison]:
    """Every audited pair under every index that ran in both spaces."""
    found = rows_of(
        con,
        "SELECT DISTINCT pair_no, old_space_id, new_space_id, index_name, index_name <> 'exact' "
        "AS approximate FROM migration_audit JOIN migration_pairs "
        "USING (old_space_id, new_space_id) WHERE status = 'evaluated' "
        "ORDER BY pair_no, approximate, index_name",
    )
    sides = [(row["old_space_id"], row["new_space_id"], row["index_name"]) for row in found]
    return [
        made
        for number, (old, new, index_name) in enumerate(sides, 1)
        for made in _compared(
            con,
            migration_comparison(old, new, index_name),
            (old, new, index_name, False),
            k,
            f"forest{number}",
        )
    ]


def indexes(con: duckdb.DuckDBPyConnection, k: int) -> list[Comparison]:
    """Every other index beside exact search in the same space."""
    found = rows_of(
        con,
        "SELECT DISTINCT space_no, space_id, index_name FROM metric_by_space "
        "JOIN spaces USING (space_id) WHERE index_name <> 'exact' ORDER BY space_no, index_name",
    )
    return [
        made
        for number, row in enumerate(found, 1)
        for made in _compared(
            con,
            index_comparison(row["space_id"], row["index_name"]),
            ("exact", row["index_name"], row["space_id"], True),
            k,
            f"indexforest{number}",
        )
    ]


def _compared(
    con: duckdb.DuckDBPyConnection,
    comparison_id: str,
    sides: tuple[str, str, str, bool],
    k: int,
    name: str,
) -> list[Comparison]:
    """One comparison, or none where the release was made without statistics."""
    rows = rows_of(
        con,
        "SELECT * FROM comparison_statistics WHERE comparison_id = $1 "
        "ORDER BY subgroup NULLS FIRST, k DESC, list_position($2, measure)",
        *(comparison_id, _MEASURES),
        needs=["comparison_statistics"],
    )
    if not rows:
        return []
    for row in rows:
        row["notation"] = measure_label(row["measure"], row["k"])
        row["group"] = row["subgroup"] or ALL_QUERIES
        row["label"] = row["subgroup"] or row["notation"]
        row["result"] = WORDS[row["verdict"]]
        row["told"] = told(row["sentence"])
        ends = (row["interval_low"], row["interval_high"])
        row["interval"] = None if None in ends else change_interval(*ends)
    made = Comparison(*sides, rows, k, Markup())
    if made.nothing_to_conclude:
        return [made]
    everywhere = [row for row in rows if row["subgroup"] is None]
    by_subgroup = [row for row in rows if row["subgroup"] and _main(row, k)]
    blocks = {ALL_QUERIES: everywhere, f"nDCG@{k} by subgroup": _drawn(by_subgroup)}
    return [replace(made, picture=forest(blocks, name))]


def _main(row: Row, k: int) -> bool:
    return bool(row["measure"] == "ndcg_at_k" and row["k"] == k)


def _drawn(rows: Sequence[Row]) -> list[Row]:
    """The largest fall first, undefined ones left out; of too many rows the most telling ones."""
    defined = [row for row in rows if row["mean_difference"] is not None]
    telling = sorted(defined, key=lambda r: (r["verdict"] == TOO_FEW, -abs(r["mean_difference"])))
    return sorted(telling[:MOST_ROWS], key=lambda row: row["mean_difference"])
