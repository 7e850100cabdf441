"""Images, videos and arrays by name, from folders and from archives that are read where they are.

A file is known by its content: its key is a hash of its bytes, so whatever is computed from a file can be stored
under that key and found again after the file was moved or packed. Hashes are remembered by the file's place, size
and time, so a file is read through once and not again by the next run.
"""

import hashlib
import os
import shutil
import sqlite3
import struct
import tempfile
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path, PurePath
from threading import Lock
from typing import BinaryIO, Final, cast, final

from sixjars.data.media.hdf5 import HDF5_ENDINGS, Hdf5File, Stamp, too_large
from sixjars.data.media.names import in_other_case, spellings
from sixjars.data.storage.cache import set_aside
from sixjars.progress import Reporter
from sixjars_runtime.errors import DataError

_IN_MEMORY: Final = 1 << 26
"""A packed file of more bytes is unpacked to a temporary file, not to memory."""
HASHED_AT_ONCE: Final = 64
"""Files whose hashes are remembered together: what a kill can cost."""
_OTHERS: Final = (
    ".jpg",
    ".JPG",
    ".jpeg",
    ".JPEG",
    ".png",
    ".PNG",
    ".webp",
    ".mp4",
    ".MP4",
    ".avi",
    ".npy",
)
"""Endings that a file may have while its name has another."""
_SILENT: Final = Reporter()
_BROKEN_ZIP: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    struct.error,
    NotImplementedError,
    ValueError,
)


@final
class MediaFiles:
    """The files of several places, by name; safe to use from several threads at once.

    A name is an absolute path, a path in one of the folders, or the name of a file in one of the archives. The first
    place that has it counts. If none has, a file in a .zip whose path ends in the name will do, if there is only one.
    A name may lack one of the `endings`. A file in an archive that unpacks to more than `largest` bytes is refused.
    Hashes are remembered in the folder `memory`, if there is one.
    """

    def __init__(
        self,
        places: Sequence[Path],
        *,
        memory: Path | None,
        endings: Sequence[str] = (),
        largest: int | None = None,
    ) -> None:
        self._places = [_place(path, largest) for path in places]
        self._endings = ("", *endings)
        self._memory = _Hashes(memory)

    def open(self, name: str) -> BinaryIO:
        """The file to read and to seek in; close it, or use it in a `with`."""
        place, member = self._found(name)
        with _sentences(name):
            return place.open(member)

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return bool(self._matches(name))

    def keys(
        self, names: Sequence[str], reporter: Reporter = _SILENT
    ) -> tuple[dict[str, str], dict[str, str]]:
        """The key of each file, and a sentence for each that has none; files are read through once.

        A key is a hash of the file's content: 32 letters, the same wherever the file is.
        """
        faults: dict[str, str] = {}
        stamps: dict[str, Stamp] = {}
        for name in dict.fromkeys(names):
            with _noted(name, faults):
                place, member = self._found(name)
                stamps[name] = place.stamp(member)
        known = self._memory.get(stamps.values())
        missing = [name for name, stamp in stamps.items() if stamp not in known]
        fresh: dict[Stamp, str] = {}
        for done, name in enumerate(missing, start=1):
            with _noted(name, faults), self.open(name) as file:
                fresh[stamps[name]] = _hash(file)
            if done % HASHED_AT_ONCE == 0 or done == len(missing):
                self._memory.put(fresh)
                known |= fresh
                fresh = {}
            reporter.preparing("hashing media files", done=done, total=len(missing))
        return {name: known[stamp] for name, stamp in stamps.items() if name not in faults}, faults

    def _found(self, name: str) -> "tuple[_Place, str]":
        matches = self._matches(name)
        if len(matches) == 1:
            return matches[0]
        if matches:
            several = ", ".join(f"{member} in {place.path}" for place, member in matches[:3])
            raise DataError(f"{name} is the end of several names: {several}; write the whole name.")
        if os.path.isabs(name):
            raise DataError(
                f"{name} is a folder, not a file."
                if os.path.isdir(name)
                else f"{name} does not exist."
            )
        for place in self._places:
            if place.has_folder(name):
                raise DataError(f"{name} is a folder in {place.path}, not a file.")
        looked = ", ".join(str(place.path) for place in self._places) or "no place at all"
        others = [f"{os.path.splitext(name)[0]}{ending}" for ending in _OTHERS]
        there = [other for other in others for place in self._places if place.has(other)]
        folders = [place.path for place in self._places if isinstance(place, _Folder)]
        if there := there or [
            other for folder in folders if (other := in_other_case(folder, name))
        ]:
            raise DataError(
                f"There is no file {name!r} in {looked}, but {there[0]!r} is there; is that one meant?"
            )
        raise DataError(
            f"There is no file {name!r} in {looked}; 'media' names the folders and .zip files to look in."
        )

    def _matches(self, name: str) -> "list[tuple[_Place, str]]":
        """Where the name leads, as it is or else as another system writes it."""
        return self._places_of(name) or next(
            filter(None, map(self._places_of, spellings(name))), []
        )

    def _places_of(self, name: str) -> "list[tuple[_Place, str]]":
        """Nowhere, one file, or several of which the name is the end."""
        whole = [f"{name}{ending}" for ending in self._endings]
        places: Sequence[_Place] = [_Folder(Path())] if os.path.isabs(name) else self._places
        for place in places:
            if there := [one for one in whole if place.has(one)]:
                return [(place, there[0])]
        return [
            (place, member) for place in places for one in whole for member in place.ending(one)
        ]


