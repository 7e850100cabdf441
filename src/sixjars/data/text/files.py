"""Text files, plain or gzipped; every way in which one cannot be read is a sentence."""

import gzip
import io
import re
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from sixjars.progress import reached, tell
from sixjars_runtime.errors import DataError, file_hint

MARK = b"\xef\xbb\xbf"  # a byte order mark, which some programs write before UTF-8 text
UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
"""The marks at the beginning of UTF-16 text, in both byte orders."""
WINDOWS = "cp1252"
_LETTERS = "äöüÄÖÜßáàâãåæçéèêëíìîïñóòôõøúùûýÁÀÂÃÅÆÇÉÈÊËÍÌÎÏÑÓÒÔÕØÚÙÛÝœŒšŠžŽŸ€£"
_MARKS = "–—‘’‚“”„…«»°§©®·´¿¡\xa0"
WINDOWS_LETTERS = frozenset((_LETTERS + _MARKS).encode(WINDOWS))
"""Bytes that such texts have: letters, quotes, dashes."""
ENOUGH = 1000  # lines with such bytes that are looked at
BINARY = {
    b"\x89PNG": "an image (PNG)",
    b"\xff\xd8\xff": "an image (JPEG)",
    b"GIF8": "an image (GIF)",
    b"RIFF": "an image, a video or a sound (RIFF)",
    b"%PDF-": "a PDF file",
    b"PK\x03\x04": "a ZIP archive, as .xlsx, .docx and .ods files are",
    b"\xd0\xcf\x11\xe0": "an old Excel or Word file (.xls, .doc)",
    b"\x1f\x8b": "packed with gzip, whose files end in .gz",
    b"PAR1": "a Parquet file, whose name ends in .parquet",
    b"SQLite format 3": "a database (SQLite)",
}
"""Beginnings of files that people take for text, and what they are."""
PLAIN = (b"\x1f\x8b", b"%PDF-")
"""Beginnings among these that no text has, though a zero may be far behind them."""
LOOKED_AT = 4096  # bytes in which a zero tells that a file is no text
FIRST, BLOCK = 1 << 16, 1 << 22
"""Bytes that are read at once: at first few, as often only the first lines are looked at."""


def is_gzipped(path: Path) -> bool:
    """Whether a file is gzipped, by its name."""
    return path.suffix.lower() == ".gz"


def ending_of(path: Path) -> str:
    """The ending of a name, of a gzipped file the one before `.gz`.

    >>> ending_of(Path("pairs.TSV.gz")), ending_of(Path("pairs"))
    ('.tsv', '')
    """
    return stem_and_ending(path.name.lower())[1].removesuffix(".gz")


