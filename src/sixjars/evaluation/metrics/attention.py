"""Metrics of attention: its weight on aligned words, on a word's object, on a rationale."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Literal

from sixjars.data.alignment.symmetry import USUAL, symmetrized
from sixjars.data.annotations import Links
from sixjars.evaluation.metrics.outcome import Outcome, RationaleWeight, Rows, Sums
from sixjars_runtime.errors import DataError, ShapeError

Level = Literal["sentence", "word", "near"]
Known = Literal["focus", "rationale"]
Box = tuple[int, float, float, float, float]
"""The number of a word; left, top, right and bottom of its object, as fractions of the image."""

EVEN: Final = 1 - 1e-6
"""The sum of the weights of an output word, less some rounding."""


def alignment_error_rate(outcomes: Sequence[Outcome]) -> float:
    r"""How far the predicted links A are from the sure links S and the possible links P; 0 to 1.

    .. math:: 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}, \quad S \subseteq P

    Och & Ney 2003 (https://aclanthology.org/J03-1002/), each size added up over the corpus. Links
    that are sure count as possible whether `possible` repeats them or not. 0 where there are no
    links at all. Outcomes whose true links are not known (`sure` is `None`) are left out. The links
    of a model are those of its weights, which are computed before a word is known;
    `posterior_error_rate` is the same after it is known.

    >>> right = frozenset({(0, 0), (1, 2)})
    >>> alignment_error_rate([Outcome(("a b c",), links=frozenset({(0, 0), (1, 1)}), sure=right)])
    0.5
    """
    return ALIGNMENT_ERRORS.over(outcomes)


def linked(
    weights: Sequence[Sequence[float]], source: Sequence[int], target: Sequence[int]
) -> Links:
    """Links between words, (source word, target word), from the weights between their tokens.

    Each target word is linked to the source word with the most weight, and each source word to the
    target word that gives it the most, if that is no less than an even share; the first of equal
    ones. The two become one as they do in `sixjars align`. That one matrix gives both directions is
    from Jalili Sabet et al. 2020 (https://aclanthology.org/2020.findings-emnlp.147/).

    `weights` has a row for each target token; `source` and `target` have the word of each token. A
    source word has the sum of its tokens, a target word the mean. Rows beyond the target, as that
    of `<stop>`, have no link.

    >>> sorted(linked([[0.4, 0.3, 0.3], [0.9, 0.1, 0.0]], [0, 1, 1], [0, 1]))
    [(0, 1), (1, 0)]
    """
    rows: dict[int, list[Sequence[float]]] = {}
    for row, word in zip(weights, target, strict=False):
        rows.setdefault(word, []).append(row)
    forward, best = set(), dict[int, tuple[float, int]]()
    for word, of_word in rows.items():
        sums: dict[int, float] = {}
        for row in of_word:
            for weight, over in zip(row, source, strict=False):  # a source cut off has no weight
                sums[over] = sums.get(over, 0.0) + weight / len(of_word)
        if any(sums.values()):
            forward.add((max(sums, key=sums.__getitem__), word))
        for over, weight in sums.items():
            if weight > best.get(over, (EVEN / len(sums), word))[0]:
                best[over] = weight, word
    backward = frozenset((over, word) for over, (_, word) in best.items())
    return symmetrized(frozenset(forward), backward, USUAL)


def posterior_error_rate(outcomes: Sequence[Outcome]) -> float:
    r"""The `alignment_error_rate` of posterior attention, whose weights know the output word.

    .. math:: P(a_t = j | y_1 .. y_t, x)

    Shankar & Sarawagi 2019 (https://openreview.net/forum?id=BkltNhC9FX); see
    `evaluation.posterior`.

    >>> found, true = frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)})
    >>> posterior_error_rate([Outcome(("a b",), explained=found, sure=true)])
    0.33333333333333337
    """
    return POSTERIOR_ERRORS.over(outcomes)


def _links(outcomes: Sequence[Outcome], *, explained: bool) -> Rows:
    rows = []
    for outcome in outcomes:
        if outcome.sure is None:
            rows.append((0, 0))
            continue
        links = outcome.explained if explained and outcome.explained is not None else outcome.links
        assert links is not None
        possible = outcome.sure | (outcome.possible or frozenset())
        right = len(links & outcome.sure) + len(links & possible)
        rows.append((right, len(links) + len(outcome.sure)))
    return rows


def _error(sums: Sequence[float]) -> float:
    return 1 - sums[0] / sums[1] if sums[1] else 0.0


ALIGNMENT_ERRORS: Final = Sums(partial(_links, explained=False), _error)
POSTERIOR_ERRORS: Final = Sums(partial(_links, explained=True), _error)


def object_focus(outcomes: Sequence[Outcome]) -> float:
    r"""Attention weight in the box of a word's object, relative to even attention; 1 is chance.

    .. math:: \frac{1}{|W|} \sum_{t \in W}
              \frac{\sum_j \alpha_{tj} \, |cell_j \cap box_t| \, / \, |cell_j|}{|box_t|}

    `W` are the words that have a true box, `|box_t|` is the box's share of the image. The mean of
    this over the outcomes that have such words. The weight inside the box is the attention
    correctness of Liu, Mao, Sha & Yuille 2017 (https://arxiv.org/abs/1605.09553); the division
    makes small and large objects comparable: the most is one over the box's share.

    >>> dog, cow = Outcome(("a dog",), focus=3.0), Outcome(("a cow",), focus=1.0)
    >>> object_focus([dog, Outcome(("so what",)), cow])
    2.0
    """
    return _mean(_known(outcomes, "focus"))


def focus_of(
    weights: Sequence[Sequence[float]], grid: tuple[int, int], boxes: Sequence[Box]
) -> float | None:
    """The `object_focus` of one example: the mean over its boxes; nothing without boxes.

    `weights` has a row for each word, with a weight for each cell of the grid of `(rows, columns)`,
    row by row. A cell that is partly in a box gives that share of its weight. A box is cut off at
    the edges of the image. A word with two boxes counts twice, once for each.

    >>> focus_of([[0.25, 0.75]], (1, 2), [(0, 0.5, 0.0, 1.0, 1.0)])
    1.5
    """
    if not boxes:
        return None
    return _mean([_focus(weights, grid, box) for box in boxes])


def _focus(weights: Sequence[Sequence[float]], grid: tuple[int, int], box: Box) -> float:
    word, *sides = box
    if not 0 <= word < len(weights):
        raise ShapeError(
            f"a box belongs to word {word}, but there are weights for {len(weights)} words."
        )
    left, top, right, bottom = (min(1.0, max(0.0, side)) for side in sides)
    if right <= left or bottom <= top:
        raise DataError(
            f"the box {tuple(sides)} of word {word} covers nothing of the image. "
            "Give shares from 0 to 1."
        )
    across, down = _covered(grid[1], left, right), _covered(grid[0], top, bottom)
    inside = [high * wide for high in down for wide in across]
    total = math.fsum(weight * part for weight, part in zip(weights[word], inside, strict=True))
    return total / ((right - left) * (bottom - top))


def _covered(count: int, low: float, high: float) -> list[float]:
    """The share of each of `count` equal strips that lies between two edges."""
    return [max(0.0, min(high * count, at + 1) - max(low * count, at)) for at in range(count)]


def rationale_weight(
    weights: Sequence[float], of: Sequence[int], sentence: int, word: int
) -> RationaleWeight | None:
    r"""Attention weight on the rationale of a document; nothing where the rationale is cut off.

    .. math:: A_k = \sum_{j \in k} \alpha_j, \qquad \frac{\alpha_{k,w}}{A_k}, \qquad
              \frac{\alpha_{k,w-1} + \alpha_{k,w} + \alpha_{k,w+1}}{A_k}

    `weights` has a weight for each real position of the document and `of` the number of its
    sentence; `word` is a position in the sentence, and both are counted from 0. Neighbours are
    words of the same sentence. The shares are 0 where the sentence has no weight.

    >>> rationale_weight([0.25, 0.25, 0.375, 0.125], of=[0, 1, 1, 1], sentence=1, word=1)
    RationaleWeight(sentence=0.75, word=0.5, near=1.0)
    """
    inside = [weight for weight, segment in zip(weights, of, strict=True) if segment == sentence]
    if word >= len(inside):
        return None
    whole = math.fsum(inside)
    if whole == 0:
        return RationaleWeight(whole, 0.0, 0.0)
    around = math.fsum(inside[max(0, word - 1) : word + 2])
    return RationaleWeight(sentence=whole, word=inside[word] / whole, near=around / whole)


def rationale_mean(outcomes: Sequence[Outcome], *, level: Level) -> float:
    r"""Mean attention weight on the rationale, over documents whose rationale is known; 0 to 1.

    .. math:: \frac{1}{|K|} \sum_{i \in K} a_i

    `a` is the weight on the sentence of the rationale, of 1 for the whole document; or of that
    weight the share on the word of the rationale, or on it and its neighbours (`rationale_weight`
    has the equations). The weights are the products of both levels in Yang et al. 2016
    (https://aclanthology.org/N16-1174/). Evenly spread attention would give one over the number of
    sentences, or of words.

    >>> from sixjars.evaluation.metrics.outcome import RationaleWeight
    >>> known = Outcome(("sport",), rationale=RationaleWeight(0.5, 0.25, 0.5))
    >>> rationale_mean([known, Outcome(("music",))], level="word")
    0.25
    """
    return _mean([getattr(weight, level) for weight in _known(outcomes, "rationale")])


def how_known(outcomes: Sequence[Outcome], *, how: str, need: Known) -> tuple[str, ...]:
    """The signature of a mean over the examples that have boxes or a rationale: it counts them."""
    return how, f"with {'boxes' if need == 'focus' else 'rationales'}:{len(_known(outcomes, need))}"


def how_linked(outcomes: Sequence[Outcome], *, by: str) -> tuple[str, ...]:
    """The signature: the weights that link words, and the number of outcomes with links."""
    known = sum(outcome.sure is not None for outcome in outcomes)
    signature = "corpus", by, USUAL
    return signature if known == len(outcomes) else (*signature, f"with links:{known}")


def _known(outcomes: Sequence[Outcome], need: Known) -> list[Any]:
    facts = (getattr(outcome, need) for outcome in outcomes)
    return [fact for fact in facts if fact is not None]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def boxes_of(text: str, count: int, name: str) -> tuple[Box, ...]:
    """Read `2:0.1,0.1,0.4,0.3 ...`; the output called `name` has `count` words.

    >>> boxes_of("0:0.1,0.2,0.5,0.6", 1, "label")
    ((0, 0.1, 0.2, 0.5, 0.6),)
    """
    try:
        boxes = []
        for pair in text.split():
            word, place = pair.split(":")
            left, top, right, bottom = map(float, place.split(","))
            boxes.append((int(word), left, top, right, bottom))
        if not all(map(_covers, boxes)):
            raise ValueError("a box that covers nothing of the image")
    except ValueError:
        raise ValueError(
            f"boxes {text!r} must be like `2:0.1,0.1,0.4,0.3`: word, left, top, right, bottom."
        ) from None
    over = [word for word, *_ in boxes if not 0 <= word < count]
    if over:
        raise ValueError(
            f"a box belongs to word {over[0]}, but the {name} has {count} (counted from 0)."
        )
    return tuple(boxes)


def rationale_of(text: str, count: int) -> tuple[int, int] | None:
    """Read `2 5`, sentence and word; the source has `count` sentences. Nothing for an empty text.

    >>> rationale_of("2 5", 3)
    (2, 5)
    """
    if not text.strip():
        return None
    try:
        sentence, word = (int(number) for number in text.split())
        if min(sentence, word) < 0:
            raise ValueError("counted from 0")
    except ValueError:
        raise ValueError(f"rationale {text!r} must be like `2 5`: sentence, word.") from None
    if sentence >= count:
        raise ValueError(
            f"rationale names sentence {sentence}, but the source has {count} (counted from 0)."
        )
    return sentence, word


def _covers(box: Box) -> bool:
    _, left, top, right, bottom = box
    return max(left, 0.0) < min(right, 1.0) and max(top, 0.0) < min(bottom, 1.0)