@final
class _Hashes:
    """The hashes of files, in a database that several processes may share; losing it costs only time."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / "contents.sqlite"

    def get(self, stamps: Iterable[Stamp]) -> dict[Stamp, str]:
        """The hashes that are remembered."""
        if self._path is None or not self._path.is_file():
            return {}
        question = (
            "SELECT key FROM contents WHERE path = ? AND member = ? AND size = ? AND time = ?"
        )
        try:
            with closing(sqlite3.connect(self._path, timeout=10)) as connection:
                rows = ((stamp, connection.execute(question, stamp).fetchone()) for stamp in stamps)
                return {stamp: str(row[0]) for stamp, row in rows if row is not None}
        except sqlite3.Error:
            return {}

    def put(self, keys: Mapping[Stamp, str]) -> None:
        """Remember these; a folder that cannot be written, a full disk or a long wait costs only time."""
        if self._path is None:
            return
        table = "contents (path TEXT, member TEXT, size INTEGER, time INTEGER, key TEXT, PRIMARY KEY (path, member))"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            set_aside(self._path)
            with closing(sqlite3.connect(self._path, timeout=10)) as connection, connection:
                connection.execute(
                    "PRAGMA synchronous = OFF"
                )  # what a power failure takes is hashed again
                connection.execute(f"CREATE TABLE IF NOT EXISTS {table}")
                rows = [(*stamp, key) for stamp, key in keys.items()]
                connection.executemany(
                    "INSERT OR REPLACE INTO contents VALUES (?, ?, ?, ?, ?)", rows
                )
        except (sqlite3.OperationalError, OSError):
            return
        except sqlite3.DatabaseError:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)  # damaged: the next hash starts a new one


@final
class _Folder:
    """A folder and all that is below it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def has(self, name: str) -> bool:
        return os.path.isfile(self.path / name)

    def has_folder(self, name: str) -> bool:
        return bool(name) and os.path.isdir(self.path / name)

    def ending(self, name: str) -> list[str]:
        return []

    def stamp(self, name: str) -> Stamp:
        path = self.path / name
        state = path.stat()
        return str(path.absolute()), "", state.st_size, state.st_mtime_ns

    def open(self, name: str) -> BinaryIO:
        return (self.path / name).open("rb")


