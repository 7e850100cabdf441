"""Tokens that a person reads as one word."""

from collections.abc import Sequence

import pytest

from sixjars.data.fields.text import TextField, TextSettings
from sixjars.data.text.tokenizer import joined

TEXTS = [
    "the unbelievable lowest, lower and newer things",
    "he believes in the newest unbelievable things",
] * 3


@pytest.mark.parametrize(
    ("tokens", "text", "words"),
    [
        ("words", "the lowest, newer", [0, 1, 2, 3]),
        ("characters", "he in", [0, 0, 1, 1, 1]),
        ("bpe", "the unbelievable things", ["the", "unbelievable", "things"]),
        ("unigram", "lowest, newest", ["lowest", ",", "newest"]),
    ],
)
def test_pieces_of_words_are_joined(tokens: str, text: str, words: list[int] | list[str]) -> None:
    field = TextField("source", TextSettings(tokens=tokens, size=60)).learned(TEXTS)  # type: ignore[arg-type]
    ids = field.tokenizer.encode(text)
    found = joined(field.decode, ids, ())
    assert len(found) == len(ids)
    if isinstance(words[0], int):
        assert found == words
        return
    groups = [
        [number for number, own in zip(ids, found, strict=True) if own == at]
        for at in range(len(words))
    ]
    assert [field.decode(group) for group in groups] == words


def test_scripts_without_spaces_stay_in_their_characters() -> None:
    def decode(ids: Sequence[int], words: Sequence[str]) -> str:
        return "".join("我爱ab"[number] for number in ids)

    assert joined(decode, [0, 1, 2, 3], ()) == [0, 1, 2, 2]


def test_nothing_is_joined_to_nothing() -> None:
    assert joined(lambda ids, words: "", [], ()) == []
    assert joined(lambda ids, words: "", [1, 2], ()) == [0, 1]  # special tokens have no text


def test_words_that_are_copied_stay_alone() -> None:
    def decode(ids: Sequence[int], words: Sequence[str]) -> str:
        return " ".join(words[number - 9] if number >= 9 else "known" for number in ids)

    assert joined(decode, [1, 9, 10], ["Rex", "Max"]) == [0, 1, 2]
