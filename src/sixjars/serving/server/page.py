"""The live page: one document without anything outside of it, made of the views that `inspect` writes too."""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files


@cache
def page() -> str:
    """The whole document."""
    return _live("serving.server", "page.html").replace("/* style */", _style()).replace("/* script */", _script())


@cache
def policy() -> str:
    """What a browser may load and run: this script and no other, and answers of this server."""
    script = b64encode(sha256(_script().encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{script}'; style-src 'unsafe-inline'; img-src data: blob:; "
        "media-src blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _style() -> str:
    return _live("inspection", "view.css") + _live("serving.server", "page.css")


def _script() -> str:
    inputs, asking = _live("serving.server", "inputs.js"), _live("serving.server", "page.js")
    return _live("inspection", "view.js") + inputs + asking


def _live(package: str, name: str) -> str:
    return files(f"sixjars.{package}").joinpath("live", name).read_text("utf-8")
