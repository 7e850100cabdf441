"""Names of files as tables have them that were written on another system."""

import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from unicodedata import normalize


def spellings(name: str) -> list[str]:
    r"""Other ways to write the same name: / for the \ of Windows, and é as one character or, as on macOS, as two.

    >>> spellings("a\\b.jpg"), spellings("a.jpg"), [len(one) for one in spellings("é.jpg")]
    (['a/b.jpg'], [], [6])
    """
    plain = name.replace("\\", "/")
    return [
        one
        for one in dict.fromkeys((plain, normalize("NFC", plain), normalize("NFD", plain)))
        if one != name
    ]


def in_other_case(folder: Path, name: str) -> str | None:
    """The file in a folder whose name differs in upper and lower case alone, as Windows and macOS would find it."""
    found = ""
    with suppress(OSError):  # a folder that may not be listed
        for step in name.replace("\\", "/").split("/"):
            path = folder / found
            there = (
                _listed(path, path.stat().st_mtime_ns).get(_folded(step)) if path.is_dir() else None
            )
            if there is None:
                return None
            found = os.path.join(found, there)
        return found if (folder / found).is_file() else None
    return None


@lru_cache(maxsize=100)
def _listed(folder: Path, changed: int) -> dict[str, str]:
    """The names in a folder, by how they read without case; a folder that has changed since is listed again."""
    return {_folded(name): name for name in sorted(os.listdir(folder))}


def _folded(name: str) -> str:
    return normalize("NFC", name).casefold()
