"""The links that guide attention in a training set, stored compactly: rows may be millions.

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
    """The links between the tokens of every row, one row after the other.

    >>> guides = Guides()
    >>> guides.add(frozenset({(0, 1)}), [0, 0, 1], [0, 1])
    >>> guides[0].tolist()
    [[0, 1], [1, 1]]
    >>> guides.describe()
    '1 pair, 0.50 links a target word; 50% of source and 50% of target words without a link'
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
        """Add a row: links between its words; `source` and `target` have the word of each token."""
        for pair in between_tokens(links, source, target):
            self._positions.extend(pair)
        self._ends.append(len(self._positions))
        words = set(source), set(target)
        # A long text is cut, and its last words have no tokens.
        within = [link for link in links if link[0] in words[0] and link[1] in words[1]]
        self._count += len(within)
        for side in (0, 1):
            self._linked[side] += len({link[side] for link in within})
            self._words[side] += len(words[side])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        """The links of a row: source position, target position."""
        flat = self._positions[self._ends[row] : self._ends[row + 1]]
        links: NDArray[np.int32] = np.array(flat, dtype=np.int32).reshape(-1, 2)
        return links

    def describe(self) -> str:
        """A note with the numbers of pairs and links, and the share of words without a link."""
        pairs = number_of(len(self), "pair")
        rate = self._count / max(self._words[1], 1)
        source, target = (
            1 - linked / max(words, 1)
            for linked, words in zip(self._linked, self._words, strict=True)
        )
        return (
            f"{pairs}, {rate:.2f} links a target word; {source:.0%} of source and {target:.0%} of "
            "target words without a link"
        )


def guides_of(train: Any) -> Guides:
    """The links of a training `Dataset`: learned from its texts, or its sure ones."""
    guides = Guides()
    fields = train.fields.inputs["source"], train.fields.output
    learned = None
    lengths = [field.column(train.table, training=True).lengths for field in fields]
    if train.diagonal is not None:
        texts = (spaced(train.normalized(field.name), field.words) for field in fields)
        learned = learned_links(*texts, diagonal=train.diagonal)
    for begin in range(0, len(train), MOST_ROWS):
        rows = range(len(train))[begin : begin + MOST_ROWS]
        words = [field.words(train.normalized(field.name, rows)) for field in fields]
        if learned is None:
            true = train.true_links(rows, words)
            links_of_rows = [links.sure if links else frozenset() for links in true]
        else:
            links_of_rows = list(map(learned.links, rows))
        for row, links, source, target in zip(rows, links_of_rows, *words, strict=True):
            guides.add(links, source[: lengths[0][row]], target[: lengths[1][row]])
    return guides
