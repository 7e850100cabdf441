"""A picture file: its fonts, title and caption, with an area in inches, or with curves on it.

All is set on the figure and its texts; the settings of matplotlib and the warnings of the process
stay as they are.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import ceil, inf
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final, Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sixjars.drawing.fonts import FIRST, Numbers, fonts_for, legend, shown_text
from sixjars.evaluation.by_length import FEW, Bucket
from sixjars_runtime.errors import ShapeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

Weights = Sequence[Sequence[float]]

COLORS = ("#c0392b", "#e08e0b", "#1f6fb2", "#27824a", "#7d3c98", "#444444")
"""The colours of curves."""
GREY = "#6b7280"
"""The colour of captions and other explanations."""
SMALL = 7.5
"""The size of captions in points."""
WHOLE: Final[Mapping[str, Any]] = {"clip_on": False}
"""For dots on the lowest line, which would be cut in half."""
NUMBER_WIDE = 0.09
"""The share of a picture that the number of examples of a range is wide, at most."""
MARGIN, LINE, SMALL_LINE = 0.2, 0.2, 0.16
"""Inches around everything, for a line of the title and for one of the caption."""
MOST_LINES = 3
"""The most lines of a title."""


def checked(weights: Weights, rows: int, columns: int, *, positions: str) -> NDArray[np.float64]:
    """Attention weights as an array (rows, columns): a row for each output token.

    >>> checked([[0.5, 0.5]], 1, 3, positions="frames")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    sixjars_runtime.errors.ShapeError: 1 output tokens and 3 frames need 1 rows of 3 attention weights, ...
    """
    sizes = [len(row) for row in weights]
    if sizes != [columns] * rows:
        raise ShapeError(
            f"{rows} output tokens and {columns} {positions} need {rows} rows of {columns} "
            f"attention weights, but the rows have {sizes}."
        )
    return np.asarray(weights, dtype=np.float64).reshape(rows, columns)


def percent(weight: float) -> str:
    """A weight as its share of the whole.

    >>> percent(0.314), percent(0.0051), percent(0.0)
    ('31%', '0.5%', '0%')
    """
    return f"{weight:.1%}" if 0 < weight < 0.0995 else f"{weight:.0%}"


def digits(weight: float) -> str:
    """A weight as a cell has room for it.

    >>> digits(0.314), digits(1.0)
    ('.31', '1.00')
    """
    return f"{weight:.2f}".removeprefix("0")


_NUMBERS: "WeakKeyDictionary[Figure, Numbers]" = WeakKeyDictionary()
"""The words that no font can show, for each figure that is being drawn."""


def shortened(text: str, most: int) -> str:
    """At most so many characters of a text.

    >>> shortened("attention", 6), shortened("attend", 6)
    ('atten…', 'attend')
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def drawable(figure: "Figure", text: str, weight: str | int = "normal") -> str:
    """The text with a number in place of each word that no font has, for the legend.

    Names of ticks are made drawable before they are set: matplotlib writes them whenever it draws.
    """
    return text if _is_plain(text) else shown_text(text, _NUMBERS.setdefault(figure, {}), weight)


def _is_plain(text: str) -> bool:
    """Whether the first of the fonts has all of its letters."""
    return text.isascii() and text.replace("\n", "").isprintable()


def set_font(text: "Text") -> None:
    """Set fonts that have the letters of a text; `$` and `_` are characters, not mathematics."""
    figure = text.get_figure(root=True)
    weight = text.get_fontweight()
    assert figure is not None
    shown = drawable(figure, text.get_text(), weight)
    fonts = [FIRST] if _is_plain(shown) else list(fonts_for(shown, weight)[0])
    text.set(fontfamily=fonts, parse_math=False, text=shown)


def ink(shade: Sequence[float]) -> str:
    """Black or white, whichever is easier to read on a shade, (red, green, blue) from 0 to 1.

    By the contrast of WCAG 2.1: relative luminance, whose geometric middle is 0.18.

    >>> ink((1.0, 1.0, 1.0)), ink((0.03, 0.19, 0.42))
    ('black', 'white')
    """
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in shade[:3]
    )
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "black" if luminance > 0.179 else "white"


def width_of(text: "Text") -> float:
    """The width of a text in inches."""
    set_font(text)
    assert text.figure is not None
    return text.get_window_extent().width / text.figure.dpi


