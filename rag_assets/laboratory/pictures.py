"""Recall against latency, as a picture: every seed, the means, the front, the stop, the needs."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_assets.laboratory.sweep_runs import SweepRow
from rag_assets.laboratory.sweeps import Sweep
from rag_assets.laboratory.verdicts import Verdict, pareto_front

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (7.2, 4.6)  # inches
_DPI = 100
_LOGARITHMIC = 5  # latencies that span a larger factor are drawn on a logarithmic axis
_SEED, _MEAN, _FRONT, _STOP, _NEED = "#8fb3d9", "#1f4e79", "#c8501e", "#777777", "#9a9a9a"
# Ids and dates in an SVG would differ from run to run.
_SETTINGS: Any = {"svg.hashsalt": "rag-assets", "svg.fonttype": "path", "text.parse_math": False}


@dataclass(frozen=True, slots=True)
class Picture:
    png: bytes
    svg: bytes


def tradeoff_picture(sweep: Sweep, rows: Sequence[SweepRow], verdict: Verdict) -> Picture:
    """The picture of a sweep's rows. Equal rows give equal bytes with equal library versions.

    Across: p95 over queries of each one's fastest call on one thread, which is what
    the front and the stop rule use. Up: mean ANN recall, with the sampling interval where only a
    sample of the queries was searched.
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=_SIZE, dpi=_DPI, layout="constrained")
        axes = figure.add_subplot()
        fine = [row for row in rows if row.status == "ok"]
        if fine:
            _draw_seeds(axes, fine)
            _draw_means(axes, sweep, rows, verdict)
            _draw_needs(axes, sweep)
            axes.legend(loc="lower right", fontsize=8, framealpha=0.9)
        else:
            axes.text(0.5, 0.5, "every run failed", ha="center", transform=axes.transAxes)
        failed = len(rows) - len(fine)
        axes.set_title(
            f"{sweep.name}: {sweep.index.kind}, {sweep.parameter} varied over "
            f"{len(sweep.seeds)} seeds: {verdict.verdict.replace('_', ' ')}"
            + (f" ({failed} runs failed)" if failed else ""),
            fontsize=10,
        )
        axes.set_xlabel("p95 over queries, each at its fastest, one thread (ms)")
        axes.set_ylabel(f"mean ANN Recall@{sweep.k}")
        axes.set_ylim(-0.02, 1.04)
        axes.grid(alpha=0.25, which="both")
        png, svg = io.BytesIO(), io.BytesIO()
        figure.savefig(png, format="png", metadata={"Software": None})
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    return Picture(png.getvalue(), svg.getvalue())


def _draw_seeds(axes: Axes, fine: Sequence[SweepRow]) -> None:
    recalls = [_number(row.mean_recall) for row in fine]
    latencies = [_number(row.best_p95_ms) for row in fine]
    if max(latencies) >= _LOGARITHMIC * min(latencies):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, position: f"{value:g}")
        axes.xaxis.set_minor_formatter(lambda value, position: _minor_label(value))
        axes.tick_params(axis="x", which="minor", labelsize=7)
    axes.scatter(latencies, recalls, s=18, color=_SEED, label="one seed", zorder=2)
    sampled = [row for row in fine if row.recall_low is not None]
    if sampled:
        axes.vlines(
            [_number(row.best_p95_ms) for row in sampled],
            [_number(row.recall_low) for row in sampled],
            [_number(row.recall_high) for row in sampled],
            color=_SEED,
            linewidth=1,
            label=f"95% interval, {sampled[0].query_count} sampled queries",
            zorder=1,
        )


def _draw_means(axes: Axes, sweep: Sweep, rows: Sequence[SweepRow], verdict: Verdict) -> None:
    means = {
        value.value: (value.mean_best_p95_ms, value.mean_recall)
        for value in verdict.values
        if value.mean_best_p95_ms is not None and value.mean_recall is not None
    }
    across, up = zip(*means.values(), strict=True)
    axes.plot(across, up, color=_MEAN, linewidth=1.2, marker=".", label="mean over seeds", zorder=3)
    for value, place in means.items():
        axes.annotate(
            f"{value}", place, xytext=(5, -10), textcoords="offset points", fontsize=8, color=_MEAN
        )
    front = [means[value] for value in pareto_front(rows)]
    if front:
        axes.plot(
            *zip(*front, strict=True),
            linestyle="none",
            marker="o",
            markersize=9,
            markerfacecolor="none",
            markeredgecolor=_FRONT,
            label="Pareto front",
            zorder=4,
        )
    if verdict.stopped_at in means:
        axes.plot(
            *means[verdict.stopped_at],
            linestyle="none",
            marker="x",
            markersize=11,
            color=_STOP,
            label=f"stop at {sweep.parameter} = {verdict.stopped_at}",
            zorder=5,
        )


def _draw_needs(axes: Axes, sweep: Sweep) -> None:
    left, right = axes.get_xlim()
    for need in sweep.needs:
        # The quarter that satisfies the need: to the left of its latency, above its recall.
        edge = min(need.p95_ms, right)
        axes.hlines(need.min_recall, left, edge, color=_NEED, linewidth=0.8, linestyle=":")
        if need.p95_ms <= right:
            axes.vlines(
                need.p95_ms, need.min_recall, 1.04, color=_NEED, linewidth=0.8, linestyle=":"
            )
    # Needs with one recall share a line, and its label.
    for recall in sorted({need.min_recall for need in sweep.needs}):
        together = [need for need in sweep.needs if need.min_recall == recall]
        axes.annotate(
            "; ".join(f"{need.name}: {need.p95_ms:g} ms, {recall:g}" for need in together),
            (left, recall),
            xytext=(4, 2),
            textcoords="offset points",
            fontsize=7,
            color=_STOP,
        )
    axes.set_xlim(left, right)


def _minor_label(value: float) -> str:
    """Two and five of each decade."""
    return f"{value:g}" if f"{value:e}"[0] in "25" else ""


def _number(value: Any) -> float:
    """A row that is "ok" has every number."""
    return float(value)
