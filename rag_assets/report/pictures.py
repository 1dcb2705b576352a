"""What an approximate index costs and finds, and what a migration changed, query by query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rag_assets.report.canvas import (
    BAD,
    GOOD,
    MARK,
    MUTED,
    SERIES,
    SOFT,
    element,
    house_style,
    name_lines,
    new_figure,
)
from rag_assets.report.numbers import direction, significant, stated
from rag_assets.report.numbers import size as shown_size
from rag_assets.report.reading import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOGARITHMIC = 5  # times that span a larger factor are drawn on a logarithmic axis
_MOST_BARS = 400


def tradeoff(
    verdict: Row, runs: Sequence[Row], values: Sequence[Row], needs: Sequence[Row], name: str
) -> Markup:
    """Recall against latency of one sweep; `name` keeps its ids apart from other pictures'.

    Rows are those of the tables sweep_verdicts, sweep_results, sweep_values and operating_points.
    Across: p95 over queries of each one's fastest call, which the front and the stop rule use.
    """
    with house_style():
        figure, [axes] = new_figure(4.2)
        fine = [row for row in runs if row["status"] == "ok"]
        if fine:
            _draw_seeds(axes, fine)
            _draw_means(axes, verdict, values)
            _draw_needs(axes, needs)
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        else:
            axes.text(0.5, 0.5, "every run failed", ha="center", transform=axes.transAxes)
        axes.set_xlabel("p95 over queries, each at its fastest, one thread (ms)")
        axes.set_ylabel(f"mean ANN Recall@{verdict['k']}")
        axes.set_ylim(-0.02, 1.06)
        axes.grid(linewidth=0.6)
        return element(figure, name)


def _draw_seeds(axes: Axes, fine: Sequence[Row]) -> None:
    times = [row["best_p95_ms"] for row in fine]
    if max(times) >= _LOGARITHMIC * min(times):
        axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, position: significant(value))
    axes.scatter(
        times, [row["mean_ann_recall"] for row in fine], s=16, color=SOFT, label="one seed"
    )
    sampled = [row for row in fine if row["recall_low"] is not None]
    if sampled:
        axes.vlines(
            [row["best_p95_ms"] for row in sampled],
            [row["recall_low"] for row in sampled],
            [row["recall_high"] for row in sampled],
            color=SOFT,
            linewidth=1,
            label="95% interval of a sample",
        )


def _draw_means(axes: Axes, verdict: Row, values: Sequence[Row]) -> None:
    means = {
        row["value"]: (row["mean_best_p95_ms"], row["mean_ann_recall"])
        for row in values
        if row["mean_best_p95_ms"] is not None and row["mean_ann_recall"] is not None
    }
    axes.plot(
        *zip(*means.values(), strict=True),
        color=SERIES,
        linewidth=1.4,
        marker="o",
        markersize=4,
        label="mean over seeds",
    )
    for number, (value, place) in enumerate(means.items()):
        above = number % 2 == 0  # so that the labels of near neighbours stay apart
        axes.annotate(
            value, place, xytext=(0, 8 if above else -16), textcoords="offset points", ha="center"
        )
    front = [means[row["value"]] for row in values if row["on_pareto_front"]]
    _mark(axes, front, "Pareto front", marker="o", markersize=9)
    stop = [means[value] for value in [verdict["stopped_at"]] if value in means]
    stopped = f"stop at {verdict['parameter']} = {verdict['stopped_at']}"
    _mark(axes, stop, stopped, marker="x", markersize=12)


def _mark(axes: Axes, places: Sequence[tuple[float, float]], label: str, **style: Any) -> None:
    if places:
        across, up = zip(*places, strict=True)
        colours: dict[str, Any] = {"markeredgecolor": MARK, "markerfacecolor": "none"}
        axes.plot(across, up, linestyle="none", label=label, **colours, **style)


def _draw_needs(axes: Axes, needs: Sequence[Row]) -> None:
    left, right = axes.get_xlim()
    labels: dict[float, list[str]] = {}
    for need in needs:
        recall, p95 = need["need_min_recall"], need["need_p95_ms"]
        # The quarter that satisfies the need: to the left of its latency, above its recall.
        axes.hlines(recall, left, min(p95, right), color=MUTED, linewidth=0.9, linestyle="--")
        if p95 <= right:
            axes.vlines(p95, recall, 1.06, color=MUTED, linewidth=0.9, linestyle="--")
        labels.setdefault(recall, []).append(f"{need['need']} within {stated(p95)} ms")
    for recall, words in labels.items():
        axes.annotate(
            f"{stated(recall)} for {', '.join(words)}",
            (left, recall),
            xytext=(4, 4),
            textcoords="offset points",
            color=MUTED,
            fontsize=8.5,
        )
    axes.set_xlim(left, right)


def changes(deltas: Sequence[float], k: int, name: str) -> Markup:
    """One bar per query, from the largest fall to the largest rise. `deltas` ascend."""
    shown = deltas
    if len(deltas) > _MOST_BARS:  # evenly spaced ones, the two extremes among them
        last = len(deltas) - 1
        shown = [deltas[round(i * last / (_MOST_BARS - 1))] for i in range(_MOST_BARS)]
    with house_style():
        figure, [axes] = new_figure(2.2)
        # One outline for all: a bar each would make the page large.
        for sign, colour in ((-1, BAD), (1, GOOD)):
            heights = [delta if direction(delta) == sign else 0.0 for delta in shown]
            axes.stairs(heights, range(len(shown) + 1), fill=True, color=colour)
        axes.axhline(0, color=MUTED, linewidth=0.8)
        axes.set_ylim(-1.05, 1.05)
        axes.set_xlim(0, len(shown))
        axes.set_xticks([])
        axes.set_ylabel(f"Δ nDCG@{k}")
        axes.grid(axis="y", linewidth=0.6)
        return element(figure, name)


def index_costs(rows: Sequence[Row], name: str) -> Markup:
    """ANN recall, latency and size, a line per index; "" where nothing was timed, or with too few
    queries for an interval of any recall.

    Rows are those of index_benchmark, with the `label` of their line and the `recall_low` and
    `recall_high` of their interval, None where there is none.
    """
    timed = [row["k"] for row in rows if row["p95_ms"] is not None]
    if not timed or all(row["recall_low"] is None for row in rows):
        return Markup()
    with house_style():
        figure, [recall, latency, size] = new_figure(0.95 + 0.23 * max(len(rows), 2), 3)
        for at, row in enumerate(rows):
            colour = MUTED if row["index_name"] == "exact" else SERIES
            if row["recall_low"] is not None:
                recall.hlines(at, row["recall_low"], row["recall_high"], color=colour)
            if row["mean_ann_recall_at_k"] is not None:
                recall.plot(row["mean_ann_recall_at_k"], at, marker="o", color=colour)
            if row["p95_ms"] is not None:
                latency.hlines(at, row["p50_ms"], row["p99_ms"], color=colour)
                latency.plot([row["p50_ms"], row["p99_ms"]], [at, at], "|", color=colour)
                latency.plot(row["p95_ms"], at, marker="o", color=colour)
            if row["index_bytes"] is not None:
                size.plot(row["index_bytes"], at, marker="o", color=colour)
        recall_title = f"ANN recall@{timed[0]}, 95% interval"
        titles = (recall_title, "ms a query: p50, p95 (dot), p99", "size")
        for axes, title in zip((recall, latency, size), titles, strict=True):
            name_lines(axes, [row["label"] if axes is recall else "" for row in rows])
            axes.set_title(title, fontsize=9, loc="left")
        recall.set_xlim(-0.03, 1.03)
        for axes, show in ((latency, significant), (size, shown_size)):
            _scale(axes, show)
        return element(figure, name)


def _scale(axes: Axes, show: Callable[[float], str]) -> None:
    """From 0, or logarithmic where the largest is many times the smallest."""
    low, high = axes.dataLim.intervalx
    if low > high:  # nothing is drawn
        return
    if low > 0 and high >= _LOGARITHMIC * low:
        axes.set_xscale("log")
        axes.minorticks_off()
        axes.set_xlabel("logarithmic", color=MUTED, fontsize=8.5)
    else:
        axes.set_xlim(0, high * 1.08)
        axes.locator_params(axis="x", nbins=4)
    axes.xaxis.set_major_formatter(lambda value, position: show(value))
