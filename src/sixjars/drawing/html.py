"""Interactive views of attention as HTML, in one file that loads nothing from outside.

`fragment` makes the HTML of one view, `page` a whole document of many fragments, with style and
script once. All text is escaped. The policy lets a browser load nothing: what is not in the file
cannot be shown.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Literal

from sixjars.drawing.choice import chosen
from sixjars.drawing.draw import order_of, probability_of
from sixjars.drawing.html_media import frames_body, image_body, tour_body
from sixjars.drawing.html_parts import Body
from sixjars.drawing.html_text import copying_body, document_body, heat_map_body, lines_body
from sixjars.drawing.sections import kept
from sixjars.drawing.view import Output, View

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""What a browser may load: only what is in the file."""
BODIES: Mapping[str, Callable[[View], Body]] = {
    "heatmap": heat_map_body,
    "lines": lines_body,
    "document": document_body,
    "image": image_body,
    "frames": frames_body,
    "tour": tour_body,
    "copying": copying_body,
}
"""The functions by the name of the view."""
LIVE = ("colours", "view", "heat", "lines", "document", "image", "frames", "tour")
"""The names of the styles and scripts of views."""
HINT = "Point at a word, or press an arrow key, to see what it attends to; a click keeps it."


def fragment(view: View, name: str | None = None, *, key: str = "view-1") -> str:
    """The HTML of a view, as named or as it fits; `key` is its id, unique on a page.

    >>> from sixjars.drawing.view import Output
    >>> output = Output("ja", ("ja",), ((1.0,),))
    >>> shown = fragment(View({"source": "<b>"}, (output,), source=("<b>",)))
    >>> "&lt;b&gt;" in shown, "<b>" in shown
    (True, False)
    """
    shown = chosen(view, name)
    ranks, several = range(len(view.outputs)), len(view.outputs) > 1
    panels = "".join(
        _panel(view.alone(rank), shown, f"{key}-{rank}", hidden=rank > 0, tab=several)
        for rank in ranks
    )
    text = escape(view.outputs[0].text)
    tablist = ""
    output = f' → <span class="found">{text}</span> {_probability(view, 0)}'
    if several:
        tabs = "".join(_tab(view, rank, key) for rank in ranks)
        tablist = f'<div class="tabs" role="tablist" aria-label="Outputs">{tabs}</div>'
        tablist += f'<p class="note">{escape(order_of(view))}</p>'
        output = ""
    forced = ' <span class="note">(this output was given)</span>' if view.forced else ""
    return (
        f'<figure class="view" id="{key}" data-view="{shown}">'
        f'<figcaption><span class="given">{escape(view.short)}</span>{output}{forced}'
        f'<span class="note">{escape(view.over)}</span></figcaption>{tablist}{panels}</figure>'
    )


def page(fragments: Iterable[str], *, title: str, live: Sequence[str] = ()) -> str:
    """A whole document of fragments, which may be views or any other HTML; it needs no network.

    `live` names styles and scripts that are in it besides those of views.

    >>> page(["<p>one</p>"], title="<x>").count("&lt;x&gt;")
    2
    """
    style, script = (live_files((*LIVE, *live), ending) for ending in ("css", "js"))
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
        f"<title>{escape(title)}</title><style>\n{style}</style>"
    )
    body = "\n".join(fragments)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n<h1>{escape(title)}</h1>\n'
        f"<main>\n{body}\n</main>\n"
        f"<script>\n{script}</script>\n</body></html>\n"
    )


def live_files(
    names: Iterable[str], ending: Literal["css", "js"], features: Collection[str] | None = None
) -> str:
    """The styles or scripts of these names, with all sections, or those of some features.

    >>> live_files(["tour"], "js")
    ''
    """
    folder = files("sixjars.drawing").joinpath("live")
    paths = (folder.joinpath(f"{name}.{ending}") for name in names)
    return "".join(kept(path.read_text("utf-8"), features) for path in paths if path.is_file())


def _probability(view: View, rank: int) -> str:
    return f"<small>{escape(probability_of(view, rank))}</small>"


def _tab(view: View, rank: int, key: str) -> str:
    chosen = str(rank == 0).lower()
    text = escape(view.outputs[rank].text)
    ids = f'id="{key}-{rank}-tab" aria-controls="{key}-{rank}"'
    index = "0" if rank == 0 else "-1"
    return (
        f'<button type="button" role="tab" {ids} aria-selected="{chosen}" tabindex="{index}">'
        f"{rank + 1}. {text} {_probability(view, rank)}</button>"
    )


def _panel(view: View, name: str, key: str, *, hidden: bool, tab: bool) -> str:
    """One output: its drawing, a line for its status, and all its weights as a table."""
    body = BODIES[name](view)
    label = f'aria-labelledby="{key}-tab"' if tab else 'aria-label="Attention"'
    return (
        f'<div role="tabpanel" id="{key}" {label}{" hidden" if hidden else ""}>{body.html}'
        f'<p class="status" aria-live="polite">{HINT}</p>'
        "<details><summary>All weights as a table</summary>"
        f"{_table(body, view.outputs[0])}</details></div>"
    )


def _table(body: Body, output: Output) -> str:
    """The weights that are drawn, a row for each output word; the script reads them here."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in body.names)
    rows = []
    for token, row in zip(output.tokens, body.weights, strict=True):
        cells = "".join(f"<td>{weight:.5f}</td>" for weight in row)
        rows.append(f'<tr><th scope="row">{escape(token)}</th>{cells}</tr>')
    return (
        '<div class="scroll"><table class="weights"><caption class="note">'
        "A row for each word of the output, a column for each position of the input.</caption>"
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
