"""The HTML of views of texts: heat map, lines, document, copying."""

from html import escape
from math import inf

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
    """A table of cells; a long input is a text, for its words would not be readable above cells."""
    output, names = view.outputs[0], view.names
    if len(names) > WIDEST:
        html = words("output", output.tokens, "t") + words("input", names, "s")
        return Body(html, names, output.weights)
    peak = max(max(row) for row in output.weights) or 1.0
    kind, least = ("heat narrow", inf) if len(names) > WIDE else ("heat", SMALL)
    head = "".join(f'<th scope="col">{word(name, "s", at)}</th>' for at, name in enumerate(names))
    rows = []
    for step, (token, row) in enumerate(zip(output.tokens, output.weights, strict=True)):
        cells = "".join(_cell(weight, peak, least, step) for weight in row)
        rows.append(f'<tr><th scope="row">{word(token, "t", step)}</th>{cells}</tr>')
    turns = f" {escape(TURNS)}" if view.has_turns else ""
    html = (
        f'<div class="scroll"><table class="{kind}"><thead><tr><td></td>{head}</tr></thead>'
        f'<tbody>{"".join(rows)}</tbody></table></div><p class="note">Strongest: the largest '
        f"weight, {peak:.2f}. Rows: the output; columns: the input.{turns}</p>"
    )
    return Body(html, names, output.weights)


def _cell(weight: float, peak: float, least: float, step: int) -> str:
    """A cell of a heat map, with a number from the least weight on that has one."""
    share, number = weight / peak, f"{weight:.2f}".removeprefix("0") if weight >= least else ""
    return f'<td class="{deep(share).strip()}" data-t="{step}" {shade(share)}>{number}</td>'


def lines_body(view: View) -> Body:
    """The input above the output; the script draws the lines between them."""
    output, names = view.outputs[0], view.names
    above, below = words("input", names, "s"), words("output", output.tokens, "t")
    note = '<p class="note">Thickness: the attention weight, where it is at least 0.05.</p>'
    return Body(_pair(view, above, below) + note, names, output.weights)


def _pair(view: View, above: str, below: str) -> str:
    """Both sentences, with room for lines between them; side by side where one is long."""
    room = max(
        sum(map(len, texts)) + 2 * len(texts) for texts in (view.names, view.outputs[0].tokens)
    )
    kind = "pair tall" if room > LINE else "pair"
    return f'<div class="{kind}">{above}{below}<svg aria-hidden="true"></svg></div>'


def copying_body(view: View) -> Body:
    """Lines from words of the output to the same words of the input."""
    output, names = view.outputs[0], view.names
    spans = []
    for step, places in enumerate(copied_links(names, output.tokens, output.copied)):
        more = f' data-from="{",".join(map(str, places))}"'
        kind = " copied" if output.copied[step] is not None else ""
        spans.append(word(output.tokens[step], "t", step, more=more, kind=kind))
    above, below = words("input", names, "s"), words_of("output", spans)
    certain = "Orange: words that are not in the vocabulary, so they can only be copied."
    if all(at is None for at in output.copied):
        certain = "No word of this output had to be copied."
    note = f'<p class="note">{certain} Lines: the weight of the same word in the input.</p>'
    return Body(_pair(view, above, below) + note, names, output.weights)


def document_body(view: View) -> Body:
    """Sentences with their weights, and words shaded by √p_s · p_w, averaged over the output."""
    output, names = view.outputs[0], view.names
    levels = view.sentences(output)
    if len(levels) == 1:
        return _flat(view)
    peak = max(weight for weight, _ in levels) or 1.0
    most = max(weight**0.5 * share for weight, shares in levels for share in shares) or 1.0
    items = []
    left = enumerate(names)
    for weight, shares in levels:
        depths = [weight**0.5 * share / most for share in shares]
        places = zip(depths, left, strict=False)
        spans = " ".join(word(name, "s", at, share=depth) for depth, (at, name) in places)
        share = weight / peak
        items.append(
            f'<li><span class="sentence{deep(share)}" {shade(share)}>{escape(percent(weight))}'
            f'</span><p dir="auto">{spans}</p></li>'
        )
    turns = f" {escape(TURNS)}" if view.has_turns else ""
    html = (
        f'{words("output", output.tokens, "t")}<ol class="document">{"".join(items)}</ol>'
        '<p class="note">Red: the weight of a sentence. Blue: the weight of a word in it, times '
        "√(weight of the sentence). Pointing at a word of the output shows its own "
        f"weights.{turns}</p>"
    )
    return Body(html, names, output.weights)


def _flat(view: View) -> Body:
    """The words of a text of one sentence, shaded by their weights averaged over the output."""
    output, names = view.outputs[0], view.names
    most = max(output.mean) or 1.0
    shares = enumerate(zip(names, output.mean, strict=True))
    spans = " ".join(word(name, "s", at, share=mean / most) for at, (name, mean) in shares)
    html = (
        f'{words("output", output.tokens, "t")}<div class="document"><p dir="auto">{spans}</p>'
        '</div><p class="note">Blue: the weight of a word, averaged over the output; strongest is '
        f"{escape(percent(most))}. Pointing at a word of the output shows its own weights.</p>"
    )
    return Body(html, names, output.weights)
