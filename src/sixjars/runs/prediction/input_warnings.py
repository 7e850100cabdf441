"""Sentences about the input of a prediction: it was cut, or has unknown tokens."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sixjars.runs.prediction.prediction import Prediction

MUCH = 0.05
"""The share of unknown tokens from which outputs may be poor."""


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
