"""What a person sees of a training: a bar in a terminal, lines that stay anywhere."""

import io
from collections.abc import Iterator

import pytest
from rich.console import Console

from sixjars import progress as module
from sixjars.progress import (
    ConsoleProgress,
    Reporter,
    Summary,
    counted,
    listening,
    reached,
    tell,
)

RECORD = {"epoch": 1.0, "step": 5.0, "rate": 0.1, "train_loss": 2.0, "loss": 1.25, "bleu": 12.3456}
LINE = "epoch   1  step      5  train loss 2  validation: loss 1.25  bleu 12.3 (greedy search)"
BLOCK = Summary({"device": "cpu, 32-bit", "rows": "8 training, 2 validation"}, "greedy search")
SHOWN = ["device        cpu, 32-bit", "rows          8 training, 2 validation"]


class Clock:
    """A time that only passes when it is asked to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def told(reporter: Reporter) -> None:
    """All that a training reports."""
    reporter.reading("reading a.csv", rows=512)
    for done in (1, 2, 1200):
        reporter.preparing("features", done=done, total=1200)
    reporter.summary(BLOCK)
    reporter.begin(step=2, total=10)
    reporter.stepped(step=4, loss=1.2345, tokens_per_second=12345.6)
    reporter.validated(RECORD, is_best=False)
    reporter.validated(RECORD, is_best=True)
    reporter.stopped("stopped early.")
    reporter.end()
    reporter.end()  # whatever ended it


def test_plain_lines_where_there_is_no_terminal() -> None:
    file = io.StringIO()
    told(ConsoleProgress(Console(file=file)))
    expected = ["features: 1,200 done", *SHOWN, LINE, f"{LINE}  best", "stopped early."]
    assert file.getvalue().splitlines() == expected


def test_a_bar_in_a_terminal() -> None:
    file = io.StringIO()
    told(ConsoleProgress(Console(file=file, force_terminal=True, width=120, color_system=None)))
    shown = file.getvalue()
    assert " 4/10 loss 1.234  12,346 tokens/s " in shown
    assert "nan" not in shown
    assert " 0 tokens/s" not in shown
    assert "features: 1,200 done\n" in shown
    assert f"{LINE}  best\n" in shown
    # the cursor comes back, of all three bars
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 3
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


def test_a_line_every_half_minute_and_the_time_that_is_left() -> None:
    file, clock = io.StringIO(), Clock()
    progress = ConsoleProgress(Console(file=file), clock)
    for done in (1, 2, 3):
        progress.reading("reading a.csv", rows=1000 * done)
        progress.preparing("features", done=done, total=9)
        clock.now += 31.0
        progress.preparing("features", done=done, total=9)
    progress.reading("reading b.csv", rows=1)
    clock.now += 31.0
    progress.reading("reading b.csv", rows=70_000)
    progress.begin(step=0, total=1000)
    for step in range(1, 101):
        clock.now += 2.0
        progress.stepped(step=step, loss=1.5, tokens_per_second=900.0)
    lines = file.getvalue().splitlines()
    assert lines[:4] == [
        *(f"features: {done} of 9" for done in (1, 2, 3)),
        "reading b.csv: 70,000 rows so far",
    ]
    assert lines[4] == "time          about 33 min for 1,000 steps, validation not counted"
    assert lines[5] == "step 15 of 1,000  loss 1.500  900 tokens/s  about 33 min left"
    assert lines[6] == "step 30 of 1,000  loss 1.500  900 tokens/s  about 32 min left"
    assert len(lines) == 11


def test_a_short_training_has_no_estimate() -> None:
    file = io.StringIO()
    progress = ConsoleProgress(Console(file=file))
    progress.begin(step=0, total=12)
    for step in range(1, 13):
        progress.stepped(step=step, loss=1.0, tokens_per_second=1.0)
    assert file.getvalue() == ""


def test_rows_are_counted_for_whoever_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_OFTEN", -1.0)
    heard: list[tuple[str, int, int | None]] = []

    class Listener(Reporter):
        def reading(self, what: str, *, rows: int, total: int | None = None) -> None:
            heard.append((what, rows, total))

    def half_read() -> Iterator[str]:
        yield "a"
        reached(0.5)
        yield "b"

    assert list(counted(range(2000), "nobody")) == list(range(2000))
    with listening(Listener()):
        assert list(counted(range(1100), "lines", total=1100)) == list(range(1100))
        assert list(counted(half_read(), "portions", rows=lambda _: 4096)) == ["a", "b"]
    assert list(counted(range(2000), "nobody")) == list(range(2000))
    assert heard == [("lines", 512, 1100), ("lines", 1024, 1100), ("portions", 4096, 8192)]


def test_rows_that_are_read_have_a_rate_and_a_time_that_is_left() -> None:
    file, clock = io.StringIO(), Clock()
    progress = ConsoleProgress(Console(file=file), clock)
    for rows in (0, 310_000, 620_000):
        progress.reading("tokenizing source", rows=rows, total=1_000_000)
        clock.now += 31.0
    assert file.getvalue().splitlines() == [
        "tokenizing source: 310,000 rows of about 1,000,000  10,000 rows/s  about 69 s left",
        "tokenizing source: 620,000 rows of about 1,000,000  10,000 rows/s  about 38 s left",
    ]


def test_a_bar_of_rows_has_a_rate() -> None:
    file, clock = io.StringIO(), Clock()
    progress = ConsoleProgress(
        Console(file=file, force_terminal=True, width=120, color_system=None), clock
    )
    progress.reading("reading a.csv", rows=0, total=50)
    clock.now += 2.0
    progress.reading("reading a.csv", rows=20, total=40)
    progress.end()
    assert " 20/40 10 rows/s " in file.getvalue()


def test_a_note_is_told_once() -> None:
    notes: list[str] = []

    class Notes(Reporter):
        def note(self, sentence: str) -> None:
            notes.append(sentence)

    with listening(Notes()):
        for sentence in ("a", "b", "a"):
            tell(sentence)
    assert notes == ["a", "b"]
