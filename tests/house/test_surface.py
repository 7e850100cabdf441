"""The public names: listed in one place, offered in another, explained in a third; all three agree."""

import ast
import doctest
import re
import tomllib
from pathlib import Path

import pytest

import sixjars
import sixjars.errors
from sixjars_runtime import errors

ROOT = Path(__file__).parents[2]
API = ROOT / "docs" / "api.md"
PAGES = ("api", "python", "data", "add_a_field", "add_an_encoder")
RUN = "".join(
    block
    for page in PAGES
    for block in re.findall(
        r"^```python\n(.*?)^```",
        (API.parent / f"{page}.md").read_text(encoding="utf-8"),
        re.M | re.S,
    )
)
"""The Python of the pages, all of which tests run."""
ENTRANCE = ast.parse((ROOT / "src" / "sixjars" / "__init__.py").read_text(encoding="utf-8"))


def test_public_names_are_the_documented_ones() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", API.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(sixjars.__all__)
    assert dir(sixjars) == sorted([*sixjars.__all__, "__version__"])


def test_names_for_type_checkers_are_those_for_people() -> None:
    [only_types] = [node for node in ENTRANCE.body if isinstance(node, ast.If)]
    offered = {}
    for node in only_types.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name, (
                f"{alias.name}: write `as {alias.name}`, so that it is exported"
            )
            offered[alias.name] = node.module
    assert offered == sixjars._HOMES


BASE = {
    "sixjars.errors": "sixjars_runtime.errors",
    "SpecialTokens": "sixjars_runtime.special_tokens",
}
"""What the base distribution defines: a module of it, or a name, and where that is."""


@pytest.mark.parametrize("name", sixjars.__all__)
def test_public_things_live_where_they_say_and_explain_themselves(name: str) -> None:
    thing = getattr(sixjars, name)
    home = sixjars._HOMES[name]
    assert thing.__module__ == BASE.get(name, BASE.get(home, home))
    assert ">>>" in (thing.__doc__ or "") or re.search(rf"\b{name}\b", RUN), (
        f"{name} has no example that runs"
    )


def test_examples_in_docstrings_are_run() -> None:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert {"src", "runtime/src"} <= set(options["testpaths"])
    assert "--doctest-modules" in options["addopts"].split()


def test_every_error_has_an_example() -> None:
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, Exception)
    ]
    assert len(kinds) >= 8
    assert [kind.__name__ for kind in kinds if ">>>" not in (kind.__doc__ or "")] == []
    assert {name: kind for name, kind in vars(sixjars.errors).items() if kind in kinds} == {
        kind.__name__: kind for kind in kinds
    }
    tree = re.findall(r"^[|`]-- (\w+)", errors.__doc__ or "", re.MULTILINE)
    assert sorted(tree) == sorted(
        kind.__name__ for kind in kinds if kind is not errors.SixJarsError
    )


def test_examples_of_the_page_run() -> None:
    ran = doctest.testfile(str(API), module_relative=False)
    assert ran.attempted > 10
    assert ran.failed == 0


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match=r"^module 'sixjars' has no attribute 'trian'$"):
        _ = sixjars.trian


def test_the_version_is_that_of_the_package() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert sixjars.__version__ == wanted
