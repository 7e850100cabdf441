"""Sections of a script or a style that only some pages need.

    // only: cell/lstm
    ...
    // end: cell/lstm

The lines between are kept where a page has that feature, or one of several with commas between.
"""

import re
from collections.abc import Collection

MARK = re.compile(r"\s*(?://|/\*) (only|end): ([\w/, ]*\w)(?: \*/)?\n")
"""A line where a section begins or ends."""


def kept(text: str, features: Collection[str] | None = None) -> str:
    r"""A text without its marks, and without the sections of other features, if any are named.

    >>> text = "a\n// only: copy, lstm\nb\n// only: tied\nc\n// end: tied\n// end: copy, lstm\n"
    >>> kept(text, {"lstm"}), kept(text)
    ('a\nb\n', 'a\nb\nc\n')
    """
    lines: list[str] = []
    sections: list[str] = []
    for line in text.splitlines(keepends=True):
        mark = MARK.fullmatch(line)
        if mark is None:
            needs = (set(section.split(", ")) for section in sections)
            if features is None or all(need & set(features) for need in needs):
                lines.append(line)
        elif mark[1] == "only":
            sections.append(mark[2])
        elif (began := sections.pop()) != mark[2]:
            raise ValueError(f"a section ends as {mark[2]}, but began as {began}.")
    return "".join(lines)
