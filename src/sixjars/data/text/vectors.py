"""Pretrained word vectors, read from the text formats of GloVe and word2vec.

Each line is a word and its numbers; word2vec has a first line `count dim`. A word may hold spaces, so the
last `dim` fields of a line are the numbers.
"""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any, final

import numpy

from sixjars.data.text.files import MARK, opened
from sixjars.errors import DataError

Vectors = numpy.ndarray[Any, numpy.dtype[numpy.float32]]


def read_vectors(path: Path, wanted: Mapping[str, int], size: int | None) -> tuple[Vectors, list[int]]:
    """The vectors of the wanted words (word -> row), (found, dim), and the row of each, in rising order.

    The first vector of a word counts. A word that is not in the file as it is written takes the vector of its
    lowercase form. With `size` given, vectors of another size are an error.
    """
    found = _Found(wanted)
    width: int | None = None
    with opened(path) as stream:
        for number, raw in enumerate(stream, 1):
            line = raw.removeprefix(MARK) if number == 1 else raw
            if width is None:
                width, is_header = _width(line, path)
                if size is not None and width != size:
                    raise DataError(f"{path} has vectors of {width} numbers, but {size} are asked for.")
                if is_header:
                    continue
            if not found.take(line, width, f"{path}, line {number}"):
                break
    if width is None:
        raise DataError(f"{path} is empty.")
    return found.result(path, width)


def _width(line: bytes, path: Path) -> tuple[int, bool]:
    """How many numbers a vector has, and whether this first line is only a header."""
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields):
        return int(fields[1]), True
    width = 0
    while width < len(fields) - 1 and _is_number(fields[-1 - width]):
        width += 1
    if not width:
        raise DataError(f"{path}, line 1: holds no vector; a line is a word and its numbers, between spaces.")
    return width, False


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


@final
class _Found:
    """The vectors found so far, for words as they are wanted and for their lowercase forms."""

    def __init__(self, wanted: Mapping[str, int]) -> None:
        self._wanted = wanted
        self._exact = {word.encode(errors="replace") for word in wanted}
        self._useful = self._exact | {word.lower().encode(errors="replace") for word in wanted}
        self._firsts = {word.split(None, 1)[0] for word in self._useful if word.strip()}
        self._vectors: dict[bytes, Vectors] = {}

    def take(self, line: bytes, width: int, where: str) -> bool:
        """Keeps the vector of a line if it is wanted; false when nothing more can be found."""
        first = line.split(None, 1)[:1]
        if line.count(b" ") + line.count(b"\t") < width or not first:
            count = max(len(line.split()) - 1, 0)
            raise DataError(f"{where}: has {count} numbers, but a vector has {width}.")
        if first[0] not in self._firsts:
            return True
        parts = line.rsplit(None, width)
        word, extra = parts[0].strip(), parts[0].split()[1:]
        if len(parts) <= width or (extra and all(_is_number(field) for field in extra)):
            count = len(line.split()) - 1
            raise DataError(f"{where}: has {count} numbers, but a vector has {width}.")
        if word in self._useful and word not in self._vectors:
            self._vectors[word] = _numbers(parts[1:], where)
            self._exact.discard(word)
        return bool(self._exact)

    def result(self, path: Path, width: int) -> tuple[Vectors, list[int]]:
        """All vectors, by rising row."""
        rows: dict[int, Vectors] = {}
        for word, row in self._wanted.items():
            spellings = (word.encode(errors="replace"), word.lower().encode(errors="replace"))
            vector = next((self._vectors[key] for key in spellings if key in self._vectors), None)
            if vector is not None:
                rows[row] = vector
        if not rows:
            raise DataError(f"{path} has a vector for none of the {len(self._wanted)} words of the vocabulary.")
        order = sorted(rows)
        return numpy.stack([rows[row] for row in order]).astype(numpy.float32).reshape(-1, width), order


def _numbers(fields: list[bytes], where: str) -> Vectors:
    try:
        values = [float(field) for field in fields]
    except ValueError:
        wrong = next(field for field in fields if not _is_number(field)).decode(errors="replace")
        raise DataError(f"{where}: {wrong!r} is not a number.") from None
    if not all(map(isfinite, values)):
        raise DataError(f"{where}: a number of a vector is not finite.")
    return numpy.array(values, dtype=numpy.float32)
