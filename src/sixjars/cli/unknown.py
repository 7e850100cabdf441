"""How much of the inputs a run does not know: one note."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, final

from sixjars.cli.options import note
from sixjars.flow.special import SPECIAL, STOP
from sixjars.runs.notes import unknown_in_words

if TYPE_CHECKING:
    from sixjars.runs.prediction import Prediction


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
