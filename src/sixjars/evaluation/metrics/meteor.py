"""METEOR without its dictionaries: words match when they or their English stems are the same."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from sixjars.evaluation.metrics.captions import caption_words
from sixjars.evaluation.metrics.outcome import Outcome

_BEAM: Final = 64
"""Ways to connect the words that are kept at each word; more than captions ever have."""

_Way = tuple[int, int | None]
"""The reference's words in use, one bit each, and where the word before stands, if it is connected."""


def meteor_exact_stem(outcomes: Sequence[Outcome]) -> float:
    r"""METEOR with exact and stem matches only: shared words, recall first, less where order differs; 0 to 1.

    .. math:: \frac1N \sum_i \max_{r \in R_i} \Bigl(1 - \tfrac12 \bigl(\tfrac{c}{m}\bigr)^3\Bigr)
              \frac{10 \, P R}{R + 9 P}, \quad P = \frac{m}{|\hat y_i|}, \; R = \frac{m}{|r|}

    Banerjee & Lavie 2005, section 2.2 (https://aclanthology.org/W05-0909/): `m` words are connected,
    as many as can be, and fall into `c` chunks, as few as can be, which stand side by side in both texts.
    A word connects to one with the same Porter stem, so these are their modules `exact` and `porter_stem` asked
    together, as in Denkowski & Lavie 2014 (https://aclanthology.org/W14-3348/). There are no synonyms, no
    paraphrases and none of the weights of the latter, so the number does not compare with that of the Java
    program in the COCO tools. Even a perfect text of m words is one chunk and misses 1 by 1/(2 m³).
    Words are those of `caption_words`. An empty text shares nothing: 0.

    >>> round(meteor_exact_stem([Outcome(("two dogs are running",), ("a dog runs",))]), 4)
    0.2564
    """
    from nltk.stem.porter import PorterStemmer  # type: ignore[import-untyped]

    stem = lru_cache(maxsize=100_000)(PorterStemmer().stem)

    def stems(text: str) -> list[str]:
        return [stem(word) for word in caption_words(text)]

    best = (max(_meteor(stems(o.best), stems(reference)) for reference in o.references) for o in outcomes)
    return math.fsum(best) / len(outcomes)


def _meteor(said: list[str], right: list[str]) -> float:
    connected = (Counter(said) & Counter(right)).total()
    if not connected:
        return 0.0
    precision, recall = connected / len(said), connected / len(right)
    mean = 10 * precision * recall / (recall + 9 * precision)
    return mean * (1 - 0.5 * (fewest_chunks(said, right) / connected) ** 3)


def fewest_chunks(said: Sequence[str], right: Sequence[str]) -> int:
    """Into how few runs of neighbours the words fall when as many as possible are connected.

    Word after word, every way to connect it goes on; beyond 64 ways the worst so far are dropped, so that
    long texts with many repeats may get a run more than they must.

    >>> fewest_chunks("a dog on a mat".split(), "on a mat a dog".split())
    2
    """
    places = {word: [at for at, other in enumerate(right) if other == word] for word in said}
    spare = Counter(said) - Counter(right)
    seen: Counter[str] = Counter()
    ways: dict[_Way, int] = {(0, None): 0}
    for word in said:
        further: dict[_Way, int] = {}
        for (used, before), chunks in ways.items():
            passed = seen[word] - sum(used >> at & 1 for at in places[word])
            for way, new in _choices(used, before, places[word], may_pass=passed < spare[word]):
                further[way] = min(chunks + new, further.get(way, chunks + new))
        ways = dict(sorted(further.items(), key=lambda item: item[1])[:_BEAM])
        seen[word] += 1
    return min(ways.values())


def _choices(used: int, before: int | None, places: list[int], *, may_pass: bool) -> Iterator[tuple[_Way, int]]:
    """Every free place for the next word, or none, and whether a new run begins there."""
    for at in places:
        if not used >> at & 1:
            yield (used | 1 << at, at), int(before is None or at != before + 1)
    if may_pass:
        yield (used, None), 0
