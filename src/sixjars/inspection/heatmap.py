"""P1: what was attended to, output pieces against input pieces; as a picture file and in the terminal."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Literal

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text as Writing

Weights = Sequence[Sequence[float]]

FONTS = (
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans Devanagari",
    "Lohit Devanagari",
    "Nirmala UI",
    "Mangal",
    "Arial Unicode MS",
)
"""Those that the machine has are tried in this order for each letter."""
GREY = "#6b7280"
"""For what explains a picture without being a part of it."""


@contextmanager
def saved_figure(
    path: Path, width: float, height: float, *, layout: Literal["constrained"] | None = None
) -> Iterator["Figure"]:
    """An empty figure of so many inches to draw on; it is saved to `path`, whose folder is made, at the end."""
    import matplotlib as mpl
    from matplotlib import font_manager
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    installed = set(font_manager.get_font_names())
    with (
        mpl.rc_context({"font.family": [f for f in FONTS if f in installed], "text.parse_math": False}),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # a letter that no font has is drawn as a box
        figure = Figure(figsize=(width, height), dpi=150, layout=layout)
        FigureCanvasAgg(figure)
        yield figure
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)


@contextmanager
def saved_page(path: Path, width: float, height: float) -> Iterator["Axes"]:
    """An empty page to draw on, measured in inches from its top left corner; it is saved to `path` at the end."""
    with saved_figure(path, width, height) as figure:
        page = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        page.set(xlim=(0.0, width), ylim=(height, 0.0), autoscale_on=False)
        page.set_axis_off()
        yield page


def width_of(text: "Writing") -> float:
    """How many inches wide a text is."""
    figure = text.get_figure(root=True)
    assert figure is not None
    return text.get_window_extent().width / figure.dpi


def fit(text: "Writing", inches: float) -> None:
    """Make a text smaller, and shorter if that is not enough, until it is no wider than so many inches."""
    size = full = float(text.get_fontsize())
    while width_of(text) > inches and size > 0.7 * full:
        size -= 0.5
        text.set_fontsize(size)
    while width_of(text) > inches and len(text.get_text()) > 2:
        text.set_text(text.get_text()[:-2] + "…")


def heat_map(path: Path, weights: Weights, *, source: Sequence[str], target: Sequence[str], title: str = "") -> None:
    """A heat map of α_tj as a picture: each cell is one weight, each row adds up to 1."""
    width, height = 2.2 + 0.55 * len(source), 1.6 + 0.42 * len(target)
    with saved_figure(path, width, height, layout="constrained") as figure:
        axes = figure.add_subplot()
        image = axes.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
        axes.set_xticks(range(len(source)), source, rotation=45, ha="left", rotation_mode="anchor")
        axes.set_yticks(range(len(target)), target)
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_xticks([at - 0.5 for at in range(1, len(source))], minor=True)
        axes.set_yticks([at - 0.5 for at in range(1, len(target))], minor=True)
        axes.grid(which="minor", color="#e8eef4", linewidth=1.0)
        axes.tick_params(which="minor", length=0)
        for row, line in enumerate(weights):
            for column, weight in enumerate(line):
                if weight >= 0.1:
                    color = "white" if weight > 0.5 else "black"
                    axes.text(column, row, f"{weight:.2f}", ha="center", va="center", fontsize=7, color=color)
        figure.colorbar(image, ax=axes, shrink=0.8, label="attention weight α")
        if title:
            figure.suptitle(fill(title, int(width * 11)), fontsize=11)


def in_terminal(weights: Weights, *, source: Sequence[str], target: Sequence[str]) -> Table:
    """The same as a table of shaded cells."""
    table = Table(box=None, padding=(0, 0), show_edge=False)
    table.add_column("", justify="right", style="bold")
    table.add_column(" ")
    for word in source:
        table.add_column(Text(f" {word} "), justify="center", header_style="bold", no_wrap=True)
    for word, line in zip(target, weights, strict=True):
        cells = [_cell(weight, len(name) + 2) for weight, name in zip(line, source, strict=True)]
        table.add_row(Text(word), " ", *cells)
    return table


def shaded(told: str, weight: float, width: int) -> Text:
    """A block as bright as the weight, with something written on it."""
    ink = "black" if weight > 0.5 else "grey70"
    return Text(told.center(max(width, 4)), style=f"{ink} on color({232 + round(weight * 23)})")


def _cell(weight: float, width: int) -> Text:
    """The block of a weight, with its first two digits where it is not small."""
    return shaded(f"{weight:.2f}".removeprefix("0") if weight >= 0.05 else "·", weight, width)
