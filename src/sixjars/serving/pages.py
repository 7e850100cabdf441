"""The live page of a server: one document that loads nothing else; and the titles of fields."""

from base64 import b64encode
from functools import cache
from hashlib import sha256

from sixjars.drawing.html.assets import VIEW_FILES, static, view_files
from sixjars.runs.prediction.predictor import Predictor

INPUTS = ("inputs", "talk", "points", "files")
"""Inputs: a text, a conversation, points, and files."""


@cache
def page() -> str:
    """The whole document."""
    inputs = (static("serving", f"{name}.css") for name in INPUTS)
    styles = [view_files(VIEW_FILES, "css"), *inputs, static("serving.server", "page.css")]
    html = static("serving.server", "page.html").replace("/* style */", "".join(styles))
    return html.replace("/* script */", _script())


@cache
def policy() -> str:
    """What a browser may load and run: this script and no other, and answers of this server."""
    hashed = b64encode(sha256(_script().encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{hashed}'; style-src 'unsafe-inline'; "
        "img-src data: blob:; media-src blob:; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )


def _script() -> str:
    scripts = [view_files(VIEW_FILES, "js"), *(static("serving", f"{name}.js") for name in INPUTS)]
    return "\n".join(scripts) + static("serving.server", "page.js")


def titles(run: Predictor) -> dict[str, str]:
    """The title of each field: its column, or its own name where columns have numbers."""
    columns = run.all_columns.items()
    return {name: column if isinstance(column, str) else name for name, column in columns}
