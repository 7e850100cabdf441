"""A source and a target that grow together, so that the true alignment is never guessed.

A target word holds the very source words it came from. Positions are counted once, at the end,
when both sides have their final order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import final


@final
@dataclass(frozen=True, eq=False)
class Word:
    """One word of a source; two words with the same letters are still two words."""

    text: str


Told = tuple[tuple[str, tuple[Word, ...]], ...]
"""Target words, each with the source words it came from."""


def words(text: str) -> tuple[Word, ...]:
    """New source words from a text with spaces.

    >>> [word.text for word in words("the red book")]
    ['the', 'red', 'book']
    """
    return tuple(Word(part) for part in text.split())


def told(text: str, *source: Word) -> Told:
    """Target words that all come from the same source words, or from none.

    >>> told("ja raha", Word("going"))
    (('ja', (Word(text='going'),)), ('raha', (Word(text='going'),)))
    """
    return tuple((part, source) for part in text.split())


def copied(source: Sequence[Word]) -> Told:
    """Target words that repeat source words, each linked to its own."""
    return tuple((word.text, (word,)) for word in source)


@final
@dataclass(frozen=True)
class Pair:
    """A source text and what it becomes."""

    source: tuple[Word, ...] = ()
    target: Told = ()

    def __add__(self, other: "Pair") -> "Pair":
        return Pair(self.source + other.source, self.target + other.target)

    def texts(self) -> tuple[str, str, str]:
        """The source, the target and the alignment, as a row of a corpus has them.

        >>> not_, go = words("not go")
        >>> Pair((not_, go), told("nahin", not_) + told("ja raha", go)).texts()
        ('not go', 'nahin ja raha', '0-0 1-1 1-2')
        """
        place = {word: number for number, word in enumerate(self.source)}
        links = sorted((place[word], number) for number, (_, origin) in enumerate(self.target) for word in origin)
        return (
            " ".join(word.text for word in self.source),
            " ".join(text for text, _ in self.target),
            " ".join(f"{source}-{target}" for source, target in links),
        )


def chance(rng: Random, share: float) -> bool:
    """True with this probability."""
    return rng.random() < share


def filled(
    rng: Random,
    longest: int,
    *,
    shortest: int,
    clause: Callable[[Random, int], Pair],
    joint: Callable[[Random], Pair],
) -> Pair:
    """Clauses with one-word joints between them, as many as fit in a length drawn evenly.

    `clause` is told how much room there is; one that is still too long is drawn again. Without the
    drawn length nearly every text would be as long as is allowed; with it, all lengths are common.
    """
    goal = rng.randint(shortest, longest)
    pair = _fitting(rng, goal, clause)
    while (room := goal - len(pair.source) - 1) >= shortest:
        pair = pair + joint(rng) + _fitting(rng, room, clause)
    return pair


def _fitting(rng: Random, room: int, clause: Callable[[Random, int], Pair]) -> Pair:
    while len((pair := clause(rng, room)).source) > room:
        pass
    return pair