def fit(text: "Text", inches: float) -> None:
    """Make a text smaller, then shorter, until it is no wider than so many inches."""
    size = full = float(text.get_fontsize())
    while width_of(text) > inches and size > 0.7 * full:
        size -= 0.5
        text.set_fontsize(size)
    while width_of(text) > inches and len(text.get_text()) > 2:
        text.set_text(text.get_text()[:-2] + "…")


def figure_of(
    width: float, height: float, layout: Literal["constrained"] | None = None
) -> "Figure":
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
) -> Iterator["Axes"]:
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


def small_text(page: "Axes", x: float, y: float, text: str, **place: Any) -> "Text":
    """Write a number or an explanation in small grey letters."""
    return page.text(x, y, text, fontsize=SMALL, color=GREY, **place)


def draw_by_length(
    path: str | Path,
    curves: Mapping[str, Sequence[Bucket]],
    *,
    metric: str,
    title: str = "",
    by: str = "length of the input (words)",
) -> None:
    """One line for each model, with a dot for each range of lengths, at its median.

    A dot of few examples is hollow, intervals are shaded, and counts of examples stand above.
    """
    figure = figure_of(7.0, 4.4, "constrained")
    axes = figure.add_subplot()
    for number, (name, buckets) in enumerate(curves.items()):
        _draw_curve(axes, number, name, buckets)
    every = [bucket for buckets in curves.values() for bucket in buckets]
    if any(bucket.value is not None and bucket.count < FEW for bucket in every):
        label = f"fewer than {FEW} examples"
        axes.scatter([], [], s=36, edgecolors=GREY, facecolors="white", label=label)
    if any(bucket.interval is not None for bucket in every):
        axes.fill_between([], [], [], color=GREY, alpha=0.3, linewidth=0, label="95 % interval")
    _count(axes, next(iter(curves.values()), ()))
    axes.set_xlabel(by)
    axes.set_ylabel(metric.replace("_", " "))
    axes.set_ylim(bottom=0.0)
    _plain(axes)
    save(figure, path, title)


def _draw_curve(axes: "Axes", number: int, name: str, buckets: Sequence[Bucket]) -> None:
    """The line of one model with its intervals, in the style of its number."""
    dots = [(b.place, b.value, b.count) for b in buckets if b.value is not None]
    color = COLORS[number % len(COLORS)]
    style: dict[str, Any] = {"linewidth": 2, "markersize": max(4.0, 8.0 - 1.5 * number), **WHOLE}
    if number:  # smaller dots and wider gaps show an equal line that was drawn before
        style["dashes"] = 3, 3 * number
    x, y, _ = zip(*dots, strict=True) if dots else ((), (), ())
    axes.plot(x, y, marker="o", color=color, label=name, **style)
    sure = [(b.place, b.interval.low, b.interval.high) for b in buckets if b.interval is not None]
    x, low, high = zip(*sure, strict=True) if sure else ((), (), ())
    axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
    few = [(x, y) for x, y, count in dots if count < FEW]
    x, y = zip(*few, strict=True) if few else ((), ())
    axes.scatter(x, y, s=12, color="white", zorder=3, **WHOLE)


def _count(axes: "Axes", buckets: Sequence[Bucket]) -> None:
    """The number of examples above each range; higher where there is no room beside the last."""
    low, high = axes.get_xlim()
    room = NUMBER_WIDE * (high - low)
    taken = [-inf] * len(buckets)  # where the last number at each height ends
    for bucket in sorted(buckets, key=lambda bucket: bucket.place):
        height = next(at for at, end in enumerate(taken) if end <= bucket.place)
        taken[height] = bucket.place + room
        where = (bucket.place, 1.01 + 0.04 * height)
        text = axes.text(*where, f"n = {bucket.count:,}", transform=axes.get_xaxis_transform())
        text.set(ha="center", va="bottom", fontsize=SMALL, color=GREY)


def _plain(axes: "Axes") -> None:
    """Whole numbers below, a quiet grid, and the names of the lines."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    quiet_grid(axes)
    axes.legend(frameon=False, fontsize=SMALL + 1)


def quiet_grid(axes: "Axes") -> None:
    """Pale horizontal lines, and no frame above and on the right."""
    axes.grid(axis="y", color="#dddddd")
    axes.spines[["top", "right"]].set_visible(False)
