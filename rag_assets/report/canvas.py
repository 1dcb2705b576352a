"""SVG elements to stand in the page: text stays text, and colours are the page's own.

Matplotlib draws with stand-in colours that are then replaced by the page's CSS variables, so that a
picture follows light and dark. Equal rows give equal bytes with equal library versions.
"""

from __future__ import annotations

import base64
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from markupsafe import Markup

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TEXT, MUTED, LINE, PAPER = "#010101", "#020202", "#030303", "#040404"
SERIES, SOFT, MARK, GOOD, BAD = "#050505", "#060606", "#070707", "#080808", "#090909"
_COLOURS = {
    TEXT: "--text",
    MUTED: "--muted",
    LINE: "--line",
    PAPER: "--paper",
    SERIES: "--series",
    SOFT: "--series-soft",
    MARK: "--mark",
    GOOD: "--good",
    BAD: "--bad",
}
_WIDTH, _FONT_SIZE = 9, 9  # inches, points
_STAND_IN = re.compile("|".join(_COLOURS))
_TAG = re.compile(r"<[^>]*>")
_SETTINGS: Any = {
    "svg.hashsalt": "rag-assets",
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": _FONT_SIZE,
    "text.color": TEXT,
    "axes.edgecolor": LINE,
    "axes.labelcolor": TEXT,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


@contextmanager
def house_style() -> Iterator[None]:
    """Everything that is drawn within follows the page."""
    import matplotlib

    with matplotlib.rc_context(_SETTINGS):
        yield


def new_figure(height: float, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure as wide as the page, `height` in inches, with `panels` axes side by side."""
    figure, [axes] = new_grid(height, 1, panels)
    return figure, axes


def new_grid(height: float, rows: int, panels: int) -> tuple[Figure, list[list[Axes]]]:
    """The same with several rows; a column of panels shares its scales."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    figure.patch.set_alpha(0)
    grid = figure.subplots(rows, panels, squeeze=False, sharex="col", sharey="col")
    return figure, [list(row) for row in grid]


def name_lines(axes: Axes, labels: Sequence[str]) -> None:
    """One line per label, the first on top, with a grid across."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    # Matplotlib measures with its own font, which has no wide letters: they need 0.4 em more.
    wide = max(sum(east_asian_width(letter) in "WF" for letter in label) for label in labels)
    left = 0.4 * wide * _FONT_SIZE / (72 * _WIDTH)
    layout = figure.get_layout_engine() if (figure := axes.get_figure()) else None
    if wide and isinstance(layout, ConstrainedLayoutEngine):
        layout.set(rect=(left, 0, 1 - left, 1))
    settings: dict[str, Any] = {"length": 0, "labelcolor": TEXT}
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", **settings)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", linewidth=0.6)


def element(figure: Figure, name: str) -> Markup:
    """The figure as an SVG element; `name` keeps its ids apart from other pictures'."""
    file = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with warnings.catch_warnings():  # the reader's font has the letters that Matplotlib's lacks
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
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


def data_uri(picture: Markup) -> str:
    """An element as a picture of its own, with the page's colours in light and dark."""
    css = Path(__file__).with_name("style.css").read_text("utf-8")
    # The variables, for light and for dark: what stands before the first rule that uses them.
    theme = css[: css.index("* {")]
    size = re.search(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', picture)
    assert size is not None
    # A str, since Markup would escape what is put in.
    alone = str(picture).replace(
        "<svg ",
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[1]}pt" height="{size[2]}pt" ',
        1,
    )
    paper = '<rect width="100%" height="100%" style="fill: var(--paper)"/>'
    alone = alone.replace(">", f"><style>{theme}</style>{paper}", 1)
    return f"data:image/svg+xml;base64,{base64.b64encode(alone.encode()).decode('ascii')}"
