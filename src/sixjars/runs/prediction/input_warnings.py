"""Warnings about the inputs of predictions: cut, with unknown tokens, or left out for a reason."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from sixjars.runs.prediction.prediction import Prediction

MUCH = 0.05
"""The share of unknown tokens from which outputs may be poor."""
PLACES: Final = 2
"""Inputs that are named for each reason: the first can be looked up, and all are counted."""
REASONS: Final = 5
"""Reasons that are named, the most frequent ones: more would not be read in one line."""
QUOTED: Final = 3
"""Letters of an input from which a sentence quotes it; a shorter one may be part of any word."""
NUMBER: Final = re.compile(r"input \d+")
"""The beginning of a sentence about an input."""


@final
@dataclass(frozen=True)
class SkipReason:
    """One thing that is wrong with some inputs."""

    sentence: str
    """About the first of them."""
    count: int
    places: tuple[str, ...]
    """The first of them, by file and number."""

    def __add__(self, other: "SkipReason") -> "SkipReason":
        """Both counts; the sentence and the first places are of this one."""
        places = (self.places + other.places)[:PLACES]
        return SkipReason(self.sentence, self.count + other.count, places)

    def __str__(self) -> str:
        others = self.count - len(self.places)
        named = (", " if others else " and ").join(self.places)
        return f"{self.sentence} ({named}{f' and {others:,} more' if others else ''})"


@final
@dataclass(frozen=True)
class Skipped:
    """Inputs that have no answer, by reason.

    >>> from sixjars.runs.prediction.prediction import Prediction
    >>> errors = [f"input {at}: the text is empty." for at in (2, 5, 6)]
    >>> skipped = Skipped.of([[Prediction("", error=error)] for error in errors])
    >>> skipped.in_words(615, "answers").partition(": ")[0]
    '3 of 615 inputs were skipped, and their answers are empty'
    >>> skipped.in_words(615).partition(": ")[2]
    'the text is empty (input 2, input 5 and 1 more).'
    """

    reasons: Mapping[str, SkipReason] = field(default_factory=dict)

    @classmethod
    def of(cls, predictions: "Sequence[Sequence[Prediction]]", file: str = "") -> "Skipped":
        """The inputs without an answer, of the outputs for some inputs of a file."""
        best = [outputs[0] for outputs in predictions]
        return cls(_merged(_reason(output, file) for output in best if output.error is not None))

    @property
    def count(self) -> int:
        """The number of these inputs."""
        return sum(reason.count for reason in self.reasons.values())

    def __add__(self, other: "Skipped") -> "Skipped":
        """The inputs of both."""
        return Skipped(_merged([*self.reasons.items(), *other.reasons.items()]))

    def in_words(self, inputs: int, empty: str = "", *, what: str = "inputs") -> str:
        """How many inputs were skipped, and why; `empty` are the answers left empty, if any."""
        ordered = sorted(self.reasons.values(), key=lambda reason: -reason.count)
        reasons = "; ".join(map(str, ordered[:REASONS]))
        others = sum(reason.count for reason in ordered[REASONS:])
        reasons += f"; and {others:,} for other reasons" if others else ""
        which = f"all {inputs:,}" if self.count == inputs > 1 else f"{self.count:,} of {inputs:,}"
        if self.count == 1:
            what = what if inputs > 1 else what.removesuffix("s")
            blank = f", and its {empty.removesuffix('s')} is empty" if empty else ""
            return f"{which} {what} was skipped{blank}: {reasons}."
        blank = f", and their {empty} are empty" if empty else ""
        return f"{which} {what} were skipped{blank}: {reasons}."


def _merged(reasons: Iterable[tuple[str, SkipReason]]) -> dict[str, SkipReason]:
    """The reasons by key, those with the same key as one."""
    merged: dict[str, SkipReason] = {}
    for key, reason in reasons:
        merged[key] = merged[key] + reason if key in merged else reason
    return merged


def _reason(prediction: "Prediction", file: str) -> tuple[str, SkipReason]:
    """A key that errors of the same kind share, and the reason why an input has no answer."""
    place, _, sentence = str(prediction.error).partition(": ")
    if not NUMBER.fullmatch(place):
        place, sentence = "", str(prediction.error)
    key = sentence
    for text in sorted(prediction.inputs.values(), key=len, reverse=True):
        key = key.replace(text, "…") if len(text.strip()) >= QUOTED else key
    where = ", ".join(part for part in (file, place) if part) or "an input"
    key = re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "…", key)
    return key, SkipReason(sentence.removesuffix("."), 1, (where,))


@final
@dataclass(frozen=True)
class InputCounts:
    """The counts of some inputs: of all, of those skipped or cut, and of their tokens."""

    rows: int = 0
    skipped: Skipped = field(default_factory=Skipped)
    """Inputs that could not be used."""
    cut: int = 0
    """Inputs that are longer than the run reads."""
    tokens: int = 0
    unknown: int = 0
    """Tokens of the inputs that the run does not know."""

    def __add__(self, other: "InputCounts") -> "InputCounts":
        """The counts of both."""
        return InputCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @classmethod
    def of(cls, predictions: "Sequence[Sequence[Prediction]]", file: str = "") -> "InputCounts":
        """The counts of the inputs, in a file, that have these predictions."""
        best = [outputs[0] for outputs in predictions]
        cut = sum(prediction.truncated for prediction in best)
        tokens = sum(prediction.tokens_read for prediction in best)
        unknown = sum(prediction.unknown_tokens for prediction in best)
        return cls(len(best), Skipped.of(predictions, file), cut, tokens, unknown)

    @property
    def unknown_share(self) -> float:
        """The share of unknown tokens."""
        return self.unknown / max(self.tokens, 1)

    def are_failure(self, *, strict: bool) -> bool:
        """Whether no input could be used, or if `strict`, not all: a command then exits with 1."""
        return self.skipped.count > 0 and (strict or self.skipped.count == self.rows)


def cut_in_words(what: str = "the input") -> str:
    """A sentence that an input was cut."""
    return f"{what} was cut, because it is longer than the run reads (max_length)."


def unknown_in_words(share: float) -> str:
    """The share of unknown tokens as a sentence.

    >>> unknown_in_words(0.02)
    '2 % of the input tokens are unknown to the run (<unk>).'
    """
    poor = "; outputs may be poor" if share > MUCH else ""
    return f"{100 * share:.3g} % of the input tokens are unknown to the run (<unk>){poor}."


def notes_of(prediction: "Prediction") -> list[str]:
    """All sentences about the input of one prediction."""
    sentences = [cut_in_words()] if prediction.truncated else []
    if prediction.unknown_tokens:
        sentences.append(unknown_in_words(prediction.unknown_tokens / prediction.tokens_read))
    return sentences
