"""From the ids that a model outputs to what a person reads: texts, labels, orders; and predictions."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sixjars_runtime.exported.inputs import TextReader, tokenizer_of
from sixjars_runtime.exported.settings import LABELS
from sixjars_runtime.small_files import values_of_json
from sixjars_runtime.special_tokens import SPECIAL, UNK
from sixjars_runtime.text.segments import SEPARATOR


@final
@dataclass(frozen=True)
class ExportedPrediction:
    """One output of a model, and how it came about; or why there is none."""

    text: str
    score: float = 0.0
    """log P / length^α, with the coverage penalty if there is one: what a beam ranks by. Of a
    label, log P."""
    log_probability: float = 0.0
    source: tuple[str, ...] = ()
    """What stands at each position that is attended to; nothing for an image."""
    tokens: tuple[str, ...] = ()
    """The tokens of the output, `<stop>` included when it was reached; or the label."""
    weights: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    """Attention: a row for each token of the output, over the positions of the source; empty
    without attention."""
    finished: bool = True
    """Whether the model stopped by itself."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """What was given."""
    layout: tuple[Any, ...] = ("words",)
    """What the positions are; of the cells of an image also their rows and columns."""
    segments: tuple[int, ...] = ()
    """Of a text in segments, the sentence or turn that each position belongs to."""
    error: str | None = None
    """Why this input has no answer; then the text is empty."""

    @property
    def probability(self) -> float:
        """The probability of the whole output; not a number where there is none."""
        return math.exp(self.log_probability) if self.error is None else math.nan


Prediction = ExportedPrediction
"""Its public name, which the toolkit's own has too."""


class OutputWriter(ABC):
    """Writes the outputs of a model; made of a field's name, its settings and what it learned."""

    size: int | None = None
    """How many tokens or labels it knows; None where the input decides."""

    @abstractmethod
    def decode(self, ids: Sequence[int], words: Sequence[str] = ()) -> str:
        """Return the text of an output; ids behind the vocabulary are words of the source."""

    @abstractmethod
    def tokens(self, ids: Sequence[int], words: Sequence[str] = ()) -> list[str]:
        """Return the text of each token."""


@final
class TextWriter(OutputWriter):
    """Writes texts."""

    def __init__(self, name: str, field: Mapping[str, Any], learned: str) -> None:
        self.tokenizer = tokenizer_of(learned)
        self.size = self.tokenizer.size

    def decode(self, ids: Sequence[int], words: Sequence[str] = ()) -> str:
        """Return the text that the tokenizer joins."""
        return self.tokenizer.decode(ids, words)

    def tokens(self, ids: Sequence[int], words: Sequence[str] = ()) -> list[str]:
        """Return each token as the tokenizer shows it."""
        return self.tokenizer.tokens(ids, words)

    def replaced(
        self, ids: Sequence[int], weights: Any, source: TextReader, text: str
    ) -> tuple[list[int], list[str]]:
        """Replace `<unk>` by a copy of the position with the most attention.

        Returns the ids, copies numbered from the vocabulary's size on, and the words of the source
        that they copy.
        """
        spelled = source.words(text, source.tokenizer)
        words = [self.tokenizer.adopted(word, source.tokenizer) for word in spelled]
        best = [int(row_weights[: len(words)].argmax()) for row_weights in weights]
        copies = [self.tokenizer.size + place for place in best]
        return [copies[at] if number == UNK else number for at, number in enumerate(ids)], words


@final
class LabelWriter(OutputWriter):
    """Writes labels of a closed list."""

    def __init__(self, name: str, field: Mapping[str, Any], learned: str) -> None:
        values = values_of_json(learned)
        LABELS(values, "")
        self.names: list[str] = values["labels"]
        self.size = len(self.names)

    def decode(self, ids: Sequence[int], words: Sequence[str] = ()) -> str:
        """Return one label, or several with commas between them."""
        return SEPARATOR.join(sorted(self.tokens(ids)))

    def tokens(self, ids: Sequence[int], words: Sequence[str] = ()) -> list[str]:
        """Return one text for each id."""
        return [self.names[number] for number in ids]


@final
class OrderWriter(OutputWriter):
    """Writes positions of the input."""

    def __init__(self, name: str, field: Mapping[str, Any], learned: str) -> None:
        """Take what every writer is made of, and need none of it."""

    def decode(self, ids: Sequence[int], words: Sequence[str] = ()) -> str:
        """Return the positions, without special tokens."""
        return " ".join(self.tokens([number for number in ids if number >= len(SPECIAL)]))

    def tokens(self, ids: Sequence[int], words: Sequence[str] = ()) -> list[str]:
        """Return one text for each id."""
        count = len(SPECIAL)
        return [SPECIAL[number] if number < count else str(number - count) for number in ids]


WRITERS: Mapping[str, Callable[[str, Mapping[str, Any], str], OutputWriter]] = {
    "text": TextWriter,
    "label": LabelWriter,
    "order": OrderWriter,
}
"""By the kind of a field."""
