"""The styles and scripts of pages, in folders called `static`, with sections that only some need.

    // only: cell/lstm
    ...
    // end: cell/lstm

The lines between are kept where a page has that feature, or one of several with commas between.
"""

import re
from collections.abc import Collection, Iterable
from importlib.resources import files
from typing import Literal

MARK = re.compile(r"\s*(?://|/\*) (only|end): ([\w/, ]*\w)(?: \*/)?\n")
"""A line where a section begins or ends."""
VIEW_FILES = ("colours", "view", "heat", "lines", "document", "image", "frames", "tour")
"""The names of the styles and scripts of views."""


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


def static(package: str, name: str, features: Collection[str] | None = None) -> str:
    """A style or script beside a package, with all sections, or those of some features.

    >>> static("drawing.html", "colours.css").splitlines()[0]
    '/* Colours, light and dark, and the text of a page. */'
    """
    return kept(files(f"sixjars.{package}").joinpath("static", name).read_text("utf-8"), features)


def view_files(
    names: Iterable[str], ending: Literal["css", "js"], features: Collection[str] | None = None
) -> str:
    """The styles or the scripts of views with these names; not every view has both.

    >>> view_files(["tour"], "js")
    ''
    """
    folder = files(__package__).joinpath("static")
    there = [f"{name}.{ending}" for name in names if folder.joinpath(f"{name}.{ending}").is_file()]
    return "".join(static("drawing.html", name, features) for name in there)
