"""Annotations: columns that say where a model should attend, and links of alignments."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import NamedTuple, final

Links = frozenset[tuple[int, int]]  # true pairs (source word, target word), both counted from 0
Places = tuple[tuple[int, int], ...]  # pairs (source position, target position) of tokens


@final
@dataclass(frozen=True)
class Annotation:
    """A kind of annotation: its key, its field, and its names in metrics and messages."""

    key: str
    """Its key in the data section and in synthetic corpora."""
    reads: str
    """The field that it is about."""
    need: str
    """Its name in the needs of metrics."""
    called: str
    """Its name in messages."""


ANNOTATIONS = {
    "alignment": Annotation("alignment", "source", "links", "true alignments"),
    "boxes": Annotation("boxes", "image", "focus", "true boxes"),
    "rationale": Annotation("rationale", "source", "rationale", "true rationales"),
}


@final
class TrueLinks(NamedTuple):
    """The true links of a sentence pair."""

    sure: Links
    possible: Links
    """Links that are not counted as wrong, besides the sure ones."""


def links_of(text: str, counts: Sequence[int], names: Sequence[str]) -> TrueLinks:
    """Read `0-0 1-2 1?3`: sure links, and possible ones with a question mark.

    `counts` are the words of source and target, `names` what those are called.

    >>> sure, possible = links_of("0-0 1-2 1?1", [2, 3], ["source", "target"])
    >>> sorted(sure), sorted(possible)
    ([(0, 0), (1, 2)], [(1, 1)])
    """
    links: dict[str, set[tuple[int, int]]] = {"-": set(), "?": set()}
    for pair in text.split():
        mark = "?" if "?" in pair else "-"
        try:
            source, target = map(int, pair.split(mark))
        except ValueError:
            raise ValueError(f"alignment {text!r} must be pairs like `0-0 1-2`.") from None
        links[mark].add((source, target))
        for name, count, word in zip(names, counts, (source, target), strict=True):
            if not 0 <= word < count:
                raise ValueError(
                    f"alignment {pair} points outside the {name}, which has {count} words (counted "
                    "from 0)."
                )
    return TrueLinks(frozenset(links["-"]), frozenset(links["?"]))


def between_tokens(links: Links, source: Sequence[int], target: Sequence[int]) -> Places:
    """Links between the tokens of linked words; `source` and `target` have the word of each token.

    >>> between_tokens(frozenset({(0, 1)}), [0, 0, 1], [0, 1])
    ((0, 1), (1, 1))
    """
    places: tuple[dict[int, list[int]], ...] = {}, {}
    for positions, words in zip(places, (source, target), strict=True):
        for place, word in enumerate(words):
            positions.setdefault(word, []).append(place)
    sources, targets = places
    pairs = (product(sources.get(first, ()), targets.get(second, ())) for first, second in links)
    return tuple(sorted(chain.from_iterable(pairs)))
