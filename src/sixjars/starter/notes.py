"""Notes on the labels and the image, video and feature files of a user's data, before training."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from statistics import median
from typing import Final, final

from sixjars.data.field import Field
from sixjars.data.media.files import MediaFiles
from sixjars.data.storage.cache import Examples
from sixjars.data.tables.dialect import is_number
from sixjars.data.text.statistics import hold_lists
from sixjars.progress import number_of
from sixjars_runtime.errors import DataError, MissingExtra, SixJarsError, shown
from sixjars_runtime.images import IMAGE_ENDINGS, need_pillow, read_image, size_of
from sixjars_runtime.text.segments import SEPARATOR

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
    # Lists beyond the rows of a guess.
    ",": "write `multi_label: true` under label, and `metrics: [labels_micro_f1]`",
    **dict.fromkeys(";|/", COMMAS),
}
"""Marks that people write between labels, and what to do about them."""
OPENED: Final = 10_000
"""Images of which the beginning is read, for their size; of more, a sample from all over."""
DECODED: Final = 100
"""Images of which all is read, from all over the data."""
KEPT: Final = 0.8
"""The share of an image in its middle square below which a note says that the rest is lost."""
_MOST_PIXELS: Final = 50_000_000
_SMALL: Final = 8
"""Pixels of a side: whether an image can be decoded shows at any size."""


def counts_of(field: Field, texts: Sequence[str]) -> Counter[str]:
    """How many rows have each label; empty where a row may have several, or has none."""
    return Counter(map(field.normalize, texts)) if field.single_label else Counter()


def unbalanced(counts: Mapping[str, int]) -> bool:
    """Whether some of a few labels have many more rows than others; few rows, a typo maybe, pass.

    >>> unbalanced({"spam": 5, "mail": 15, "spma": 1}), unbalanced({"spam": 5, "mail": 14})
    (True, False)
    """
    many = [count for count in counts.values() if count >= FEW]
    return len(counts) <= 20 and len(many) > 1 and max(many) >= 3 * min(many)


def drops_single(counts: Mapping[str, int]) -> bool:
    """Whether a starter recipe leaves out labels of one row, of which no other row can be scored.

    Only where labels are unbalanced: with balanced weights that row would weigh as much as a whole
    class.
    """
    return unbalanced(counts) and 1 in counts.values()


def check_labels(field: Field, texts: Sequence[str], data: object) -> None:
    """Refuse data with only one label, as training would."""
    labels = {field.normalize(text) for text in texts}
    if len(labels) == 1 and not (field.multi_label and SEPARATOR in min(labels)):
        rows = "all rows have" if len(texts) > 1 else "its only row has"
        raise DataError(
            f"{data}: {rows} the {field.name} {shown(labels.pop())}, so there is nothing to tell "
            "apart; training needs rows with two labels or more."
        )


def unlabelled(field: Field, column: str | int, examples: Examples) -> Iterator[str]:
    """A sentence where rows that may have several labels have none."""
    reasons = [f"column {column!r} {state}." for state in ("holds an empty list", "is empty")]
    none = sum(examples.reasons.get(reason, 0) for reason in reasons) if field.multi_label else 0
    if none:
        have = "row has" if none == 1 else "rows have"
        yield (
            f"{none:,} {have} no {field.name}, which cannot be learned yet, so they are bad rows. "
            "Where that is right of a text, give such rows a label for it, such as 'none'."
        )


def label_notes(field: Field, texts: Sequence[str]) -> Iterator[str]:
    """Notes on the labels, a sentence each."""
    counts = counts_of(field, texts)
    if field.multi_label and texts:
        lists = [field.normalize(text) for text in texts]
        counts = Counter(label for text in lists for label in text.split(SEPARATOR))
        example = next((text for text in lists if SEPARATOR in text), lists[0])
        yield (
            f"a row may have several labels, such as {shown(example)}, so the recipe says "
            "`multi_label: true`. If that is one label, remove it there, and write "
            "`metrics: [accuracy@1, macro_f1]`."
        )
    for mark, advice in MARKS.items() if field.single_label else ():
        if hold_lists(texts, mark):
            example = next(text for text in texts if mark in text.strip(f"{mark} "))
            yield (
                f"labels look like lists with {mark!r} between, such as {shown(example)}, but each "
                f"list is a class of its own. If a row may have several labels, {advice}."
            )
    yield from _amounts(counts)
    yield from _rare_labels(counts, field)
    yield from _differ_in_case(counts, field.name)
    blank = next((text for text in texts if counts and text != text.strip()), None)
    if blank is not None:
        label = shown(field.normalize(blank))
        yield f"blanks around a label do not count: {blank!r} is read as {label}."


def _amounts(counts: Counter[str]) -> Iterator[str]:
    """A sentence where labels are amounts, not the names of classes: numbers, of which whole ones hardly come again."""
    if len(counts) <= MANY or not all(map(is_number, counts)):
        return
    parts = [label for label in counts if not label.strip().lstrip("+-").isdigit()]
    if parts or len(counts) * FEW > counts.total():
        yield (
            f"labels are numbers with many different values ({len(counts):,} in {counts.total():,} rows, such as "
            f"{shown((parts or [*counts])[0])}), and sixjars predicts classes: round them or put them into ranges first."
        )


def _rare_labels(counts: Mapping[str, int], field: Field) -> Iterator[str]:
    """A sentence on labels of few rows, and what a recipe does with those of one row."""
    usual = median(counts.values()) if counts else 0
    rare = [label for label, count in counts.items() if count < FEW and SELDOM * count <= usual]
    is_dropped = field.single_label and drops_single(counts)
    dropped = [label for label in counts if is_dropped and counts[label] == 1]
    if named := list(dict.fromkeys([*rare, *dropped])):
        labels = "A label" if len(dropped) <= NAMED else f"The {len(dropped)} labels"
        verb = "is" if len(dropped) <= NAMED else "are"
        left_out = f" {labels} of 1 row {verb} left out (min_count: 2 under {field.name})."
        yield _listed([_rare(label, counts) for label in named]) + (left_out if dropped else "")


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
    words, others = (re.findall(r"\w+", text.casefold()) for text in (label, other))
    if len(words) != len(others):  # a blank more or less
        return bool(get_close_matches("".join(words), ["".join(others)], cutoff=ONLY_BLANKS))
    return all(get_close_matches(word, [near]) for word, near in zip(words, others, strict=True))


def _differ_in_case(counts: Mapping[str, int], field: str) -> Iterator[str]:
    alike = defaultdict(list)
    for label in counts:
        alike[label.casefold()].append(f"{shown(label)} ({number_of(counts[label], 'row')})")
    if pairs := [" and ".join(names) for names in alike.values() if len(names) > 1]:
        yield (
            f"labels differ only in case, and are different classes: {_listed(pairs)} "
            f"Write `lowercase: true` under {field} to make them one."
        )


def _listed(sentences: Sequence[str]) -> str:
    """The first sentences as one, and how many more there are."""
    more = f"; and {len(sentences) - NAMED} more" if len(sentences) > NAMED else ""
    asks = not more and sentences[-1].endswith("?")
    first = "; ".join(sentence.removesuffix("?") for sentence in sentences[:NAMED])
    return f"{first}{more}{'?' if asks else '.'}"


@final
@dataclass(frozen=True)
class FileFindings:
    """The sizes and the faults of the files of a field."""

    field: str
    files: tuple[str, ...]
    """All that the rows name."""
    sizes: Mapping[str, tuple[int, int]]
    """Width and height of the images that were opened, by name."""
    faults: tuple[str, ...] = ()
    """A sentence for each file that is not there or cannot be decoded."""
    sampled: str = ""
    """How many images were opened, where not all were read to their ends."""

    def notes(self, on_bad_row: str) -> Iterator[str]:
        """Notes on the files, a sentence each; `on_bad_row` is the setting of the recipe."""
        if self.faults:
            first = " ".join([*self.faults[:NAMED], *(["..."] if len(self.faults) > NAMED else [])])
            yield (
                f"{len(self.faults)} of {number_of(len(self.files), 'file')} cannot be used"
                f"{self.sampled}, so the recipe says `on_bad_row: {on_bad_row}` "
                f"(error stops there, skip leaves them out). {first}"
            )
        shares = {name: min(size) / max(size) for name, size in self.sizes.items()}
        if shares and median(shares.values()) < KEPT:
            name, share = next((name, share) for name, share in shares.items() if share < KEPT)
            width, height = self.sizes[name]
            yield (
                f"images such as {name} are {width} x {height}; their middle square, {share:.0%} "
                f"of them, is all that the network gets. Write `fit: pad` under {self.field} to "
                "keep the whole."
            )


def look_through(field: Field, names: Sequence[str]) -> FileFindings:
    """Find out whether all files are where the field expects them, and whether images decode."""
    files = tuple(dict.fromkeys(names))
    try:
        media: MediaFiles = field.files  # type: ignore[attr-defined]
        need_pillow()
    except (DataError, MissingExtra):  # of which training will tell
        return FileFindings(field.name, files, {})
    faults = [_fault(media, name) for name in files if not media.has(name)]
    endings = tuple(IMAGE_ENDINGS)
    images = [name for name in files if name.lower().endswith(endings) and media.has(name)]
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
    sampled = f" ({every} images were opened, and {len(decoded)} of them read to the end)"
    sampled = sampled if len(decoded) < len(images) else ""
    return FileFindings(field.name, files, sizes, tuple(faults), sampled)


def _some(names: Sequence[str], count: int) -> list[str]:
    """So many of the names, evenly spaced; a smaller count takes names that a larger one takes.

    >>> _some("abcdef", 3), _some("ab", 3)
    (['a', 'c', 'e'], ['a', 'b'])
    """
    count = min(count, len(names))
    return [names[at * len(names) // count] for at in range(count)]


def _fault(media: MediaFiles, name: str) -> str:
    """The reason why a file cannot be opened."""
    try:
        media.open(name).close()
    except DataError as error:
        return str(error)
    return ""
