"""Views of attention in a terminal: the words that each output word attended to, shaded, no wider than the window."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from sixjars.drawing.choice import WIDEST
from sixjars.drawing.draw import order_of, probability_of
from sixjars.drawing.frames import frame_groups, group_name, grouped
from sixjars.drawing.heatmap import in_terminal, style_of
from sixjars.drawing.lines import LEAST, copied_links
from sixjars.drawing.page import Weights, checked, percent, shortened
from sixjars.drawing.tour import tour_title
from sixjars.drawing.view import View

LONGEST = 16
"""Characters of a label."""
BLOCKS = " ░▒▓█"
"""A cell of an image, from the smallest weight to the largest."""


def view_in_terminal(view: View, name: str, *, width: int) -> Iterator[RenderableType]:
    """The best output of a view, as what is printed one below the other; the other outputs follow as texts."""
    yield from TERMINAL[name](view, width)
    if len(view.outputs) > 1:
        told = [
            f"{at + 1}. {one.text}  ({probability_of(view, at)})"
            for at, one in enumerate(view.outputs)
            if at
        ]
        yield Text("\n".join([*told, order_of(view)]), style="dim")


def _heat_map(view: View, width: int) -> Iterator[RenderableType]:
    """Tables; those of a long text would fill many screens, so its largest weights are listed."""
    if len(view.names) > WIDEST:
        yield from _lines(view, width)
        many = f"The largest weights; a heat map of {len(view.names)} columns is too wide for a terminal"
        yield Text(
            f"{many}: --out FILE.png draws it, --out FILE.html answers when it is pointed at.",
            style="dim",
        )
        return
    yield from _tables(view.outputs[0].weights, view.names, view.outputs[0].tokens, width)


def _tables(
    weights: Weights, names: Sequence[str], tokens: Sequence[str], width: int
) -> Iterator[RenderableType]:
    """A heat map in as many tables as it needs, some columns each."""
    above, beside = ([shortened(name, LONGEST) for name in some] for some in (names, tokens))
    room, peak = width - max(map(cell_len, beside)) - 3, max(max(row) for row in weights)
    begin, left_out = 0, 0
    while begin < len(above):
        end, used = begin, 0
        while end < len(above) and (
            end == begin or used + max(cell_len(above[end]) + 2, 4) <= room
        ):
            used += max(cell_len(above[end]) + 2, 4)
            end += 1
        some = [row[begin:end] for row in weights]
        if end - begin < len(above) and max(map(max, some)) < LEAST:
            left_out += end - begin
        else:
            yield in_terminal(some, source=above[begin:end], target=beside, peak=peak)
        begin = end
    if left_out:
        yield Text(
            f"{left_out} more columns, where every weight is below {LEAST:.2f}, are left out.",
            style="dim",
        )


def _lines(view: View, width: int) -> Iterator[Table]:
    """A line for each output word: the input words with the largest weights."""
    output, names = view.outputs[0], view.names
    table = _listing()
    for token, row in zip(output.tokens, output.weights, strict=True):
        best = sorted(range(len(names)), key=lambda at: -row[at])[:4]
        told = [f"{_which(names, at)} {row[at]:.2f}" for at in best if row[at] >= LEAST]
        table.add_row(
            Text(shortened(token, LONGEST)),
            Text("→"),
            Text("  ".join(told) or f"each below {LEAST:.2f}"),
        )
    yield table


def _which(names: Sequence[str], at: int) -> str:
    """The word at a position; one that comes more than once has its number."""
    return f"{names[at]} (word {at + 1})" if names.count(names[at]) > 1 else names[at]


def _copying(view: View, width: int) -> Iterator[Table]:
    """A line for each output word: the places of the same word in the input."""
    output, names = view.outputs[0], view.names
    table = _listing()
    for token, at, places, row in zip(
        output.tokens,
        output.copied,
        copied_links(names, output.tokens, output.copied),
        output.weights,
        strict=True,
    ):
        told = "  ".join(f"word {place + 1} {row[place]:.2f}" for place in places)
        sure = "copied from" if at is not None else "also in the input:" if places else "generated"
        table.add_row(
            Text(shortened(token, LONGEST)),
            Text(sure, style="bold" if at is not None else ""),
            Text(told),
        )
    yield table


def _listing() -> Table:
    table = Table(box=None, padding=(0, 1), show_edge=False, show_header=False)
    table.add_column(justify="right", style="bold", no_wrap=True)
    return table


def _document(view: View, width: int) -> Iterator[RenderableType]:
    """A row for each sentence: its weight, and its words shaded by √p_s · p_w; where there is one alone, its words."""
    names, levels = view.names, view.sentences(view.outputs[0])
    shares = [weight**0.5 * share for weight, own in levels for share in own]
    peak = max(shares) or 1.0
    segments = view.segments or (0,) * len(names)
    table = _listing()
    for (weight, _), (_, group) in zip(
        levels, groupby(range(len(names)), key=segments.__getitem__), strict=True
    ):
        words = [
            (names[at], style_of(shares[at] / peak) if shares[at] > 0.1 * peak else "")
            for at in group
        ]
        shaded = Text(" ").join(Text(word, style=style) for word, style in words)
        table.add_row(Text(percent(weight)), shaded)
    yield table if len(levels) > 1 else shaded
    best = sorted(range(len(names)), key=lambda at: -view.outputs[0].mean[at])[:5]
    told = "  ".join(f"{names[at]} {percent(view.outputs[0].mean[at])}" for at in best)
    yield Text(f"Most weight: {told}", style="dim")


def _image(view: View, width: int) -> Iterator[Table]:
    """A tile of blocks for each word, as many beside each other as there is room for."""
    output, columns = view.outputs[0], view.layout.shape[1]
    tiles = [
        _tile(token, row, columns) for token, row in zip(output.tokens, output.weights, strict=True)
    ]
    beside = max(1, width // (2 * columns + 3))
    for begin in range(0, len(tiles), beside):
        table = Table(box=None, padding=(0, 2, 1, 0), show_edge=False, show_header=False)
        table.add_row(*tiles[begin : begin + beside])
        yield table


def _tile(token: str, row: Sequence[float], columns: int) -> Text:
    peak = max(row) or 1.0
    blocks = [BLOCKS[round((len(BLOCKS) - 1) * weight / peak)] * 2 for weight in row]
    lines = ["".join(blocks[at : at + columns]) for at in range(0, len(blocks), columns)]
    head = f"{token[: max(2 * columns - 5, 4)]} {percent(peak)}"
    return Text("\n").join(
        [Text(head, style="bold"), *(Text(line, style="on grey15", no_wrap=True) for line in lines)]
    )


def _frames(view: View, width: int) -> Iterator[RenderableType]:
    """A heat map over the frames."""
    output, count = view.outputs[0], len(view.backdrop)
    groups = frame_groups(count)
    weights = grouped(
        checked(output.weights, len(output.tokens), count, positions="frames"), groups
    ).tolist()
    yield from _tables(weights, [group_name(group) for group in groups], output.tokens, width)


def _tour(view: View, width: int) -> Iterator[RenderableType]:
    """What the order amounts to, and the weights of each step."""
    output = view.outputs[0]
    yield Text(
        tour_title(view.backdrop, [int(place) for place in output.text.split()]), style="bold"
    )
    yield from _tables(
        output.weights, [str(at) for at in range(len(view.backdrop))], output.tokens, width
    )


TERMINAL: Mapping[str, Callable[[View, int], Iterator[RenderableType]]] = {
    "heatmap": _heat_map,
    "lines": _lines,
    "document": _document,
    "image": _image,
    "frames": _frames,
    "tour": _tour,
    "copying": _copying,
}
"""By the name of the view."""
