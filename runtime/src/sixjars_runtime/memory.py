"""How much memory there is, and how much a search takes.

What cannot fit is refused before it is begun. Estimates count what certainly is there at once, so
they are too small rather than too large.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from sixjars_runtime.errors import DataError

MANY: Final = 4096
"""Rows of a search from which it is estimated; fewer always fit."""
_MEMINFO: Final = Path("/proc/meminfo")
_GROUPS: Final = Path("/sys/fs/cgroup")
_FILES: Final = (
    ("", "memory.max", "memory.current"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
)
"""Of a control group of version 2 and 1: in which folder of all, its limit, and what it uses."""


def free_memory() -> int | None:
    """Return the bytes that the machine and control groups leave, or None where nobody says."""
    limits = [*_of_machine(), *_of_groups()]
    return min(limits) if limits else None


def _of_machine() -> Iterator[int]:
    with suppress(OSError, ValueError, IndexError):
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) * 1024
                return
    # Not on Linux: all that there is, for nobody says what is free.
    with suppress(OSError, ValueError, AttributeError):
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _of_groups() -> Iterator[int]:
    """Yield what control groups of version 2 or 1 leave; a container sees its own at the top."""
    with suppress(OSError, ValueError):
        lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
        paths = [path for _, kinds, path in lines if kinds in ("", "memory")]
        for path in {"/", *paths}:
            for version, most, now in _FILES:
                yield from _left(_GROUPS / version / path.lstrip("/"), most, now)


def _left(folder: Path, most: str, now: str) -> Iterator[int]:
    """Yield what one group leaves; memory that files take is given back where it is needed."""
    with suppress(OSError, ValueError):
        limit = int((folder / most).read_text())  # no number where it is "max"
        used = int((folder / now).read_text())
        kept = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        files = max(int(kept.get(name, 0)) for name in ("inactive_file", "total_inactive_file"))
        yield max(0, limit - used + files)


def in_words(count: float) -> str:
    """Return a number of bytes as a person reads it.

    >>> in_words(5e6), in_words(2.34e9), in_words(4.8e10), in_words(3e12)
    ('5 MB', '2.3 GB', '48 GB', '3,000 GB')
    """
    if count < 1e9:
        return f"{count / 1e6:,.0f} MB"
    return f"{count / 1e9:,.1f} GB" if count < 1e10 else f"{count / 1e9:,.0f} GB"


@final
@dataclass(frozen=True)
class SearchSize:
    """What the memory of a search depends on."""

    sources: int
    rows: int
    """Of each source."""
    vocabulary: int
    steps: int
    """The most."""
    positions: int
    """Of the source that attention weights are kept of; 0 where they are not."""
    state: int
    """Bytes that each row carries."""
    beam: bool

    @property
    def bytes(self) -> int:
        """The scores, candidates and states of one step, and what each step leaves for the end."""
        scores = 3 * 4 * self.vocabulary
        candidates = 3 * (4 + 8) * min(2 * self.rows, self.vocabulary) if self.beam else 0
        left = self.steps * (16 + 4 * self.positions)
        return self.sources * self.rows * (scores + candidates + 2 * self.state + left)

    def check(self, free: int | None) -> None:
        """Refuse a search that does not fit into the free memory.

        >>> SearchSize(2, 10**6, 20_000, 9, 0, 512, beam=True).check(10**10)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        sixjars_runtime.errors.DataError: this search needs about 1,922 GB of memory for ...
        """
        if free is None or self.bytes <= free:
            return
        each = f"{self.sources:,} x {self.rows:,}"
        raise DataError(
            f"this search needs about {in_words(self.bytes)} of memory for {each} rows, a "
            f"vocabulary of {self.vocabulary:,} and up to {self.steps:,} steps, but "
            f"{in_words(free)} are free; lower width or nbest, batch_examples or max_length."
        )
