"""The links of a training set that attention is guided by, as few numbers as possible: there may be millions of rows.

Dims: L links of all rows.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sixjars.data.alignment.learned import learned_links, spaced
from sixjars.data.annotations import Links, between_tokens
from sixjars.data.flat import MOST_ROWS
from sixjars.progress import number_of


@final
@dataclass
class Guides:
    """Links between the tokens of each row, on end.

    >>> guides = Guides()
    >>> guides.add(frozenset({(0, 1)}), [0, 0, 1], [0, 1])
    >>> guides[0].tolist(), guides.describe()
    ([[0, 1], [1, 1]], '1 pair, 0.50 links a target word; 50% of source and 50% of target words without a link')
    """

    _positions: "array[int]" = field(default_factory=lambda: array("i"))
    """The source and the target position of each link, (2 L)."""
    _ends: "array[int]" = field(default_factory=lambda: array("q", [0]))
    _linked: list[int] = field(default_factory=lambda: [0, 0])
    _words: list[int] = field(default_factory=lambda: [0, 0])
    """Source and target words with a link, and all of them."""
    _count: int = 0
    """Links between words."""

    def add(self, links: Links, source: Sequence[int], target: Sequence[int]) -> None:
        """The next row: links between its words; `source` and `target` have the word of each token."""
        for pair in between_tokens(links, source, target):
            self._positions.extend(pair)
        self._ends.append(len(self._positions))
        words = set(source), set(target)
        within = [
            link for link in links if link[0] in words[0] and link[1] in words[1]
        ]  # a long text is cut
        self._count += len(within)
        for side in (0, 1):
            self._linked[side] += len({link[side] for link in within})
            self._words[side] += len(words[side])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        """The links of a row: source position, target position."""
        found: NDArray[np.int32] = np.array(
            self._positions[self._ends[row] : self._ends[row + 1]], dtype=np.int32
        )
        return found.reshape(-1, 2)

    def describe(self) -> str:
        """How many pairs and links there are, and how many words have none, for a person to judge."""
        without = [
            1 - linked / max(words, 1)
            for linked, words in zip(self._linked, self._words, strict=True)
        ]
        return (
            f"{number_of(len(self), 'pair')}, {self._count / max(self._words[1], 1):.2f} links a target word; "
            f"{without[0]:.0%} of source and {without[1]:.0%} of target words without a link"
        )


def guides_of(train: Any) -> Guides:
    """Those of a training set, a `Dataset`: links that are learned, or else the sure ones that it has."""
    fields, made, learned = (train.fields.inputs["source"], train.fields.output), Guides(), None
    lengths = [field.column(train.table, training=True).lengths for field in fields]
    if train.diagonal is not None:
        texts = (spaced(train.normalized(field.name), field.words) for field in fields)
        learned = learned_links(*texts, diagonal=train.diagonal)
    for rows in (
        range(at, min(at + MOST_ROWS, len(train))) for at in range(0, len(train), MOST_ROWS)
    ):
        words = [field.words(train.normalized(field.name, rows)) for field in fields]
        true = train.true_links(rows, words) if learned is None else ()
        found = (
            (one.sure if one else frozenset() for one in true)
            if learned is None
            else map(learned.links, rows)
        )
        for row, links, source, target in zip(rows, found, *words, strict=True):
            made.add(links, source[: lengths[0][row]], target[: lengths[1][row]])
    return made
