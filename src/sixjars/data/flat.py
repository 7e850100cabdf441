"""Rows of different lengths on end in one array, and work on many of them by all cores."""

import mmap
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, pairwise
from typing import Any, Final, TypeVar
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
R = TypeVar("R")
Flat = tuple[NDArray[np.int32], NDArray[np.int64]]
"""Token ids of all rows one after the other, and where each row begins (one entry more than rows)."""
MOST_ROWS: Final = 1 << 16
MOST_BYTES: Final = 1 << 22
"""Of a text column, what is worked on at once: little memory, and enough of it for the cores."""


def flattened(rows: Sequence[Sequence[int]]) -> Flat:
    """Rows on end.

    >>> flattened([[7, 8], [], [9]])
    (array([7, 8, 9], dtype=int32), array([0, 2, 2, 3]))
    """
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    return np.fromiter(chain.from_iterable(rows), np.int32, int(lengths.sum())), begins_of(lengths)


def rows_of(flat: Flat) -> list[list[int]]:
    """The rows again.

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


def places_of(ids: NDArray[np.int32], wanted: int) -> NDArray[np.int64]:
    """Where an id stands.

    >>> places_of(np.array([7, 2, 7], dtype=np.int32), 7)
    array([0, 2])
    """
    found = [np.flatnonzero(some == wanted) + at * MOST_BYTES for at, some in enumerate(slices(ids))]
    return np.concatenate([np.zeros(0, dtype=np.int64), *found])


def cut(flat: Flat, limit: int) -> Flat:
    """As much of each row as a limit allows.

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
    """A file in memory; whoever goes through it with `batches_of` or `portions` holds little of it at a time."""
    found = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    _MAPS.add(found)
    return found


def batches_of(table: Any) -> Iterator[Any]:
    """The rows of a `pyarrow` table, some at a time."""
    for batch in table.to_batches(MOST_ROWS):
        yield batch
        _give_back()


def portions(column: Any) -> Iterator[Any]:
    """The texts of a `pyarrow` column, some at a time."""
    for chunk in column.chunks:
        each = max(1, min(MOST_ROWS, MOST_BYTES * len(chunk) // max(chunk.nbytes, 1)))
        for start in range(0, len(chunk), each):
            yield chunk.slice(start, each)
            _give_back()


def _give_back() -> None:
    """The pages of mapped files are not counted as memory of this process until they are looked at again."""
    if hasattr(mmap, "MADV_DONTNEED"):
        for one in list(_MAPS):
            one.madvise(mmap.MADV_DONTNEED)


def cores() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spread(make: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """What `make` makes of each item, in order, by a thread for each core; only a few items wait at any time.

    Threads are enough where the work is done by libraries that let go of Python meanwhile. They end with this process,
    whatever ends it.

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
            for one in waiting:
                one.cancel()
