"""A picture file: its fonts, its title and caption, and an area to draw on that is measured in inches.

All is set on the figure and its texts; the settings of matplotlib and the warnings of the process stay as they are.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from sixjars.errors import ShapeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

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
"""Those that are installed are tried in this order for each character."""
GREY = "#6b7280"
"""The colour of captions and other explanations."""
SMALL = 7.5
"""Their size in points."""
MARGIN, LINE, SMALL_LINE = 0.2, 0.2, 0.16
"""Inches around everything, for a line of the title and for one of the caption."""


def checked(weights: Weights, rows: int, columns: int, *, positions: str) -> NDArray[np.float64]:
    """Attention weights as an array (rows, columns): a row for each output token.

    >>> checked([[0.5, 0.5]], 1, 3, positions="frames")
    Traceback (most recent call last):
        ...
    sixjars.errors.ShapeError: 1 output tokens and 3 frames need 1 rows of 3 attention weights, but the rows have [2].
    """
    sizes = [len(row) for row in weights]
    if sizes != [columns] * rows:
        raise ShapeError(
            f"{rows} output tokens and {columns} {positions} need {rows} rows of {columns} attention weights, "
            f"but the rows have {sizes}."
        )
    return np.asarray(weights, dtype=np.float64).reshape(rows, columns)


def percent(weight: float) -> str:
    """A weight as its share of the whole.

    >>> percent(0.314), percent(0.0051), percent(0.0)
    ('31%', '0.5%', '0%')
    """
    return f"{weight:.1%}" if 0 < weight < 0.0995 else f"{weight:.0%}"


@cache
def _fonts(weight: str | int) -> tuple[list[str], frozenset[int]]:
    """The installed fonts, and the characters that they have."""
    from matplotlib.font_manager import FontProperties, findfont, get_font, get_font_names

    installed = set(get_font_names())
    names = [name for name in FONTS if name in installed]
    files = [findfont(FontProperties(family=name, weight=weight)) for name in names]
    return names, frozenset(code for file in files for code in get_font(file).get_charmap())


def drawable(text: str, weight: str | int = "normal") -> str:
    r"""The text with a box for each character that no font has, since matplotlib would warn of it.

    >>> drawable("a b\tc \U000e0fff")
    'a b c □'
    """
    known = _fonts(weight)[1]
    plain = ("\n" if one == "\n" else " " if one.isspace() else one for one in text)
    return "".join(one if one == "\n" or ord(one) in known else "□" for one in plain)


def set_font(text: "Text") -> None:
    """Give a text our fonts; `$` and `_` in it are characters and no mathematics."""
    weight = text.get_fontweight()
    text.set(fontfamily=_fonts(weight)[0], parse_math=False, text=drawable(text.get_text(), weight))


def width_of(text: "Text") -> float:
    """How many inches wide a text is."""
    set_font(text)
    assert text.figure is not None
    return text.get_window_extent().width / text.figure.dpi


def fit(text: "Text", inches: float) -> None:
    """Make a text smaller, and shorter if that is not enough, until it is no wider than so many inches."""
    size = full = float(text.get_fontsize())
    while width_of(text) > inches and size > 0.7 * full:
        size -= 0.5
        text.set_fontsize(size)
    while width_of(text) > inches and len(text.get_text()) > 2:
        text.set_text(text.get_text()[:-2] + "…")


def figure_of(width: float, height: float, layout: Literal["constrained"] | None = None) -> "Figure":
    """An empty figure of so many inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=150, layout=layout)
    FigureCanvasAgg(figure)
    return figure


def save(figure: "Figure", path: str | Path, title: str = "") -> None:
    """Write a figure to a file, whose folder is made."""
    from matplotlib.text import Text

    if title:
        figure.suptitle("\n".join(title_lines(title, figure.get_figwidth())), fontsize=11)
    for text in figure.findobj(Text):
        set_font(text)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def title_lines(title: str, width: float) -> list[str]:
    """A title in lines for a figure of so many inches, three at most."""
    return wrap(title, int(width * 11), max_lines=3, placeholder=" …")


@contextmanager
def saved_page(path: Path, width: float, height: float, *, title: str, caption: str) -> Iterator["Axes"]:
    """An area of so many inches, from (0, 0) at its top left, under a title and above a caption; saved at the end."""
    width = max(width, 2.4)
    heading = title_lines(title, width)
    notes = [line for sentence in caption.splitlines() for line in wrap(sentence, int(width * 16))]
    top, bottom = MARGIN + (LINE * len(heading) + 0.05 if heading else 0.0), height + SMALL_LINE * len(notes) + MARGIN
    figure = figure_of(width + 2 * MARGIN, top + bottom)
    page = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    page.set(xlim=(-MARGIN, width + MARGIN), ylim=(bottom, -top), autoscale_on=False)
    page.set_axis_off()
    for at, line in enumerate(heading):
        page.text(width / 2, MARGIN + (at + 0.4) * LINE - top, line, ha="center", va="center", fontsize=11)
    yield page
    for at, line in enumerate(notes):
        page.text(0.0, height + (at + 0.6) * SMALL_LINE, line, va="center", fontsize=SMALL, color=GREY)
    save(figure, path)
