"""Text files, plain or gzipped; every way in which one cannot be read is a sentence."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from sixjars.errors import DataError, hint

MARK = b"\xef\xbb\xbf"  # what some programs write before UTF-8 text


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file to read, unpacked if its name ends in .gz; every way this can fail is a sentence."""
    check_file(path)
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as stream:
            yield cast(BinaryIO, stream)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is not a gzip file or is damaged: {str(error).rstrip('.')}.") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    r"""Every line with its number, from 1, as it is in the file. Only `\n` ends a line; an empty file is refused."""
    number = 0
    with opened(path) as stream:
        for number, line in enumerate(stream, 1):
            yield number, line.removeprefix(MARK) if number == 1 else line
    if not number:
        raise DataError(f"{path} is empty.")


def check_file(path: Path) -> None:
    """Refuses what is not there and what is a folder."""
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a file; name a file in it.")
    if not path.exists():
        if not path.parent.is_dir():
            raise DataError(f"{path} does not exist. There is no folder {str(path.parent)!r} either.")
        raise DataError(f"{path} does not exist.{hint(path.name, [other.name for other in path.parent.iterdir()])}")
