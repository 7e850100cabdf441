"""Pages and parts of pages, rendered by jinja2 with autoescape: no text of a run is ever HTML.

The templates of a package lie beside its code, in `templates/NAME.html`. A page is one file with
its style and script, and its policy lets a browser load nothing: what is not in the file cannot be
shown.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, final

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup

from sixjars.drawing.html.assets import VIEW_FILES, view_files
from sixjars.drawing.weights import digits, percent

VIEWS = "sixjars.drawing.html"
"""The package with the templates of views."""
DEEP, DEEPEST = 0.58, 0.78
"""The shades from which letters change colour, in dark and light mode; as in the script."""
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""What a browser may load: only what is in the file."""


@final
class OneLine(Extension):
    """Leaves the line breaks and the indentation of a template out of its HTML.

    A page has thousands of cells, each of which would carry them; and between words that can be
    pointed at a space would be seen. Beside a tag or a brace a line break is nothing, between words
    it is a space.
    """

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """The source of a template on one line."""
        beside_tags = re.sub(r"(?<=[>}])\s*\n\s*|\s*\n\s*(?=[<{])", "", source)
        return re.sub(r"\s*\n\s*", " ", beside_tags).strip()


def cells(weights: Iterable[float]) -> Markup:
    """A row of weights; by itself, for a table of 80,000 takes a template a third of a second."""
    return Markup("".join(f"<td>{weight:.5f}</td>" for weight in weights))


def deep(share: float) -> str:
    """The classes of letters on a shade: from `DEEP` on light ones can be read better.

    >>> deep(0.5), deep(0.6), deep(0.8)
    ('', ' deep', ' deep deepest')
    """
    if share > DEEPEST:
        return " deep deepest"
    return " deep" if share > DEEP else ""


@cache
def _environment(package: str) -> Environment:
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(VIEWS)]),
        extensions=[OneLine],
    )
    environment.filters |= {
        "cells": cells,
        "deep": deep,
        "digits": digits,
        "fixed": lambda number, places: f"{number:.{places}f}",
        "percent": percent,
    }
    return environment


def render(template: str, values: Mapping[str, Any], *, package: str = VIEWS) -> str:
    """The HTML of a template of a package, which may use those of views; all text is escaped."""
    return _environment(package).get_template(template).render(values)


def page(fragments: Iterable[str], *, title: str, style: str = "", script: str = "") -> str:
    """A whole document of fragments, which may be views or any other HTML; it needs no network.

    It has the styles and scripts of all views, and these behind them.

    >>> page(["<p>one</p>"], title="<x>").count("&lt;x&gt;")
    2
    """
    values = {
        "fragments": fragments,
        "title": title,
        "policy": POLICY,
        "style": view_files(VIEW_FILES, "css") + style,
        "script": view_files(VIEW_FILES, "js") + script,
    }
    return render("page.html", values)
