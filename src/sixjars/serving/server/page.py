"""The live page: one document that loads nothing else; views and inputs are shared."""

from base64 import b64encode
from functools import cache
from hashlib import sha256

from sixjars.drawing.html.assets import static
from sixjars.serving.pages import script, style


@cache
def page() -> str:
    """The whole document."""
    styles = style() + static("serving.server", "page.css")
    html = static("serving.server", "page.html").replace("/* style */", styles)
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
    return script() + static("serving.server", "page.js")
