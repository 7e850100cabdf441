"""Whether attention lies on the thing that the word names."""

import math
from collections.abc import Sequence

from sixjars.errors import DataError, ShapeError
from sixjars.evaluation.metrics.outcome import Outcome, signature_of

Box = tuple[int, float, float, float, float]
"""Which word, and the left, top, right and bottom of its object as shares of the picture's width and height."""


def object_focus(outcomes: Sequence[Outcome]) -> float:
    r"""How many times more attention lies where the word's object is than if it were spread evenly.

    .. math:: \frac{1}{|W|} \sum_{t \in W}
              \frac{\sum_j \alpha_{tj} \, |cell_j \cap box_t| \, / \, |cell_j|}{|box_t|}

    `W` are the words that have a true box, `|box_t|` is the box's share of the picture. The mean of this over
    the outcomes that have such words. The weight inside the box is the attention correctness of Liu, Mao, Sha &
    Yuille 2017 (https://arxiv.org/abs/1605.09553); the division makes small and large objects comparable:
    1 is no better than chance, and the most is one over the box's share.

    >>> object_focus([Outcome(("a dog",), focus=3.0), Outcome(("so what",)), Outcome(("a cow",), focus=1.0)])
    2.0
    """
    found = _found(outcomes)
    return math.fsum(found) / len(found)


def focus_signature(outcomes: Sequence[Outcome]) -> str:
    """The mean depends on which examples have boxes, so their number is told."""
    return signature_of("object_focus", "weight in box / area of box", f"with boxes:{len(_found(outcomes))}")


def _found(outcomes: Sequence[Outcome]) -> list[float]:
    return [outcome.focus for outcome in outcomes if outcome.focus is not None]


def focus_of(weights: Sequence[Sequence[float]], grid: tuple[int, int], boxes: Sequence[Box]) -> float | None:
    """How many times more attention than chance lies in the boxes, averaged over them; nothing without boxes.

    `weights` has a row for each word, with a weight for each cell of the grid of `(rows, columns)`, row by row.
    A cell that is partly in a box gives that part of its weight. What sticks out of the picture is cut off.
    A word with two boxes counts twice, once for each. The equation is that of `object_focus`.

    >>> focus_of([[0.25, 0.75]], (1, 2), [(0, 0.5, 0.0, 1.0, 1.0)])
    1.5
    """
    if not boxes:
        return None
    cells = grid[0] * grid[1]
    for row in weights:
        if len(row) != cells:
            raise ShapeError(
                f"a word has {len(row)} weights, but the grid of {grid[0]} by {grid[1]} has {cells} cells."
            )
    return math.fsum(_focus(weights, grid, box) for box in boxes) / len(boxes)


def _focus(weights: Sequence[Sequence[float]], grid: tuple[int, int], box: Box) -> float:
    word, *sides = box
    if not 0 <= word < len(weights):
        raise ShapeError(f"a box belongs to word {word}, but there are weights for {len(weights)} words.")
    left, top, right, bottom = (min(1.0, max(0.0, side)) for side in sides)
    if right <= left or bottom <= top:
        raise DataError(
            f"the box {tuple(sides)} of word {word} covers nothing of the picture. Give shares from 0 to 1."
        )
    across, down = _covered(grid[1], left, right), _covered(grid[0], top, bottom)
    inside = [high * wide for high in down for wide in across]
    weight = math.fsum(share * part for share, part in zip(weights[word], inside, strict=True))
    return weight / ((right - left) * (bottom - top))


def _covered(count: int, low: float, high: float) -> list[float]:
    """The part of each of `count` equal strips that lies between two edges."""
    return [max(0.0, min(high * count, at + 1) - max(low * count, at)) for at in range(count)]
