"""A document with its sentences and words shaded by their attention weights; as an image file.

Figure 5 of Yang et al. (2016), Hierarchical Attention Networks for Document Classification.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, pairwise
from pathlib import Path
from typing import Any, final

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from sixjars.drawing.matplotlib.figure import GREY, fit, saved_page, small_text, widths_of
from sixjars.drawing.view import TURNS, View, probability_of
from sixjars.drawing.weights import ink, percent
from sixjars_runtime.errors import ShapeError
from sixjars_runtime.text.segments import OTHER, OWN

MOST_LINES = 100
"""Lines of a page; of a longer document, the sentences with the most weight are shown."""
NUMBER, CELL, LINE, BETWEEN = 0.34, 0.56, 0.215, 0.07
"""Inches for a sentence's number and its shaded weight, for a line, and between sentences."""
LEFT, WIDTH = NUMBER + CELL + 0.16, 7.5
"""Inches before the words, and for a line of words."""
SPACE, PAD = 0.07, 0.025
"""Inches between words, and of shade on either side of one."""
LETTERS = 9.0
"""The size of the words in points."""
FLAT = "Blue: the attention weight, averaged over the output; the largest is darkest."
"""The caption of a single sentence, which has all weight."""
CAPTION = (
    "Red: the weight of a sentence, all its words together.",
    "Blue: the weight of a word within its sentence, times √(weight of the sentence). "
    "The largest are darkest.",
)
Line = list[tuple[int, float, float]]
"""Words beside each other: which of the sentence's, its left edge and its width, in inches."""


@final
@dataclass(frozen=True)
class _Sentence:
    number: int
    words: tuple[str, ...]
    weight: float
    """p_s, the sum over its words."""
    word_weights: tuple[float, ...]
    """√p_s · p_w, where p_w is a word's share of its sentence."""
    lines: tuple[Line, ...]


Block = tuple[bool, list[_Sentence]]
"""One sentence that is shown (True), or the sentences that are left out between two of those."""


def draw_document(path: Path, view: View) -> None:
    """A block for each sentence: its number, its weight p_s as a shaded cell, and its shaded words.

    A word is as dark as √p_s · p_w beside the largest of the document, where p_w = weight / p_s is
    its share of its sentence (Yang et al. 2016, section 3.4): so a large weight in a light sentence
    is seen, but less than one in a heavy one. One sentence alone has neither number nor weight.
    Weights are averaged over the output tokens.
    """
    output = view.outputs[0]
    title = f"{output.text} ({probability_of(view.alone(0))}) ← {view.short}{view.over}"
    segments = view.segments or (0,) * len(view.source)
    left = 0.0 if len(set(segments)) == 1 else LEFT
    sentences = _sentences(view, segments, left)
    blocks = _chosen(sentences)
    peak = max((sentence.weight for sentence in sentences), default=0.0) or 1.0
    word_weights = (weight for sentence in sentences for weight in sentence.word_weights)
    word_peak = max(word_weights, default=0.0) or 1.0
    height = sum(map(_height, blocks))
    caption = _caption(sentences, blocks)
    with saved_page(path, left + WIDTH, height, title=title, caption=caption) as page:
        top = 0.0
        for block in blocks:
            shown, group = block
            if shown:
                if left:
                    _weigh(page, group[0], top, peak)
                _show(page, group[0], top, word_peak)
            else:
                share = percent(math.fsum(sentence.weight for sentence in group))
                small_text(page, LEFT, top + LINE / 2, f"… {len(group)} more, {share}", va="center")
            top += _height(block)


def _sentences(view: View, segments: Sequence[int], left: float) -> list[_Sentence]:
    words, output = view.source, view.outputs[0]
    weights = output.mean
    if not len(words) == len(segments) == len(weights):
        raise ShapeError(
            f"each word has a sentence and a weight, but there are {len(words)} words, "
            f"{len(segments)} sentences' numbers and {len(weights)} weights."
        )
    for before, after in pairwise(segments):
        if after < before:
            raise ShapeError(
                f"sentences come one after the other, but {after} comes after {before}."
            )
    widths = widths_of(words, LETTERS)
    left_words = iter(words)
    sentences = []
    for number, sentence in zip(dict.fromkeys(segments), view.sentences(output), strict=True):
        tokens = tuple(islice(left_words, len(sentence.shares)))
        lines = _lines([min(widths[word], WIDTH) for word in tokens], left)
        row = _Sentence(number + 1, tokens, sentence.weight, tuple(sentence.depths), lines)
        sentences.append(row)
    return sentences


