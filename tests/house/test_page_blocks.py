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
    "docs/faq.md": "test_pages",
    "docs/export.md": "test_export_page",
    "docs/scale.md": "test_pages",
    "docs/looking.md": "test_pages",
    "docs/bad_model.md": "test_pages",
    "docs/comparing.md": "test_pages",
    "docs/web.md": "test_pages",
    "docs/situations/labels.md": "test_pages",
    "docs/situations/pairs.md": "test_pages",
    "docs/situations/photographs.md": "test_pages",
    "docs/situations/conversations.md": "test_pages",
    "docs/fine_tuning.md": "test_fine_tuning_page",
    "docs/serving.md": "test_serving_docs",
    "docs/tuning.md": "test_tuning_page",
    "docs/systems.md": "test_readme_commands",
    "docs/python.md": "test_doc_code",
    "docs/add_an_encoder.md": "test_docs",
    "docs/add_a_field.md": "test_docs_field",
    "docs/api.md": "test_surface",
    "docs/results.md": "test_results_page",
    "docs/index.md": "test_readme_commands",
    "README.md": "test_readme_commands",  # in little; `make test` aside, which runs all tests
    "docs/data.md": "test_readme_commands",  # in little; its Python and its recipes are run by test_doc_code
}
"""The test that performs all blocks of a page that have no reason against it."""
OTHERWISE = {
    "docs/quickstart.md": "test_inline_code",  # `pip install sixjars`; there the name is compared
    "docs/situations/photographs.md": "test_pages",
    "docs/export.md": "test_node",
    "docs/scale.md": "test_scale_page",
    "docs/fine_tuning.md": "test_benchmarks",
    "docs/serving.md": "test_serving_docs",
    "docs/speed.md": "test_speed",  # what `make bench` measures, on small cases
}
"""The test that performs, in little or in part, the blocks of a page that say why they are not run as they are."""
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
)


@pytest.mark.parametrize("page", PAGES)
def test_blocks_are_run_or_say_why_not(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = [block for block in BLOCK.finditer(text) if not block["reason"]]
    assert not blocks or page in RUN_BY, f"{page}: {blocks[0]['body']}"
    assert any(block["reason"] for block in BLOCK.finditer(text)) == (page in OTHERWISE)


def test_the_tests_and_pages_are_there() -> None:
    assert set(RUN_BY) <= set(PAGES)
    for page, name in [*RUN_BY.items(), *OTHERWISE.items()]:
        [test] = (ROOT / "tests").rglob(f"{name}.py")
        assert Path(page).stem in test.read_text(encoding="utf-8"), f"{name} does not name {page}"
