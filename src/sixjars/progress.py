"""Progress: a bar with rate and time left in a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

T = TypeVar("T")
PAUSE: Final = 30.0  # seconds between two lines where there is no terminal
MEASURED: Final = 10
SETTLED: Final = 5.0
"""Steps and seconds after which the time of a training is estimated; the first steps are slow."""
_OFTEN: Final = 0.2  # seconds between two reports of reading
_ROWS: Final = 512  # rows between two looks at the clock


@final
@dataclass(frozen=True)
class Summary:
    """The facts that are shown before the first step.

    >>> Summary({"device": "cpu, 32-bit"}).lines()
    ['device        cpu, 32-bit']
    """

    facts: Mapping[str, str]
    """Facts by name, in the order in which they are shown."""
    search: str = ""
    """How outputs are chosen when an epoch is scored; nothing where a model does not search."""

    def lines(self) -> list[str]:
        """A line for each fact."""
        return [f"{name:12}  {fact}" for name, fact in self.facts.items()]


class Reporter:
    """Receives the progress of training; this base class ignores it.

    >>> Reporter().begin(step=0, total=9)
    """

    def reading(self, what: str, *, rows: int, total: int | None = None) -> None:
        """Called while rows are read, counted or tokenized; `total` is an estimate or None."""

    def preparing(self, what: str, *, done: int, total: int) -> None:
        """Called when a part of the data is ready."""

    def note(self, sentence: str) -> None:
        """Called with a sentence about the data."""

    def summary(self, found: Summary) -> None:
        """Called before training, with its facts."""

    def begin(self, *, step: int, total: int) -> None:
        """Called when training starts at step `step` of at most `total`."""

    def stepped(self, *, step: int, loss: float, tokens_per_second: float) -> None:
        """Called after each step."""

    def validated(self, record: Mapping[str, float], *, is_best: bool) -> None:
        """Called after each validation."""

    def stopped(self, sentence: str) -> None:
        """Called with the reason if training ends before its last step."""

    def tried(self, sentence: str) -> None:
        """Called after each trial of a hyperparameter search."""

    def end(self) -> None:
        """Called at the end of training, also after an error."""


@final
@dataclass
class _Listener:
    """A reporter, the notes that it has had, and the share of a file that was read."""

    reporter: Reporter
    told: set[str] = field(default_factory=set)
    share: float | None = None


_LISTENER: ContextVar[_Listener | None] = ContextVar("_LISTENER", default=None)


@contextmanager
def listening(reporter: Reporter) -> Iterator[None]:
    """Report the rows that are `counted` inside, and notes, to this reporter."""
    token = _LISTENER.set(_Listener(reporter))
    try:
        yield
    finally:
        _LISTENER.reset(token)


def tell(sentence: str) -> None:
    """Give a note to the listener, once."""
    if (listener := _LISTENER.get()) is not None and sentence not in listener.told:
        listener.told.add(sentence)
        listener.reporter.note(sentence)


def reached(share: float) -> None:
    """The share of a file that was read; with the rows so far it tells about how many follow."""
    if (listener := _LISTENER.get()) is not None:
        listener.share = share


def counted(
    items: Iterable[T],
    what: str,
    *,
    rows: Callable[[T], int] | None = None,
    total: int | None = None,
) -> Iterator[T]:
    """The same items; how many `rows` they have is reported under the name `what`.

    >>> list(counted("abc", "reading mails.csv"))
    ['a', 'b', 'c']
    """
    if (listener := _LISTENER.get()) is None or not what:
        yield from items
        return
    listener.share = None
    before = time.monotonic()
    done = reported = 0
    for item in items:
        if done >= reported + _ROWS and time.monotonic() - before > _OFTEN:
            all_rows = round(done / listener.share) if total is None and listener.share else total
            listener.reporter.reading(what, rows=done, total=all_rows)
            before = time.monotonic()
            reported = done
        yield item
        done += 1 if rows is None else rows(item)


def number_of(count: float, noun: str) -> str:
    """A number with its noun, in the singular or plural.

    >>> number_of(1, "bad row"), number_of(2000, "epoch")
    ('1 bad row', '2000 epochs')
    >>> number_of(0, "input"), number_of(2.5, "epoch")
    ('0 inputs', '2.5 epochs')
    """
    return f"{count:.12g} {noun}" if count == 1 else f"{count:.12g} {noun}s"


def duration(seconds: float) -> str:
    """A time in one or two units.

    >>> duration(42.4), duration(200), duration(5000), duration(200_000)
    ('42 s', '3 min', '1 h 23 min', '2 d 7 h')
    """
    if round(seconds) < 100:
        return f"{round(seconds)} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def in_time(seconds: float) -> str:
    """As `duration`, for times that may be shorter than a second.

    >>> in_time(0.2), in_time(12.3)
    ('less than a second', '12 s')
    """
    return duration(seconds) if seconds >= 1 else "less than a second"


def listed(words: Sequence[str]) -> str:
    """Join words with commas and 'and'.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


