"""Texts as the words between white space: whatever is done to a word is done once for all the times it is there.

That is why large corpora are read fast: the different words of some thousand texts are few, and finding them is left to
Arrow, which works on all cores.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sixjars.data.flat import MOST_BYTES, MOST_ROWS, spread
from sixjars.errors import DataError, shown

Words = tuple[list[str], NDArray[np.int64], NDArray[np.int64]]
"""Different words; which of them stands at each place of all texts; and where each text begins, one entry more."""


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
    import pyarrow.compute

    compute = pyarrow.compute
    split = compute.utf8_split_whitespace(compute.utf8_trim_whitespace(texts))
    words = split.flatten().dictionary_encode()
    places = words.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return words.dictionary.to_pylist(), places, split.offsets.to_numpy().astype(np.int64)


def word_counts(texts: Iterable[str]) -> tuple[Counter[str], int]:
    """How often each word was seen, and between how many words there was white space.

    >>> word_counts(["to be or", "", "not to be"])
    (Counter({'to': 2, 'be': 2, 'or': 1, 'not': 1}), 4)
    """
    counts: Counter[str] = Counter()
    spaces = 0
    for words, often, between in spread(_counted, _some(texts)):
        counts.update(dict(zip(words, often, strict=True)))
        spaces += between
    del counts[""]
    return counts, spaces


def _some(texts: Iterable[str]) -> Iterator[list[str]]:
    """As many texts as are worked on at once."""
    stream, each = iter(texts), 1 << 8
    while some := list(islice(stream, each)):
        yield some
        each = max(1, min(MOST_ROWS, MOST_BYTES * len(some) // max(sum(map(len, some)), 1)))


def _counted(texts: Sequence[str]) -> tuple[list[str], list[int], int]:
    words, places, begins = words_of(as_array(texts))
    return words, np.bincount(places, minlength=len(words)).tolist(), int((np.diff(begins) - 1).sum())
