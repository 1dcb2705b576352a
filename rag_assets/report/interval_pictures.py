"""Means and differences with their 95% intervals, as dots on lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from rag_assets.report.canvas import (
    BAD,
    GOOD,
    LINE,
    MARK,
    MUTED,
    PAPER,
    SERIES,
    element,
    house_style,
    name_lines,
    new_figure,
)
from rag_assets.report.numbers import change, change_interval, counted
from rag_assets.report.reading import Row
from rag_assets.statistics.sentences import (
    BETTER,
    INCONCLUSIVE,
    TOO_FEW,
    UNCHANGED,
    WORSE,
    measure_label,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS = 40
_ROW = 0.23  # inches
# Verdict -> colour, marker, whether it is filled, words. Never the colour alone.
_LOOKS: Mapping[str, tuple[str, str, bool, str]] = {
    WORSE: (BAD, "<", True, "worse, more than chance"),
    BETTER: (GOOD, ">", True, "better, more than chance"),
    INCONCLUSIVE: (SERIES, "o", False, "may be chance"),
    UNCHANGED: (MUTED, "|", True, "no query changed"),
    TOO_FEW: (MUTED, "x", True, "too few queries: no interval"),
}
_ARMS = [(SERIES, "o"), (MARK, "s"), (MUTED, "D"), (SERIES, "^"), (MARK, "v"), (MUTED, "P")]


def forest(blocks: Mapping[str, Sequence[Row]], name: str) -> Markup:
    """Differences, a line each under the headings of `blocks`; "" where none is defined.

    Rows are those of comparison_statistics, with the `label` of their line.
    """
    lines: list[tuple[str, Row | None]] = []
    for heading, rows in blocks.items():
        if rows:
            lines += [(heading, None), *((row["label"], row) for row in rows)]
    drawn = [row for _, row in lines if row and row["mean_difference"] is not None]
    if not drawn:
        return Markup()
    with house_style():
        figure, [axes] = new_figure(0.9 + _ROW * len(lines))
        axes.axvline(0, color=MUTED, linewidth=0.9)
        told = []
        for at, (_, row) in enumerate(lines):
            told.append("" if row is None else _told(row))
            if row is not None and row["mean_difference"] is not None:
                _draw_difference(axes, at, row)
        name_lines(axes, [label for label, _ in lines])
        for tick, (_, row) in zip(axes.get_yticklabels(), lines, strict=True):
            tick.set_fontweight("bold" if row is None else "normal")
        beside = axes.secondary_yaxis("right")
        beside.set_yticks(range(len(lines)), told)
        beside.tick_params(length=0, labelcolor=MUTED)
        beside.spines["right"].set_visible(False)
        low, high = axes.get_xlim()
        reach = max(abs(low), abs(high), 0.01)
        axes.set_xlim(-reach if low < 0 else -reach / 8, reach if high > 0 else reach / 8)
        axes.set_xlabel("worse ←   new minus old   → better")
        _legend(axes, [row["verdict"] for row in drawn])
        return element(figure, name)


def _draw_difference(axes: Axes, at: int, row: Row) -> None:
    colour, marker, filled, _ = _LOOKS[row["verdict"]]
    if row["interval_low"] is not None:
        axes.hlines(at, row["interval_low"], row["interval_high"], color=colour, linewidth=1.6)
    _dot(axes, row["mean_difference"], at, colour, marker, filled=filled)


def _dot(
    axes: Axes, across: float, at: float, colour: str, marker: str, *, filled: bool, size: float = 6
) -> None:
    axes.plot(
        across,
        at,
        marker=marker,
        markersize=size,
        markeredgecolor=colour,
        markerfacecolor=colour if filled else PAPER,
        markeredgewidth=1.4,
        linestyle="none",
    )


def _told(row: Row) -> str:
    """The numbers beside a line."""
    if row["mean_difference"] is None:
        return "no defined query"
    queries = counted(row["defined_count"], "query", "queries")
    if row["interval_low"] is None:
        return f"{change(row['mean_difference'])}, {queries}"
    ends = change_interval(row["interval_low"], row["interval_high"])
    return f"{change(row['mean_difference'])} ({ends}), {queries}"


def _legend(axes: Axes, verdicts: Sequence[str]) -> None:
    for verdict, (colour, marker, filled, words) in _LOOKS.items():
        if verdict in verdicts:
            axes.plot(
                [],
                [],
                marker=marker,
                color=colour,
                markerfacecolor=colour if filled else PAPER,
                linewidth=1.6 if verdict != TOO_FEW else 0,
                label=words,
            )
    axes.figure.legend(loc="outside upper left", ncols=5, handlelength=1.8)


def means(rows: Sequence[Row], measures: Sequence[str], name: str) -> Markup:
    """A panel per measure, a line per row; "" where no mean has an interval: from so few queries a
    picture would promise more than they show.

    A row has the `label` of its line and, under the name of each measure, the row of
    metric_intervals or None. Rows are at one cut-off k.
    """
    defined = [
        [row[measure] for row in rows if row[measure] and row[measure]["mean"] is not None]
        for measure in measures
    ]
    if all(found["interval_low"] is None for means in defined for found in means):
        return Markup()
    with house_style():
        figure, panels = new_figure(0.75 + _ROW * max(len(rows), 2), len(measures))
        for axes, measure, found in zip(panels, measures, defined, strict=True):
            for at, row in enumerate(rows):
                if row[measure] and row[measure]["mean"] is not None:
                    _draw_mean(axes, at, row[measure], SERIES, "o", size=6)
            name_lines(axes, [row["label"] for row in rows])
            if axes is not panels[0]:
                axes.tick_params(labelleft=False)
            if found:
                axes.set_title(measure_label(measure, found[0]["k"]), fontsize=9, loc="left")
                low, high = axes.dataLim.intervalx
                margin = max((high - low) * 0.12, 0.02)
                axes.set_xlim(max(low - margin, -0.01), min(high + margin, 1.01))
            axes.locator_params(axis="x", nbins=4)
        return element(figure, name)


def _draw_mean(
    axes: Axes, at: float, found: Row, colour: str, marker: str, *, size: float = 4.5
) -> None:
    """A filled dot with its interval, an open one where there is none."""
    known = found["interval_low"] is not None
    if known:
        axes.hlines(at, found["interval_low"], found["interval_high"], color=colour, linewidth=1.6)
    _dot(axes, found["mean"], at, colour, marker, filled=known, size=size)


def subgroup_means(rows: Sequence[Row], arms: Sequence[str], label: str, name: str) -> Markup:
    """A line per subgroup with a dot per arm; "" where no mean has an interval, as in `means`.

    A row has its `subgroup` and, under the name of each arm, a row of metric_intervals or None. At
    most MOST_ROWS are drawn. `label` names the measure.
    """
    shown = rows[:MOST_ROWS]
    if not any(row[arm] and row[arm]["interval_low"] is not None for row in shown for arm in arms):
        return Markup()
    gap = 0.13 if len(arms) < 4 else 0.1
    with house_style():
        height = 0.9 + len(shown) * max(_ROW, gap * (len(arms) + 0.8))
        figure, [axes] = new_figure(height)
        step = 0.72 / max(len(arms), 1)
        for at, row in enumerate(shown):
            for number, arm in enumerate(arms):
                if row[arm] and row[arm]["mean"] is not None:
                    colour, marker = _ARMS[number % len(_ARMS)]
                    offset = (number - (len(arms) - 1) / 2) * step
                    _draw_mean(axes, at + offset, row[arm], colour, marker)
        name_lines(axes, [row["subgroup"] for row in shown])
        axes.hlines(
            [at + 0.5 for at in range(len(shown) - 1)], 0, 1, color=LINE, linewidth=0.6, zorder=0
        )
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel(label)
        for number, arm in enumerate(arms):
            colour, marker = _ARMS[number % len(_ARMS)]
            axes.plot([], [], color=colour, marker=marker, markersize=4.5, label=arm)
        figure.legend(loc="outside upper left", ncols=4, handlelength=1.8)
        return element(figure, name)
