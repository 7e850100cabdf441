"""The page about troubles quotes messages that the program has: each is looked up in the source."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```message\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
QUOTED = [line for block in BLOCKS for line in block.splitlines()]
LEAST = 13
"""Letters that a text of the source must have to count as a message."""


def template(node: ast.expr) -> str | None:
    """The pattern of a text of the source, anything in place of what is filled in; nothing of other expressions."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.escape(node.value).replace(r"\{\}", ".*")
    if isinstance(node, ast.JoinedStr):
        return "".join(template(part) or ".*" for part in node.values)
    return None


@cache
def messages() -> list[re.Pattern[str]]:
    """Every text of the source that is long enough, as a pattern."""
    return [
        re.compile(one)
        for folder in ("src", "runtime/src")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for one in set(_texts(path))
    ]


def _texts(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        found = template(node) if isinstance(node, ast.expr) else None
        if found is not None and len(re.sub(r"\\.|\.\*|[^a-z]", "", found)) >= LEAST:
            yield found


def is_ours(message: str) -> bool:
    """Whether the whole message, or all of it behind the name of a place, is a text of the source."""
    beginnings = [0, *(match.end() for match in re.finditer(r": ", message))]
    return any(pattern.fullmatch(message[at:]) for at in beginnings for pattern in messages())


@pytest.mark.parametrize("message", QUOTED)
def test_a_quoted_message_is_in_the_source(message: str) -> None:
    assert is_ours(message)


def test_enough_is_quoted_and_other_texts_are_not_found() -> None:
    assert len(QUOTED) > 25
    assert all(re.match(r"(sixjars|note): ", message) for message in QUOTED)
    assert not is_ours("sixjars: something went wrong; please try again later.")
    assert not is_ours("sixjars: there is not enough memory for this; buy more.")
