"""Lines of text: the one column of a plain file, or a file for each column."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute

from sixjars.data.flat import spread
from sixjars.data.tables.rows import Key, ReadSettings, RecordBlock, RowFault, decoded, piece_of
from sixjars.data.text.files import blocks_of, lines_of
from sixjars_runtime.errors import DataError


def decoded_lines(path: Path) -> Iterator[tuple[int, str | RowFault]]:
    """Every line with its number, from 1; a fault in place of one that is no UTF-8."""
    for number, raw in lines_of(path):
        yield number, decoded(number, raw)


def read_parallel(paths: Mapping[Key, Path], wanted: ReadSettings) -> Iterator[RecordBlock]:
    """Read a file for each column; line i of each is record i."""
    files = [spread(lambda block: lines_in(*block), blocks_of(path)) for path in paths.values()]
    waiting = [next(file, ()) for file in files]
    number = 1
    while count := min(map(len, waiting)):
        block = {key: lines[:count] for key, lines in zip(paths, waiting, strict=True)}
        if any(isinstance(lines, list) for lines in block.values()):
            rows = zip(*(map(_plain, lines) for lines in block.values()), strict=True)
            numbered = enumerate(rows, number)
            records = [(line, _side_by_side(line, row, paths)) for line, row in numbered]
            yield piece_of(records, wanted)
        else:
            yield RecordBlock(block, np.arange(number, number + count))
        number += count
        for at, (lines, file) in enumerate(zip(waiting, files, strict=True)):
            waiting[at] = lines[count:] if len(lines) > count else next(file, ())
    left = [_counted(chain([lines], file)) for lines, file in zip(waiting, files, strict=True)]
    if any(has_text for _, has_text in left):
        totals = zip(paths.values(), left, strict=True)
        counts = ", ".join(f"{path} has {number - 1 + count}" for path, (count, _) in totals)
        raise DataError(f"Parallel files must have equally many lines, but {counts}.")


def _counted(blocks: Iterable[Sequence[Any]]) -> tuple[int, bool]:
    """How many lines there are, and whether any has text or cannot be read."""
    count, has_text = 0, False
    for lines in blocks:
        count += len(lines)
        plain = map(_plain, lines)
        has_text = has_text or any(isinstance(line, RowFault) or line.strip() for line in plain)
    return count, has_text


def _plain(line: Any) -> str | RowFault:
    """A line as text, which Arrow may hold."""
    text: str | RowFault = line if isinstance(line, str | RowFault) else line.as_py()
    return text


def _side_by_side(
    number: int, lines: Sequence[str | RowFault], paths: Mapping[Key, Path]
) -> dict[Key, str] | RowFault:
    """The lines of several files as one record, or the first fault, with its file."""
    record: dict[Key, str] = {}
    for (key, path), line in zip(paths.items(), lines, strict=True):
        if isinstance(line, RowFault):
            return RowFault(number, line.sentence, str(path))
        record[key] = line
    return record


def lines_in(first: int, block: bytes) -> Any:
    """The lines of a block: a `pyarrow` array, or a list with a fault for each that is no UTF-8."""
    text = block.replace(b"\r\n", b"\n") if b"\r" in block else block
    text = text[:-1] if text.endswith(b"\n") else text.removesuffix(b"\r")
    try:
        content = pyarrow.array([text], pyarrow.binary()).cast(pyarrow.string())
    except pyarrow.ArrowInvalid:
        return [decoded(number, raw) for number, raw in enumerate(io.BytesIO(block), first)]
    return pyarrow.compute.split_pattern(content, "\n").flatten()
