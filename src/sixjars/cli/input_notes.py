"""Notes about inputs: which could not be used or were cut, and how much of them a run does not know."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, final

from sixjars.cli.options import note
from sixjars.cli.streaming import Pace
from sixjars.flow.special import SPECIAL, STOP
from sixjars.runs.notes import cut_in_words, unknown_in_words

if TYPE_CHECKING:
    from sixjars.runs.prediction import Prediction

MOST_NOTES = 20
"""Notes about single inputs; further ones are only counted."""


def note_unknown(share: float | None) -> None:
    """A note where tokens of the inputs are unknown."""
    if share:
        note(f"note: {unknown_in_words(share)}")


def note_unknown_target(tokens: Sequence[str]) -> None:
    """A note where tokens of an output that was given are unknown."""
    given = [token for token in tokens if token != SPECIAL[STOP]]
    unknown = [token for token in given if token.startswith("<unk")]
    if unknown:
        are = "is" if len(unknown) == 1 else "are"
        note(f"note: {len(unknown)} of the {len(given)} output tokens {are} unknown to the run: {', '.join(unknown)}.")


@final
class UnknownTokens:
    """Counts the tokens of inputs that are unknown, one prediction after the other."""

    def __init__(self) -> None:
        self.tokens = self.unknown = 0

    def add(self, prediction: "Prediction") -> None:
        """Count those of one input."""
        self.tokens += prediction.tokens_read
        self.unknown += prediction.unknown_tokens

    def note(self) -> None:
        """Say how many."""
        note_unknown(self.unknown / self.tokens if self.tokens else None)


@final
class Notes:
    """What is wrong with inputs, on stderr: the first ones each, all of them in numbers."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.done = self.failed = self.cut = self.told = 0
        self.unknown = UnknownTokens()

    def take(self, found: "Sequence[Sequence[Prediction]]") -> None:
        """One portion."""
        self.pace.went_on(len(found))
        for some in found:
            self.done += 1
            self.unknown.add(some[0])
            if some[0].error is not None:
                self.failed += 1
                self._tell(f"note: {some[0].error}")
            elif some[0].truncated:
                self.cut += 1
                self._tell(f"note: {cut_in_words(f'input {self.done}')}")

    def _tell(self, sentence: str) -> None:
        self.told += 1
        if self.told <= MOST_NOTES:
            self.pace.clear()
            note(sentence)
        elif self.told == MOST_NOTES + 1:
            note("note: further notes about single inputs are left out.")

    def end(self) -> bool:
        """The numbers; whether an input could not be used."""
        self.pace.clear()
        if self.told > MOST_NOTES and self.cut:
            note(f"note: {self.cut} of {self.done} inputs were cut.")
        self.unknown.note()
        if self.failed:
            note(f"note: {self.failed} of {self.done} inputs could not be used; their lines are empty.")
        return self.failed > 0
