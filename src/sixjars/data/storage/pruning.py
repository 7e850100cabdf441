"""The size of the cache: how much there is, and what is removed when it is too much."""

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
"""Gigabytes that the cache may hold when $SIXJARS_CACHE_GB says nothing; what was not used for longest goes first."""
ENTRIES: Final = ("[0-9a-f]" * 64, "frames/*/*.safetensors", "contents.sqlite", "kernels/*.so")
SYNTHETIC: Final = "samples/*/*"
"""What may be removed: nothing but what this toolkit made, whatever else is in the folder that somebody chose."""
MAKING: Final = ".making-"
"""How the names of folders begin in which a file is being made."""
MAKING_HERE: Final = f"{MAKING}{zlib.crc32(platform.node().encode()):08x}-"
"""How those of this machine begin; the number of the process follows."""
LEFT: Final = (f"{MAKING}*", f"frames/*/{MAKING}*", f"samples/*/*/{MAKING}*", f"kernels/{MAKING}*")
PLANS: Final = "frames/" + "[0-9a-f]" * 32 + "/plan.json"
STALE: Final = 24 * 3600.0
"""Seconds after which nobody is at work any more, where it is not known who was."""


@final
@dataclass(frozen=True)
class Contents:
    """What the cache holds."""

    folder: Path
    files: int
    size: int
    """Bytes."""


@final
@dataclass(frozen=True, order=True)
class _Entry:
    """What is removed as a whole: a file, or a folder whose files are of no use without each other."""

    is_synthetic: bool
    """Synthetic images and videos go last: nobody notes when they are read."""
    used: float
    """When it was used last."""
    size: int
    files: int
    path: Path


def is_abandoned(making: Path) -> bool:
    """Whether nobody makes a file in this folder any more: the process that did has ended, or a day has passed."""
    found = re.match(rf"{re.escape(MAKING_HERE)}(\d+)-", making.name)
    if found is not None and os.name == "posix":
        try:
            os.kill(int(found[1]), 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass  # somebody else's
    with suppress(OSError):
        return time.time() - making.stat().st_mtime > STALE
    return False


def contents(folder: Path) -> Contents:
    """How much there is now."""
    found = _entries(folder)
    return Contents(folder, sum(entry.files for entry in found), sum(entry.size for entry in found))


def prune(folder: Path, gigabytes: float | None = None) -> Contents:
    """Remove what was not used for longest until no more than so much is left; returns what is left.

    Nothing is lost but time: whatever is missing is made again. A run that has a file open keeps it. What a process
    left behind when it was killed goes too, and plans of features of which none is left.
    """
    for left in [one for pattern in LEFT for one in folder.glob(pattern) if is_abandoned(one)]:
        shutil.rmtree(left, ignore_errors=True)
    limit = 1e9 * (_limit() if gigabytes is None else gigabytes)
    found = sorted(_entries(folder))
    size = sum(entry.size for entry in found)
    for entry in found:
        if size <= limit:
            break
        with suppress(OSError):
            shutil.rmtree(entry.path) if entry.path.is_dir() else entry.path.unlink()
            size -= entry.size
    for plan in folder.glob(PLANS):
        if [one.name for one in plan.parent.iterdir()] == [plan.name]:
            shutil.rmtree(plan.parent, ignore_errors=True)
    return contents(folder)


def _limit() -> float:
    given = os.environ.get("SIXJARS_CACHE_GB") or str(LIMIT)
    with suppress(ValueError):
        if float(given) >= 0:
            return float(given)
    raise DataError(f"SIXJARS_CACHE_GB must be a number of gigabytes, but is {given!r}.")


def _entries(folder: Path) -> list[_Entry]:
    found = []
    for pattern in (*ENTRIES, SYNTHETIC):
        for path in folder.glob(pattern):
            with suppress(OSError):
                states = [
                    one.stat()
                    for one in (path.rglob("*") if path.is_dir() else [path])
                    if one.is_file()
                ]
                used = max((state.st_mtime for state in states), default=0.0)
                size = sum(state.st_size for state in states)
                found.append(_Entry(pattern == SYNTHETIC, used, size, len(states), path))
    return found
