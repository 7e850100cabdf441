"""How large the cache is, and how it is kept from growing without end."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from sixjars.data.storage.cache import cache_folder

LIMIT: Final = 20.0
"""Gigabytes that the cache may hold when $SIXJARS_CACHE_GB says nothing; the files not used for longest go first."""


@final
@dataclass(frozen=True)
class Contents:
    """What the cache holds."""

    folder: Path
    files: int
    size: int
    """Bytes."""


def contents() -> Contents:
    """How much there is now."""
    found = _files(cache_folder())
    return Contents(cache_folder(), len(found), sum(size for _, size, _ in found))


def prune(gigabytes: float | None = None) -> Contents:
    """Remove the files that were not used for longest until no more than so much is left; returns what is left.

    Nothing is lost but time: whatever is missing is made again. A run that has a file open keeps it.
    """
    limit = float(os.environ.get("SIXJARS_CACHE_GB") or LIMIT) if gigabytes is None else gigabytes
    found = sorted(_files(cache_folder()))
    size = sum(each for _, each, _ in found)
    for _, each, path in found:
        if size <= limit * 1e9:
            break
        with suppress(OSError):
            path.unlink()
            size -= each
    return contents()


def _files(folder: Path) -> list[tuple[float, int, Path]]:
    """Time of the last use, size and path of every file."""
    found = []
    for place, _, names in os.walk(folder):
        for path in (Path(place, name) for name in names):
            with suppress(OSError):
                state = path.stat()
                found.append((state.st_mtime, state.st_size, path))
    return found
