"""How mean measures moved over the evaluations that are kept: a panel per arm and measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from rag_assets.report.canvas import MARK, MUTED, PAPER, SERIES, element, house_style, new_grid
from rag_assets.report.numbers import measure as shown
from rag_assets.report.reading import Row
from rag_assets.statistics.sentences import measure_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAST_SPAN = 0.1  # so that a change of little does not look like one of much


def movements(
    arms: Mapping[str, Sequence[Row]],
    measures: Mapping[str, str],
    k: int,
    count: int,
    baseline: int | None,
    name: str,
) -> Markup:
    """Panels, a row per arm and a column per measure.

    `arms`: rows in order, each with the `number` of its evaluation, 1 to `count`, the `signature`
    that the space had then, and the columns that are the keys of `measures`; its values are their
    names. A line breaks where a mean is undefined or the signature changes. `baseline` is the
    number of the pinned evaluation. "" where there is nothing to see a movement in.
    """
    values = [row[column] for rows in arms.values() for row in rows for column in measures]
    if count < 2 or all(value is None for value in values):
        return Markup()
    with house_style():
        figure, grid = new_grid(0.6 + 1.55 * len(arms), len(arms), len(measures))
        for panels, (label, rows) in zip(grid, arms.items(), strict=True):
            for axes, (column, measure) in zip(panels, measures.items(), strict=True):
                axes.set_title(f"{label}: {measure_label(measure, k)}", fontsize=9, loc="left")
                _draw(axes, rows, column, baseline)
        for axes, column in zip(grid[0], measures, strict=True):
            axes.set_ylim(*_span([row[column] for rows in arms.values() for row in rows]))
        for axes in grid[-1]:
            axes.set_xlim(0.6, count + 0.4 + 0.16 * count)  # room for the latest number
            step = -(-count // 12)
            axes.set_xticks(range(1, count + 1, step))
            axes.set_xlabel("evaluation, the oldest first", color=MUTED, fontsize=8.5)
        return element(figure, name)


def _span(values: Sequence[float | None]) -> tuple[float, float]:
    """Ends of a scale from 0 to 1 at most, with room around the defined values."""
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    room = max((high - low) * 0.25, (_LEAST_SPAN - (high - low)) / 2)
    span = max(high - low + 2 * room, _LEAST_SPAN)
    top = min(high + room, 1 + 0.05 * span)  # a dot at 1 is drawn in full, as one at 0 is
    return max(min(low - room, top - _LEAST_SPAN), -0.05 * span), top


def _draw(axes: Axes, rows: Sequence[Row], column: str, baseline: int | None) -> None:
    axes.grid(axis="y", linewidth=0.6)
    axes.locator_params(axis="y", nbins=4)
    if baseline is not None:
        axes.axvline(baseline, color=MARK, linewidth=0.9, linestyle="--")
        axes.annotate(
            "baseline",
            (baseline, 1),
            xycoords=("data", "axes fraction"),
            xytext=(3, -2),
            textcoords="offset points",
            va="top",
            color=MARK,
            fontsize=8,
        )
    known = [row for row in rows if row[column] is not None]
    for line in _unbroken(known):
        axes.plot(
            [row["number"] for row in line],
            [row[column] for row in line],
            color=SERIES,
            linewidth=1.4,
            marker="o",
            markersize=4,
        )
    for row in known:
        if row["number"] == baseline:
            axes.plot(
                row["number"],
                row[column],
                marker="o",
                markersize=8,
                markeredgecolor=MARK,
                markerfacecolor=PAPER,
                zorder=1.5,
            )
    if known:
        axes.annotate(
            shown(known[-1][column]),
            (known[-1]["number"], known[-1][column]),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
        )
    else:
        axes.text(0.5, 0.5, "undefined", ha="center", color=MUTED, transform=axes.transAxes)


def _unbroken(rows: Sequence[Row]) -> list[list[Row]]:
    """Runs of neighbouring evaluations under one contract."""
    runs: list[list[Row]] = []
    for row in rows:
        before = runs[-1][-1] if runs else None
        joined = before is not None and (
            row["number"] == before["number"] + 1 and row["signature"] == before["signature"]
        )
        if joined:
            runs[-1].append(row)
        else:
            runs.append([row])
    return runs
