"""Pieces of words: which tokens of a text a person reads as one word."""

from collections.abc import Callable, Sequence
from unicodedata import category, name

UNSPACED = ("CJK ", "HIRAGANA ", "KATAKANA ", "THAI ", "LAO ", "KHMER ", "MYANMAR ")
"""How the names of letters begin, of scripts that write no spaces between words."""

Decode = Callable[[Sequence[int], Sequence[str]], str]
"""Makes a text of ids, and of the words of a source that some of them copy."""


def joined(decode: Decode, ids: Sequence[int], words: Sequence[str]) -> list[int]:
    """The word that each token belongs to, counted from 0.

    A token goes on with the word before it where nothing stands between their letters: no space and
    no punctuation. So subwords and characters become words, and words stay what they are; a space
    belongs to the word behind it.

    >>> pieces = [" un", "do", " it", ","]
    >>> joined(lambda ids, words: "".join(pieces[at] for at in ids).strip(), [0, 1, 2, 3], [])
    [0, 0, 1, 2]
    """
    alone = {number: decode([number], words) for number in set(ids)}
    words_of_tokens: list[int] = []
    for at, number in enumerate(ids):
        before, current = alone[ids[at - 1]] if at else "", alone[number]
        apart = True
        if before and current:
            apart = decode([ids[at - 1], number], words) == f"{before} {current}"
        goes_on = before and (not before.strip() or (not apart and _meet(before, current)))
        latest = words_of_tokens[-1] if words_of_tokens else -1
        words_of_tokens.append(latest if goes_on else latest + 1)
    return words_of_tokens


def _meet(before: str, current: str) -> bool:
    """Whether a letter follows a letter; half a character is one too.

    Scripts without spaces have no words to join.
    """
    return all(
        (category(letter)[0] in "LMN" or letter == "\ufffd")
        and not name(letter, "").startswith(UNSPACED)
        for letter in (before[-1], current[0])
    )
