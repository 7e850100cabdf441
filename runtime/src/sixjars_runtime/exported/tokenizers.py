"""Tokenizers without a column of data: text by text, word by word."""

from collections.abc import Sequence
from typing import final

from sixjars_runtime.small_files import values_of_json
from sixjars_runtime.text.spelling import Spelling
from sixjars_runtime.text.tokenizer_files import GivenTokenizer


@final
class Tokenizer(Spelling):
    """Splits texts as the toolkit does, with Python's own notion of white space."""

    def encode_many(self, texts: Sequence[str], *, open: bool = False) -> list[list[int]]:
        """Return the ids of each text.

        With `open`, each word outside the vocabulary has a number of its own.
        """
        words = [text.split() or [""] for text in texts]
        skipped = int(self._kind == "characters")  # the first word of a text follows no space
        rows = [self._ids_of_words(some, open=open) for some in words]
        return [[number for ids in row for number in ids][skipped:] for row in rows]


AnyTokenizer = Tokenizer | GivenTokenizer


def tokenizer_of(learned: str) -> AnyTokenizer:
    """Make a tokenizer of a learned vocabulary, or of somebody's own, as a run has kept it."""
    values = values_of_json(learned)
    from_file = isinstance(values, dict) and values.get("kind") == "file"
    return GivenTokenizer.from_json(learned) if from_file else Tokenizer.from_json(learned)
