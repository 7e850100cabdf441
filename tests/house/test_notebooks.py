"""The code cells of every notebook run as they are printed, in order, in one namespace and an empty folder."""

import re
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.md"))
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_notebooks_are_found() -> None:
    assert len(NOTEBOOKS) > 2
    assert all(len(CELL.findall(path.read_text(encoding="utf-8"))) > 4 for path in NOTEBOOKS)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_runs(
    notebook: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the sizes that are printed: one to two minutes each."""
    pytest.importorskip("IPython", reason="it comes with the extra `docs`")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "cache"))
    text = notebook.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": notebook.stem}
    for cell in CELL.finditer(text):
        # so that a traceback names the page's own line
        before = text[: cell.start("body")].count("\n")
        exec(compile("\n" * before + cell["body"], str(notebook), "exec"), namespace)  # noqa: S102
    assert capsys.readouterr().out
