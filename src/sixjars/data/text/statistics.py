"""What a column of text suggests for a recipe: the kind of tokens, the vocabulary size, the longest text."""

from collections.abc import Sequence
from typing import Any

LARGE_VOCABULARY = 15_000
"""With more distinct words than this, subwords serve better."""
MOST_TOKENS = 400
"""A longer text is cut there: a recurrent network reads one token after the other."""
MOST_TOKENS_IN_SEGMENTS = 1_000
"""The same for a text in segments, which are encoded beside each other."""
VOCABULARIES = {"characters": 1_000, "bpe": 8_000, "words": 20_000}
ASSUMED_LENGTH = 50
"""Words of a text where there is no data yet."""


def suggested_tokens(texts: Sequence[str], *, tokens: str, long: bool) -> dict[str, Any]:
    """Settings of a text field; all but the longest hundredth of the texts fit.

    >>> suggested_tokens(["a b", "c"], tokens="words", long=False)
    {'tokens': 'words', 'size': 20000, 'max_length': 50}
    """
    words = [text.split() for text in texts]
    distinct = len({word for text in words for word in text})
    lengths = sorted(map(len, words)) or [ASSUMED_LENGTH]
    longest = lengths[len(lengths) * 99 // 100]
    kind = "bpe" if tokens == "words" and distinct > LARGE_VOCABULARY else tokens
    most = MOST_TOKENS_IN_SEGMENTS if long else MOST_TOKENS
    limit = min(most, max(ASSUMED_LENGTH, longest * (12 if kind == "characters" else 2)))
    return {"tokens": kind, "size": VOCABULARIES[kind], "max_length": limit}
