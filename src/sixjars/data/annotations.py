"""Annotations: columns that say where a model should attend, written as text; they are checked against their row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

Links = frozenset[tuple[int, int]]
"""True pairs (source word, target word), both counted from 0."""
Box = tuple[int, float, float, float, float]
"""Which word, and the left, top, right and bottom of its object as fractions of the image's width and height."""


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


def boxes_of(text: str, count: int, name: str) -> tuple[Box, ...]:
    """`2:0.1,0.1,0.4,0.3 ...`; the output called `name` has `count` words.

    >>> boxes_of("0:0.1,0.2,0.5,0.6", 1, "label")
    ((0, 0.1, 0.2, 0.5, 0.6),)
    """
    try:
        pairs = [pair.split(":") for pair in text.split()]
        found = [(int(word), [float(share) for share in place.split(",")]) for word, place in pairs]
        boxes = tuple((word, left, top, right, bottom) for word, (left, top, right, bottom) in found)
        if not all(_covers(box) for box in boxes):
            raise ValueError("a box that covers nothing of the image")
    except ValueError:
        message = f"boxes {text!r} must be like `2:0.1,0.1,0.4,0.3`: word, left, top, right, bottom."
        raise ValueError(message) from None
    over = [word for word, *_ in boxes if not 0 <= word < count]
    if over:
        raise ValueError(f"a box belongs to word {over[0]}, but the {name} has {count} (counted from 0).")
    return boxes


def rationale_of(text: str, count: int) -> tuple[int, int] | None:
    """`2 5`, sentence and word; the source has `count` sentences. Nothing where there is no text.

    >>> rationale_of("2 5", 3)
    (2, 5)
    """
    if not text.strip():
        return None
    try:
        sentence, word = (int(number) for number in text.split())
        if min(sentence, word) < 0:
            raise ValueError("counted from 0")
    except ValueError:
        raise ValueError(f"rationale {text!r} must be like `2 5`: sentence, word.") from None
    if sentence >= count:
        raise ValueError(f"rationale names sentence {sentence}, but the source has {count} (counted from 0).")
    return sentence, word


def _covers(box: Box) -> bool:
    """Whether some of the image is in a box."""
    _, left, top, right, bottom = box
    return max(left, 0.0) < min(right, 1.0) and max(top, 0.0) < min(bottom, 1.0)
