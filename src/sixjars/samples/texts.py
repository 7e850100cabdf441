"""Word lists of synthetic texts, and a source and a target that are built together.

Word lists are data: one file in `words/` for each sample that has some, read when it is first
needed.

A target word holds the very source words it came from, so that the true alignment is never guessed.
Positions are counted once, at the end, when both sides have their final order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from random import Random
from typing import final

import yaml

from sixjars.samples.sample import Row

Lists = dict[str, tuple[str, ...]]


@final
class Lexicon:
    """The word lists of one sample by name.

    In the file a text on one line is a list of words, a block of lines is a list of lines, and a
    table has such lists by name.

    >>> Lexicon("dialog")["sizes"], Lexicon("dialog").table("kept")["by the door"]
    (('big', 'small', 'old', 'new'), ('umbrella', 'bag', 'key'))
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, key: str) -> tuple[str, ...]:
        return self.tables[""][key]

    def table(self, key: str) -> Lists:
        """The lists of one table."""
        return self.tables[key]

    @cached_property
    def tables(self) -> dict[str, Lists]:
        """All tables; the one without a name has the lists that are in no table."""
        path = files("sixjars.samples") / "words" / f"{self.name}.yaml"
        text = path.read_text(encoding="utf-8")
        # Everything is text to the base loader; to the others `no` and `on` are truth values.
        entries = yaml.load(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
        plain = {key: value for key, value in entries.items() if isinstance(value, str)}
        tables = {"": plain} | {key: value for key, value in entries.items() if key not in plain}
        return {
            name: {key: _listed(value) for key, value in table.items()}
            for name, table in tables.items()
        }


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.splitlines() if "\n" in text else text.split())


@final
@dataclass(frozen=True, eq=False)
class Word:
    """One word of a source; two words with the same letters are still two words."""

    text: str


Target = tuple[tuple[str, tuple[Word, ...]], ...]
"""Target words, each with the source words it came from."""


def words(text: str) -> tuple[Word, ...]:
    """New source words from a text with spaces.

    >>> [word.text for word in words("the red book")]
    ['the', 'red', 'book']
    """
    return tuple(Word(part) for part in text.split())


def linked(text: str, *source: Word) -> Target:
    """Target words that all come from the same source words, or from none.

    >>> linked("ja raha", Word("going"))
    (('ja', (Word(text='going'),)), ('raha', (Word(text='going'),)))
    """
    return tuple((part, source) for part in text.split())


def copied(source: Sequence[Word]) -> Target:
    """Target words that repeat source words, each linked to its own."""
    return tuple((word.text, (word,)) for word in source)


@final
@dataclass(frozen=True)
class Pair:
    """A source text and the target text made from it."""

    source: tuple[Word, ...] = ()
    target: Target = ()

    def __add__(self, other: "Pair") -> "Pair":
        return Pair(self.source + other.source, self.target + other.target)

    def row(self, source: str, target: str) -> Row:
        """A row with these columns and `alignment`.

        >>> not_, go = words("not go")
        >>> Pair((not_, go), linked("nahin", not_) + linked("ja raha", go)).row("english", "hindi")
        {'english': 'not go', 'hindi': 'nahin ja raha', 'alignment': '0-0 1-1 1-2'}
        """
        place = {word: number for number, word in enumerate(self.source)}
        origins = enumerate(origin for _, origin in self.target)
        links = sorted((place[word], at) for at, origin in origins for word in origin)
        return {
            source: " ".join(word.text for word in self.source),
            target: " ".join(text for text, _ in self.target),
            "alignment": " ".join(f"{at}-{to}" for at, to in links),
        }


Clause = Callable[[Random, int], Pair]
"""Draws a clause; the number is how many words there is room for, which it may exceed."""


def joined(
    rng: Random,
    longest: int,
    *,
    shortest: int,
    clause: Clause,
    conjunction: Callable[[Random], Pair],
) -> Pair:
    """Clauses with one-word conjunctions between them, as many as fit in a length drawn uniformly.

    Without a drawn length nearly every text would be as long as is allowed.
    """
    goal = rng.randint(shortest, longest)
    pair = fitting(rng, goal, clause)
    while (room := goal - len(pair.source) - 1) >= shortest:
        pair = pair + conjunction(rng) + fitting(rng, room, clause)
    return pair


def fitting(rng: Random, room: int, clause: Clause) -> Pair:
    """The first clause drawn that is not too long."""
    while len((pair := clause(rng, room)).source) > room:
        pass
    return pair
