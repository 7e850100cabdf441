"""Sections of a script or a style that only some pages need.

    // only: cell/lstm
    ...
    // end: cell/lstm

What lies between is written where a page has that feature, or one of several with commas between
them.
"""

import re
from collections.abc import Collection

MARK = re.compile(r"\s*(?://|/\*) (only|end): ([\w/, ]*\w)(?: \*/)?\n")
"""A line where a section begins or ends."""


def kept(text: str, features: Collection[str] | None = None) -> str:
    r"""A text without its marks, and without the sections that need other features; with all where none are named.

    >>> text = "a\n// only: copying, cell/lstm\nb\n// only: tied\nc\n// end: tied\n// end: copying, cell/lstm\n"
    >>> kept(text, {"cell/lstm"}), kept(text)
    ('a\nb\n', 'a\nb\nc\n')
    """
    found: list[str] = []
    sections: list[str] = []
    for line in text.splitlines(keepends=True):
        mark = MARK.fullmatch(line)
        if mark is None:
            if features is None or all(
                set(wanted.split(", ")) & set(features) for wanted in sections
            ):
                found.append(line)
        elif mark[1] == "only":
            sections.append(mark[2])
        elif (began := sections.pop()) != mark[2]:
            raise ValueError(f"a section ends as {mark[2]}, but began as {began}.")
    return "".join(found)
