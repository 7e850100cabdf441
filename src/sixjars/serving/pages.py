"""The parts shared by the page of a server and a static page: inputs, titles and views."""

from collections.abc import Collection
from importlib.resources import files

from sixjars.drawing.html import LIVE, live_files
from sixjars.drawing.sections import kept
from sixjars.runs.predict import Predictor

INPUTS = ("inputs", "talk", "points", "files")
"""Inputs: a text, a conversation, points, and files."""


def live(package: str, name: str, features: Collection[str] | None = None) -> str:
    """A file for the browser beside a package, with all sections, or those of some features."""
    return kept(files(f"sixjars.{package}").joinpath("live", name).read_text("utf-8"), features)


def style() -> str:
    """The styles of all views and inputs, and colours."""
    return live_files(LIVE, "css") + "".join(live("serving", f"{name}.css") for name in INPUTS)


def script() -> str:
    """The scripts of all views and inputs."""
    return "\n".join([live_files(LIVE, "js"), *(live("serving", f"{name}.js") for name in INPUTS)])


def titles(run: Predictor) -> dict[str, str]:
    """The title of each field: its column, or its own name where columns have numbers."""
    columns = run.all_columns.items()
    return {name: column if isinstance(column, str) else name for name, column in columns}
