"""P5: a document with its sentences and words shaded by their weights, as a picture file.

Figure 5 of Yang et al. (2016), Hierarchical Attention Networks for Document Classification.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, final

from sixjars.errors import ShapeError
from sixjars.inspection.heatmap import GREY, fit, saved_figure, width_of
from sixjars.inspection.overlay import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 9.0
"""Inches."""
MOST_LINES = 100
"""Of a longer document, the sentences with the most weight are shown."""
MARGIN, NUMBER, CELL, LINE, BETWEEN = 0.25, 0.34, 0.56, 0.215, 0.07
"""Inches around everything, for a sentence's number and its shaded weight, for a line, and between sentences."""
TEXT_LEFT = MARGIN + NUMBER + CELL + 0.16
TEXT_WIDTH = WIDTH - MARGIN - TEXT_LEFT
SPACE, PAD = 0.07, 0.025
"""Inches between words, and of shade on either side of one."""
LETTERS, SMALL = 9.0, 7.5
"""Sizes of fonts in points."""
CAPTION = (
    "Red: the weight of a sentence, all its words together.",
    "Blue: the weight of a word within its sentence, times √(weight of the sentence). The largest are darkest.",
)


@final
@dataclass(frozen=True)
class _Sentence:
    """One part of a document."""

    number: int
    words: tuple[str, ...]
    weight: float
    """p_s, the sum over its words."""
    light: float
    """p_s beside the largest of the document."""
    lights: tuple[float, ...]
    """√p_s · p_w beside the largest of the document, where p_w is a word's share of its sentence."""


Line = list[tuple[int, float, float]]
"""Words that stand beside each other: which of the sentence's, where it begins and how wide it is, in inches."""


@final
@dataclass(frozen=True)
class _Block:
    """A sentence in lines; or the place of those that are not shown."""

    sentences: tuple[_Sentence, ...]
    """One; or all that are left out here."""
    lines: tuple[Line, ...]
    """None where sentences are left out."""

    @property
    def height(self) -> float:
        """Inches, the space below included."""
        return LINE * max(len(self.lines), 1) + BETWEEN


def draw_document(
    path: Path,
    *,
    words: Sequence[str],
    segments: Sequence[int],
    weights: Sequence[float],
    title: str = "",
) -> None:
    """A block for each sentence: its number, its weight p_s as a shaded cell, and its shaded words.

    `segments` says which sentence each word belongs to, counted from 0; `weights` are over the words of the whole
    document. A word is as dark as √p_s · p_w beside the largest of the document, where p_w = weight / p_s is its
    share of its sentence (Yang et al. 2016, section 3.4): so a strong word of a weak sentence is seen, but less than
    that of a strong one.
    """
    sentences = _sentences(words, segments, weights)
    heading = tuple(wrap(title, int(WIDTH * 11), max_lines=3, placeholder=" …"))
    with saved_figure(path, WIDTH, 1.0) as figure:
        blocks = _chosen([_Block((one,), lines) for one, lines in _in_lines(figure, sentences)])
        caption = _caption(sentences, blocks)
        height = 2 * MARGIN + LINE * len(heading) + sum(block.height for block in blocks) + 0.16 * len(caption) + 0.1
        figure.set_size_inches(WIDTH, height)
        page = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        page.set(xlim=(0.0, WIDTH), ylim=(height, 0.0), autoscale_on=False)
        page.set_axis_off()
        for at, line in enumerate(heading):
            page.text(WIDTH / 2, MARGIN + (at + 0.3) * LINE, line, ha="center", va="center", fontsize=11)
        top = MARGIN + LINE * len(heading) + (0.05 if heading else 0.0)
        for block in blocks:
            _show(page, block, top)
            top += block.height
        for at, line in enumerate(caption):
            page.text(MARGIN, top + 0.1 + 0.16 * at, line, va="center", fontsize=SMALL, color=GREY)


def _sentences(words: Sequence[str], segments: Sequence[int], weights: Sequence[float]) -> list[_Sentence]:
    """The document taken apart, with how light everything is."""
    if not len(words) == len(segments) == len(weights):
        raise ShapeError(
            f"each word has a sentence and a weight, but there are {len(words)} words, "
            f"{len(segments)} sentences' numbers and {len(weights)} weights."
        )
    back = next((two for two in pairwise(segments) if two[1] < two[0]), None)
    if back is not None:
        raise ShapeError(f"sentences come one after the other, but {back[1]} comes after {back[0]}.")
    found = [(part, tuple(group)) for part, group in groupby(range(len(words)), key=segments.__getitem__)]
    sums = [math.fsum(weights[at] for at in positions) for _, positions in found]
    peak = max(sums, default=0.0) or 1.0
    lambdas = [
        [weights[at] / math.sqrt(total) if total > 0 else 0.0 for at in positions]
        for (_, positions), total in zip(found, sums, strict=True)
    ]
    word_peak = max((one for some in lambdas for one in some), default=0.0) or 1.0
    return [
        _Sentence(
            number=part + 1,
            words=tuple(words[at] for at in positions),
            weight=total,
            light=max(total / peak, 0.0),
            lights=tuple(max(one / word_peak, 0.0) for one in some),
        )
        for (part, positions), total, some in zip(found, sums, lambdas, strict=True)
    ]


