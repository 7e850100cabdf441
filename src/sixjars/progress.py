"""What a person sees while a model trains: a bar with rate and time left in a terminal, plain lines elsewhere."""

from collections.abc import Mapping
from typing import Any, final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class Reporter:
    """Whoever wants to know how training goes; this one ignores it all.

    >>> Reporter().begin(step=0, total=9)
    """

    def preparing(self, what: str, *, done: int, total: int) -> None:
        """So much of the data is ready."""

    def begin(self, *, step: int, total: int) -> None:
        """Training starts at update `step` of at most `total`."""

    def stepped(self, *, step: int, loss: float, tokens_per_second: float) -> None:
        """An update was made."""

    def validated(self, record: Mapping[str, float], *, is_best: bool) -> None:
        """The model was scored."""

    def end(self) -> None:
        """Training is over, whatever ended it."""


@final
class ConsoleProgress(Reporter):
    r"""Progress in the terminal: a bar, and a line for each validation.

    >>> import io
    >>> progress = ConsoleProgress(Console(file=io.StringIO()))
    >>> progress.preparing("features", done=3, total=3)
    >>> progress.console.file.getvalue()
    'features: 3 done\n'
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bar: Progress | None = None
        self.task = TaskID(0)

    def _begin(self, what: str, total: int, *, more: str = "", **values: Any) -> Progress:
        """A bar with count, rate and time left, where there is a terminal."""
        counts = BarColumn(bar_width=None), MofNCompleteColumn(), TextColumn(more)
        times = TimeElapsedColumn(), TimeRemainingColumn()
        text, quiet = TextColumn("[bold]{task.description}"), not self.console.is_terminal
        bar = self.bar = Progress(text, *counts, *times, console=self.console, transient=True, disable=quiet)
        self.task = bar.add_task(what, total=total, **values)
        bar.start()
        return bar

    def preparing(self, what: str, *, done: int, total: int) -> None:
        """Show a bar of its own until all is ready; then one line that stays."""
        bar = self.bar or self._begin(what, total)
        bar.update(self.task, description=what, completed=done, total=total)
        if done >= total:
            self.end()
            self.console.print(f"{what}: {total:,} done", highlight=False)

    def begin(self, *, step: int, total: int) -> None:
        """Show the bar of training."""
        self.end()
        more = "loss [cyan]{task.fields[loss]:.3f}[/]  {task.fields[speed]:,.0f} tokens/s"
        self._begin("training", total, more=more, completed=step, loss=float("nan"), speed=0.0)

    def stepped(self, *, step: int, loss: float, tokens_per_second: float) -> None:
        """Move the bar."""
        if self.bar is not None:
            self.bar.update(self.task, completed=step, loss=loss, speed=tokens_per_second)

    def validated(self, record: Mapping[str, float], *, is_best: bool) -> None:
        """One line that stays."""
        scores = [f"{name} {value:.3g}" for name, value in record.items() if name not in {"step", "epoch", "rate"}]
        line = f"epoch {record['epoch']:>3.0f}  step {record['step']:>6.0f}  " + "  ".join(scores)
        self.console.print(line + ("  [green]best[/]" if is_best else ""), highlight=False, soft_wrap=True)

    def end(self) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None
