"""From the ids that a model outputs to what a person reads: texts, labels, orders."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, final

from sixjars_runtime.exported.inputs import Row, TextReader
from sixjars_runtime.exported.settings import LABELS
from sixjars_runtime.exported.tokenizers import tokenizer_of
from sixjars_runtime.small_files import values_of_json
from sixjars_runtime.special_tokens import SPECIAL, UNK
from sixjars_runtime.text.segments import SEPARATOR


class Writer(Protocol):
    """Writes the outputs of a model."""

    size: int | None
    """How many tokens or labels it knows; None where the input decides."""

    def decode(self, ids: Sequence[int], words: Sequence[str] = ()) -> str:
        """Return the text of an output; ids behind the vocabulary are words of the source."""
        ...

    def tokens(self, ids: Sequence[int], words: Sequence[str] = ()) -> list[str]:
        """Return the text of each token."""
        ...

    def replaced(
        self, ids: Sequence[int], weights: Any, source: Any, row: Row | None
    ) -> tuple[Sequence[int], Sequence[str]]:
        """Replace `<unk>` by a copy of the position with the most attention.

        Returns the ids, and the words of the source that they may copy.
        """
        ...


@final
class TextWriter:
    """Writes texts."""

    def __init__(self, name: str, field: Mapping[str, Any], learned: str) -> None:
        self.tokenizer = tokenizer_of(learned)
        self.size: int | None = self.tokenizer.size

    def decode(self, ids: Sequence[int], words: Sequence[str] = ()) -> str:
        """Return the text that the tokenizer joins."""
        return self.tokenizer.decode(ids, words)

    def tokens(self, ids: Sequence[int], words: Sequence[str] = ()) -> list[str]:
        """Return each token as the tokenizer shows it."""
        return self.tokenizer.tokens(ids, words)

    def replaced(
        self, ids: Sequence[int], weights: Any, source: Any, row: Row | None
    ) -> tuple[Sequence[int], Sequence[str]]:
        """Number copies from the vocabulary's size on; only a text has words to copy."""
        if not isinstance(source, TextReader) or weights is None or row is None:
            return ids, ()
        spelled = source.words(row.text, source.tokenizer)
        words = [self.tokenizer.adopted(word, source.tokenizer) for word in spelled]
        best = [int(row_weights[: len(words)].argmax()) for row_weights in weights]
        return [
            self.tokenizer.size + best[at] if number == UNK else number
            for at, number in enumerate(ids)
        ], words


class _Plain(ABC):
    """Writes outputs into which no word is copied."""

    @abstractmethod
    def decode(self, ids: Sequence[int], words: Sequence[str] = ()) -> str: ...

    def replaced(
        self, ids: Sequence[int], weights: Any, source: Any, row: Row | None
    ) -> tuple[Sequence[int], Sequence[str]]:
        return ids, ()


@final
class LabelWriter(_Plain):
    """Writes labels of a closed list."""

    def __init__(self, name: str, field: Mapping[str, Any], learned: str) -> None:
        values = values_of_json(learned)
        LABELS(values, "")
        self.names: list[str] = values["labels"]
        self.size: int | None = len(self.names)

    def decode(self, ids: Sequence[int], words: Sequence[str] = ()) -> str:
        """Return one label, or several with commas between them."""
        return SEPARATOR.join(sorted(self.names[number] for number in ids))

    def tokens(self, ids: Sequence[int], words: Sequence[str] = ()) -> list[str]:
        """Return one text for each id."""
        return [self.names[number] for number in ids]


@final
class OrderWriter(_Plain):
    """Writes positions of the input."""

    def __init__(self, name: str, field: Mapping[str, Any], learned: str) -> None:
        self.size: int | None = None

    def decode(self, ids: Sequence[int], words: Sequence[str] = ()) -> str:
        """Return the positions, without special tokens."""
        return " ".join(str(number - len(SPECIAL)) for number in ids if number >= len(SPECIAL))

    def tokens(self, ids: Sequence[int], words: Sequence[str] = ()) -> list[str]:
        """Return one text for each id."""
        return [
            SPECIAL[number] if number < len(SPECIAL) else str(number - len(SPECIAL))
            for number in ids
        ]


WRITERS: Mapping[str, Callable[[str, Mapping[str, Any], str], Writer]] = {
    "text": TextWriter,
    "label": LabelWriter,
    "order": OrderWriter,
}
"""By the kind of a field."""
