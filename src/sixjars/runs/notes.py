"""Sentences about data and inputs: some were cut, have unknown tokens, or many are long."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sixjars.runs.prediction import Prediction

MUCH = 0.05
"""The share of unknown tokens from which outputs may be poor."""
NEARLY_ALL = 0.99
"""The share of the training set that is shorter than the length to compare with."""
MUCH_LONGER = 0.1
"""The share of longer inputs in another set from which a note says so."""
LOOKED_AT = 10_000
"""Training rows of which it is found out whether they were cut: all of fewer than twice as many."""
LABELS_ONCE = (
    "{} in the training set only once; is that a mistake? "
    "data.label.min_count=2 leaves such labels out."
)
LABELS_MISSING = (
    "{} not in the validation set, so nothing is chosen by how well that is recognized."
)
SMALL_VALIDATION = (
    "the validation set has {}, too few to choose a checkpoint by; "
    "hold out more (data.valid), or say learning.folds: 5."
)
NO_TEST = (
    "there is no test set (data.test); the final scores are of the validation set, "
    "which also chooses the checkpoint."
)


def texts_of(name: str, inputs: Collection[str]) -> str:
    """The texts of a field in words: the inputs, where there is one input alone."""
    return "inputs" if [*inputs] == [name] else f"texts of {name}"


def cut_in_words(what: str = "the input") -> str:
    """A sentence that an input was cut."""
    return f"{what} was cut, because it is longer than the run reads (max_length)."


def truncated_in_words(cut: int, looked_at: int, rows: int, *, what: str, limit: str) -> str:
    """A sentence that training texts were cut; from a sample of `rows`, about their share.

    >>> limit = "data.source.max_length (20 tokens)"
    >>> truncated_in_words(3, 40, 40, what="inputs", limit=limit).partition(";")[0]
    '3 of 40 training inputs (7.5 %) were cut at data.source.max_length (20 tokens)'
    >>> truncated_in_words(499, 1000, 50_000, what="inputs", limit=limit)[:41]
    'about 50 % of 50,000 training inputs were'
    """
    share = 100 * cut / looked_at
    count = f"about {share:.0f} % of {rows:,} training {what}"
    if looked_at == rows:
        count = f"{cut:,} of {rows:,} training {what} ({share:.3g} %)"
    were = "was" if cut == 1 and looked_at == rows else "were"
    return f"{count} {were} cut at {limit}; raise it if what comes after that matters."


def unknown_in_words(share: float) -> str:
    """The share of unknown tokens as a sentence.

    >>> unknown_in_words(0.02)
    '2 % of the input tokens are unknown to the run (<unk>).'
    """
    poor = "; outputs may be poor" if share > MUCH else ""
    return f"{100 * share:.3g} % of the input tokens are unknown to the run (<unk>){poor}."


def longer_in_words(
    counts: Mapping[str, tuple[int, int]], tokens: int, what: str = "inputs"
) -> str:
    """A sentence that many texts of other sets are longer than nearly all of the training set.

    >>> longer_in_words({"test": (24, 37)}, 18).partition(";")[0]
    '24 of 37 test inputs (65 %) are longer than 99 % of the training inputs (18 tokens)'
    """
    parts = []
    for split, (count, total) in counts.items():
        parts.append(f"{count:,} of {total:,} {split} {what} ({100 * count / total:.0f} %)")
    return (
        f"{' and '.join(parts)} are longer than {100 * NEARLY_ALL:g} % of the training {what} "
        f"({tokens:,} tokens); outputs may be poor there, so train on longer ones too "
        "(in translation, such as neighbouring rows joined)."
    )


def notes_of(prediction: "Prediction") -> list[str]:
    """All sentences about the input of one prediction."""
    sentences = [cut_in_words()] if prediction.truncated else []
    if prediction.unknown_tokens:
        sentences.append(unknown_in_words(prediction.unknown_tokens / prediction.tokens_read))
    return sentences
