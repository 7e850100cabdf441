"""Views of attention in a terminal: shaded words, lists and tables as wide as the window.

A confusion matrix is such a table too: how often each label was predicted for each true one.

Dims: K labels, a row is a true one, a column a predicted one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from sixjars.drawing.tours import tour_title
from sixjars.drawing.view import View, order_of, probability_of, shortened
from sixjars.drawing.view_names import WIDEST
from sixjars.drawing.weights import (
    LEAST,
    Weights,
    checked,
    copied_links,
    digits,
    frame_groups,
    group_name,
    grouped,
    ink,
    percent,
)
from sixjars_runtime.errors import ShapeError

LONGEST = 16
"""Characters of a label."""
BLOCKS = " ░▒▓█"
"""A cell of an image, from the smallest weight to the largest."""
ROOM = 78
"""Characters of a line; the labels of a confusion matrix that would need more are numbered."""


def view_in_terminal(view: View, name: str, *, width: int) -> Iterator[RenderableType]:
    """The best output of a view, in parts to print; the other outputs follow as texts."""
    yield from TERMINAL[name](view, width)
    if len(view.outputs) > 1:
        lines = [
            f"{rank + 1}. {output.text}  ({probability_of(view, rank)})"
            for rank, output in enumerate(view.outputs)
        ]
        yield Text("\n".join([*lines[1:], order_of(view)]), style="dim")


def _heat_map(view: View, width: int) -> Iterator[RenderableType]:
    """Tables; those of a long text would fill many screens, so its largest weights are listed."""
    if len(view.names) > WIDEST:
        yield from _lines(view, width)
        note = (
            f"The largest weights; a heat map of {len(view.names)} columns is too wide for a "
            "terminal: --out FILE.png draws it, --out FILE.html answers when it is pointed at."
        )
        yield Text(note, style="dim")
        return
    yield from _tables(view.outputs[0].weights, view.names, view.outputs[0].tokens, width)


def _tables(
    weights: Weights, names: Sequence[str], tokens: Sequence[str], width: int
) -> Iterator[RenderableType]:
    """A heat map in as many tables as it needs, some columns each."""
    above = [shortened(name, LONGEST) for name in names]
    beside = [shortened(token, LONGEST) for token in tokens]
    room = width - max(map(cell_len, beside)) - 3
    peak = max(max(row) for row in weights)
    widths = [max(cell_len(name) + 2, 4) for name in above]
    begin = left_out = 0
    while begin < len(above):
        end = begin + 1
        while end < len(above) and sum(widths[begin : end + 1]) <= room:
            end += 1
        block = [row[begin:end] for row in weights]
        if end - begin < len(above) and max(map(max, block)) < LEAST:
            left_out += end - begin
        else:
            yield in_terminal(block, source=above[begin:end], target=beside, peak=peak)
        begin = end
    if left_out:
        rest = f"{left_out} more columns, where every weight is below {LEAST:.2f}, are left out."
        yield Text(rest, style="dim")


def _lines(view: View, width: int) -> Iterator[Table]:
    """A line for each output word: the input words with the largest weights."""
    output, names = view.outputs[0], view.names
    table = _listing()
    for token, row in zip(output.tokens, output.weights, strict=True):
        best = sorted(range(len(names)), key=lambda at: -row[at])[:4]
        words = []
        for at in (at for at in best if row[at] >= LEAST):
            number = f" (word {at + 1})" if names.count(names[at]) > 1 else ""
            words.append(f"{names[at]}{number} {row[at]:.2f}")
        listed = Text("  ".join(words) or f"each below {LEAST:.2f}")
        table.add_row(Text(shortened(token, LONGEST)), Text("→"), listed)
    yield table


def _copying(view: View, width: int) -> Iterator[Table]:
    """A line for each output word: the places of the same word in the input."""
    output, names = view.outputs[0], view.names
    table = _listing()
    links = copied_links(names, output.tokens, output.copied)
    rows = zip(output.tokens, output.copied, links, output.weights, strict=True)
    for token, copied, places, row in rows:
        origin = Text("also in the input:" if places else "generated")
        if copied is not None:
            origin = Text("copied from", style="bold")
        words = "  ".join(f"word {place + 1} {row[place]:.2f}" for place in places)
        table.add_row(Text(shortened(token, LONGEST)), origin, Text(words))
    yield table


def _listing() -> Table:
    table = Table(box=None, padding=(0, 1), show_edge=False, show_header=False)
    table.add_column(justify="right", style="bold", no_wrap=True)
    return table


def _document(view: View, width: int) -> Iterator[RenderableType]:
    """A row for each sentence: its weight, and its words shaded by √p_s · p_w."""
    names = view.names
    sentences = view.sentences(view.outputs[0])
    peak = max(max(sentence.depths) for sentence in sentences) or 1.0
    left = iter(names)
    table = _listing()
    for sentence in sentences:
        shares = [depth / peak for depth in sentence.depths]
        styles = [style_of(share) if share > 0.1 else "" for share in shares]
        words = zip(islice(left, len(styles)), styles, strict=True)
        shaded = Text(" ").join(Text(word, style=style) for word, style in words)
        table.add_row(Text(percent(sentence.weight)), shaded)
    yield table if len(sentences) > 1 else shaded
    best = sorted(range(len(names)), key=lambda at: -view.outputs[0].mean[at])[:5]
    listed = "  ".join(f"{names[at]} {percent(view.outputs[0].mean[at])}" for at in best)
    yield Text(f"Most weight: {listed}", style="dim")


def _image(view: View, width: int) -> Iterator[Table]:
    """A tile of blocks for each word, as many beside each other as there is room for."""
    output = view.outputs[0]
    columns = view.layout.shape[1]
    pairs = zip(output.tokens, output.weights, strict=True)
    tiles = [_tile(token, row, columns) for token, row in pairs]
    beside = max(1, width // (2 * columns + 3))
    for begin in range(0, len(tiles), beside):
        table = Table(box=None, padding=(0, 2, 1, 0), show_edge=False, show_header=False)
        table.add_row(*tiles[begin : begin + beside])
        yield table


def _tile(token: str, row: Sequence[float], columns: int) -> Text:
    peak = max(row) or 1.0
    blocks = [BLOCKS[round((len(BLOCKS) - 1) * weight / peak)] * 2 for weight in row]
    lines = ["".join(blocks[at : at + columns]) for at in range(0, len(blocks), columns)]
    head = Text(f"{token[: max(2 * columns - 5, 4)]} {percent(peak)}", style="bold")
    cells = [Text(line, style="on grey15", no_wrap=True) for line in lines]
    return Text("\n").join([head, *cells])


def _frames(view: View, width: int) -> Iterator[RenderableType]:
    output = view.outputs[0]
    count = len(view.backdrop)
    groups = frame_groups(count)
    weights = checked(output.weights, len(output.tokens), count, positions="frames")
    weights = grouped(weights, groups)
    names = [group_name(group) for group in groups]
    yield from _tables(weights.tolist(), names, output.tokens, width)


def _tour(view: View, width: int) -> Iterator[RenderableType]:
    """The length or order of the output, and the weights of each step."""
    output = view.outputs[0]
    yield Text(tour_title(view.backdrop, output.order), style="bold")
    names = [str(at) for at in range(len(view.backdrop))]
    yield from _tables(output.weights, names, output.tokens, width)


def in_terminal(
    weights: Weights, *, source: Sequence[str], target: Sequence[str], peak: float | None = None
) -> Table:
    """A heat map for the terminal, with two digits in large cells; brightest for `peak`."""
    texts = [[digits(weight) if weight >= LEAST else "·" for weight in row] for row in weights]
    peak = peak or max((weight for row in weights for weight in row), default=0.0) or 1.0
    shares = [[weight / peak for weight in row] for row in weights]
    return shaded_table(shares, texts, above=source, beside=target)


def confusion_in_terminal(labels: Sequence[str], counts: Sequence[Sequence[int]]) -> Table:
    """Counts in cells as bright as their share of the row; labels too long are numbered."""
    sizes = [len(row) for row in counts]
    if not labels or sizes != [len(labels)] * len(labels):
        raise ShapeError(
            f"{len(labels)} labels need as many rows of as many counts, but the rows have {sizes}."
        )
    counts_KK = np.asarray(counts, dtype=np.int64)
    shares_KK = counts_KK / counts_KK.sum(axis=1, keepdims=True).clip(min=1)
    above, beside = list(labels), list(labels)
    if max(map(len, labels)) + 2 + sum(max(len(label) + 2, 4) for label in labels) > ROOM:
        above = [str(at) for at in range(1, len(labels) + 1)]
        beside = [f"{label}  {number}" for label, number in zip(labels, above, strict=True)]
    texts = [[f" {count} " if count else "·" for count in row] for row in counts]
    corner = "true ↓  predicted →"
    table = shaded_table(shares_KK.tolist(), texts, above=above, beside=beside, corner=corner)
    right, every = counts_KK.trace(), counts_KK.sum()
    table.caption = f"{right} of {every} are right, {right / max(every, 1):.0%}."
    table.caption_justify = "left"
    return table


def shaded_table(
    shares: Weights,
    texts: Sequence[Sequence[str]],
    *,
    above: Sequence[str],
    beside: Sequence[str],
    corner: str = "",
) -> Table:
    """A table of cells as bright as their shares, with texts in them and names around them."""
    table = Table(box=None, padding=(0, 0), show_edge=False)
    table.add_column(corner, justify="right", header_style="grey50", style="bold", no_wrap=True)
    table.add_column(" ")
    for name in above:
        table.add_column(Text(f" {name} "), justify="center", header_style="bold", no_wrap=True)
    widest = max((len(text) for row in texts for text in row), default=0)
    for name, row, words in zip(beside, shares, texts, strict=True):
        cells = []
        for share, text, head in zip(row, words, above, strict=True):
            centred = text.center(max(len(head) + 2, widest, 4))
            cells.append(Text(centred, style=style_of(share)))
        table.add_row(Text(name), " ", *cells)
    return table


def style_of(share: float) -> str:
    """The style of a cell as bright as its share of the largest."""
    step = round(share * 23)  # of the greys of a terminal, 8, 18, ... 238 of 255
    return f"{ink([(8 + 10 * step) / 255] * 3)} on color({232 + step})"


TERMINAL: Mapping[str, Callable[[View, int], Iterator[RenderableType]]] = {
    "heatmap": _heat_map,
    "lines": _lines,
    "document": _document,
    "image": _image,
    "frames": _frames,
    "tour": _tour,
    "copying": _copying,
}
"""The functions by the name of the view."""
