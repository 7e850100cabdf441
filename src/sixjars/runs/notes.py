"""What there is to say about inputs, in sentences: one was cut, has unknown tokens, or many are long."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sixjars.runs.prediction import Prediction

MUCH = 0.05
"""The share of unknown tokens from which outputs may be poor."""
NEARLY_ALL = 0.99
"""The share of the training set whose longest text is compared with."""
MUCH_LONGER = 0.1
"""The share of inputs longer than that one from which it is told."""


def cut_in_words(what: str = "the input") -> str:
    """That an input was cut, as a sentence."""
    return f"{what} was cut, because it is longer than the run reads (max_length)."


def unknown_in_words(share: float) -> str:
    """The share of unknown tokens as a sentence.

    >>> unknown_in_words(0.02)
    '2 % of the input tokens are unknown to the run (<unk>).'
    """
    poor = "; outputs may be poor" if share > MUCH else ""
    return f"{100 * share:.3g} % of the input tokens are unknown to the run (<unk>){poor}."


def longer_in_words(counts: Mapping[str, tuple[int, int]], tokens: int, what: str = "inputs") -> str:
    """That many texts of the validation or test set are longer than nearly all of the training set, as a sentence.

    >>> longer_in_words({"test": (24, 37)}, 18).partition(";")[0]
    '24 of 37 test inputs (65 %) are longer than 99 % of the training inputs (18 tokens)'
    """
    parts = (f"{n:,} of {all:,} {split} {what} ({100 * n / all:.0f} %)" for split, (n, all) in counts.items())
    return (
        f"{' and '.join(parts)} are longer than {100 * NEARLY_ALL:g} % of the training {what} ({tokens:,} tokens); "
        "outputs may be poor there, so train on longer ones too (in translation, such as neighbouring rows joined)."
    )


def notes_of(prediction: "Prediction") -> list[str]:
    """All sentences about the input of one prediction."""
    found = [cut_in_words()] if prediction.truncated else []
    if prediction.unknown_tokens:
        found.append(unknown_in_words(prediction.unknown_tokens / prediction.tokens_read))
    return found
