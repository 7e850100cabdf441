"""Small files of text and JSON, read with care: somebody else may have written or damaged them."""

import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from sixjars_runtime.errors import RunError, shown

LARGEST: Final = 1 << 28
"""Bytes of such a file: a vocabulary of millions of words fits."""


def read_limited(path: Path, largest: int = LARGEST) -> str:
    """Read the text of a plain file that is not too large.

    A device or a pipe is refused before it is read. Some files of the system call themselves plain
    and empty, but have no end, or wait for somebody to write: it is what is read that counts, and
    nothing is waited for.
    """
    state = path.stat()
    if not stat.S_ISREG(state.st_mode):
        raise RunError(f"{path} is not a plain file.")
    if state.st_size > largest:
        raise RunError(f"{path} is larger than {largest:,} bytes.")
    no_wait = getattr(os, "O_NONBLOCK", 0)  # Windows has no such files
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | no_wait)) as file:
        content = file.read(largest + 1) or b""
    if len(content) > largest:
        raise RunError(f"{path} is larger than {largest:,} bytes.")
    return content.decode("utf-8")


def values_of_json(text: str) -> Any:
    """Read strict JSON, no key twice and no NaN; ValueError with the reason.

    >>> values_of_json('{"size": 2}')
    {'size': 2}
    >>> values_of_json('{"size": NaN}')
    Traceback (most recent call last):
        ...
    ValueError: NaN is no number of JSON
    """
    try:
        return json.loads(text, object_pairs_hook=_section, parse_constant=_refused)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON: {error}") from None


def _section(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"key {shown(key)} stands twice")
        values[key] = value
    return values


def _refused(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")
