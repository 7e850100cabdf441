"""Rows of different lengths in one flat array, texts as words, and work on all cores.

Whatever is done to a word is done once for all the times it is there. That is why large corpora are
read fast: the different words of some thousand texts are few, and finding them is left to Arrow,
which works on all cores.
"""

import mmap
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import Any, Final, TypeVar, final
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from sixjars_runtime.errors import DataError, shown
from sixjars_runtime.special_tokens import STOP
from sixjars_runtime.text.segments import has_half_character

T = TypeVar("T")
R = TypeVar("R")
Flat = tuple[NDArray[np.int32], NDArray[np.int64]]
"""Token ids of all rows on end, and where each row begins and the last ends."""
MOST_ROWS: Final = 1 << 16
MOST_BYTES: Final = 1 << 22
"""Texts that are worked on at once: little memory, and enough of it for the cores."""
Words = tuple[list[str], NDArray[np.int64], NDArray[np.int64]]
"""Different words; which of them is at each place; where each text begins, and the last ends."""
_FEW: Final = 64  # texts whose words Python finds as fast: Arrow loads its functions slowly
_MERGED: Final = 1 << 20  # words of several arrays whose counts wait to be added up


def flattened(rows: Sequence[Sequence[int]]) -> Flat:
    """Put rows one after the other in one array.

    >>> flattened([[7, 8], [], [9]])
    (array([7, 8, 9], dtype=int32), array([0, 2, 2, 3]))
    """
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    return np.fromiter(chain.from_iterable(rows), np.int32, int(lengths.sum())), begins_of(lengths)


def rows_of(flat: Flat) -> list[list[int]]:
    """The rows of a flat array, as lists.

    >>> rows_of(flattened([[7, 8], [], [9]]))
    [[7, 8], [], [9]]
    """
    ids, offsets = flat[0].tolist(), flat[1].tolist()
    return [ids[begin:end] for begin, end in pairwise(offsets)]


def begins_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each of some rows begins, and where the last ends."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])


def ranges(begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of many ranges, one range after the other.

    >>> ranges(np.array([5, 0]), np.array([3, 2]))
    array([5, 6, 7, 0, 1])
    """
    shifts = begins - (np.cumsum(lengths) - lengths)
    return np.repeat(shifts, lengths) + np.arange(int(lengths.sum()))


def slices(ids: NDArray[np.int32]) -> Iterator[NDArray[np.int32]]:
    """Ids some at a time: those of a large file are never all in memory."""
    for at in range(0, len(ids), MOST_BYTES):
        yield ids[at : at + MOST_BYTES]
        _give_back()


def places_of(ids: NDArray[np.int32], number: int) -> NDArray[np.int64]:
    """The positions of an id in an array.

    >>> places_of(np.array([7, 2, 7], dtype=np.int32), 7)
    array([0, 2])
    """
    places = [np.zeros(0, dtype=np.int64)]
    for at, block in enumerate(slices(ids)):
        places.append(np.flatnonzero(block == number) + at * MOST_BYTES)
    return np.concatenate(places)


def cut(flat: Flat, limit: int) -> Flat:
    """Cut each row at a limit.

    >>> cut(flattened([[7, 8, 9], [6]]), 2)
    (array([7, 8, 6], dtype=int32), array([0, 2, 3]))
    """
    ids, offsets = flat
    lengths = np.diff(offsets)
    if lengths.max(initial=0) <= limit:
        return flat
    kept = np.minimum(lengths, limit)
    return ids[ranges(offsets[:-1], kept)], begins_of(kept)


_MAPS: "WeakSet[mmap.mmap]" = WeakSet()


def mapped(file: Any) -> mmap.mmap:
    """A file in memory; `batches_of` and `portions` go through it with little of it at a time."""
    mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    _MAPS.add(mapping)
    return mapping


def batches_of(table: Any) -> Iterator[Any]:
    """The rows of a `pyarrow` table, some at a time."""
    for batch in table.to_batches(MOST_ROWS):
        yield batch
        _give_back()


def portions(column: Any) -> Iterator[Any]:
    """The texts of a `pyarrow` column, some at a time."""
    for chunk in column.chunks:
        size = max(1, min(MOST_ROWS, MOST_BYTES * len(chunk) // max(chunk.nbytes, 1)))
        for start in range(0, len(chunk), size):
            yield chunk.slice(start, size)
            _give_back()


def _give_back() -> None:
    """Pages of mapped files leave the memory of this process until they are read again."""
    if hasattr(mmap, "MADV_DONTNEED"):
        for mapping in list(_MAPS):
            mapping.madvise(mmap.MADV_DONTNEED)


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spread(make: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """`make` of each item, in order, by a thread for each core; only a few items wait.

    Threads are enough where the work is done by libraries that let go of Python meanwhile. They end
    with this process, whatever ends it.

    >>> list(spread(str, [1, 2, 3]))
    ['1', '2', '3']
    """
    count = cores()
    with ThreadPoolExecutor(max_workers=count, thread_name_prefix="spread") as pool:
        waiting: deque[Future[R]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(make, item))
                if len(waiting) > count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def ahead(make: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """`make` of each item, in order, or its error; a thread works one item ahead.

    >>> list(ahead(str, [1, 2, 3]))
    ['1', '2', '3']
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="ahead") as thread:
        waiting: Future[R] | None = None
        for item in items:
            ready, waiting = waiting, thread.submit(make, item)
            if ready is not None:
                yield ready.result()
        if waiting is not None:
            yield waiting.result()


