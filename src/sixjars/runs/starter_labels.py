"""The labels of a user's data: which have too few rows, which are one label spelled in two ways."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from statistics import median
from typing import Final

from sixjars.data.field import Field
from sixjars.data.text.segments import SEPARATOR
from sixjars.errors import DataError, shown
from sixjars.progress import number_of

FEW: Final = 5
"""Rows of a label below which it does not count for how unbalanced labels are."""
SELDOM: Final = 10
"""A label of few rows is named where most labels have so many times more."""
NAMED: Final = 3
"""Labels that a sentence names; further ones are counted."""


def counts_of(field: Field, texts: Sequence[str]) -> Counter[str]:
    """How many rows have each label, as the field reads it; nothing where a row may have several, or has none."""
    return Counter(map(field.normalize, texts)) if field.single_label else Counter()


def unbalanced(counts: Mapping[str, int]) -> bool:
    """Whether some of a few labels have many more rows than others; a label of few rows, a typo maybe, is not asked.

    >>> unbalanced({"spam": 5, "mail": 15, "spma": 1}), unbalanced({"spam": 5, "mail": 14})
    (True, False)
    """
    many = [count for count in counts.values() if count >= FEW]
    return len(counts) <= 20 and len(many) > 1 and max(many) >= 3 * min(many)


def single(counts: Mapping[str, int]) -> bool:
    """Whether a label has one row alone, so that balanced weights would give that row the weight of a whole class."""
    return 1 in counts.values()


def check_labels(field: Field, texts: Sequence[str], data: object) -> None:
    """Refuses labels of which there is only one; training would."""
    found = {field.normalize(text) for text in texts} if field.single_label or field.multi_label else set()
    if len(found) == 1 and not (field.multi_label and SEPARATOR in min(found)):
        rows = "all rows have" if len(texts) > 1 else "its only row has"
        raise DataError(
            f"{data}: {rows} the {field.name} {shown(found.pop())}, so there is nothing to tell apart; training needs "
            "rows with two labels or more."
        )


def label_notes(field: Field, texts: Sequence[str]) -> Iterator[str]:
    """What a person should know of the labels, a sentence each."""
    counts = counts_of(field, texts)
    usual = median(counts.values()) if counts else 0
    rare = [label for label, count in counts.items() if count < FEW and SELDOM * count <= usual]
    if rare:
        dropped = unbalanced(counts) and single(counts)
        left_out = f" A label of 1 row is left out (min_count: 2 under {field.name})." if dropped else ""
        yield _listed([_rare(label, counts) for label in rare]) + left_out
    alike = defaultdict(list)
    for label in counts:
        alike[label.casefold()].append(label)
    twice = [names for names in alike.values() if len(names) > 1]
    if twice:
        pairs = [" and ".join(f"{shown(one)} ({number_of(counts[one], 'row')})" for one in some) for some in twice]
        yield (
            f"labels differ only in case, and are different classes: {_listed(pairs)} "
            f"Write `lowercase: true` under {field.name} to make them one."
        )
    blank = next((text for text in texts if counts and text != text.strip()), None)
    if blank is not None:
        yield f"blanks around a label do not count: {blank!r} is read as {shown(field.normalize(blank))}."


def _rare(label: str, counts: Mapping[str, int]) -> str:
    others = [other for other, count in counts.items() if count >= FEW]
    near = get_close_matches(label, others, n=1)
    maybe = f"a typo of {shown(near[0])}?" if near else "a typo, or too few to learn it from?"
    return f"label {shown(label)} has {number_of(counts[label], 'row')}: {maybe}"


def _listed(sentences: Sequence[str]) -> str:
    """The first ones, and how many more."""
    more = f"; and {len(sentences) - NAMED} more" if len(sentences) > NAMED else ""
    told = "; ".join(sentences[:NAMED]) + more
    return told if told.endswith("?") else f"{told}."