@final
class _Archive:
    """A .zip file (a .npz is one): its list of names is read once, its files when they are asked for."""

    def __init__(self, path: Path, largest: int | None) -> None:
        self.path = path
        self._largest = largest
        self._lock = Lock()
        self._zip = _opened_zip(path)
        self._process = os.getpid()
        state = path.stat()
        self._state = state.st_size, state.st_mtime_ns
        self._members = {info.filename: info for info in self._zip.infolist() if not info.is_dir()}
        self._by_last: dict[str, list[str]] = defaultdict(list)
        for name in self._members:
            self._by_last[name.rpartition("/")[2]].append(name)

    def has(self, name: str) -> bool:
        return name in self._members

    def has_folder(self, name: str) -> bool:
        return bool(name) and any(
            member.startswith(name.rstrip("/") + "/") for member in self._zip.namelist()
        )

    def ending(self, name: str) -> list[str]:
        return [
            member
            for member in self._by_last.get(name.rpartition("/")[2], ())
            if member.endswith("/" + name)
        ]

    def stamp(self, name: str) -> Stamp:
        return str(self.path.absolute()), name, *self._state

    def open(self, name: str) -> BinaryIO:
        info = self._members[name]
        if info.flag_bits & 1:
            raise DataError(
                f"{name} in {self.path} is locked with a password; pack it again without one."
            )
        if self._largest is not None and info.file_size > self._largest:
            raise too_large(f"{name} in {self.path}", info.file_size, self._largest)
        target = cast(BinaryIO, tempfile.SpooledTemporaryFile(_IN_MEMORY))
        try:
            self._unpack(info, target)
        except BaseException as error:
            target.close()
            if isinstance(error, _BROKEN_ZIP):
                raise DataError(f"{name} in {self.path} is damaged: {_reason(error)}.") from error
            raise
        target.seek(0)
        return target

    def _unpack(self, info: zipfile.ZipInfo, target: BinaryIO) -> None:
        """Only reading is free of the lock: `ZipFile` counts its open files without one."""
        with self._lock:
            if (
                self._process != os.getpid()
            ):  # after a fork both would move the same place in the file
                self._zip, self._process = _opened_zip(self.path), os.getpid()
            source = self._zip.open(info)
        try:
            shutil.copyfileobj(source, target, 1 << 20)
        finally:
            with self._lock:
                source.close()


_Place = _Folder | _Archive | Hdf5File


def is_hidden(path: PurePath) -> bool:
    """Whether a path leads through what file managers and packers hide."""
    return any(step.startswith((".", "__MACOSX")) for step in path.parts)


def _place(path: Path, largest: int | None) -> _Place:
    if path.is_dir():
        return _Folder(path)
    if not path.exists():
        raise DataError(
            f"{path} does not exist; 'media' names the folders and .zip files to look in."
        )
    if path.suffix.lower() in HDF5_ENDINGS:
        return Hdf5File(path, largest)
    if path.suffix.lower() != ".zip" and not zipfile.is_zipfile(path):
        raise DataError(f"{path} is neither a folder nor a .zip file.")
    return _Archive(path, largest)


def _opened_zip(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (*_BROKEN_ZIP, OSError) as error:
        raise DataError(f"{path} is not a .zip file or is damaged: {_reason(error)}.") from error


@contextmanager
def _sentences(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error.strerror or error}.") from error


@contextmanager
def _noted(name: str, faults: dict[str, str]) -> Iterator[None]:
    """The sentence about a bad file goes to `faults`."""
    try:
        with _sentences(name):
            yield
    except DataError as error:
        faults[name] = str(error)


def _hash(file: BinaryIO) -> str:
    whole = hashlib.blake2b(digest_size=16)
    while block := file.read(1 << 20):
        whole.update(block)
    return whole.hexdigest()


def _reason(error: BaseException) -> str:
    return str(error).rstrip(".") or type(error).__name__
