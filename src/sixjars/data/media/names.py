"""Names of files as tables have them that were written on another system."""

import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from unicodedata import normalize


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
