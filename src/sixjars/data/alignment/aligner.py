"""The aligner: both directions learned together, and the links of each line.

Dims: K sentence pairs of one shape, T words of the text that is explained.
"""

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sixjars.data.alignment.model import DiagonalModel
from sixjars.data.alignment.pairs import Numbers, PairedText, WordIds
from sixjars.data.alignment.symmetry import USUAL, Symmetrization, symmetrized
from sixjars.data.annotations import Links
from sixjars.data.flat import spread
from sixjars.progress import counted
from sixjars.recipe.data import DIAGONAL

ITERATIONS: Final = 5  # of expectation maximization


@final
@dataclass(frozen=True)
class DirectedLinks:
    """The best link of each word, in both directions."""

    forward: Numbers
    """For each word of the second text: which word of the same line of the first, or -1."""
    backward: Numbers
    """The same for each word of the first text."""
    seconds: NDArray[np.int64]
    """Where each line of the second text begins, and where the last ends."""
    firsts: NDArray[np.int64]
    """The same of the first text."""

    def __len__(self) -> int:
        return len(self.firsts) - 1

    def sizes(self, line: int) -> tuple[int, int]:
        """How many words a line has in the first and in the second text."""
        begins = self.firsts, self.seconds
        first, second = (int(side[line + 1] - side[line]) for side in begins)
        return first, second

    def links(self, line: int, method: Symmetrization = USUAL) -> Links:
        """The links of a line, (first word, second word), both counted from 0."""
        forward = self.forward[self.seconds[line] : self.seconds[line + 1]].tolist()
        backward = self.backward[self.firsts[line] : self.firsts[line + 1]].tolist()
        return symmetrized(
            frozenset((first, second) for second, first in enumerate(forward) if first >= 0),
            frozenset((first, second) for first, second in enumerate(backward) if second >= 0),
            method,
        )


def aligned(
    first: Any, second: Any, *, iterations: int = ITERATIONS, diagonal: float = DIAGONAL
) -> DirectedLinks:
    """Align the words of two `pyarrow` arrays of texts; lines without words have no links.

    `diagonal` is λ before the first iteration: how strongly links near the diagonal are preferred.

    >>> import pyarrow
    >>> first = pyarrow.array(["the house", "the book", "a book"])
    >>> found = aligned(first, pyarrow.array(["das haus", "das buch", "ein buch"]))
    >>> sorted(found.links(2))
    [(0, 0), (1, 1)]
    """
    words = WordIds.of(first), WordIds.of(second)
    text = PairedText.of(*words)
    models = [DiagonalModel(text, reverse=reverse, steepness=diagonal) for reverse in (False, True)]
    rounds = range(iterations if text.chunks else 0)  # without words there is nothing to learn
    lines = len(words[0].lengths)
    for _ in counted(rounds, "aligning words", rows=lambda _: lines, total=len(rounds) * lines):
        for _ in spread(DiagonalModel.iterate, models):
            pass
    explained = words[1], words[0]
    best = list(spread(_best, zip(models, explained, strict=True)))
    return DirectedLinks(best[0], best[1], words[1].begins, words[0].begins)


def _best(pair: tuple[DiagonalModel, WordIds]) -> Numbers:
    model, explained = pair
    best = np.full(len(explained.ids), -1, dtype=np.int32)
    for lines_K, best_KT in model.best():
        best[explained.begins[lines_K][:, None] + np.arange(best_KT.shape[1])] = best_KT
    return best


def pharaoh(links: Links) -> str:
    """Write links as text in the Pharaoh format.

    >>> pharaoh(frozenset({(1, 2), (0, 0)}))
    '0-0 1-2'
    """
    return " ".join(f"{first}-{second}" for first, second in sorted(links))
