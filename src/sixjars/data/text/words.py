"""Texts as the words between white space: whatever is done to a word is done once for all the times it is there.

That is why large corpora are read fast: the different words of some thousand texts are few, and finding them is left to
Arrow, which works on all cores.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sixjars.data.flat import MOST_BYTES, MOST_ROWS, spread
from sixjars.errors import DataError, shown

Words = tuple[list[str], NDArray[np.int64], NDArray[np.int64]]
"""Different words; which of them stands at each place of all texts; and where each text begins, one entry more."""
_MERGED: Final = 1 << 20  # words of several arrays whose counts wait to be added up


@final
@dataclass(frozen=True)
class TextStream:
    """Texts one after the other, and where somebody can use them as they are stored, `pyarrow` arrays of them."""

    arrays: Iterable[Any]

    def __iter__(self) -> Iterator[str]:
        for some in self.arrays:
            yield from some.to_pylist()


def as_array(texts: Sequence[str]) -> Any:
    """Texts as a `pyarrow` array."""
    import pyarrow

    try:
        return pyarrow.array(texts, pyarrow.string())
    except UnicodeEncodeError:
        for text in texts:
            if any("\ud800" <= letter <= "\udfff" for letter in text):
                message = f"Text {shown(text)} holds half a character (a lone surrogate); remove it."
                raise DataError(message) from None
        raise


def words_of(texts: Any) -> Words:
    r"""The words of texts in a `pyarrow` array; a text without a word has one that is empty.

    >>> words_of(as_array([" to be\nor not to be ", " "]))
    (['to', 'be', 'or', 'not', ''], array([0, 1, 2, 3, 0, 1, 4]), array([0, 6, 7]))
    """
    split = _split(texts)
    words = split.flatten().dictionary_encode()
    places = words.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return words.dictionary.to_pylist(), places, split.offsets.to_numpy().astype(np.int64)


def _split(texts: Any) -> Any:
    import pyarrow.compute

    return pyarrow.compute.utf8_split_whitespace(pyarrow.compute.utf8_trim_whitespace(texts))


def word_counts(texts: Iterable[str]) -> tuple[dict[str, int], int]:
    """How often each word was seen, and between how many words there was white space.

    >>> counts, spaces = word_counts(["to be or", "", "not to be"])
    >>> sorted(counts.items()), spaces
    ([('be', 2), ('not', 1), ('or', 1), ('to', 2)], 4)
    """
    found: list[Any] = []
    spaces = 0
    for counts, between in spread(_counted, _arrays(texts)):
        found.append(counts)
        spaces += between
        if sum(map(len, found)) > max(_MERGED, 2 * len(found[0])):
            found = [_merged(found)]
    words = _merged(found).to_pydict() if found else {"word": [], "count": []}
    counted = dict(zip(words["word"], words["count"], strict=True))
    counted.pop("", None)
    return counted, spaces


def _arrays(texts: Iterable[str]) -> Iterator[Any]:
    """As many texts as are worked on at once, as `pyarrow` arrays."""
    if isinstance(texts, TextStream):
        yield from texts.arrays
        return
    stream, each = iter(texts), 1 << 8
    while some := list(islice(stream, each)):
        yield as_array(some)
        each = max(1, min(MOST_ROWS, MOST_BYTES * len(some) // max(sum(map(len, some)), 1)))


def _counted(texts: Any) -> tuple[Any, int]:
    """A table of the different words and how often each is there, and the spaces between them."""
    import pyarrow

    split = _split(texts)
    words, counts = split.flatten().value_counts().flatten()
    return pyarrow.table({"word": words, "count": counts}), len(split.flatten()) - len(split)


def _merged(tables: Sequence[Any]) -> Any:
    """Tables of counts as one, in which each word is once."""
    import pyarrow

    summed = pyarrow.concat_tables(tables).group_by("word").aggregate([("count", "sum")])
    return pyarrow.table({"word": summed.column("word"), "count": summed.column("count_sum")})
