"""Pretrained word vectors, read from the text formats of GloVe and word2vec.

Each line is a word and its numbers; word2vec has a first line `count dim`. A word may hold spaces,
so the last `dim` fields of a line are the numbers.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy

from sixjars.data.text.files import lines_of, opened
from sixjars_runtime.errors import DataError

BEGINNING: Final = 4096
"""Bytes in which a binary file shows: one in 256 of those of a number's fraction is zero."""
Vectors = numpy.ndarray[Any, numpy.dtype[numpy.float32]]


def read_vectors(path: Path, wanted: Mapping[str, int]) -> tuple[Vectors, list[int]]:
    """The vectors of words (word -> row), (found, dim), and the row of each, in rising order.

    The first vector of a word counts. A word that is not in the file as it is written takes the
    vector of its lowercase form.
    """
    exact = {word.encode(errors="replace") for word in wanted}
    useful = exact | {word.lower().encode(errors="replace") for word in wanted}
    # A file has millions of lines and few words are wanted: a line is split only if its first
    # field begins one of them.
    firsts = {word.split(None, 1)[0] for word in useful if word.strip()}
    vectors: dict[bytes, Vectors] = {}
    for where, line, width in _lines(path):
        first = line.split(None, 1)[:1]
        if first and first[0] not in firsts and line.count(b" ") + line.count(b"\t") >= width:
            continue
        word, fields = _fields(line, width, where)
        if word in useful and word not in vectors:
            vectors[word] = _vector(fields, where)
            exact.discard(word)
        if not exact:
            break
    return _by_row(path, wanted, vectors)


def words_in(path: Path) -> Iterator[str]:
    """The words of a file in its own order, which is by frequency in those that people share."""
    for where, line, width in _lines(path):
        yield _fields(line, width, where)[0].decode(errors="replace")


def projected(values: Vectors, size: int) -> Vectors:
    """Vectors on their first `size` principal components.

    The direction of a component is arbitrary, so its largest weight is made positive: machines
    differ by rounding alone.
    """
    centred = values.astype(numpy.float64) - values.mean(0, dtype=numpy.float64)
    _, directions = numpy.linalg.eigh(centred.T @ centred)  # in rising order of variance
    first = directions[:, ::-1][:, :size]
    largest = numpy.abs(first).argmax(0)
    signs = numpy.sign(first[largest, numpy.arange(size)])
    components: Vectors = (centred @ (first * signs)).astype(numpy.float32)
    return components


def _lines(path: Path) -> Iterator[tuple[str, bytes, int]]:
    """Each line but a header: where it is, the line, and how many numbers a vector has."""
    with opened(path) as stream:
        if b"\0" in stream.read(BEGINNING):  # numbers in binary have such bytes, texts none
            raise DataError(
                f"{path} is binary, but vectors are read as text: of fastText take the .vec file "
                "beside the .bin, of word2vec save with binary=False."
            )
    width = 0
    for number, line in lines_of(path):
        is_header = False
        if number == 1:
            width, is_header = _width(line, path)
        if not is_header:
            yield f"{path}, line {number}", line, width


def _width(line: bytes, path: Path) -> tuple[int, bool]:
    """How many numbers a vector has, and whether this first line is only a header."""
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields):
        return int(fields[1]), True
    width = 0
    while width < len(fields) - 1 and _is_number(fields[-1 - width]):
        width += 1
    if not width:
        raise DataError(
            f"{path}, line 1: holds no vector; a line is a word and its numbers, between spaces."
        )
    return width, False


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _fields(line: bytes, width: int, where: str) -> tuple[bytes, list[bytes]]:
    """The word of a line, which may hold spaces, and its numbers."""
    fields = line.rsplit(None, width)
    extra = fields[0].split()[1:] if fields else []
    if len(fields) <= width or (extra and all(map(_is_number, extra))):
        raise DataError(
            f"{where}: has {max(len(line.split()) - 1, 0)} numbers, but a vector has {width}."
        )
    return fields[0].strip(), fields[1:]


def _vector(fields: list[bytes], where: str) -> Vectors:
    for field in fields:
        if not _is_number(field):
            raise DataError(f"{where}: {field.decode(errors='replace')!r} is not a number.")
    vector = numpy.array([float(field) for field in fields])
    if not (abs(vector) <= numpy.finfo(numpy.float32).max).all():
        raise DataError(f"{where}: a number of a vector is not finite.")
    return vector.astype(numpy.float32)


def _by_row(
    path: Path, wanted: Mapping[str, int], vectors: Mapping[bytes, Vectors]
) -> tuple[Vectors, list[int]]:
    rows = {}
    for word, row in wanted.items():
        for spelling in (word.lower(), word):  # the last one counts
            if (encoded := spelling.encode(errors="replace")) in vectors:
                rows[row] = vectors[encoded]
    if not rows:
        raise DataError(
            f"{path} has a vector for none of the {len(wanted)} words of the vocabulary."
        )
    return numpy.stack([rows[row] for row in sorted(rows)]), sorted(rows)
