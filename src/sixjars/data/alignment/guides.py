"""The links that guide attention in a training set, stored compactly: rows may be millions.

Those of a training set that has none are learned once, and kept in the cache.

Dims: L links of all rows.
"""

import hashlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sixjars.data.alignment import model
from sixjars.data.alignment.aligner import ITERATIONS, DirectedLinks, aligned
from sixjars.data.alignment.pairs import WordIds
from sixjars.data.annotations import Links, between_tokens
from sixjars.data.flat import MOST_ROWS, as_array
from sixjars.data.storage.cache import cache_folder, disk_faults, made_whole, touch
from sixjars.progress import number_of
from sixjars.recipe.data import DIAGONAL

_VERSION = 1  # of the aligner: a new one makes older links unread


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


def learned_links(
    sources: Sequence[str], targets: Sequence[str], *, diagonal: float = DIAGONAL
) -> DirectedLinks:
    """The links between the words of texts, made now or found in the cache.

    >>> sorted(learned_links(["a b", "b"], ["x y", "y"]).links(0))
    [(0, 0), (1, 1)]
    """
    first, second = as_array(sources), as_array(targets)
    words = WordIds.of(first), WordIds.of(second)
    sizes = len(words[1].ids), len(words[0].ids)
    # The file name is a hash of all that the links depend on.
    constants = _VERSION, ITERATIONS, model.NULL, model.SPREAD, float(diagonal), *model.LIMITS
    digest = hashlib.sha256(f"alignment {constants}".encode())
    for side in (sources, targets):
        digest.update(f"\n{len(side)}\n".encode() + "\n".join(side).encode())
    path = cache_folder() / digest.hexdigest()
    best = None
    with suppress(OSError, ValueError, EOFError):  # not there, or damaged
        best = np.load(path)
        touch(path)
    if best is None or best.dtype != np.int32 or best.shape != (sum(sizes),):
        directions = aligned(first, second, diagonal=diagonal)
        best = np.concatenate([directions.forward, directions.backward])
        with disk_faults("Learned alignments", path.parent), made_whole(path) as unfinished:
            with unfinished.open("wb") as file:
                np.save(file, best)
    return DirectedLinks(best[: sizes[0]], best[sizes[0] :], words[1].begins, words[0].begins)


def spaced(
    texts: Sequence[str], words: Callable[[Sequence[str]], list[list[int]]]
) -> Sequence[str]:
    """Put spaces between the units that links count: words as they are, or single characters.

    >>> spaced(["ab c"], lambda texts: [list(range(len(text))) for text in texts])
    ['a b _ c']
    """
    counts_characters = len(set(words(["ab"])[0])) == 2
    return [" ".join(text.replace(" ", "_")) for text in texts] if counts_characters else texts


def unspaced(words: Mapping[str, Sequence[Sequence[int]]]) -> Iterator[str]:
    """Warn where most texts of a field are one word; `words` is `Field.words` of each field.

    >>> len(list(unspaced({"source": [[0, 0], [0], [0, 1]], "target": [[0, 1]]})))
    1
    """
    sizes = {name: np.median([len(set(row)) for row in rows]) for name, rows in words.items()}
    if names := " and ".join(name for name, size in sizes.items() if size <= 1):
        yield (
            f"data.alignment: learn links the words between spaces, but most texts of {names} are "
            "one word; separate the words by spaces, or say tokens: characters for both sides."
        )
