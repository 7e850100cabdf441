"""Merge two alignments of the same sentences, one in each direction.

A word has at most one link in its own direction, so each direction misses words that two words
belong to. Where both agree, links are nearly always right; the union has most of the true ones.
Growing starts at the first and adds from the second (Och & Ney 2003,
https://aclanthology.org/J03-1002/; Koehn, Och & Marcu 2003, https://aclanthology.org/N03-1017/,
section 3).
"""

from typing import Final, Literal, get_args

from sixjars.data.annotations import Links

Symmetrization = Literal[
    "forward",
    "backward",
    "intersection",
    "union",
    "grow-diag",
    "grow-diag-final",
    "grow-diag-final-and",
]
SYMMETRIZATIONS: Final[tuple[Symmetrization, ...]] = get_args(Symmetrization)
USUAL: Final[Symmetrization] = "grow-diag"
_AROUND: Final = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def symmetrized(forward: Links, backward: Links, method: Symmetrization) -> Links:
    """Merge both directions of a sentence pair; a link is (first word, second word).

    >>> forward, backward = frozenset({(0, 0), (1, 1), (1, 2)}), frozenset({(0, 0), (1, 1), (2, 2)})
    >>> sorted(symmetrized(forward, backward, "intersection"))
    [(0, 0), (1, 1)]
    >>> sorted(symmetrized(forward, backward, "grow-diag"))
    [(0, 0), (1, 1), (1, 2), (2, 2)]
    """
    if method == "forward" or forward == backward:
        return forward
    if method == "backward":
        return backward
    if method == "union":
        return forward | backward
    if method == "intersection":
        return forward & backward
    grown = grow_diag(forward, backward)
    if method == "grow-diag":
        return frozenset(grown)
    # Of each direction, links of which a word (or, with `and`, both words) has no link yet.
    enough = all if method == "grow-diag-final-and" else any
    firsts, seconds = {first for first, _ in grown}, {second for _, second in grown}
    for first, second in (*sorted(forward), *sorted(backward)):
        if enough((first not in firsts, second not in seconds)):
            grown.add((first, second))
            firsts.add(first)
            seconds.add(second)
    return frozenset(grown)


def grow_diag(forward: Links, backward: Links) -> set[tuple[int, int]]:
    """Grow the intersection by neighbours in the union that link a word without a link.

    Neighbours of a link are the eight around it; links are gone through in order until none is new.
    """
    grown = set(forward & backward)
    candidates = (forward | backward) - grown
    firsts, seconds = {first for first, _ in grown}, {second for _, second in grown}
    last = sorted(grown)  # only links added in the last round can have new neighbours
    while last:
        added = []
        for first, second in last:
            for down, across in _AROUND:
                link = first + down, second + across
                if link in candidates and (link[0] not in firsts or link[1] not in seconds):
                    added.append(link)
                    firsts.add(link[0])
                    seconds.add(link[1])
        grown.update(added)
        last = sorted(added)
    return grown