def _lines(widths: Sequence[float], left: float) -> tuple[Line, ...]:
    """The words of a sentence in lines, no more than a page has."""
    lines: list[Line] = [[]]
    right = 0.0
    for at, width in enumerate(widths):
        if right and right + width > WIDTH:
            lines.append([])
            right = 0.0
        lines[-1].append((at, left + right, width))
        right += width + SPACE
    return tuple(lines[: MOST_LINES - 2])  # with room for what is left out before and after it


def _chosen(sentences: Sequence[_Sentence]) -> list[Block]:
    """All sentences, if there is room; else those with the most weight, and gaps between them."""
    if sum(len(sentence.lines) for sentence in sentences) <= MOST_LINES:
        return [(True, [sentence]) for sentence in sentences]
    taken: set[int] = set()
    for at in sorted(range(len(sentences)), key=lambda at: -sentences[at].weight):
        blocks = _blocks(sentences, taken | {at})
        if sum(map(_line_count, blocks)) > MOST_LINES:
            break
        taken.add(at)
    return _blocks(sentences, taken)


def _blocks(sentences: Sequence[_Sentence], taken: Collection[int]) -> list[Block]:
    """Sentences that are taken, and gaps for the others, unless that is one line anyway."""
    result: list[Block] = []
    for there, places in groupby(range(len(sentences)), key=lambda at: at in taken):
        group = [sentences[at] for at in places]
        short = len(group) == len(group[0].lines) == 1
        result += [(True, [sentence]) for sentence in group] if there or short else [(False, group)]
    return result


def _line_count(block: Block) -> int:
    shown, group = block
    return len(group[0].lines) if shown else 1


def _height(block: Block) -> float:
    """The height of a block in inches, with the space below."""
    return LINE * _line_count(block) + BETWEEN


def _caption(sentences: Sequence[_Sentence], blocks: Sequence[Block]) -> str:
    if not sentences:
        return "The document is empty."
    if not any(sentence.weight > 0 for sentence in sentences):
        return "No word has any weight."
    shown = [group[0].weight for there, group in blocks if there]
    if len(shown) == len(sentences):
        turns = all(sentence.words[0] in (OTHER, OWN) for sentence in sentences)
        lines = [*CAPTION, TURNS] if turns else CAPTION
        return FLAT if len(sentences) == 1 else "\n".join(lines)
    counts = f"{len(shown)} of {len(sentences)} sentences are shown, those with the most weight"
    return "\n".join([*CAPTION, f"{counts}: {percent(math.fsum(shown))} together."])


def _weigh(page: Axes, sentence: _Sentence, top: float, peak: float) -> None:
    middle = top + LINE / 2
    height = LINE * len(sentence.lines)
    small_text(page, NUMBER - 0.08, middle, str(sentence.number), ha="right", va="center")
    share, percentage = sentence.weight / peak, percent(sentence.weight)
    _shade(page, (NUMBER, top, CELL, height), "Reds", share)
    place: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8}
    page.text(NUMBER + CELL / 2, middle, percentage, color=_ink("Reds", share), **place)


def _show(page: Axes, sentence: _Sentence, top: float, word_peak: float) -> None:
    bottom = top + LINE * len(sentence.lines)
    for row, line in enumerate(sentence.lines):
        for at, left, width in line:
            share, y = sentence.word_weights[at] / word_peak, top + row * LINE
            if share > 0.01:
                _shade(page, (left - PAD, y, width + 2 * PAD, LINE), "Blues", share)
            look: dict[str, Any] = {"fontsize": LETTERS, "color": _ink("Blues", share)}
            word = page.text(left, y + 0.72 * LINE, sentence.words[at], **look)
            if width >= WIDTH:
                fit(word, WIDTH)
    if sum(map(len, sentence.lines)) < len(sentence.words):
        x, y = sentence.lines[0][0][1] + WIDTH, bottom - LINE / 2
        page.text(x, y, "…", va="center", fontsize=LETTERS, color=GREY)


def _shade(page: Axes, box: tuple[float, float, float, float], colors: str, share: float) -> None:
    """Draw a box, (left, top, width, height), as dark as its share, but never nearly black."""
    left, top, width, height = box
    look: dict[str, Any] = {"facecolor": _color(colors, share), "edgecolor": "none"}
    page.add_patch(Rectangle((left, top + 0.015), width, height - 0.03, **look))


def _color(colors: str, share: float) -> tuple[float, ...]:
    red, green, blue, alpha = colormaps[colors](0.9 * max(share, 0.0))
    return float(red), float(green), float(blue), float(alpha)


def _ink(colors: str, share: float) -> str:
    """The colour of letters on a shade; words without much weight have none."""
    return ink(_color(colors, share)) if share > 0.01 else "black"
