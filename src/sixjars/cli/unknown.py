"""How much of an input a run does not know: a note where it is much."""

from typing import TYPE_CHECKING, final

from sixjars.cli.options import note

if TYPE_CHECKING:
    from sixjars.runs.prediction import Prediction

MUCH = 0.05
"""The share of unknown tokens from which outputs may be poor."""


def note_unknown(share: float | None) -> None:
    """A note where many tokens of the inputs are unknown."""
    if share is not None and share > MUCH:
        note(f"note: {100 * share:.1f} % of the input tokens are unknown to the run (<unk>); outputs may be poor.")


@final
class UnknownTokens:
    """Counts the tokens of inputs that are unknown, one prediction after the other."""

    def __init__(self) -> None:
        self.tokens = self.unknown = 0

    def add(self, prediction: "Prediction") -> None:
        """Count those of one input."""
        unknown, tokens = prediction.unknown
        self.unknown += unknown
        self.tokens += tokens

    def note(self) -> None:
        """Say so where it is much."""
        note_unknown(self.unknown / self.tokens if self.tokens else None)
