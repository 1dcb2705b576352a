"""The picture of a sweep: valid, small, equal for equal rows, and it shows what it should."""

from __future__ import annotations

import io
from typing import Any
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from rag_assets.laboratory.pictures import Picture, tradeoff_picture
from rag_assets.laboratory.sweep_runs import SweepRow
from rag_assets.laboratory.sweeps import Need, Sweep
from rag_assets.laboratory.verdicts import judge
from rag_assets_tests.laboratory.rows import rows_of, sweep

ROWS = rows_of({1: (0.5, 0.6, 0.7), 2: (0.8, 0.7, 0.9), 4: (0.81, 0.7, 0.9)}, {1: 1, 2: 1.4, 4: 9})
DECLARED = sweep(needs=[Need("chat", 2.0, 0.8), Need("batch", 200.0, 0.9)])


def picture(declared: Sweep, rows: list[SweepRow]) -> Picture:
    return tradeoff_picture(declared, rows, judge(declared, rows))


def test_equal_rows_give_equal_small_files() -> None:
    from PIL import Image

    first, second = picture(DECLARED, ROWS), picture(DECLARED, ROWS)
    assert first == second
    assert len(first.png) < 80_000
    assert len(first.svg) < 200_000
    image = Image.open(io.BytesIO(first.png))
    image.verify()
    assert image.size == (720, 460)
    assert ElementTree.fromstring(first.svg).tag.endswith("svg")
    assert b"<dc:date>" not in first.svg


def test_seeds_means_front_stop_and_needs_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Figure] = []
    save = Figure.savefig

    def keep(self: Figure, *args: Any, **options: Any) -> None:
        figures.append(self)
        save(self, *args, **options)

    monkeypatch.setattr(Figure, "savefig", keep)
    picture(DECLARED, ROWS)
    axes = figures[0].axes[0]
    offsets = axes.collections[0].get_offsets()
    assert sorted(map(tuple, offsets)) == sorted((row.p95_ms, row.mean_recall) for row in ROWS)
    lines = {line.get_label(): line for line in axes.lines}
    assert lines["mean over seeds"].get_xdata() == pytest.approx([1, 1.4, 9])
    assert lines["mean over seeds"].get_ydata() == pytest.approx([0.6, 0.8, 2.41 / 3])
    assert len(lines["Pareto front"].get_xdata()) == 3
    # The mean rises by 0.0033 from 2 to 4.
    assert lines["stop at nprobe = 4"].get_xdata() == pytest.approx([9])
    texts = {text.get_text() for text in axes.texts}
    assert {"chat: 2 ms, 0.8", "batch: 200 ms, 0.9", "1", "2", "4"} <= texts
    assert axes.get_title().endswith("nprobe varied over 3 seeds: inconclusive")


def test_failed_runs_are_counted_and_a_picture_of_nothing_says_so() -> None:
    none = rows_of(dict.fromkeys((1, 2, 4), (None, None, None)), {})
    some = [*ROWS[:-1], none[-1]]
    assert len({picture(DECLARED, rows).png for rows in (ROWS, some, none)}) == 3


def test_names_are_no_formulas() -> None:
    assert picture(sweep(needs=[Need("a $ and a $^$", 2.0, 0.8)]), ROWS).png
