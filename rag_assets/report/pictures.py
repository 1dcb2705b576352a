"""SVG elements to stand in the page: text stays text, and colours are the page's own.

Matplotlib draws with stand-in colours that are then replaced by the page's CSS variables, so that a
picture follows light and dark. Equal rows give equal bytes with equal library versions.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rag_assets.report.numbers import direction, significant, stated
from rag_assets.report.reading import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TEXT, _MUTED, _LINE, _PAPER = "#010101", "#020202", "#030303", "#040404"
_SERIES, _SOFT, _MARK, _GOOD, _BAD = "#050505", "#060606", "#070707", "#080808", "#090909"
_COLOURS = {
    _TEXT: "--text",
    _MUTED: "--muted",
    _LINE: "--line",
    _PAPER: "--paper",
    _SERIES: "--series",
    _SOFT: "--series-soft",
    _MARK: "--mark",
    _GOOD: "--good",
    _BAD: "--bad",
}
_STAND_IN = re.compile("|".join(_COLOURS))
_TAG = re.compile(r"<[^>]*>")
_SETTINGS: Any = {
    "svg.hashsalt": "rag-assets",
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 9,
    "text.color": _TEXT,
    "axes.edgecolor": _LINE,
    "axes.labelcolor": _TEXT,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": _LINE,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}
_LOGARITHMIC = 5  # times that span a larger factor are drawn on a logarithmic axis
_MOST_BARS = 400


def tradeoff(
    verdict: Row, runs: Sequence[Row], values: Sequence[Row], needs: Sequence[Row], name: str
) -> Markup:
    """Recall against latency of one sweep; `name` keeps its ids apart from other pictures'.

    Rows are those of the tables sweep_verdicts, sweep_results, sweep_values and operating_points.
    Across: p95 over queries of each one's fastest call, which the front and the stop rule use.
    """
    import matplotlib

    with matplotlib.rc_context(_SETTINGS):
        figure, axes = _figure(4.2)
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
        return _element(figure, name)


def _draw_seeds(axes: Axes, fine: Sequence[Row]) -> None:
    times = [row["best_p95_ms"] for row in fine]
    if max(times) >= _LOGARITHMIC * min(times):
        axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, position: significant(value))
    axes.scatter(
        times, [row["mean_ann_recall"] for row in fine], s=16, color=_SOFT, label="one seed"
    )
    sampled = [row for row in fine if row["recall_low"] is not None]
    if sampled:
        axes.vlines(
            [row["best_p95_ms"] for row in sampled],
            [row["recall_low"] for row in sampled],
            [row["recall_high"] for row in sampled],
            color=_SOFT,
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
        color=_SERIES,
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
        colours: dict[str, Any] = {"markeredgecolor": _MARK, "markerfacecolor": "none"}
        axes.plot(across, up, linestyle="none", label=label, **colours, **style)


def _draw_needs(axes: Axes, needs: Sequence[Row]) -> None:
    left, right = axes.get_xlim()
    labels: dict[float, list[str]] = {}
    for need in needs:
        recall, p95 = need["need_min_recall"], need["need_p95_ms"]
        # The quarter that satisfies the need: to the left of its latency, above its recall.
        axes.hlines(recall, left, min(p95, right), color=_MUTED, linewidth=0.9, linestyle="--")
        if p95 <= right:
            axes.vlines(p95, recall, 1.06, color=_MUTED, linewidth=0.9, linestyle="--")
        labels.setdefault(recall, []).append(f"{need['need']} within {stated(p95)} ms")
    for recall, words in labels.items():
        axes.annotate(
            f"{stated(recall)} for {', '.join(words)}",
            (left, recall),
            xytext=(4, 4),
            textcoords="offset points",
            color=_MUTED,
            fontsize=8.5,
        )
    axes.set_xlim(left, right)


def changes(deltas: Sequence[float], k: int, name: str) -> Markup:
    """One bar per query, from the largest fall to the largest rise. `deltas` ascend."""
    import matplotlib

    shown = deltas
    if len(deltas) > _MOST_BARS:  # evenly spaced ones, the two extremes among them
        last = len(deltas) - 1
        shown = [deltas[round(i * last / (_MOST_BARS - 1))] for i in range(_MOST_BARS)]
    with matplotlib.rc_context(_SETTINGS):
        figure, axes = _figure(2.2)
        # One outline for all: a bar each would make the page large.
        for sign, colour in ((-1, _BAD), (1, _GOOD)):
            heights = [delta if direction(delta) == sign else 0.0 for delta in shown]
            axes.stairs(heights, range(len(shown) + 1), fill=True, color=colour)
        axes.axhline(0, color=_MUTED, linewidth=0.8)
        axes.set_ylim(-1.05, 1.05)
        axes.set_xlim(0, len(shown))
        axes.set_xticks([])
        axes.set_ylabel(f"Δ nDCG@{k}")
        axes.grid(axis="y", linewidth=0.6)
        return _element(figure, name)


def _figure(height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, height), layout="constrained")
    figure.patch.set_alpha(0)
    return figure, figure.add_subplot()


def _element(figure: Figure, name: str) -> Markup:
    file = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(file, format="svg", metadata=nothing)
    text = file.getvalue()
    svg = text[text.index("<svg") :]
    # The rules in <defs> would hold for the whole page; namespaces are implied in HTML.
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg, count=1, flags=re.DOTALL)
    svg = re.sub(r'<svg[^>]*?(viewBox="[^"]*")[^>]*>', r'<svg \1 aria-hidden="true">', svg, count=1)
    # Only tags are changed: the texts between them are the users' own.
    return Markup(_TAG.sub(lambda tag: _in_page(tag.group(), name), svg).strip())


def _in_page(tag: str, name: str) -> str:
    """A tag with ids of its own picture, in the page's font and colours."""
    tag = tag.replace("xlink:href", "href")
    tag = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{name}-", tag)
    tag = re.sub(r"font: ([0-9.]+)px [^;\"]*", r"font: \1px var(--sans)", tag)
    return _STAND_IN.sub(lambda found: f"var({_COLOURS[found.group()]})", tag)
