"""What a column of text suggests for a recipe: the kind of tokens, the vocabulary size, the longest text."""

import re
from collections.abc import Sequence
from typing import Any, Final

LARGE_VOCABULARY = 15_000
"""With more distinct words than this, subwords serve better."""
MOST_TOKENS = 400
"""A longer text is cut there: a recurrent network reads one token after the other."""
MOST_TOKENS_IN_SEGMENTS = 1_000
"""The same for a text in segments, which are encoded beside each other."""
VOCABULARIES = {"characters": 1_000, "bpe": 8_000, "words": 20_000}
UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
"""Letters of Thai, Lao, Burmese, Khmer, Japanese and Chinese, which put no space between words."""
ASSUMED_LENGTH = 50
"""Words of a text where there is no data yet."""


def suggested_tokens(texts: Sequence[str], *, tokens: str, long: bool) -> dict[str, Any]:
    """Settings of a text field; all but the longest hundredth of the texts fit.

    >>> suggested_tokens(["a b", "c"], tokens="words", long=False)
    {'tokens': 'words', 'size': 20000, 'max_length': 50}
    >>> suggested_tokens(["我今天下午回家。", "你好，我的朋友！"], tokens="words", long=False)
    {'tokens': 'characters', 'size': 8000, 'max_length': 50}
    """
    unspaced = tokens == "words" and are_unspaced(texts)
    words: list[Sequence[str]] = [text if unspaced else text.split() for text in texts]
    distinct = len({word for text in words for word in text})
    lengths = sorted(map(len, words)) or [ASSUMED_LENGTH]
    longest = lengths[len(lengths) * 99 // 100]
    kind = "characters" if unspaced else "bpe" if tokens == "words" and distinct > LARGE_VOCABULARY else tokens
    most = MOST_TOKENS_IN_SEGMENTS if long else MOST_TOKENS
    limit = min(most, max(ASSUMED_LENGTH, longest * (12 if kind == "characters" and not unspaced else 2)))
    return {"tokens": kind, "size": VOCABULARIES["bpe" if unspaced else kind], "max_length": limit}


def are_unspaced(texts: Sequence[str]) -> bool:
    """Whether texts are mostly of letters that have no space between words, and nobody has put any there.

    >>> are_unspaced(["我今天下午回家。"]), are_unspaced(["我 今天 下午 回家 。"]), are_unspaced(["I see 我 there"])
    (True, False, False)
    """
    letters = sum(len(UNSPACED.findall(text)) for text in texts)
    words = sum(len(text.split()) for text in texts)
    return letters > max(4 * words, sum(map(len, texts)) // 2)
