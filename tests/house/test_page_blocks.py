"""Every block of commands or Python on every page is run by a test, or says why it is not."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>\S[^\n]*) -->\n)?^```(?P<language>sh|python)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
RUN_BY = {
    "docs/quickstart.md": "test_pages",
    "docs/sharing.md": "test_pages",
    "docs/situations/labels.md": "test_pages",
    "docs/situations/pairs.md": "test_pages",
    "docs/situations/photographs.md": "test_pages",
    "docs/situations/conversations.md": "test_pages",
    "docs/fine_tuning.md": "test_fine_tuning_page",
    "docs/tuning.md": "test_tuning_page",
    "docs/systems.md": "test_doc_code",  # in little; `compare` and the line with a pipe aside
    "docs/python.md": "test_doc_code",
    "docs/add_an_encoder.md": "test_docs",
    "docs/add_a_field.md": "test_docs_field",
    "docs/api.md": "test_surface",
    "README.md": "test_readme_commands",  # in little; `make` aside, which installs and runs all tests
    "docs/data.md": "test_readme_commands",  # in little; its Python and its recipes are run by test_doc_code
}
"""The test that performs all blocks of a page that have no reason against it."""
PARSED = {
    "docs/results.md": "they need real data, and most of them a GPU",
    "docs/index.md": "`sixjars demo` trains for a minute",
}
"""Pages whose commands are only read by the parser, in test_docs, each with the reason."""
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES)
def test_blocks_are_run_or_say_why_not(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = [block for block in BLOCK.finditer(text) if not block["reason"]]
    assert not blocks or page in RUN_BY or page in PARSED, f"{page}: {blocks[0]['body']}"


def test_the_tests_and_pages_are_there() -> None:
    assert {*RUN_BY, *PARSED} <= set(PAGES)
    assert all((ROOT / "tests" / "house" / f"{name}.py").is_file() for name in RUN_BY.values())
    for page, name in RUN_BY.items():
        code = (ROOT / "tests" / "house" / f"{name}.py").read_text(encoding="utf-8")
        assert Path(page).stem in code, f"{name} does not name {page}"
