"""The parts shared by the page of a server and a static page: inputs, titles and views."""

from sixjars.drawing.html.assets import VIEW_FILES, static, view_files
from sixjars.runs.prediction.predictor import Predictor

INPUTS = ("inputs", "talk", "points", "files")
"""Inputs: a text, a conversation, points, and files."""


def style() -> str:
    """The styles of all views and inputs, and colours."""
    return view_files(VIEW_FILES, "css") + "".join(
        static("serving", f"{name}.css") for name in INPUTS
    )


def script() -> str:
    """The scripts of all views and inputs."""
    return "\n".join(
        [view_files(VIEW_FILES, "js"), *(static("serving", f"{name}.js") for name in INPUTS)]
    )


def titles(run: Predictor) -> dict[str, str]:
    """The title of each field: its column, or its own name where columns have numbers."""
    columns = run.all_columns.items()
    return {name: column if isinstance(column, str) else name for name, column in columns}