def _in_lines(figure: "Figure", sentences: Sequence[_Sentence]) -> Iterator[tuple[_Sentence, tuple[Line, ...]]]:
    """Each sentence with its words in lines that are no wider than the page; one that would fill it alone is cut."""
    ruler = figure.text(0.0, 0.0, "", fontsize=LETTERS)
    widths: dict[str, float] = {}
    for sentence in sentences:
        lines: list[Line] = [[]]
        right = 0.0
        for at, word in enumerate(sentence.words):
            if word not in widths:
                ruler.set_text(word)
                widths[word] = min(width_of(ruler), TEXT_WIDTH)
            if right and right + widths[word] > TEXT_WIDTH:
                lines.append([])
                right = 0.0
            lines[-1].append((at, TEXT_LEFT + right, widths[word]))
            right += widths[word] + SPACE
        yield sentence, tuple(lines[: MOST_LINES - 2])  # with room for what is left out before and after it
    ruler.remove()


def _chosen(blocks: Sequence[_Block]) -> list[_Block]:
    """All, if there is room; else those with the most weight, in their order, and what stands for the others."""
    if sum(len(block.lines) for block in blocks) <= MOST_LINES:
        return list(blocks)
    taken: set[int] = set()
    for at in sorted(range(len(blocks)), key=lambda at: -blocks[at].sentences[0].weight):
        if sum(max(len(block.lines), 1) for block in _with_gaps(blocks, taken | {at})) > MOST_LINES:
            break
        taken.add(at)
    return _with_gaps(blocks, taken)


def _with_gaps(blocks: Sequence[_Block], taken: Collection[int]) -> list[_Block]:
    """Those that are taken; each stretch of others becomes one block without lines, unless it needs one line only."""
    result: list[_Block] = []
    for there, stretch in groupby(range(len(blocks)), key=lambda at: at in taken):
        some = [blocks[at] for at in stretch]
        short = len(some) == len(some[0].lines) == 1
        result += some if there or short else [_Block(tuple(block.sentences[0] for block in some), ())]
    return result


def _caption(sentences: Sequence[_Sentence], blocks: Sequence[_Block]) -> list[str]:
    """What is to be known about the picture."""
    if not sentences:
        return ["The document is empty."]
    if not any(sentence.light for sentence in sentences):
        return ["No word has any weight."]
    told = list(CAPTION)
    shown = [block.sentences[0] for block in blocks if block.lines]
    if len(shown) < len(sentences):
        told.append(
            f"{len(shown)} of {len(sentences)} sentences are shown, those with the most weight: "
            f"{percent(math.fsum(sentence.weight for sentence in shown))} together."
        )
    return told


def _show(page: "Axes", block: _Block, top: float) -> None:
    """A sentence with its number and its weight; or how many are left out."""
    middle, first = top + LINE / 2, block.sentences[0]
    if not block.lines:
        weight = percent(math.fsum(sentence.weight for sentence in block.sentences))
        told = f"… {len(block.sentences)} more, {weight}"
        page.text(TEXT_LEFT, middle, told, va="center", fontsize=SMALL, color=GREY)
        return
    left, bottom = MARGIN + NUMBER, top + LINE * len(block.lines)
    page.text(left - 0.08, middle, str(first.number), ha="right", va="center", fontsize=SMALL, color=GREY)
    _shade(page, (left, top + 0.015, CELL, bottom - top - 0.03), "Reds", first.light)
    ink = _ink(first.light)
    page.text(left + CELL / 2, middle, percent(first.weight), ha="center", va="center", fontsize=8, color=ink)
    for row, line in enumerate(block.lines):
        for at, x, width in line:
            _show_word(page, first, at, (x, top + row * LINE, width))
    if sum(len(line) for line in block.lines) < len(first.words):
        page.text(TEXT_LEFT + TEXT_WIDTH, bottom - LINE / 2, "…", va="center", fontsize=LETTERS, color=GREY)


def _show_word(page: "Axes", sentence: _Sentence, at: int, place: tuple[float, float, float]) -> None:
    """A word on its shade, at (left, top, width)."""
    (left, top, width), light = place, sentence.lights[at]
    if light > 0.01:
        _shade(page, (left - PAD, top + 0.015, width + 2 * PAD, LINE - 0.03), "Blues", light)
    word = page.text(left, top + 0.72 * LINE, sentence.words[at], fontsize=LETTERS, color=_ink(light))
    if width >= TEXT_WIDTH:
        fit(word, TEXT_WIDTH)


def _shade(page: "Axes", box: tuple[float, float, float, float], colors: str, light: float) -> None:
    """A box, (left, top, width, height), as dark as `light`; never so dark that it is nearly black."""
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    color = colormaps[colors](0.9 * light)
    page.add_patch(Rectangle(box[:2], box[2], box[3], facecolor=color, edgecolor="none"))


def _ink(light: float) -> str:
    """The colour of letters on a shade."""
    return "white" if light > 0.65 else "black"
