"""Images, videos and arrays by name, from folders and from archives that are read where they are.

The key of a file is a hash of its content, so that what is computed from it is found again after
it was moved or packed. Hashes are remembered by place, size and time: a file is read through once.
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
from functools import lru_cache
from pathlib import Path, PurePath
from threading import Lock
from typing import BinaryIO, Final, cast, final
from unicodedata import normalize

from sixjars.data.media.hdf5 import HDF5_ENDINGS, Hdf5File, Stamp, too_large
from sixjars.data.storage.cache import set_aside
from sixjars.progress import Reporter
from sixjars_runtime.errors import DataError

_IN_MEMORY: Final = 1 << 26
"""A packed file of more bytes is unpacked to a temporary file, not to memory."""
HASHED_AT_ONCE: Final = 64  # files whose hashes are remembered together: what a kill can cost
_OTHERS: Final = ".jpg .JPG .jpeg .JPEG .png .PNG .webp .mp4 .MP4 .avi .npy".split()
"""Endings that a file may have while its name has another."""
_SILENT: Final = Reporter()
_BROKEN_ZIP: Final = (
    *(zipfile.BadZipFile, zlib.error, EOFError, struct.error, NotImplementedError, ValueError),
)


@final
class MediaFiles:
    """The files of several places, by name; safe to use from several threads at once.

    A name is an absolute path, a path in one of the folders, or the name of a file in one of the
    archives. The first place that has it counts. If none has, a file in a .zip whose path ends in
    the name will do, if there is only one. A name may lack one of the `endings`. A file in an
    archive that unpacks to more than `largest` bytes is refused. Hashes are remembered in the
    folder `memory`, if there is one.
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
            wrong = "is a folder, not a file." if os.path.isdir(name) else "does not exist."
            raise DataError(f"{name} {wrong}")
        for place in self._places:
            if place.has_folder(name):
                raise DataError(f"{name} is a folder in {place.path}, not a file.")
        looked = ", ".join(str(place.path) for place in self._places) or "no place at all"
        if other := self._similar(name):
            raise DataError(
                f"There is no file {name!r} in {looked}, but {other!r} is there; is that one meant?"
            )
        raise DataError(
            f"There is no file {name!r} in {looked}; 'media' names the folders and .zip files to "
            "look in."
        )

    def _similar(self, name: str) -> str:
        """A file whose name differs in its ending, or in case; nothing where there is none."""
        for ending in _OTHERS:
            other = f"{os.path.splitext(name)[0]}{ending}"
            if any(place.has(other) for place in self._places):
                return other
        folders = [place.path for place in self._places if isinstance(place, _Folder)]
        return next(filter(None, (in_other_case(folder, name) for folder in folders)), "")

    def _matches(self, name: str) -> "list[tuple[_Place, str]]":
        """The places of a name, or else of another spelling of it."""
        return next(filter(None, map(self._places_of, [name, *spellings(name)])), [])

    def _places_of(self, name: str) -> "list[tuple[_Place, str]]":
        """No place, one, or several in which files end in this name."""
        names = [f"{name}{ending}" for ending in self._endings]
        places: Sequence[_Place] = [_Folder(Path())] if os.path.isabs(name) else self._places
        for place in places:
            if member := next(filter(place.has, names), None):
                return [(place, member)]
        return [(place, end) for place in places for name in names for end in place.ending(name)]


@final
class _Hashes:
    """The hashes of files, in a database that processes share; losing it costs only time."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / "contents.sqlite"

    def get(self, stamps: Iterable[Stamp]) -> dict[Stamp, str]:
        """The hashes of those files that are remembered."""
        if self._path is None or not self._path.is_file():
            return {}
        where = "path = ? AND member = ? AND size = ? AND time = ?"
        query = f"SELECT key FROM contents WHERE {where}"
        try:
            with closing(sqlite3.connect(self._path, timeout=10)) as connection:
                rows = ((stamp, connection.execute(query, stamp).fetchone()) for stamp in stamps)
                return {stamp: str(row[0]) for stamp, row in rows if row is not None}
        except sqlite3.Error:
            return {}

    def put(self, keys: Mapping[Stamp, str]) -> None:
        """Remember these; where the folder cannot be written or the disk is full, do nothing."""
        if self._path is None:
            return
        table = (
            "contents (path TEXT, member TEXT, size INTEGER, time INTEGER, key TEXT, "
            "PRIMARY KEY (path, member))"
        )
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            set_aside(self._path)
            with closing(sqlite3.connect(self._path, timeout=10)) as connection, connection:
                # Without waiting for the disk: what a power failure takes is hashed again.
                connection.execute("PRAGMA synchronous = OFF")
                connection.execute(f"CREATE TABLE IF NOT EXISTS {table}")
                rows = [(*stamp, key) for stamp, key in keys.items()]
                insert = "INSERT OR REPLACE INTO contents VALUES (?, ?, ?, ?, ?)"
                connection.executemany(insert, rows)
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
    """A .zip file (a .npz is one): names are read once, files when they are asked for."""

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
        members = self._zip.namelist()
        return bool(name) and any(member.startswith(name.rstrip("/") + "/") for member in members)

    def ending(self, name: str) -> list[str]:
        members = self._by_last.get(name.rpartition("/")[2], ())
        return [member for member in members if member.endswith("/" + name)]

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
        """Unpack a file; a lock is for opening and closing, which `ZipFile` counts without."""
        with self._lock:
            if self._process != os.getpid():  # after a fork both would move the same file position
                self._zip = _opened_zip(self.path)
                self._process = os.getpid()
            source = self._zip.open(info)
        try:
            shutil.copyfileobj(source, target, 1 << 20)
        finally:
            with self._lock:
                source.close()


_Place = _Folder | _Archive | Hdf5File


def is_hidden(path: PurePath) -> bool:
    """Whether a path leads through hidden folders or the leftovers of packers."""
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
    """Put the sentence about a bad file into `faults`."""
    try:
        with _sentences(name):
            yield
    except DataError as error:
        faults[name] = str(error)


def _hash(file: BinaryIO) -> str:
    digest = hashlib.blake2b(digest_size=16)
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def _reason(error: BaseException) -> str:
    return str(error).rstrip(".") or type(error).__name__


def spellings(name: str) -> list[str]:
    r"""Other ways to write the same name: / for \, and é as one character or, as on macOS, two.

    >>> spellings("a\\b.jpg"), spellings("a.jpg"), list(map(len, spellings("é.jpg")))
    (['a/b.jpg'], [], [6])
    """
    plain = name.replace("\\", "/")
    forms = dict.fromkeys((plain, normalize("NFC", plain), normalize("NFD", plain)))
    return [form for form in forms if form != name]


def in_other_case(folder: Path, name: str) -> str | None:
    """The file whose name differs in case alone, as Windows and macOS would find it."""
    spelled = ""
    with suppress(OSError):  # a folder that may not be listed
        for step in name.replace("\\", "/").split("/"):
            path = folder / spelled
            names = _listed(path, path.stat().st_mtime_ns) if path.is_dir() else {}
            if _folded(step) not in names:
                return None
            spelled = os.path.join(spelled, names[_folded(step)])
        return spelled if (folder / spelled).is_file() else None
    return None


@lru_cache(maxsize=100)
def _listed(folder: Path, changed: int) -> dict[str, str]:
    """The names in a folder, by their form without case; listed again when it has changed."""
    return {_folded(name): name for name in sorted(os.listdir(folder))}


def _folded(name: str) -> str:
    return normalize("NFC", name).casefold()
