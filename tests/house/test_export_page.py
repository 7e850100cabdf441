"""The page about exporting, docs/export.md: every command and snippet runs as it is printed."""

from pathlib import Path

import pytest
from tests.house.test_pages import DOCS, Reader


@pytest.mark.slow
def test_the_export_page_can_be_followed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    warm_python: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Reader(DOCS / "export.md", capfd, warm_python).follow()
