"""Annotations: columns that say where a model should attend, written as text; and the links of alignments."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

Links = frozenset[tuple[int, int]]
"""True pairs (source word, target word), both counted from 0."""


@final
@dataclass(frozen=True)
class Annotation:
    """A kind of annotation."""

    key: str
    """Of the data section, and of a synthetic corpus."""
    reads: str
    """The field that it is about."""
    need: str
    """What a metric calls it."""
    called: str
    """In messages."""


ANNOTATIONS: dict[str, Annotation] = {
    annotation.key: annotation
    for annotation in (
        Annotation("alignment", "source", "links", "true alignments"),
        Annotation("boxes", "image", "focus", "true boxes"),
        Annotation("rationale", "source", "rationale", "true rationales"),
    )
}


def links_of(text: str, counts: Sequence[int], names: Sequence[str]) -> Links:
    """`0-0 1-2`; `counts` are the words of source and target, `names` what those are called.

    >>> sorted(links_of("0-0 1-2", [2, 3], ["source", "target"]))
    [(0, 0), (1, 2)]
    """
    try:
        pairs = [tuple(int(number) for number in pair.split("-")) for pair in text.split()]
        links = frozenset((source, target) for source, target in pairs)
    except ValueError:
        raise ValueError(f"alignment {text!r} must be pairs like `0-0 1-2`.") from None
    for side, (name, count) in enumerate(zip(names, counts, strict=True)):
        over = [link for link in links if not 0 <= link[side] < count]
        if over:
            raise ValueError(
                f"alignment {over[0][0]}-{over[0][1]} points outside the {name}, which has {count} words "
                "(counted from 0)."
            )
    return links
