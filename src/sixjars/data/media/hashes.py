"""The hashes of the contents of files, remembered so that a file is read through once and not again by the next run."""

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import final

from sixjars.data.storage.cache import set_aside

Stamp = tuple[str, str, int, int]
"""Absolute path of the file or archive, name in the archive, size, time of the last change in nanoseconds."""


@final
class Hashes:
    """The hashes of files, in a database that several processes may share; losing it costs only time."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "contents.sqlite"

    def get(self, stamps: Iterable[Stamp]) -> dict[Stamp, str]:
        """The hashes that are remembered."""
        if not self._path.is_file():
            return {}
        question = "SELECT key FROM contents WHERE path = ? AND member = ? AND size = ? AND time = ?"
        try:
            with closing(sqlite3.connect(self._path, timeout=10)) as connection:
                rows = ((stamp, connection.execute(question, stamp).fetchone()) for stamp in stamps)
                return {stamp: str(row[0]) for stamp, row in rows if row is not None}
        except sqlite3.Error:
            return {}

    def put(self, keys: Mapping[Stamp, str]) -> None:
        """Remember these; a folder that cannot be written, a full disk or a long wait costs only time."""
        table = "contents (path TEXT, member TEXT, size INTEGER, time INTEGER, key TEXT, PRIMARY KEY (path, member))"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            set_aside(self._path)
            with closing(sqlite3.connect(self._path, timeout=10)) as connection, connection:
                connection.execute("PRAGMA synchronous = OFF")  # what a power failure takes is hashed again
                connection.execute(f"CREATE TABLE IF NOT EXISTS {table}")
                rows = [(*stamp, key) for stamp, key in keys.items()]
                connection.executemany("INSERT OR REPLACE INTO contents VALUES (?, ?, ?, ?, ?)", rows)
        except (sqlite3.OperationalError, OSError):
            return
        except sqlite3.DatabaseError:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)  # damaged: the next hash starts a new one
