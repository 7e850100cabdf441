"""Which views of attention there are, and which of them fit what the source positions are."""

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
"""By what the positions are, the usual one first."""
WIDEST = 60
"""Words that a heat map has room for; a longer text of which only one thing is output has its words shaded."""


def views_of(view: View) -> list[str]:
    """The views that this one can be shown as."""
    steps = max(len(one.tokens) for one in view.outputs)
    without = {
        "lines": steps < 2,
        "pharaoh": steps < 2,
        "copying": not view.copies,
        "frames": view.backdrop is None,
        "tour": isinstance(view.backdrop, list)
        and len(view.backdrop[0]) > 2,  # no more dimensions can be drawn
    }
    return [name for name in (*FITTING[view.kind], "json") if not without.get(name, False)]


def usual(view: View) -> str:
    """The view that fits what the positions are, and how many there are."""
    first, steps, long = views_of(view)[0], len(view.outputs[0].tokens), len(view.source) > WIDEST
    if first == "document" and steps > 1 and not long:
        return "heatmap"
    return (
        "document"
        if first == "heatmap" and steps == 1 and long and "document" in views_of(view)
        else first
    )


def chosen(view: View, name: str | None) -> str:
    """The view of that name, or the usual one; refuses one that this model cannot give.

    >>> from sixjars.drawing.view import Output
    >>> chosen(View({"source": "no"}, (Output("yes", ("yes",), ((1.0,),)),), source=("no",)), "tour")
    Traceback (most recent call last):
        ...
    sixjars_runtime.errors.DataError: this model cannot be shown as tour; it gives heatmap, document or json.
    """
    if name is None:
        return usual(view)
    possible = views_of(view)
    if name not in possible:
        raise DataError(
            f"this model cannot be shown as {name}; it gives {', '.join(possible[:-1])} or {possible[-1]}."
        )
    return name