def stem_and_ending(name: str) -> tuple[str, str]:
    """A name without its ending, and the ending, to which `.gz` belongs.

    >>> stem_and_ending("a.b/pairs.TSV.gz")
    ('a.b/pairs', '.TSV.gz')
    """
    plain = name[: -len(".gz")] if is_gzipped(Path(name)) else name
    stem = plain.removesuffix(Path(plain).suffix)
    return stem, name[len(stem) :]


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file, unpacked if its name ends in .gz; every failure is a sentence."""
    check_file(path)
    try:
        with gzip.open(path) if is_gzipped(path) else path.open("rb") as stream:
            yield cast(BinaryIO, stream)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path} is not a gzip file or is damaged: {str(error).rstrip('.')}."
        ) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error


SEPARATOR = re.compile(rb"(?:\xef\xbb\xbf)?sep=[,;|\t]\r?\n")
"""A first line that Excel writes and reads in CSV files; the rows show which mark it names."""


def is_empty(path: Path) -> bool:
    """Whether a file is empty, or unpacks to nothing."""
    with opened(path) as stream:
        return not stream.read(1)


def lines_of(path: Path) -> Generator[tuple[int, bytes], None, None]:
    r"""Every line as it is in the file, with its number from 1. Only `\n` ends a line."""
    for number, block in blocks_of(path):
        yield from enumerate(io.BytesIO(block), number)


def blocks_of(path: Path, *, whole_lines: bool = True) -> Generator[tuple[int, bytes], None, None]:
    """Many lines at a time, with the number of the first of them; or parts of one long line."""
    number = 1
    is_first = True
    with opened(path) as stream:
        size = max(path.stat().st_size, 1)
        file = getattr(stream, "fileobj", stream)  # of a gzip file, the packed one
        for block in _as_utf8(stream, path, whole_lines=whole_lines):
            reached(min(file.tell() / size, 1.0))
            if is_first:
                line = SEPARATOR.match(block)
                if line and ".csv" in path.name.lower():
                    number, block = 2, block[line.end() :]
                block, is_first = block.removeprefix(MARK), False
            yield number, block
            number += block.count(b"\n")
    if is_first:
        raise DataError(f"{path} is empty.")


def _as_utf8(stream: BinaryIO, path: Path, *, whole_lines: bool) -> Iterator[bytes]:
    """Blocks in UTF-8; UTF-16 (Excel's "Unicode text") and Windows-1252 are converted."""
    _check_text(stream, path)
    encoding = _utf16(stream)
    size = FIRST
    if encoding is None:
        if not is_windows(stream):
            while block := stream.read(size) + (stream.readline() if whole_lines else b""):
                yield block
                size = BLOCK
            return
        encoding = WINDOWS
        tell(
            f"{path} is not UTF-8, so it is read as Windows-1252; if letters look wrong, save it "
            "as UTF-8."
        )
    text = io.TextIOWrapper(stream, encoding=encoding, newline="\n")
    try:
        while lines := text.readlines(size):
            yield "".join(line.removeprefix("\ufeff") for line in lines).encode()
            size = BLOCK
    except UnicodeError as error:
        raise DataError(
            f"{path} begins as UTF-16, but is not: {error}; save the file as UTF-8."
        ) from None
    finally:
        text.detach()


def _check_text(stream: BinaryIO, path: Path) -> None:
    """Refuse files that are not text, whatever their name."""
    start = stream.read(LOOKED_AT)
    stream.seek(0)
    zero = b"\0" in start  # which texts do not have, but in UTF-16
    kind = ""
    for begin, name in BINARY.items():
        if start.startswith(begin) and (zero or begin in PLAIN):
            kind = kind or name
    if zero and not kind and _utf16(stream) is None:
        kind = "" if _is_utf8(start.rpartition(b"\n")[0] or start) else "a binary file"
    if kind:
        raise DataError(
            f"{path} is {kind}, not text; give a text file in UTF-8, such as .txt, .csv or .jsonl."
        )


def _utf16(stream: BinaryIO) -> str | None:
    """The byte order of UTF-16, if a stream is that."""
    start = stream.read(4)
    stream.seek(0)
    encoding = UTF16.get(start[:2])
    if encoding is None and len(start) == 4:
        # Without a mark: every other byte of Latin letters is zero.
        zeros = "".join("0" if byte == 0 else "x" for byte in start)
        encoding = {"x0x0": "utf-16-le", "0x0x": "utf-16-be"}.get(zeros)
    return encoding


def is_windows(stream: BinaryIO) -> bool:
    """Whether a stream has one byte for each letter, as Excel saves CSV in western Europe.

    No line with such bytes is UTF-8, and all of them are letters or quotes of Windows-1252. In a
    file with some lines in UTF-8, the others are damaged.
    """
    count = 0
    try:
        while count < ENOUGH and (block := stream.read(BLOCK) + stream.readline()):
            for line in () if block.isascii() else io.BytesIO(block):
                if line.isascii():
                    continue
                letters = {byte for byte in {*line} if byte >= 0x80}
                if _is_utf8(line) or not letters <= WINDOWS_LETTERS:
                    return False
                count += 1
    finally:
        stream.seek(0)
    return count > 0


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def check_file(path: Path) -> None:
    """Refuse what does not exist, and folders."""
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a file; name a file in it.")
    if not path.exists():
        if not path.parent.is_dir():
            raise DataError(
                f"{path} does not exist. There is no folder {str(path.parent)!r} either."
            )
        beside = [other.name for other in path.parent.iterdir()]
        raise DataError(f"{path} does not exist.{file_hint(path.name, beside)}")
