"""Tokenizers: text to ids and back, in four kinds."""

import sys
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixjars.data.fields.text import TextSettings
from sixjars.data.flat import rows_of, segment_ids
from sixjars.errors import DataError
from sixjars_runtime.special_tokens import GO, PAD, SPECIAL, STOP, UNK
from sixjars_runtime.text.spelling import TokenizerSettings

from .tokenizers import KINDS, TEXTS, trained, vocabulary


@pytest.fixture(params=[*KINDS.values()], ids=[*KINDS])
def kind(request: pytest.FixtureRequest) -> dict[str, Any]:
    chosen: dict[str, Any] = request.param
    return chosen


def test_settings_without_a_field_have_its_defaults() -> None:
    """The settings of a field are those of a recipe; without one a tokenizer has its own."""
    plain, field = TokenizerSettings(), TextSettings()
    assert vars(plain) == {name: getattr(field, name) for name in vars(plain)}


def regular(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def test_decoding_loses_nothing(kind: dict[str, Any]) -> None:
    tokens = trained(TEXTS, **kind)
    for text in TEXTS:
        ids = tokens.encode(text)
        assert UNK not in ids
        assert tokens.decode(ids) == text
        assert tokens.decode([GO, *ids, STOP, PAD, PAD]) == text


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=15), min_size=1, max_size=5)
)
@pytest.mark.parametrize("name", KINDS)
def test_any_text_comes_back_regular(name: str, texts: list[str]) -> None:
    if not any(text.strip() for text in texts):
        return
    tokens = trained(texts, **KINDS[name])
    for text, ids in zip(texts, tokens.encode_many(texts), strict=True):
        want = regular(text)
        if name in ("bpe", "unigram"):
            want = want.replace("▁", "_")
        want = want.replace("￭", "■") if name == "words, punctuation" else want
        assert tokens.decode(ids) == want
        assert ids == tokens.encode(text)
        assert not {PAD, GO, STOP, UNK} & set(ids)


def test_every_white_space_is_one_space(kind: dict[str, Any]) -> None:
    white = "".join(chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace())
    tokens = trained(["a b"], **kind)
    assert tokens.encode(f"{white}a{white}b{white}") == tokens.encode("a b")
    for letter in white:
        assert tokens.encode(f"a{letter}b") == tokens.encode("a b")


def test_nfc_and_lowercase(kind: dict[str, Any]) -> None:
    tokens = trained(["cafe\u0301 Über"], lowercase=True, **kind)
    assert tokens.decode(tokens.encode("CAFÉ U\u0308BER")) == "café über"
    assert UNK in trained(["cafe über"], **kind).encode("ÜBER")


def test_words_and_punctuation() -> None:
    tokens = trained(TEXTS, **KINDS["words, punctuation"])
    known = vocabulary(tokens)
    assert tokens.encode('"Hello how"') == [known['"￭'], known["Hello"], known["how"], known['￭"']]
    ids = tokens.encode("Hello, how are you?")
    assert tokens.tokens(ids) == ["Hello", ",", "how", "are", "you", "?"]
    by_id = {number: token for token, number in vocabulary(tokens).items()}
    assert [by_id[number] for number in ids] == ["Hello", "￭,", "how", "are", "you", "￭?"]
    assert tokens.decode([*ids[:1], UNK, *ids[1:]]) == "Hello <unk>, how are you?"


def test_words_at_spaces() -> None:
    tokens = trained(["Hello , you ?"], **KINDS["words, spaces"])
    assert set(vocabulary(tokens)) == {*SPECIAL, "Hello", ",", "you", "?"}
    assert tokens.decode([*tokens.encode("you , me"), STOP]) == "you , <unk>"
    assert tokens.tokens(tokens.encode("you ?")) == ["you", "?"]


def test_characters_are_code_points() -> None:
    tokens = trained(["मैं घर ab"], **KINDS["characters"])
    text = "मैं ab"
    ids = tokens.encode(text)
    assert tokens.tokens(ids) == [*"मैं", "␣", "a", "b"]
    assert len(ids) == len(text)
    assert tokens.encode("xyz") == [UNK] * 3
    assert tokens.decode([*tokens.encode("a"), UNK]) == "a<unk>"


def test_tokens_name_every_id(kind: dict[str, Any]) -> None:
    tokens = trained(TEXTS, **kind)
    ids = [*range(tokens.size)]
    assert len(tokens.tokens(ids)) == tokens.size
    assert tokens.tokens([PAD, GO, STOP, UNK]) == list(SPECIAL)
    assert all(tokens.tokens(ids))


def test_word_index(kind: dict[str, Any]) -> None:
    tokens = trained(TEXTS, **kind)
    texts = [*TEXTS, "  the  (old)\u3000house ", "never-seen words▁here ▁ now", "", " ", "the"]
    found = tokens.word_index(texts)
    assert len(found) == len(texts)
    for text, words in zip(texts, found, strict=True):
        ids = tokens.encode(text)
        assert len(words) == len(ids)
        if kind["tokens"] == "characters":
            assert words == list(range(len(ids)))
            continue
        for place, word in enumerate(text.split()):
            own = [number for number, of in zip(ids, words, strict=True) if of == place]
            assert own == tokens.encode(word)
        assert sorted(words) == words
    assert tokens.word_index([]) == []


def test_word_index_by_hand() -> None:
    tokens = trained(TEXTS, **KINDS["words, punctuation"])
    expected = [[0, 0, 1, 2, 3, 3], [], [0, 0, 0, 1]]
    assert tokens.word_index(["Hello, how are you?", "", "(old)  cat"]) == expected


def test_many_texts_are_tokenized_in_one_call(
    kind: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = trained(TEXTS, **kind)
    calls: list[int] = []
    batch = tokens._batch

    def counted(texts: list[str]) -> Any:
        calls.append(len(texts))
        return batch(texts)

    monkeypatch.setattr(tokens, "_batch", counted)
    tokens.word_index(TEXTS * 3)
    segment_ids(tokens.encode_flat, [TEXTS, TEXTS])
    tokens.encode_many(TEXTS)
    words = {word for text in TEXTS for word in text.split()}
    if kind["tokens"] == "words":
        # the others are looked up
        words = {word for word in words if not (word.isascii() and word.isalnum())}
    assert calls == [len(words)]  # each word once


def test_texts_in_segments(kind: dict[str, Any]) -> None:
    tokens = trained(TEXTS, **kind)
    texts = [["Hello, how", "", "are you?"], [], ["the cat"]]
    assert rows_of(segment_ids(tokens.encode_flat, texts)) == [
        [*tokens.encode("Hello, how"), STOP, STOP, *tokens.encode("are you?"), STOP],
        [],
        [*tokens.encode("the cat"), STOP],
    ]
    assert rows_of(segment_ids(tokens.encode_flat, [])) == []


def test_split_names_what_is_encoded(kind: dict[str, Any]) -> None:
    tokens = trained(TEXTS, **kind)
    known = vocabulary(tokens)
    for text in [*TEXTS, "the (older) house", ""]:
        ids, split = tokens.encode(text), tokens.split(text)
        assert len(split) == len(ids)
        assert all(known.get(one, UNK) == number for one, number in zip(split, ids, strict=True))


def test_half_a_character(kind: dict[str, Any]) -> None:
    tokens = trained(TEXTS, **kind)
    with pytest.raises(DataError) as caught:
        tokens.encode_many(["fine", "a\ud800"])
    told = r"Text 'a\ud800' holds half a character (a lone surrogate); remove it."
    assert str(caught.value) == told
    with pytest.raises(TypeError):
        tokens.encode_many([5])  # type: ignore[list-item]