@final
class ConsoleProgress(Reporter):
    r"""Progress in the terminal: a bar, and a line per validation; else a line every 30 seconds.

    >>> import io, rich.console
    >>> progress = ConsoleProgress(rich.console.Console(file=io.StringIO()))
    >>> progress.preparing("features", done=3, total=3)
    >>> progress.console.file.getvalue()
    'features: 3 done\n'
    """

    def __init__(self, console: "Console", clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console
        self.clock = clock
        self.bar: Progress | None = None
        self.what = self.search = ""
        self.told_at = clock()
        self.first, self.total, self.began_at = 0, 0, clock()
        """The step that the clock was started at, and when; estimates are made from then on."""
        self.estimates = False
        self.steps_at: list[float] = []

    def _begin(self, what: str, total: int | None, **values: Any) -> "Progress":
        """Start a bar with count, rate and time left."""
        from rich import progress as bars

        self.end()
        bar = self.bar = bars.Progress(
            bars.TextColumn("[bold]{task.description}"),
            bars.BarColumn(bar_width=None),
            bars.MofNCompleteColumn(),
            bars.TextColumn("{task.fields[more]}"),
            *(bars.TimeElapsedColumn(), bars.TimeRemainingColumn()),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self.task = bar.add_task(what, total=total, more="", **values)
        self.what, self.told_at = what, self.clock()
        bar.start()
        return bar

    def _line(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _is_due(self) -> bool:
        """Whether a line should be written: no bar, and the last line is old."""
        if self.console.is_terminal or self.clock() - self.told_at < PAUSE:
            return False
        self.told_at = self.clock()
        return True

    def reading(self, what: str, *, rows: int, total: int | None = None) -> None:
        """Show how many rows there are so far, how fast they come, and how long the others take."""
        if (bar := self.bar) is None or self.what != what:
            bar = self._begin(what, total)
            self.first, self.began_at = rows, self.clock()
        speed = (rows - self.first) / max(self.clock() - self.began_at, 1e-9)
        rate = f"{speed:,.0f} rows/s" if speed else ""
        bar.update(self.task, completed=rows, total=total, more=rate)
        if self._is_due():
            text = "so far"
            if total and speed:
                left = duration((total - rows) / speed)
                text = f"of about {total:,}  {rate}  about {left} left"
            self._line(f"{what}: {rows:,} rows {text}")

    def preparing(self, what: str, *, done: int, total: int) -> None:
        """Show a bar until all is ready; then print one line."""
        bar = self.bar if self.bar is not None and self.what == what else self._begin(what, total)
        bar.update(self.task, completed=done, total=total)
        if done >= total:
            self.end()
            self._line(f"{what}: {total:,} done")
        elif self._is_due():
            self._line(f"{what}: {done:,} of {total:,}")

    def summary(self, found: Summary) -> None:
        """Print the facts."""
        self.end()
        self.search = found.search
        for line in found.lines():
            self._line(line)

    def note(self, sentence: str) -> None:
        """Print a note."""
        self.console.print(f"note: {sentence}", highlight=False, soft_wrap=True, markup=False)

    def begin(self, *, step: int, total: int) -> None:
        """Show the bar of training."""
        self._begin("training", total, completed=step)
        self.first, self.total, self.began_at = step, total, self.clock()
        self.estimates = total - step >= 3 * MEASURED
        self.steps_at = [self.clock()]

    def stepped(self, *, step: int, loss: float, tokens_per_second: float) -> None:
        """Move the bar or print a line now and then; once, print the estimated time."""
        speed = f"loss {loss:.3f}  {tokens_per_second:,.0f} tokens/s"
        if self.bar is not None:
            self.bar.update(self.task, completed=step, more=speed)
        took = self.clock() - self.began_at
        count = step - self.first
        if self.estimates:
            self.steps_at.append(self.clock())
        if self.estimates and count >= MEASURED and took >= SETTLED:
            self.estimates = False
            late = self.steps_at[len(self.steps_at) // 2 - 1 :]  # earlier steps may record graphs
            times = sorted(end - begin for begin, end in pairwise(late))
            steps = self.total - self.first
            whole = duration(times[len(times) // 2] * steps)
            self._line(f"{'time':12}  about {whole} for {steps:,} steps, validation not counted")
        elif self._is_due():
            left = duration(took / max(count, 1) * (self.total - step))
            self._line(f"step {step:,} of {self.total:,}  {speed}  about {left} left")

    def validated(self, record: Mapping[str, float], *, is_best: bool) -> None:
        """Print the training loss and the scores on the validation set."""
        named = {"step", "epoch", "rate", "train_loss", "loss"}
        line = f"epoch {record['epoch']:>3.0f}  step {record['step']:>6,.0f}"
        if "train_loss" in record:
            line += f"  train loss {record['train_loss']:.3g}"
        line += f"  validation: loss {record['loss']:.3g}"
        scores = [f"  {name} {value:.3g}" for name, value in record.items() if name not in named]
        line += "".join(scores)
        if scores and self.search:
            line += f" ({self.search})"
        self._line(line + ("  best" if is_best else ""))
        self.told_at = self.clock()

    def stopped(self, sentence: str) -> None:
        """Print the reason."""
        self._line(sentence)

    def tried(self, sentence: str) -> None:
        """Print the result of the trial."""
        self.end()
        self._line(sentence)

    def end(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None


def usual_reporter() -> Reporter:
    """The listener; else progress in a terminal or a notebook; none elsewhere."""
    from rich.console import Console

    console = Console(stderr=True, soft_wrap=True)
    usual = ConsoleProgress(console) if console.is_terminal or console.is_jupyter else Reporter()
    return usual if (listener := _LISTENER.get()) is None else listener.reporter
