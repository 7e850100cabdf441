"""Pieces of words: which tokens of a text a person reads as one word."""

from collections.abc import Callable, Sequence
from unicodedata import category, name

from sixjars_runtime.special_tokens import SPECIAL, UNK

UNSPACED = ("CJK ", "HIRAGANA ", "KATAKANA ", "THAI ", "LAO ", "KHMER ", "MYANMAR ")

Decode = Callable[[Sequence[int], Sequence[str]], str]
"""Makes a text of ids, and of the words of a source that some of them copy."""


def joined(decode: Decode, ids: Sequence[int], words: Sequence[str]) -> list[int]:
    """Return the word that each token belongs to, counted from 0.

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
        apart = (
            decode([ids[at - 1], number], words) == f"{before} {current}"
            if at and before and current
            else True
        )
        goes_on = (
            bool(words_of_tokens)
            and bool(before)
            and (not before.strip() or (not apart and _meet(before, current)))
        )
        words_of_tokens.append(words_of_tokens[-1] + (not goes_on) if words_of_tokens else 0)
    return words_of_tokens


def _meet(before: str, current: str) -> bool:
    """Whether a letter follows a letter; half a character is one too.

    Scripts without spaces have no words to join.
    """
    letters = before[-1], current[0]
    return all(
        category(letter)[0] in "LMN" or letter == "\ufffd" for letter in letters
    ) and not any(map(_unspaced, letters))


def _unspaced(letter: str) -> bool:
    """Whether a letter is of a script that writes no spaces between words."""
    return name(letter, "").startswith(UNSPACED)


def unknown_named(tokens: list[str], spelled: list[str]) -> list[str]:
    """Return tokens, the unknown ones with what stands in the text.

    >>> unknown_named(["the", "<unk>", "<unk>"], ["the", "jar", "<unk>"])
    ['the', '<unk:jar>', '<unk>']
    """
    if len(tokens) != len(spelled):  # a tokenizer of somebody else's
        return tokens
    pairs = zip(tokens, spelled, strict=True)
    return [f"<unk:{word}>" if token == SPECIAL[UNK] != word else token for token, word in pairs]


def leads(token: str, mark: str) -> bool:
    """Whether a word follows a token without a space.

    It does after an opening bracket or quote, and a dash or slash inside a word.

    `mark` begins a token that follows a space.
    """
    if token.startswith(mark):
        sign = token.removeprefix(mark)
        return sign in ('"', "'") or (len(sign) == 1 and category(sign) in ("Ps", "Pi"))
    return token == "/" or (len(token) == 1 and category(token) in ("Ps", "Pi", "Pd"))
