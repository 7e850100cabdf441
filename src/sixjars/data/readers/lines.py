r"""Lines of a file, plain or gzipped, a few thousand at a time and with exact numbers.

A line ends at `\n` (a `\r` before it is dropped); nothing else ends a line.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, final

import numpy
import pyarrow

from sixjars.data.readers.rows import Fault
from sixjars.data.text.files import MARK, opened
from sixjars.errors import DataError

AT_ONCE: Final = 1 << 14
"""Lines read at once."""


@final
@dataclass(frozen=True)
class Lines:
    """Some whole lines of a file, those that are no UTF-8 left out."""

    texts: Any
    """A `pyarrow` string array, line ends dropped."""
    numbers: "numpy.ndarray[Any, numpy.dtype[numpy.int64]]"
    """The number of each line, from 1."""
    faults: list[Fault]
    """The lines that were left out."""


def decoded_lines(path: Path) -> Iterator[tuple[int, str | Fault]]:
    """Every line with its number, from 1, its end dropped; a fault in place of one that is no UTF-8."""
    with opened(path) as stream:
        number = 0
        for number, raw in enumerate(stream, 1):
            line = raw.removeprefix(MARK) if number == 1 else raw
            try:
                yield number, line.decode().removesuffix("\n").removesuffix("\r")
            except UnicodeDecodeError as error:
                place = f"byte {error.start + 1} of the line (0x{line[error.start]:02x})"
                yield number, Fault(number, f"{place} is not UTF-8; save the file as UTF-8.")
    if not number:
        raise DataError(f"{path} is empty.")


def lines_of(path: Path) -> Iterator[Lines]:
    """All lines of a file, some at a time."""
    lines = decoded_lines(path)
    while some := list(islice(lines, AT_ONCE)):
        good = [(number, line) for number, line in some if isinstance(line, str)]
        texts = pyarrow.array([line for _, line in good], pyarrow.string())
        numbers = numpy.array([number for number, _ in good], dtype=numpy.int64)
        yield Lines(texts, numbers, [line for _, line in some if isinstance(line, Fault)])
