"""Saved tokenizers come back the same; a stranger's file is refused or does no harm."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixjars.data.text.tokenizer import TextTokenizer
from sixjars.errors import RunError
from sixjars_runtime.special_tokens import SPECIAL
from sixjars_runtime.text.spelling import MARKED_WORDS

from .tokenizers import KINDS, TEXTS, trained, vocabulary


@pytest.fixture(params=[*KINDS.values()], ids=[*KINDS])
def kind(request: pytest.FixtureRequest) -> dict[str, Any]:
    chosen: dict[str, Any] = request.param
    return chosen


def test_saved_and_loaded(kind: dict[str, Any]) -> None:
    tokens = trained(TEXTS, lowercase=True, **kind)
    again = TextTokenizer.from_json(tokens.to_json())
    assert again.to_json() == tokens.to_json()
    assert vocabulary(again) == vocabulary(tokens)
    for text in TEXTS:
        assert again.encode(text) == tokens.encode(text)
        assert again.decode(again.encode(text)) == tokens.decode(tokens.encode(text))


PROBES = [*TEXTS, "", " ", "never seen ▁ 🎉 e\u0301", "the" * 200]
DAMAGED = "The saved tokenizer is damaged or of another version: "


def saved(name: str = "words, punctuation") -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(trained(TEXTS * 2, size=60, **KINDS[name]).to_json())
    return whole


def message(whole: object) -> str:
    with pytest.raises(RunError) as caught:
        TextTokenizer.from_json(whole if isinstance(whole, str) else json.dumps(whole))
    return str(caught.value)


def without(whole: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in whole.items() if name != key}


@pytest.mark.parametrize("name", KINDS)
def test_what_a_stranger_adds_is_not_used(name: str) -> None:
    """Each makes the library itself abort, panic, or give other ids when it loads the file."""
    whole = saved(name)
    padding = {"strategy": {"Fixed": 10**9}, "pad_id": 10**9, "pad_token": "x"}
    truncation = {"max_length": 2, "stride": 5, "strategy": "LongestFirst"}
    framed = [{"SpecialToken": {"id": "x", "type_id": 0}}]
    foreign = {
        "padding": {**padding, "direction": "Right"},
        "truncation": {**truncation, "direction": "Right"},
        "added_tokens": [{"id": 10**6, "content": "the", "special": True}],
        "post_processor": {"type": "TemplateProcessing", "single": framed},
        "normalizer": {"type": "Prepend", "prepend": "x"},
        "model": {"type": "BPE", "dropout": 1.0, "vocab": {"x": 10**9}},
        "size": 10**18,
    }
    plain, loaded = (TextTokenizer.from_json(json.dumps(one)) for one in (whole, whole | foreign))
    assert loaded.encode_many(PROBES) == plain.encode_many(PROBES)
    assert loaded.size == plain.size == len(SPECIAL) + len(whole["tokens"])
    assert loaded.to_json() == plain.to_json()


def test_ids_are_places_in_a_list() -> None:
    """So there are no gaps, and no id beyond the size."""
    whole = saved()
    loaded = TextTokenizer.from_json(json.dumps(whole))
    by_id = sorted(vocabulary(loaded), key=vocabulary(loaded).__getitem__)
    assert by_id == [*SPECIAL, *whole["tokens"]]
    sentence = message(whole | {"tokens": {"a": 7, "b": 10**9}})
    assert sentence == f"{DAMAGED}its tokens are not a list of texts."


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("words, punctuation", {"format": 1}, "format 1, kind 'words', lowercase False"),
        ("words, punctuation", {"format": 4}, "format 4, kind 'words', lowercase False"),
        ("words, punctuation", {"format": "3"}, "format '3', kind 'words', lowercase False"),
        ("words, punctuation", {"kind": "letters"}, "format 3, kind 'letters', lowercase False"),
        ("bpe", {"kind": "letters"}, "format 2, kind 'letters', lowercase False"),
        ("words, punctuation", {"kind": ["words"]}, ""),
        ("words, punctuation", {"lowercase": "no"}, "format 3, kind 'words', lowercase 'no'"),
        ("words, punctuation", {"split": "letters"}, "split 'letters'"),
        ("words, punctuation", {"split": MARKED_WORDS}, f"split '{MARKED_WORDS}'"),
        ("words, punctuation", {"tokens": [1, 2]}, "its tokens are not a list of texts"),
        ("words, punctuation", {"tokens": None}, "its tokens are not a list of texts"),
        ("words, punctuation", {"tokens": ["a", "b", "a"]}, "a token is there twice"),
        ("words, punctuation", {"tokens": ["a", " <stop>"]}, "a token is there twice"),
        ("bpe", {"merges": [["t", "never"]]}, "a merge is not of tokens, or does not give one"),
        ("bpe", {"merges": ["t h"]}, ""),
        ("bpe", {"merges": [[1, 2]]}, "a merge is not of tokens, or does not give one"),
        ("unigram", {"scores": [0.5]}, ""),
        ("unigram", {"tokens": ["a"], "scores": [float("nan")]}, "a score is not finite"),
        ("unigram", {"tokens": ["a"], "scores": [1e999]}, "a score is not finite"),
        ("unigram", {"tokens": ["a"], "scores": ["1"]}, ""),
    ],
)
def test_damaged_values(name: str, change: dict[str, Any], reason: str) -> None:
    found = message(saved(name) | change)
    assert found.startswith(DAMAGED)
    assert found == f"{DAMAGED}{reason}." or not reason  # those without are in Python's own words


def test_a_merge_longer_than_every_token_does_not_panic() -> None:
    """In the library this is a Rust panic, which no `except Exception` sees."""
    tokens = ["longer", "than all"]
    told = f"{DAMAGED}a merge is not of tokens, or does not give one."
    assert message(saved("bpe") | {"tokens": tokens, "merges": [tokens]}) == told


@pytest.mark.parametrize(
    "key", ["format", "kind", "split", "lowercase", "tokens", "merges", "scores"]
)
def test_every_key_is_needed(key: str) -> None:
    assert message(without(saved(), key)) == f"{DAMAGED}{key!r}."


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "5", '"x"', json.dumps(saved())[:-100]])
def test_what_is_no_tokenizer(text: str) -> None:
    assert message(text).startswith(DAMAGED)
    assert len(message(text).splitlines()) == 1


def test_half_a_character_in_a_token() -> None:
    told = message(saved() | {"tokens": ["a", "\ud800"]})
    assert told.startswith(DAMAGED)
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize(
    "deep", ["[" * 10_000, '{"tokens":' * 10_000, '{"tokens": ' + "[" * 10_000 + "]" * 10_000 + "}"]
)
def test_nested_ten_thousand_deep(deep: str) -> None:
    assert message(deep) == "The saved tokenizer is damaged: it is nested too deep."


SCALARS = [None, True, 0, -1, 10**9, 2**70, 1e308, float("nan")]
TEXT_VALUES = ["", "a", "▁", "￭", "￭.￭", " <stop>", "\ud800"]
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [*SCALARS, *TEXT_VALUES, [], {}, [["a", "b"]], ["a", "a"]]
)


@settings(max_examples=300, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(KINDS)))
def test_any_damage_is_a_sentence_or_harmless(data: st.DataObject, name: str) -> None:
    whole = saved(name)
    for _ in range(data.draw(st.integers(1, 3))):
        key = data.draw(st.sampled_from(sorted(whole)))
        if isinstance(whole[key], list) and whole[key] and data.draw(st.booleans()):
            place = data.draw(st.integers(0, len(whole[key]) - 1))
            whole[key][place] = deepcopy(data.draw(VALUES | st.sampled_from(whole[key])))
        else:
            whole[key] = deepcopy(data.draw(VALUES))
    try:
        loaded = TextTokenizer.from_json(json.dumps(whole))
    except RunError as error:
        found = str(error)
    else:
        found = ""
        for ids in loaded.encode_many(PROBES):
            assert all(0 <= number < loaded.size for number in ids)
            loaded.decode(ids)
            loaded.tokens(ids)
        assert TextTokenizer.from_json(loaded.to_json()).encode_many(PROBES) == loaded.encode_many(
            PROBES
        )
    assert len(found) < 300
    assert len(found.splitlines()) <= 1
