"""The HTML of views of texts: heat map, lines, document, copying."""

from html import escape
from itertools import groupby

from sixjars.drawing.document import TURNS
from sixjars.drawing.html_parts import Body, deep, shade, word, words, words_of
from sixjars.drawing.lines import copied_links
from sixjars.drawing.page import percent
from sixjars.drawing.view import View

WIDEST = 60
"""Columns of a heat map; a longer input is written as a text."""
WIDE = 24
"""Columns from which cells are narrow and have no numbers, so that all of them are seen at once."""
LINE = 108
"""Characters of a line of words, with the space between them."""
SMALL = 0.05
"""Smaller weights have no number in their cell."""


def heat_map_body(view: View) -> Body:
    """A table of cells; the words of a long input, which would not be readable above them, are a text."""
    output, names = view.outputs[0], view.names
    if len(names) > WIDEST:
        html = words("output", output.tokens, "t") + words("input", names, "s")
        return Body(html, names, output.weights)
    peak, narrow = max(max(row) for row in output.weights) or 1.0, len(names) > WIDE
    head = "".join(f'<th scope="col">{word(name, "s", at)}</th>' for at, name in enumerate(names))
    rows = []
    for step, (token, row) in enumerate(zip(output.tokens, output.weights, strict=True)):
        cells = "".join(
            f'<td class="{deep(weight / peak).strip()}" data-t="{step}" {shade(weight / peak)}>'
            f"{f'{weight:.2f}'.removeprefix('0') if weight >= SMALL and not narrow else ''}</td>"
            for weight in row
        )
        rows.append(f'<tr><th scope="row">{word(token, "t", step)}</th>{cells}</tr>')
    turns = f" {escape(TURNS)}" if view.has_turns else ""
    note = f'<p class="note">Strongest: the largest weight, {peak:.2f}. Rows: the output; columns: the input.{turns}</p>'
    kind = "heat narrow" if narrow else "heat"
    table = f'<table class="{kind}"><thead><tr><td></td>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return Body(f'<div class="scroll">{table}</div>{note}', names, output.weights)


def lines_body(view: View) -> Body:
    """The input above the output; the script draws the lines between them."""
    output, names = view.outputs[0], view.names
    above, below = words("input", names, "s"), words("output", output.tokens, "t")
    note = '<p class="note">Thickness: the attention weight, where it is at least 0.05.</p>'
    return Body(_pair(view, above, below) + note, names, output.weights)


def _pair(view: View, above: str, below: str) -> str:
    """Both sentences, and where lines are drawn between them; beside each other where one needs several lines."""
    room = max(sum(len(one) + 2 for one in some) for some in (view.names, view.outputs[0].tokens))
    kind = "pair tall" if room > LINE else "pair"
    return f'<div class="{kind}">{above}{below}<svg aria-hidden="true"></svg></div>'


def copying_body(view: View) -> Body:
    """As lines, but only from words to the same words of the input."""
    output, names = view.outputs[0], view.names
    made = []
    for step, (token, places) in enumerate(
        zip(output.tokens, copied_links(names, output.tokens, output.copied), strict=True)
    ):
        more = f' data-from="{",".join(map(str, places))}"'
        made.append(
            word(
                token,
                "t",
                step,
                more=more,
                kind=" copied" if output.copied[step] is not None else "",
            )
        )
    above, below = words("input", names, "s"), words_of("output", made)
    certain = "Orange: words that are not in the vocabulary, so they can only be copied."
    if all(at is None for at in output.copied):
        certain = "No word of this output had to be copied."
    note = f'<p class="note">{certain} Lines: the weight of the same word in the input.</p>'
    return Body(_pair(view, above, below) + note, names, output.weights)


def document_body(view: View) -> Body:
    """Sentences with their weights, and words shaded as in the picture: √p_s · p_w, averaged over the output."""
    output, names = view.outputs[0], view.names
    levels = view.sentences(output)
    if len(levels) == 1:
        return _flat(view)
    peak = max(weight for weight, _ in levels) or 1.0
    shares = [weight**0.5 * share for weight, own in levels for share in own]
    most = max(shares) or 1.0
    segments = view.segments or (0,) * len(names)
    items = []
    for (weight, _), (_, group) in zip(
        levels, groupby(range(len(names)), key=segments.__getitem__), strict=True
    ):
        own = " ".join(word(names[at], "s", at, share=shares[at] / most) for at in group)
        share = weight / peak
        number = (
            f'<span class="sentence{deep(share)}" {shade(share)}>{escape(percent(weight))}</span>'
        )
        items.append(f'<li>{number}<p dir="auto">{own}</p></li>')
    turns = f" {escape(TURNS)}" if view.has_turns else ""
    note = (
        '<p class="note">Red: the weight of a sentence. Blue: the weight of a word in it, times √(weight of the '
        f"sentence). Pointing at a word of the output shows its own weights.{turns}</p>"
    )
    html = f'{words("output", output.tokens, "t")}<ol class="document">{"".join(items)}</ol>{note}'
    return Body(html, names, output.weights)


def _flat(view: View) -> Body:
    """A text without sentences, or of one: its words alone, shaded by their weights, averaged over the output."""
    output, names = view.outputs[0], view.names
    most = max(output.mean) or 1.0
    own = " ".join(
        word(name, "s", at, share=output.mean[at] / most) for at, name in enumerate(names)
    )
    note = (
        f'<p class="note">Blue: the weight of a word, averaged over the output; strongest is {escape(percent(most))}. '
        "Pointing at a word of the output shows its own weights.</p>"
    )
    html = f'{words("output", output.tokens, "t")}<div class="document"><p dir="auto">{own}</p></div>{note}'
    return Body(html, names, output.weights)