@final
@dataclass(frozen=True)
class TextStream:
    """An iterable of texts, which are also there as `pyarrow` arrays."""

    arrays: Iterable[Any]

    def __iter__(self) -> Iterator[str]:
        for texts in self.arrays:
            yield from texts.to_pylist()


def as_array(texts: Sequence[str]) -> Any:
    """Texts as a `pyarrow` array, without pandas, which `pyarrow.array` imports for a second."""
    import pyarrow

    try:
        if len(texts) > _FEW or not all(isinstance(text, str) for text in texts):
            return pyarrow.array(texts, pyarrow.string())
        plain = [text.encode() for text in texts]
        ends = np.cumsum([0, *map(len, plain)], dtype=np.int64)
        if ends[-1] > np.iinfo(np.int32).max:  # more than such an array holds
            return pyarrow.array(texts, pyarrow.string())
        content = [ends.astype(np.int32), b"".join(plain)]
        buffers = [None, *map(pyarrow.py_buffer, content)]
        return pyarrow.Array.from_buffers(pyarrow.string(), len(plain), buffers)
    except UnicodeEncodeError:
        check_whole(texts)
        raise


def check_whole(texts: Sequence[str]) -> None:
    """Refuse a text that holds half a character."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        text = next(filter(has_half_character, texts))
        raise DataError(
            f"Text {shown(text)} holds half a character (a lone surrogate); remove it."
        ) from None


def words_of(texts: Any) -> Words:
    r"""The words of texts in a `pyarrow` array; a text without a word has one that is empty.

    >>> words_of(as_array([" to be\nor not to be ", " "]))
    (['to', 'be', 'or', 'not', ''], array([0, 1, 2, 3, 0, 1, 4]), array([0, 6, 7]))
    """
    if len(texts) <= _FEW:
        rows = [[] if text is None else text.split() or [""] for text in texts.to_pylist()]
        numbers: dict[str, int] = {}
        row_words = [numbers.setdefault(word, len(numbers)) for row in rows for word in row]
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        return list(numbers), np.array(row_words, np.int64), begins_of(lengths)
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
    tables: list[Any] = []
    spaces = 0
    for counts, between in spread(_counted, _arrays(texts)):
        tables.append(counts)
        spaces += between
        if sum(map(len, tables)) > max(_MERGED, 2 * len(tables[0])):
            tables = [_merged(tables)]
    words = _merged(tables).to_pydict() if tables else {"word": [], "count": []}
    counted = dict(zip(words["word"], words["count"], strict=True))
    counted.pop("", None)
    return counted, spaces


def _arrays(texts: Iterable[str]) -> Iterator[Any]:
    """The texts as `pyarrow` arrays of a size for one thread."""
    if isinstance(texts, TextStream):
        yield from texts.arrays
        return
    stream = iter(texts)
    size = 1 << 8
    while block := list(islice(stream, size)):
        yield as_array(block)
        size = max(1, min(MOST_ROWS, MOST_BYTES * len(block) // max(sum(map(len, block)), 1)))


def _counted(texts: Any) -> tuple[Any, int]:
    """A table of the different words and how often each is there, and the spaces between them."""
    import pyarrow

    split = _split(texts)
    words, counts = split.flatten().value_counts().flatten()
    return pyarrow.table({"word": words, "count": counts}), len(split.flatten()) - len(split)


def _merged(tables: Sequence[Any]) -> Any:
    """Add up tables of counts, so that each word is there once."""
    import pyarrow

    summed = pyarrow.concat_tables(tables).group_by("word").aggregate([("count", "sum")])
    return pyarrow.table({"word": summed.column("word"), "count": summed.column("count_sum")})


def segment_ids(
    encode: Callable[..., Flat], texts: Sequence[Sequence[str]], *, open: bool = False
) -> Flat:
    """The ids of texts in segments: each is encoded by itself and ends in `<stop>`."""
    ids, begins = encode(as_array(list(chain.from_iterable(texts))), open=open)
    counts = np.fromiter(map(len, texts), np.int64, len(texts))
    ended = begins + np.arange(len(begins))
    return np.insert(ids, begins[1:], STOP), ended[begins_of(counts)]
