"""Notes about inputs that could not be used, were cut, or have tokens unknown to a run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, final

from sixjars.cli.options import note
from sixjars.cli.streaming import Pace
from sixjars.runs.notes import MUCH, cut_in_words, unknown_in_words
from sixjars.runs.skipped import Skipped
from sixjars_runtime.special_tokens import SPECIAL, STOP

if TYPE_CHECKING:
    from sixjars.data.tables.table_file import TableFile
    from sixjars.runs.prediction import Prediction

MOST_NOTES = 3
"""Notes about single inputs that were cut; further ones are only counted."""


def note_unknown(share: float | None) -> None:
    """A note where so many tokens of the inputs are unknown that outputs may be poor."""
    if share and share > MUCH:
        note(f"note: {unknown_in_words(share)}")


def note_table(table: "TableFile | None") -> None:
    """Notes about the rows of a file with columns, after they were read."""
    for sentence in table.notes() if table is not None else []:
        note(f"note: {sentence}")


def note_unknown_target(tokens: Sequence[str]) -> None:
    """A note where tokens of an output that was given are unknown."""
    known = [token for token in tokens if token != SPECIAL[STOP]]
    unknown = [token for token in known if token.startswith("<unk")]
    if unknown:
        are = "is" if len(unknown) == 1 else "are"
        count = f"{len(unknown)} of the {len(known)} output tokens"
        note(f"note: {count} {are} unknown to the run: {', '.join(unknown)}.")


@final
class UnknownTokens:
    """Counts the tokens of inputs that are unknown, one prediction after the other."""

    def __init__(self) -> None:
        self.tokens = self.unknown = 0

    def add(self, prediction: "Prediction") -> None:
        """Count the tokens of one input."""
        self.tokens += prediction.tokens_read
        self.unknown += prediction.unknown_tokens

    def note(self, table: "TableFile | None" = None) -> None:
        """Note how many; where it is all, another column of the `table` may be meant."""
        note_unknown(self.unknown / self.tokens if self.tokens else None)
        if self.tokens and self.unknown == self.tokens and table is not None:
            sentence = table.other_columns()
            if sentence:
                note(f"note: {sentence}")


@final
class Notes:
    """Faults of inputs on stderr: the first ones that were cut, and the count of those skipped.

    Where inputs are `typed`, each fault is printed at once.
    """

    def __init__(
        self, pace: Pace, *, typed: bool = False, table: "TableFile | None" = None
    ) -> None:
        self.pace = pace
        self.typed = typed
        self.table = table
        self.done = self.cut = 0
        self.skipped = Skipped()
        self.unknown = UnknownTokens()

    def take(self, rows: "Sequence[Sequence[Prediction]]") -> None:
        """Count the faults of one portion."""
        self.pace.went_on(len(rows))
        self.skipped += Skipped.of(rows)
        for best, *_ in rows:
            self.done += 1
            self.unknown.add(best)
            if best.error is not None and self.typed:
                note(f"note: {best.error}")
            elif best.truncated:
                self._tell_of_cut()

    def _tell_of_cut(self) -> None:
        self.cut += 1
        if self.cut <= MOST_NOTES or self.typed:
            self.pace.clear()
            note(f"note: {cut_in_words(f'input {self.done}')}")
        elif self.cut == MOST_NOTES + 1:
            note("note: further notes about single inputs are left out.")

    def end(self, *, strict: bool) -> bool:
        """Print the numbers; return whether no input could be used, or if `strict`, not all.

        A text that a delimiter has cut cannot be used either.
        """
        self.pace.clear()
        if self.cut > MOST_NOTES:
            note(f"note: {self.cut:,} of {self.done:,} inputs were cut.")
        note_table(self.table)
        self.unknown.note(self.table)
        if self.skipped.count:
            note(f"note: {self.skipped.in_words(self.done, 'answers')}")
        was_cut = strict and self.table is not None and self.table.cut > 0
        return was_cut or is_failure(self.skipped.count, self.done, strict=strict)


def is_failure(skipped: int, inputs: int, *, strict: bool) -> bool:
    """Whether a command ends with exit code 1 because of inputs that were skipped."""
    return skipped > 0 and (strict or skipped == inputs)
