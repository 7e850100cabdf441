"""What a person sees of a training: a bar in a terminal, lines that stay anywhere."""

import io

import pytest
from rich.console import Console

from sixjars.progress import ConsoleProgress, Reporter

RECORD = {"epoch": 1.0, "step": 5.0, "rate": 0.1, "train_loss": 2.0, "loss": 1.25, "bleu": 12.3456}
LINE = "epoch   1  step      5  train_loss 2  loss 1.25  bleu 12.3"


def told(reporter: Reporter) -> None:
    """All that a training reports."""
    for done in (1, 2, 1200):
        reporter.preparing("features", done=done, total=1200)
    reporter.begin(step=2, total=10)
    reporter.stepped(step=4, loss=1.2345, tokens_per_second=12345.6)
    reporter.validated(RECORD, is_best=False)
    reporter.validated(RECORD, is_best=True)
    reporter.end()
    reporter.end()  # whatever ended it


def test_plain_lines_where_there_is_no_terminal() -> None:
    file = io.StringIO()
    told(ConsoleProgress(Console(file=file)))
    assert file.getvalue().splitlines() == ["features: 1,200 done", LINE, f"{LINE}  best"]


def test_a_bar_in_a_terminal() -> None:
    file = io.StringIO()
    told(ConsoleProgress(Console(file=file, force_terminal=True, width=120, color_system=None)))
    shown = file.getvalue()
    assert " 4/10 loss 1.234  12,346 tokens/s " in shown
    assert "features: 1,200 done\n" in shown
    assert f"{LINE}  best\n" in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 2  # the cursor comes back, of both bars
    assert shown.endswith("\x1b[2K")  # and the bar is gone


def test_a_bar_that_was_never_finished_goes_too() -> None:
    file = io.StringIO()
    progress = ConsoleProgress(Console(file=file, force_terminal=True))
    progress.preparing("features", done=1, total=3)
    progress.end()
    assert file.getvalue().count("\x1b[?25l") == file.getvalue().count("\x1b[?25h") == 1
    assert "features: " not in file.getvalue()


def test_nobody_needs_to_listen(capfd: pytest.CaptureFixture[str]) -> None:
    told(Reporter())
    assert capfd.readouterr() == ("", "")
