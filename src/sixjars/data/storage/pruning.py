"""The size of the cache, and the removal of what was used least recently."""

import os
import platform
import re
import shutil
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from sixjars_runtime.errors import DataError

LIMIT: Final = 20.0
"""Gigabytes of the cache when $SIXJARS_CACHE_GB is not set; the least recently used goes first."""
ENTRIES: Final = ("[0-9a-f]" * 64, "frames/*/*.safetensors", "contents.sqlite", "kernels/*.so")
SYNTHETIC: Final = "samples/*/*"
"""With `ENTRIES`, all that may be removed: a folder that somebody chose may have other files."""
MAKING: Final = ".making-"  # prefix of folders in which a file is being made
MAKING_HERE: Final = f"{MAKING}{zlib.crc32(platform.node().encode()):08x}-"
"""The prefix on this machine; the number of the process follows."""
LEFT: Final = (f"{MAKING}*", f"frames/*/{MAKING}*", f"samples/*/*/{MAKING}*", f"kernels/{MAKING}*")
PLANS: Final = "frames/" + "[0-9a-f]" * 32 + "/plan.json"
STALE: Final = 24 * 3600.0
"""Seconds after which nobody is at work any more, where it is not known who was."""


@final
@dataclass(frozen=True)
class CacheSize:
    """The size of a cache."""

    folder: Path
    files: int
    size: int
    """Bytes."""


@final
@dataclass(frozen=True, order=True)
class _Entry:
    """A file, or a folder of files that need each other, which is removed as a whole."""

    is_synthetic: bool
    """Synthetic images and videos go last: nobody notes when they are read."""
    used: float
    """When it was used last."""
    size: int
    files: int
    path: Path


def is_abandoned(making: Path) -> bool:
    """Whether nobody makes a file in this folder any more: the process ended, or a day passed."""
    maker = re.match(rf"{re.escape(MAKING_HERE)}(\d+)-", making.name)
    if maker is not None and os.name == "posix":
        try:
            os.kill(int(maker[1]), 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass  # somebody else's
    with suppress(OSError):
        return time.time() - making.stat().st_mtime > STALE
    return False


def contents(folder: Path) -> CacheSize:
    """How much there is now."""
    entries = _entries(folder)
    files = sum(entry.files for entry in entries)
    return CacheSize(folder, files, sum(entry.size for entry in entries))


def prune(folder: Path, gigabytes: float | None = None) -> CacheSize:
    """Remove what was not used for longest until only so much is left; returns what is left.

    Nothing is lost but time, and a run keeps the files that it has open. Leftovers of killed
    processes go too, and plans of features of which none is left.
    """
    for making in [path for pattern in LEFT for path in folder.glob(pattern)]:
        if is_abandoned(making):
            shutil.rmtree(making, ignore_errors=True)
    limit = 1e9 * (_limit() if gigabytes is None else gigabytes)
    entries = sorted(_entries(folder))
    size = sum(entry.size for entry in entries)
    for entry in entries:
        if size <= limit:
            break
        with suppress(OSError):
            shutil.rmtree(entry.path) if entry.path.is_dir() else entry.path.unlink()
            size -= entry.size
    for plan in folder.glob(PLANS):
        if [path.name for path in plan.parent.iterdir()] == [plan.name]:
            shutil.rmtree(plan.parent, ignore_errors=True)
    return contents(folder)


def _limit() -> float:
    text = os.environ.get("SIXJARS_CACHE_GB") or str(LIMIT)
    with suppress(ValueError):
        if float(text) >= 0:
            return float(text)
    raise DataError(f"SIXJARS_CACHE_GB must be a number of gigabytes, but is {text!r}.")


def _entries(folder: Path) -> list[_Entry]:
    entries = []
    for pattern in (*ENTRIES, SYNTHETIC):
        for path in folder.glob(pattern):
            with suppress(OSError):
                files = path.rglob("*") if path.is_dir() else [path]
                states = [file.stat() for file in files if file.is_file()]
                used = max((state.st_mtime for state in states), default=0.0)
                size = sum(state.st_size for state in states)
                entries.append(_Entry(pattern == SYNTHETIC, used, size, len(states), path))
    return entries
