"""Inputs in remote storage, as S3: they are listed there, and copied here one at a time.

A name may hold any letter: behind the host or the bucket of a URI nothing is a query, nor is `%20`
a blank.
"""

import glob
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, final

from sixjars_runtime.errors import DataError, shown

_SCHEME: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]+://")
_NO_NAMES: Final = {"", ".", ".."}


def is_remote(path: str) -> bool:
    """Whether this is a URI, not a local path.

    >>> is_remote("s3://bucket/rows/*.parquet"), is_remote("rows/*.parquet")
    (True, False)
    """
    return _SCHEME.match(path) is not None


def local_path(path: str) -> Path:
    """The folder of the answers, which must be local."""
    if is_remote(path):
        reason = "is remote storage, but answers are written to a local folder; name one."
        raise DataError(f"--output {path} {reason}")
    return Path(path)


@contextmanager
def _reached(uri: str) -> Iterator[None]:
    """Make a sentence of the error of a storage that cannot be read."""
    import pyarrow

    try:
        yield
    except (OSError, ImportError, pyarrow.ArrowException) as error:
        reason = str(error).partition("\n")[0].partition(" (Request ID")[0].rstrip(".")
        remedy = "check its name, the credentials and the network."
        raise DataError(f"{uri} cannot be read: {reason}; {remedy}") from error


@final
class RemoteStorage:
    """The remote file system of a URI."""

    def __init__(self, uri: str) -> None:
        from pyarrow.fs import FileSystem

        scheme, _, rest = uri.partition("://")
        host, _, name = rest.partition("/")
        self.uri = uri
        self.start = f"{scheme}://{host}/"
        self.name = name.strip("/")
        """The name without the bucket."""
        with _reached(uri):
            self.system, top = FileSystem.from_uri(self.start)
        self.top = str(top).rstrip("/")
        self.is_folder = False

    def path(self, name: str) -> str:
        """A file or folder as its file system calls it."""
        return f"{self.top}/{name}".rstrip("/") or "/"

    def listed(self) -> dict[str, int]:
        """Names and sizes of one file, of all files below a folder, or of those that fit a glob."""
        from pyarrow.fs import FileSelector, FileType

        with _reached(self.uri):
            entry = self.system.get_file_info(self.path(self.name))
            if entry.type == FileType.File:
                return {self.name: entry.size}
            names = self.name.split("/") if self.name else []
            self.is_folder = entry.type == FileType.Directory
            fixed = names
            if not self.is_folder:
                fixed = list(takewhile(lambda name: not glob.has_magic(name), names))
                if fixed == names:
                    raise DataError(f"{self.uri} does not exist.")
            pattern = names[len(fixed) :] or ["**"]
            is_deep = len(pattern) > 1 or "**" in pattern
            below = FileSelector(self.path("/".join(fixed)), recursive=is_deep)
            entries = self.system.get_file_info(below)
        sizes = {}
        for entry in entries:
            name = entry.path[len(self.top) :].lstrip("/")
            if entry.type == FileType.File and fits(name.split("/")[len(fixed) :], pattern):
                sizes[name] = entry.size
        for name in sizes:
            if not _NO_NAMES.isdisjoint(name.split("/")):
                fault = f"{shown(name)}, which cannot be the name of a file; rename it."
                raise DataError(f"{self.start} has {fault}")
        return {name: sizes[name] for name in sorted(sizes, key=lambda name: name.split("/"))}


def fits(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a name, folder by folder, fits a glob; as in a shell, a leading dot must be in both.

    >>> fits(["a", "b", "c.csv"], ["**", "*.csv"]), fits(["a", "c.csv"], ["*.csv"])
    (True, False)
    >>> fits([".c.csv"], ["*.csv"])
    False
    """
    if not pattern or not names:
        return not names and set(pattern) <= {"**"}
    hidden = names[0].startswith(".") and not pattern[0].startswith(".")
    if pattern[0] == "**":
        return fits(names, pattern[1:]) or (not hidden and fits(names[1:], pattern))
    return not hidden and fnmatchcase(names[0], pattern[0]) and fits(names[1:], pattern[1:])


@final
class InputFolder:
    """The folder that all inputs are in, on this machine or in remote storage."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.copied = root
        """The folder of the last copy."""

    @cached_property
    def storage(self) -> RemoteStorage:
        """The storage of a remote folder."""
        return RemoteStorage(self.root)

    @contextmanager
    def file(self, name: str, *, outline: bool = False) -> Iterator[tuple[Path, int]]:
        """A file to open, and how many of its rows were left out.

        A copy is removed at the end; what is open can be read on. The outline of a remote Parquet
        file is its columns alone, which its last bytes describe.
        """
        if not is_remote(self.root):
            yield Path(self.root, name), 0
            return
        with TemporaryDirectory(prefix="sixjars-", ignore_cleanup_errors=True) as folder:
            self.copied = folder
            path = Path(folder, name)
            left_out = 0
            with _reached(f"{self.root}/{name}"):
                path.parent.mkdir(parents=True, exist_ok=True)
                remote = self.storage.path(f"{self.storage.name}/{name}".lstrip("/"))
                if outline and name.lower().endswith(".parquet"):
                    left_out = _outlined(self.storage.system, remote, path)
                else:
                    _copy(self.storage.system, remote, path)
            yield path, left_out

    @contextmanager
    def named(self) -> Iterator[None]:
        """Let errors name the file itself, not its copy."""
        try:
            yield
        except DataError as error:
            raise DataError(str(error).replace(self.copied, self.root)) from error


def _copy(system: Any, remote: str, path: Path) -> None:
    from pyarrow.fs import LocalFileSystem, copy_files

    copy_files(remote, str(path), system, LocalFileSystem())


def _outlined(system: Any, remote: str, path: Path) -> int:
    """Write a Parquet file with the same columns and no row; return the number of rows."""
    from pyarrow.parquet import ParquetFile, write_table

    with system.open_input_file(remote) as file:
        there = ParquetFile(file)
        write_table(there.schema_arrow.empty_table(), path)
        return int(there.metadata.num_rows)
