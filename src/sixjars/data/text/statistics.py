"""What a column of texts suggests: the kind of tokens, vocabulary size, longest text; lists of labels."""

import re
from collections.abc import Sequence
from random import Random
from typing import Any, Final

MANY_WORDS: Final = 5_000
"""With more distinct words than this, a text to output is better written in subwords."""
MOST_TOKENS: Final = 400
"""A longer text is cut there: a recurrent network reads one token after the other."""
MOST_TOKENS_IN_SEGMENTS: Final = 1_000
"""The same for a text in segments, which are encoded beside each other."""
MOST_TOKENS_IN_BAG: Final = 2_000
"""The same without a recurrence: cutting movie reviews of 700 words at 400 cost 5 points."""
VOCABULARIES: Final = {"characters": 1_000, "words": 20_000}
UNSPACED_CHARACTERS: Final = 8_000  # of scripts that put no space between words
SUBWORDS: Final = ((5_000, 2_000), (50_000, 4_000), (500_000, 8_000))
"""Vocabulary sizes for fewer texts than so many: on 20,000 pairs of Tatoeba 2,000 and 4,000 (26.9
and 25.2 BLEU) were better than 8,000 (22.4), of which most were too rare to learn."""
MOST_SUBWORDS: Final = 16_000
UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"
)
"""Letters of Thai, Lao, Burmese, Khmer, Japanese and Chinese, which put no space between words."""
LATIN: Final = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
WORD_OR_MARK: Final = re.compile(r"\w+|[^\w\s]")
ASSUMED_LENGTH: Final = 50  # words of a text where there is no data yet
LEAST_LISTS: Final = 0.1
"""The share of texts with several labels, from which on a column is taken for one of lists."""


def suggested_tokens(texts: Sequence[str], *, tokens: str, long: bool) -> dict[str, Any]:
    """Settings of a text field; all but the longest hundredth of the texts fit.

    >>> suggested_tokens(["a b", "c"], tokens="words", long=False)
    {'tokens': 'words', 'size': 20000, 'max_length': 50}
    >>> suggested_tokens(["我今天下午回家。", "你好，我的朋友！"], tokens="words", long=False)
    {'tokens': 'characters', 'size': 8000, 'max_length': 50}
    """
    most = MOST_TOKENS_IN_SEGMENTS if long else MOST_TOKENS
    if tokens == "words" and are_unspaced(texts):
        limit = longest_of(texts, 2, most, words=False)
        return {"tokens": "characters", "size": UNSPACED_CHARACTERS, "max_length": limit}
    if tokens != "words":
        limit = longest_of(texts, LETTERS_OF_A_WORD, most)
        return {"tokens": tokens, "size": VOCABULARIES[tokens], "max_length": limit}
    mixed = are_mixed(texts)
    limit = longest_of(texts, 1, most, words=False) if mixed else longest_of(texts, 2, most)
    if not mixed and len({word for text in texts for word in text.split()}) <= MANY_WORDS:
        return {"tokens": "words", "size": VOCABULARIES["words"], "max_length": limit}
    size = next((size for rows, size in SUBWORDS if len(texts) < rows), MOST_SUBWORDS)
    return {"tokens": "unigram", "size": size, "max_length": limit}


LETTERS_OF_A_WORD: Final = 12
"""Characters that are counted for a word and its space: few words are longer."""
LOOKED_AT: Final = 2_000  # texts that tell the script of a column
MIXED: Final = 0.1
"""If a larger share of texts has no spaces, whole words would leave those texts unknown."""


def longest_of(texts: Sequence[str], tokens_of_word: int, most: int, *, words: bool = True) -> int:
    """The most tokens of a text in a recipe: all but the longest hundredth fit, up to `most`."""
    lengths = sorted(_tokens(text, tokens_of_word, words=words) for text in texts)
    longest = lengths[len(lengths) * 99 // 100] if lengths else ASSUMED_LENGTH * tokens_of_word
    return min(most, max(ASSUMED_LENGTH, longest))


def _tokens(text: str, tokens_of_word: int, *, words: bool) -> int:
    """About how many tokens a text has; in HTML or a program, marks outnumber words."""
    if not words:
        return len(text) * tokens_of_word
    return max(len(text.split()) * tokens_of_word, len(WORD_OR_MARK.findall(text)))


def some_of(texts: Sequence[str]) -> Sequence[str]:
    """Texts that tell the script of all; drawn, for two languages may take turns."""
    return texts if len(texts) <= LOOKED_AT else Random(0).sample(texts, LOOKED_AT)


def are_latin(texts: Sequence[str]) -> bool:
    """Whether nearly all letters are of the Latin script, as pretrained word vectors expect.

    >>> are_latin(["Grüße aus Köln"]), are_latin(["मैं घर जा रहा हूँ"]), are_latin([])
    (True, False, False)
    """
    sample = some_of(texts)
    letters = sum(letter.isalpha() for text in sample for letter in text)
    latin = sum(len(LATIN.findall(text)) for text in sample)
    return letters > 0 and latin >= 0.9 * letters


def are_mixed(texts: Sequence[str]) -> bool:
    """Whether a column has texts with spaces between words, and others of a script without.

    >>> are_mixed(["I am going home", "我今天下午回家。"]), are_mixed(["I see 我 there"])
    (True, False)
    """
    sample = some_of(texts)
    unspaced = sum(are_unspaced([text]) for text in sample)
    return MIXED * len(sample) < unspaced < len(sample)


def are_unspaced(texts: Sequence[str]) -> bool:
    """Whether texts are mostly of letters of scripts without spaces, and have few spaces.

    >>> are_unspaced(["我今天下午回家。"]), are_unspaced(["我 今天 下午 回家 。"])
    (True, False)
    >>> are_unspaced(["I see 我 there"])
    False
    """
    letters = sum(len(UNSPACED.findall(text)) for text in texts)
    words = sum(len(text.split()) for text in texts)
    return letters > max(4 * words, sum(map(len, texts)) // 2)


def hold_lists(texts: Sequence[str], mark: str) -> bool:
    """Whether texts are lists of labels with `mark` between them, and not names with that mark.

    Then there are fewer labels than texts, and most that are in a list also stand alone. '1,3' may
    be a decimal number.

    >>> hold_lists(["billing", "refund", "billing, refund"], ",")
    True
    >>> hold_lists(["Paris, France", "Rome, Italy"], ",")
    False
    >>> hold_lists(["1", "3", "1,3"], ","), hold_lists(["1", "3", "7", "1,3,7"], ",")
    (False, True)
    """
    split = (map(str.strip, text.casefold().split(mark)) for text in texts)
    parts = [[part for part in labels if part] for labels in split]
    if all(len(labels) < 3 and all(map(str.isdigit, labels)) for labels in parts):
        return False
    alone = {labels[0] for labels in parts if len(labels) == 1}
    listed = [label for labels in parts if len(labels) > 1 for label in labels]
    if sum(len(labels) > 1 for labels in parts) < LEAST_LISTS * len(texts):
        return False
    if len(alone.union(listed)) >= len({tuple(sorted(labels)) for labels in parts}):
        return False
    return sum(label in alone for label in listed) * 2 > len(listed)
