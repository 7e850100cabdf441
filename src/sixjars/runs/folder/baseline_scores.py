"""The file of a run that keeps the scores of its baselines, `baselines.json`, by scored data."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, final

from pydantic import TypeAdapter, ValidationError

from sixjars.evaluation.baselines.result import Baseline
from sixjars.learning.checkpoints import write_whole
from sixjars_runtime.errors import RunError

FILE: Final = "baselines.json"
FORMAT: Final = 2
"""Changes with the form of the file, and with any baseline that then has other scores."""
LARGEST: Final = 1 << 22
"""Bytes; an entry has about two thousand."""
MOST: Final = 20
"""Entries; the oldest ones leave."""


@final
@dataclass(frozen=True)
class BaselineEntry:
    """The baselines of some data."""

    key: dict[str, str]
    """All that the scores depend on."""
    baselines: tuple[Baseline, ...]
    notes: tuple[str, ...] = ()
    """Notes on baselines that were left out."""


@final
@dataclass(frozen=True)
class _File:
    format: int
    entries: tuple[BaselineEntry, ...]


def read_entries(folder: Path) -> tuple[BaselineEntry, ...]:
    """The entries of a run's folder; none where the file is damaged or of another version."""
    path = folder / FILE
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:
            return ()
        file: _File = TypeAdapter(_File).validate_json(path.read_bytes(), strict=True)
    except (OSError, ValidationError):
        return ()
    return file.entries if file.format == FORMAT else ()


def kept_entry(folder: Path, key: Mapping[str, str]) -> BaselineEntry | None:
    """The entry of this data, where there is one."""
    return next((entry for entry in read_entries(folder) if entry.key == key), None)


def keep_entry(folder: Path, entry: BaselineEntry) -> None:
    """Add an entry; a folder that cannot be written keeps none."""
    others = [kept for kept in read_entries(folder) if kept.key != entry.key]
    file = asdict(_File(FORMAT, (entry, *others)[:MOST]))
    with suppress(OSError, RunError):
        text = json.dumps(file, indent=1, ensure_ascii=False) + "\n"
        write_whole(folder / FILE, text.encode())
