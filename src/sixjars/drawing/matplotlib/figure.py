"""An image file: its fonts, title and caption, and an area that is measured in inches.

All is set on the figure and its texts; the settings of matplotlib and the warnings of the process
stay as they are.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal
from weakref import WeakKeyDictionary

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from sixjars.drawing.matplotlib.fonts import FIRST, Numbers, fonts_for, legend, shown_text

COLORS = ("#c0392b", "#e08e0b", "#1f6fb2", "#27824a", "#7d3c98", "#444444")
"""The colours of curves."""
GREY = "#6b7280"
"""The colour of captions and other explanations."""
SMALL = 7.5
"""The size of captions in points."""
MARGIN, LINE, SMALL_LINE = 0.2, 0.2, 0.16
"""Inches around everything, for a line of the title and for one of the caption."""
MOST_LINES = 3
"""The most lines of a title."""
_NUMBERS: "WeakKeyDictionary[Figure, Numbers]" = WeakKeyDictionary()
"""The words that no font can show, for each figure that is being drawn."""


def drawable(figure: Figure, text: str, weight: str | int = "normal") -> str:
    """The text with a number in place of each word that no font has, for the legend.

    Names of ticks are made drawable before they are set: matplotlib writes them whenever it draws.
    """
    return text if _is_plain(text) else shown_text(text, _NUMBERS.setdefault(figure, {}), weight)


def _is_plain(text: str) -> bool:
    """Whether the first of the fonts has all of its letters."""
    return text.isascii() and text.replace("\n", "").isprintable()


def set_font(text: Text) -> None:
    """Set fonts that have the letters of a text; `$` and `_` are characters, not mathematics."""
    figure = text.get_figure(root=True)
    weight = text.get_fontweight()
    assert figure is not None
    shown = drawable(figure, text.get_text(), weight)
    fonts = [FIRST] if _is_plain(shown) else list(fonts_for(shown, weight)[0])
    text.set(fontfamily=fonts, parse_math=False, text=shown)


def width_of(text: Text) -> float:
    """The width of a text in inches."""
    set_font(text)
    assert text.figure is not None
    return text.get_window_extent().width / text.figure.dpi


def widths_of(words: Iterable[str], fontsize: float) -> dict[str, float]:
    """The width of each of some words in inches."""
    figure = figure_of(1.0, 1.0)
    texts = {word: figure.text(0.0, 0.0, word, fontsize=fontsize) for word in dict.fromkeys(words)}
    return {word: width_of(text) for word, text in texts.items()}


def fit(text: Text, inches: float) -> None:
    """Make a text smaller, then shorter, until it is no wider than so many inches."""
    size = full = float(text.get_fontsize())
    while width_of(text) > inches and size > 0.7 * full:
        size -= 0.5
        text.set_fontsize(size)
    while width_of(text) > inches and len(text.get_text()) > 2:
        text.set_text(text.get_text()[:-2] + "…")


def figure_of(width: float, height: float, layout: Literal["constrained"] | None = None) -> Figure:
    """An empty figure of so many inches."""
    figure = Figure(figsize=(width, height), dpi=150, layout=layout)
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: str | Path, title: str = "") -> None:
    """Write a figure to a file, whose folder is made."""
    if title:
        figure.suptitle("\n".join(title_lines(title, figure.get_figwidth())), fontsize=11)
    for text in figure.findobj(Text):
        set_font(text)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    numbers = _NUMBERS.pop(figure, {})
    if not numbers:
        figure.savefig(path)
        return
    room = max(int(figure.get_figwidth() * 15), 30)
    lines = "\n".join(line for entry in legend(numbers) for line in wrap(entry, room))
    below = -0.1 / figure.get_figheight()
    figure.text(0.02, below, lines, va="top", fontsize=SMALL, fontfamily=[FIRST])
    figure.savefig(path, bbox_inches="tight", pad_inches=0.1)


def title_lines(title: str, width: float) -> list[str]:
    """A title in at most three lines for so many inches; an output begins a line if there is room.

    >>> title_lines("my brother lives in delhi . → mera bhai dilli mein rehta hai .", 4.0)
    ['my brother lives in delhi .', '→ mera bhai dilli mein rehta hai .']
    """
    room = int(width * 11)
    lines = [line for part in re.split(r" (?=[→·] )", title) for line in even_lines(part, room)]
    if len(title) > room and len(lines) <= MOST_LINES:
        return lines
    return wrap(title, room, max_lines=MOST_LINES, placeholder=" …")


def even_lines(text: str, room: int) -> list[str]:
    """A text in as few lines of `room` characters as it needs, about equally long.

    >>> even_lines("where it is at least 0.05.", 24)
    ['where it is at', 'least 0.05.']
    """
    lines = wrap(text, room)
    least = max(ceil(len(text) / max(len(lines), 1)), 1)
    narrower = (wrap(text, size) for size in range(least, room))
    return next((even for even in narrower if len(even) == len(lines)), lines)


@contextmanager
def saved_page(
    path: Path, width: float, height: float, *, title: str, caption: str
) -> Iterator[Axes]:
    """An area of so many inches, (0, 0) at its top left, under a title and above a caption."""
    width = max(width, 2.4)
    heading = title_lines(title, width)
    room = int(width * 16)
    notes = [line for sentence in caption.splitlines() for line in even_lines(sentence, room)]
    top = MARGIN + (LINE * len(heading) + 0.05 if heading else 0.0)
    bottom = height + SMALL_LINE * len(notes) + MARGIN
    figure = figure_of(width + 2 * MARGIN, top + bottom)
    page = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    page.set(xlim=(-MARGIN, width + MARGIN), ylim=(bottom, -top), autoscale_on=False)
    page.set_axis_off()
    for at, line in enumerate(heading):
        y = MARGIN + (at + 0.4) * LINE - top
        page.text(width / 2, y, line, ha="center", va="center", fontsize=11)
    yield page
    for at, line in enumerate(notes):
        small_text(page, 0.0, height + (at + 0.6) * SMALL_LINE, line, va="center")
    save(figure, path)


def small_text(page: Axes, x: float, y: float, text: str, **place: Any) -> Text:
    """Write a number or an explanation in small grey letters."""
    return page.text(x, y, text, fontsize=SMALL, color=GREY, **place)


def quiet_grid(axes: Axes) -> None:
    """Pale horizontal lines, and no frame above and on the right."""
    axes.grid(axis="y", color="#dddddd")
    axes.spines[["top", "right"]].set_visible(False)
