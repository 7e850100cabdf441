"""What a person should know of the labels and the image, video and feature files of their data, before it is used."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from statistics import median
from typing import Final, final

from sixjars.data.field import Field
from sixjars.data.media.files import MediaFiles
from sixjars.data.media.images import IMAGE_ENDINGS, need_pillow, read_image, size_of
from sixjars.data.storage.cache import Examples
from sixjars.data.tables.headers import is_number
from sixjars.data.text.label_lists import hold_lists
from sixjars.data.text.segments import SEPARATOR
from sixjars.errors import DataError, MissingExtra, SixJarsError, shown
from sixjars.progress import number_of

FEW: Final = 5
"""Rows of a label below which it does not count for how unbalanced labels are."""
SELDOM: Final = 10
"""A label of few rows is named where most labels have so many times more."""
MANY: Final = 20
"""Labels from which numbers are rather amounts."""
ONLY_BLANKS: Final = 0.9
"""How alike labels of unlike numbers of words are, at the least, where one is a typo of the other."""
NAMED: Final = 3
"""Labels, or files that cannot be used, that are named; further ones are counted."""
COMMAS: Final = "write commas there and run `sixjars new` again"
MARKS: Final = {
    ",": "write `multi_label: true` under label, and `metrics: [labels_micro_f1]`",  # lists beyond the rows of a guess
    **dict.fromkeys(";|/", COMMAS),
}
"""What people write between labels, and what to do about it."""
OPENED: Final = 10_000
"""Images of which the beginning is read, which tells their size; of more, some from all over the data."""
DECODED: Final = 100
"""Images of which all is read, from all over the data."""
KEPT: Final = 0.8
"""Where a square in the middle has a smaller share of an image, that is worth a note."""
_MOST_PIXELS: Final = 50_000_000
_SMALL: Final = 8
"""Pixels of a side: whether an image can be decoded shows at any size."""


def counts_of(field: Field, texts: Sequence[str]) -> Counter[str]:
    """How many rows have each label, as the field reads it; nothing where a row may have several, or has none."""
    return Counter(map(field.normalize, texts)) if field.single_label else Counter()


def labels_of(field: Field, texts: Sequence[str]) -> list[str]:
    """All labels of the rows, as the field reads them, of a row that has several each of them."""
    read = map(field.normalize, texts)
    return (
        [label for text in read for label in text.split(SEPARATOR)]
        if field.multi_label
        else [*read]
    )


def unbalanced(counts: Mapping[str, int]) -> bool:
    """Whether some of a few labels have many more rows than others; a label of few rows, a typo maybe, is not asked.

    >>> unbalanced({"spam": 5, "mail": 15, "spma": 1}), unbalanced({"spam": 5, "mail": 14})
    (True, False)
    """
    many = [count for count in counts.values() if count >= FEW]
    return len(counts) <= 20 and len(many) > 1 and max(many) >= 3 * min(many)


def drops_single(field: Field, texts: Sequence[str]) -> bool:
    """Whether a starter recipe leaves out labels of one row, of which no other row can be scored.

    Only where labels are unbalanced: with balanced weights that row would weigh as much as a whole class.
    """
    counts = counts_of(field, texts)
    return unbalanced(counts) and 1 in counts.values()


def check_labels(field: Field, texts: Sequence[str], data: object) -> None:
    """Refuses labels of which there is only one; training would."""
    found = (
        {field.normalize(text) for text in texts}
        if field.single_label or field.multi_label
        else set()
    )
    if len(found) == 1 and not (field.multi_label and SEPARATOR in min(found)):
        rows = "all rows have" if len(texts) > 1 else "its only row has"
        raise DataError(
            f"{data}: {rows} the {field.name} {shown(found.pop())}, so there is nothing to tell apart; training needs "
            "rows with two labels or more."
        )


def unlabelled(field: Field, column: str | int, examples: Examples) -> Iterator[str]:
    """A sentence where rows that may have several labels have none."""
    said = [f"column {column!r} {how}." for how in ("holds an empty list", "is empty")]
    none = sum(examples.reasons.get(sentence, 0) for sentence in said) if field.multi_label else 0
    if none:
        have = "row has" if none == 1 else "rows have"
        yield (
            f"{none:,} {have} no {field.name}, which cannot be learned yet, so they are bad rows. Where "
            "that is right of a text, give such rows a label for it, such as 'none'."
        )


def label_notes(field: Field, texts: Sequence[str]) -> Iterator[str]:
    """What a person should know of the labels, a sentence each."""
    counts = counts_of(field, texts)
    if field.multi_label and texts:
        lists = [field.normalize(text) for text in texts]
        counts = Counter(labels_of(field, texts))
        some = next((text for text in lists if SEPARATOR in text), lists[0])
        yield (
            f"a row may have several labels, such as {shown(some)}, so the recipe says `multi_label: true`. If that is "
            "one label, remove it there, and write `metrics: [accuracy@1, macro_f1]`."
        )
    for mark, advice in MARKS.items() if field.single_label else ():
        if hold_lists(texts, mark):
            some = next(text for text in texts if mark in text.strip(f"{mark} "))
            yield (
                f"labels look like lists with {mark!r} between, such as {shown(some)}, but each list is a class of its "
                f"own. If a row may have several labels, {advice}."
            )
    yield from _amounts(counts)
    usual = median(counts.values()) if counts else 0
    rare = [label for label, count in counts.items() if count < FEW and SELDOM * count <= usual]
    dropped = [label for label in counts if counts[label] == 1 and drops_single(field, texts)]
    if rare or dropped:
        named = [*rare, *(label for label in dropped if label not in rare)]
        yield _listed([_rare(label, counts) for label in named]) + _left_out(dropped, field.name)
    alike = defaultdict(list)
    for label in counts:
        alike[label.casefold()].append(label)
    twice = [names for names in alike.values() if len(names) > 1]
    if twice:
        pairs = [
            " and ".join(f"{shown(one)} ({number_of(counts[one], 'row')})" for one in some)
            for some in twice
        ]
        yield (
            f"labels differ only in case, and are different classes: {_listed(pairs)} "
            f"Write `lowercase: true` under {field.name} to make them one."
        )
    blank = next((text for text in texts if counts and text != text.strip()), None)
    if blank is not None:
        yield f"blanks around a label do not count: {blank!r} is read as {shown(field.normalize(blank))}."


def _amounts(counts: Counter[str]) -> Iterator[str]:
    """A sentence where labels are amounts, not the names of classes: numbers, of which whole ones hardly come again."""
    if len(counts) <= MANY or not all(map(is_number, counts)):
        return
    parts = [label for label in counts if _has_fraction(label)]
    if parts or len(counts) * FEW > counts.total():
        yield (
            f"labels are numbers with many different values ({len(counts):,} in {counts.total():,} rows, such as "
            f"{shown((parts or [*counts])[0])}), and sixjars predicts classes: round them or put them into ranges first."
        )


def _has_fraction(label: str) -> bool:
    return is_number(label) and not label.strip().lstrip("+-").isdigit()


def _left_out(labels: Sequence[str], field: str) -> str:
    """What a recipe does with labels of one row."""
    if len(labels) <= NAMED:
        return f" A label of 1 row is left out (min_count: 2 under {field})." if labels else ""
    return f" The {len(labels)} labels of 1 row are left out (min_count: 2 under {field})."


def _rare(label: str, counts: Mapping[str, int]) -> str:
    others = [other for other, count in counts.items() if count >= FEW]
    near = [other for other in get_close_matches(label, others) if _may_be_typo(label, other)]
    maybe = f"a typo of {shown(near[0])}?" if near else "a typo, or too few to learn it from?"
    return f"label {shown(label)} has {number_of(counts[label], 'row')}: {maybe}"


def _may_be_typo(label: str, other: str) -> bool:
    """Whether two labels differ in letters, not in whole words.

    >>> _may_be_typo("Biling / Delivery", "Billing / Delivery"), _may_be_typo("Return / Delivery", "Billing / Delivery")
    (True, False)
    """
    words, others = (re.findall(r"\w+", one.casefold()) for one in (label, other))
    if len(words) != len(others):  # a blank more or less
        return bool(get_close_matches("".join(words), ["".join(others)], cutoff=ONLY_BLANKS))
    return all(
        get_close_matches(*pair) for pair in zip(words, ([one] for one in others), strict=True)
    )


def _listed(sentences: Sequence[str]) -> str:
    """The first ones, and how many more."""
    more = f"; and {len(sentences) - NAMED} more" if len(sentences) > NAMED else ""
    asks = not more and sentences[-1].endswith("?")
    told = "; ".join(one.removesuffix("?") for one in sentences[:NAMED])
    return f"{told}{more}{'?' if asks else '.'}"


@final
@dataclass(frozen=True)
class LookedThrough:
    """What was found out about the files of a field."""

    field: str
    files: tuple[str, ...]
    """All that the rows name."""
    sizes: Mapping[str, tuple[int, int]]
    """Of the images that were looked at, by name."""
    faults: tuple[str, ...] = ()
    """A sentence for each file that is not there or cannot be decoded."""
    sampled: str = ""
    """How many images were looked at, where it was not all to their ends."""

    def notes(self, on_bad_row: str) -> Iterator[str]:
        """What a person should know, a sentence each; `on_bad_row` is what the recipe says."""
        if self.faults:
            named = " ".join([*self.faults[:NAMED], *(["..."] if len(self.faults) > NAMED else [])])
            files = number_of(len(self.files), "file")
            yield (
                f"{len(self.faults)} of {files} cannot be used{self.sampled}, so the recipe says "
                f"`on_bad_row: {on_bad_row}` (error stops there, skip leaves them out). {named}"
            )
        shares = {name: min(size) / max(size) for name, size in self.sizes.items()}
        if shares and median(shares.values()) < KEPT:
            name, share = next((name, share) for name, share in shares.items() if share < KEPT)
            width, height = self.sizes[name]
            yield (
                f"images such as {name} are {width} x {height}; their middle square, {share:.0%} of them, is "
                f"all that the network gets. Write `fit: pad` under {self.field} to keep the whole."
            )


def look_through(field: Field, names: Sequence[str]) -> LookedThrough:
    """Whether all files are where the field looks, and whether images can be decoded."""
    files = tuple(dict.fromkeys(names))
    try:
        media: MediaFiles = field.files  # type: ignore[attr-defined]  # of a field whose values name files
        need_pillow()
    except (DataError, MissingExtra):  # of which training will tell
        return LookedThrough(field.name, files, {})
    faults = [_fault(media, name) for name in files if not media.has(name)]
    images = [
        name for name in files if name.lower().endswith(tuple(IMAGE_ENDINGS)) and media.has(name)
    ]
    opened, decoded = _some(images, OPENED), {*_some(images, DECODED)}
    sizes = {}
    for name in opened:
        try:
            with media.open(name) as file:
                size = size_of(file, name, max_pixels=_MOST_PIXELS)
                if name in decoded:
                    read_image(file, name, size=_SMALL, fit="stretch", max_pixels=_MOST_PIXELS)
                sizes[name] = size
        except SixJarsError as error:
            faults.append(str(error))
    every = "all" if len(opened) == len(images) else f"{len(opened):,} of {len(images):,}"
    part = f" ({every} images were opened, and {len(decoded)} of them read to the end)"
    return LookedThrough(
        field.name, files, sizes, tuple(faults), part if len(decoded) < len(images) else ""
    )


def _some(names: Sequence[str], count: int) -> list[str]:
    """So many of the names, at equal distances; the smaller of two counts chooses from what the larger one does.

    >>> _some("abcdef", 3), _some("ab", 3)
    (['a', 'c', 'e'], ['a', 'b'])
    """
    count = min(count, len(names))
    return [names[at * len(names) // count] for at in range(count)]


def _fault(media: MediaFiles, name: str) -> str:
    """Why there is no such file."""
    try:
        media.open(name).close()
    except DataError as error:
        return str(error)
    return ""
