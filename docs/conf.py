"""How Sphinx builds the documentation site; `make site` runs it.

The pages are plain Markdown that also reads well in the repository. What only the site needs is added here: the table
of contents, and links to pages of the site where the repository has files.
"""

import ast
import os
import re
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

from sphinx.util import logging

import sixjars
from sixjars.flow.contracts import Component

LOGGER = logging.getLogger(__name__)
DOCS = Path(__file__).parent
ROOT = DOCS.parent

project = "sixjars"
author = "The sixjars developers"
project_copyright = "The sixjars developers, Apache-2.0"
release = version = installed("sixjars")

extensions = ["sphinx.ext.autodoc", "myst_nb"]
exclude_patterns = ["images", "**.ipynb_checkpoints"]
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(?!sixjars\b).*"),  # types of other packages: their inventories are elsewhere
    (r"py:(class|data|obj)", r"sixjars\.\w+\..*"),  # types that are not public
]
html_theme = "furo"
html_title = f"sixjars {release}"
html_copy_source = False
html_show_sphinx = False

myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # an excerpt of a file need not be a whole one

default_role = "literal"
autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "exclude-members": "model_config",
}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_output_stderr = "error"
nb_merge_streams = True
os.environ.setdefault("SIXJARS_CACHE", str(ROOT / "build" / "cache"))

CONTENTS = {
    "Start": {"quickstart": "", "project/readme": "README"},
    "Situations": {
        "situations/labels": "",
        "situations/pairs": "",
        "situations/photographs": "",
        "situations/conversations": "",
    },
    "Guides": {
        "data": "",
        "looking": "",
        "fine_tuning": "",
        "tuning": "",
        "comparing": "",
        "python": "",
        "sharing": "",
        "export": "",
        "serving": "",
        "scale": "",
        "notebooks/text": "Notebook: text",
        "notebooks/images": "Notebook: images",
        "notebooks/own_data": "Notebook: your own data",
        "bad_model": "",
        "troubleshooting": "",
        "faq": "",
    },
    "Reference": {
        "systems": "",
        "project/recipes": "Recipes",
        "settings": "",
        "results": "",
        "speed": "",
        "how_it_is_fast": "",
        "glossary": "",
        "api": "",
        "api/runs": "",
        "api/components": "",
        "api/contracts": "",
        "api/values": "",
        "api/search_and_metrics": "",
        "api/drawing": "",
    },
    "Project": {
        "architecture": "",
        "add_an_encoder": "",
        "add_a_field": "",
        "project/contributing": "",
        "project/changelog": "",
        "project/security": "",
        "project/conduct": "",
    },
}
"""The table of contents: by caption, pages and titles (empty: that of the page itself). Others follow at the end."""

INCLUDE = re.compile(r"^```\{include\} (\S+)\n```$", re.MULTILINE)
LINK = re.compile(r"(\]\(|^\[[^\]\n]+\]: +)(?!\w+:|#)([^)\s#]+)", re.MULTILINE)


def included() -> dict[Path, Path]:
    """Files outside this folder that a page of the site shows, each with that page."""
    pages = [*(DOCS / "project").glob("*.md")]
    found = [(page, INCLUDE.search(page.read_text(encoding="utf-8"))) for page in pages]
    return {(page.parent / match[1]).resolve(): page for page, match in found if match}


def relinked(text: str, *, origin: Path, page: Path) -> str:
    """A text that lies at `origin` and is shown as `page`, with its links as they must be there."""
    pages = included()

    def link(match: re.Match[str]) -> str:
        target = (origin.parent / match[2]).resolve()
        shown = (
            [target / name for name in ("README.md", "index.md", "__init__.py")]
            if target.is_dir()
            else [target]
        )
        found = next((path for path in shown if path.is_file()), None)
        return (
            match[0]
            if found is None
            else match[1] + os.path.relpath(pages.get(found, found), page.parent)
        )

    return LINK.sub(link, text)


def contents(pages: set[str]) -> str:
    """The tables of contents that the front page ends with; it does not show them, the sidebar does."""
    others = dict.fromkeys(sorted(pages.difference(*CONTENTS.values())), "")
    *_, last = CONTENTS
    trees = []
    for caption, named in CONTENTS.items():
        listed = named | others if caption == last else named
        lines = [
            f"{title} <{page}>" if title else page
            for page, title in listed.items()
            if page in pages
        ]
        trees.append(
            "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *lines, "```"])
        )
    return "\n\n" + "\n\n".join(trees) + "\n"


def prepared(app: Any, docname: str, source: list[str]) -> None:
    """What Sphinx reads in place of a page."""
    page = origin = Path(app.env.doc2path(docname))
    text = source[0]
    if match := INCLUDE.search(text):
        origin = (page.parent / match[1]).resolve()
        app.env.note_dependency(str(origin))
        text = origin.read_text(encoding="utf-8")
    text = relinked(text, origin=origin, page=page)
    source[0] = (
        text + contents(app.env.found_docs - {docname}) if docname == app.config.root_doc else text
    )


def without_limits(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str, returned: str
) -> Any:
    """A signature with `int` where it has `Annotated[int, limits]`; the page of settings tells the limits."""
    if not signature or "Annotated[" not in signature:
        return None
    parsed = Bare().visit(ast.parse(f"def named{signature}: ..."))
    return ast.unparse(parsed).removeprefix("def named").removesuffix(":\n    ..."), returned


class Bare(ast.NodeTransformer):
    """Takes `Annotated` away."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """The type alone."""
        self.generic_visit(node)
        annotated = ast.unparse(node.value).endswith("Annotated") and isinstance(
            node.slice, ast.Tuple
        )
        return node.slice.elts[0] if annotated else node


def left_out(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:  # noqa: FBT001
    """Of each component only what it computes; the page of contracts tells what all have."""
    if app.env.docname == "api/components" and (not callable(obj) or name in vars(Component)):
        return True
    return None


def checked(app: Any, env: Any) -> None:
    """Every public name has its place on an API page."""
    described = {name.removeprefix("sixjars.") for name in env.get_domain("py").objects}
    for name in sorted(set(sixjars.__all__) - described):
        LOGGER.warning("sixjars.%s is public, but no page of docs/api describes it", name)


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("source-read", prepared)
    app.connect("autodoc-process-signature", without_limits)
    app.connect("autodoc-skip-member", left_out)
    app.connect("env-check-consistency", checked)
