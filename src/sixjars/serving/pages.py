"""What the page of a server and a static page share: the inputs, what they are called, and views of attention."""

from collections.abc import Iterable
from importlib.resources import files

from sixjars.runs.predict import Predictor

CONTROLS = ("talk", "points")
"""Inputs beside a text: a conversation, and points."""


def live(package: str, name: str) -> str:
    """A file for the browser that lies beside a package."""
    return files(f"sixjars.{package}").joinpath("live", name).read_text("utf-8")


def style() -> str:
    """Colours, views and inputs."""
    return live("inspection", "view.css") + live("serving", "inputs.css")


def script(controls: Iterable[str] = CONTROLS) -> str:
    """What lights views, and what inputs are given with."""
    names = ["inputs.js", *(f"{name}.js" for name in controls)]
    return "\n".join([live("inspection", "view.js"), *(live("serving", name) for name in names)])


def titles(run: Predictor) -> dict[str, str]:
    """What people call each field: its column, or its own name where columns have numbers."""
    return {name: column if isinstance(column, str) else name for name, column in run.all_columns.items()}
