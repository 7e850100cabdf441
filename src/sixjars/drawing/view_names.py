"""The views of attention, and which of them fit each kind of source positions."""

from collections.abc import Mapping

from sixjars.drawing.view import View
from sixjars_runtime.errors import DataError

FITTING: Mapping[str, tuple[str, ...]] = {
    "words": ("heatmap", "lines", "document", "copying", "pharaoh"),
    "segments": ("document", "heatmap", "lines", "copying", "pharaoh"),
    "grid": ("image",),
    "regions": ("heatmap",),
    "frames": ("frames", "heatmap"),
    "points": ("tour", "heatmap"),
}
"""The views for each kind of positions, the usual one first."""
WIDEST = 60
"""Columns that a heat map has room for; of a longer text, words are shaded or listed."""


def fitting_views(view: View) -> list[str]:
    """The views that this one can be shown as."""
    steps = max(len(output.tokens) for output in view.outputs)
    without = {
        "lines": steps < 2,
        "pharaoh": steps < 2,
        "copying": not view.copies,
        "frames": view.backdrop is None,
        # points of more than two dimensions cannot be drawn
        "tour": isinstance(view.backdrop, list) and len(view.backdrop[0]) > 2,
    }
    return [name for name in (*FITTING[view.kind], "json") if not without.get(name, False)]


def usual_view(view: View) -> str:
    """The view that fits what the positions are, and how many there are."""
    views = fitting_views(view)
    steps = len(view.outputs[0].tokens)
    is_long = len(view.source) > WIDEST
    if views[0] == "document" and steps > 1 and not is_long:
        return "heatmap"
    if views[0] == "heatmap" and steps == 1 and is_long and "document" in views:
        return "document"
    return views[0]


def chosen_view(view: View, name: str | None) -> str:
    """The view of that name, or the usual one; refuse what this model cannot give.

    >>> from sixjars.drawing.view import Output
    >>> output = Output("yes", ("yes",), ((1.0,),))
    >>> chosen_view(View({"source": "no"}, (output,), source=("no",)), "tour")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    sixjars_runtime.errors.DataError: this model cannot be shown as tour; it gives heatmap, document or ...
    """
    if name is None:
        return usual_view(view)
    possible = fitting_views(view)
    if name not in possible:
        names = f"{', '.join(possible[:-1])} or {possible[-1]}"
        raise DataError(f"this model cannot be shown as {name}; it gives {names}.")
    return name
