"""TextTokenizer: text to ids and back, in four kinds."""

import hashlib
import json
import subprocess
import sys
import unicodedata
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixjars.data.text.tokenizer import TextTokenizer
from sixjars.errors import DataError, RunError
from sixjars.flow.special import GO, PAD, SPECIAL, STOP, UNK
from sixjars.recipe.sections import TextSettings

KINDS: dict[str, dict[str, Any]] = {
    "words, punctuation": {"tokens": "words", "split": "punctuation"},
    "words, spaces": {"tokens": "words", "split": "spaces"},
    "characters": {"tokens": "characters"},
    "bpe": {"tokens": "bpe"},
    "unigram": {"tokens": "unigram"},
}
TEXTS = [
    "Hello, how are you?",
    'She said: "the (old) house isn\'t for sale"!',
    "मैं घर जा रहा हूँ।",
    "the house, the garden and the cat",
    "Größe ❤ 5.5€ <b>",
]


@pytest.fixture(params=[*KINDS.values()], ids=[*KINDS])
def kind(request: pytest.FixtureRequest) -> dict[str, Any]:
    chosen: dict[str, Any] = request.param
    return chosen


def trained(texts: list[str], **kind: Any) -> TextTokenizer:
    return TextTokenizer.trained(texts, TextSettings(**kind), "data.source")


def regular(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def test_special_tokens_come_first(kind: dict[str, Any]) -> None:
    tokens = trained(TEXTS, **kind)
    assert (PAD, GO, STOP, UNK) == (0, 1, 2, 3)
    assert list(SPECIAL) == ["<pad>", "<go>", "<stop>", "<unk>"]
    vocabulary = tokens.vocabulary()
    assert [vocabulary[name] for name in SPECIAL] == [0, 1, 2, 3]
    assert sorted(vocabulary.values()) == list(range(tokens.size))


def test_decoding_loses_nothing(kind: dict[str, Any]) -> None:
    tokens = trained(TEXTS, **kind)
    for text in TEXTS:
        ids = tokens.encode(text)
        assert UNK not in ids
        assert tokens.decode(ids) == text
        assert tokens.decode([GO, *ids, STOP, PAD, PAD]) == text


@settings(max_examples=80, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=15), min_size=1, max_size=5))
@pytest.mark.parametrize("name", KINDS)
def test_any_text_comes_back_regular(name: str, texts: list[str]) -> None:
    if not any(text.strip() for text in texts):
        return
    tokens = trained(texts, **KINDS[name])
    for text, ids in zip(texts, tokens.encode_many(texts), strict=True):
        want = regular(text)
        if name not in ("words, spaces", "characters"):
            want = want.replace("▁", "_")
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
    assert tokens.encode('"Hello') == [tokens.vocabulary()['▁"'], UNK]  # only ▁Hello was seen
    ids = tokens.encode("Hello, how are you?")
    assert tokens.tokens(ids) == ["Hello", ",", "how", "are", "you", "?"]
    by_id = {number: token for token, number in tokens.vocabulary().items()}
    assert [by_id[number] for number in ids] == ["▁Hello", ",", "▁how", "▁are", "▁you", "?"]
    assert tokens.decode([*ids[:1], UNK, *ids[1:]]) == "Hello <unk>, how are you?"


def test_words_at_spaces() -> None:
    tokens = trained(["Hello , you ?"], **KINDS["words, spaces"])
    assert set(tokens.vocabulary()) == {*SPECIAL, "Hello", ",", "you", "?"}
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


def test_pieces_name_every_id(kind: dict[str, Any]) -> None:
    tokens = trained(TEXTS, **kind)
    ids = [*range(tokens.size)]
    assert len(tokens.tokens(ids)) == tokens.size
    assert tokens.tokens([PAD, GO, STOP, UNK]) == list(SPECIAL)
    assert all(tokens.tokens(ids))


@pytest.mark.parametrize("text", ["<stop>", "a <stop> b", "x<stop>", "<pad><go><stop>", " <stop>", "<stop> <go>"])
def test_no_text_makes_a_special_token(kind: dict[str, Any], text: str) -> None:
    often = ["x<stop>", "x<pad>", "x<go>", "<stop>", "<go>", "<pad>", "a b", "<pad><go><stop>"] * 40
    for tokens in (trained(often, **kind), trained(["a b"], **kind), trained(often, min_count=3, **kind)):
        assert not {PAD, GO, STOP} & set(tokens.encode(text))
        again = TextTokenizer.from_json(tokens.to_json())
        assert not {PAD, GO, STOP} & set(again.encode(text))
    assert tokens.decode(tokens.encode(text)) == text.strip()


def test_min_count_and_size_of_words_agree_with_counting() -> None:
    texts = ["a a a a b b b c c d", "e e a"]
    counts = Counter(" ".join(texts).split())
    for least in (1, 2, 3):
        tokens = trained(texts, tokens="words", split="spaces", min_count=least)
        assert set(tokens.vocabulary()) - {*SPECIAL} == {word for word, count in counts.items() if count >= least}
    assert set(trained(texts, tokens="words", split="spaces", size=6).vocabulary()) == {*SPECIAL, "a", "b"}


def test_equal_counts_go_by_the_alphabet() -> None:
    tokens = trained(["d c b a"], tokens="words", split="spaces", size=6)
    assert tokens.vocabulary() == {**{name: number for number, name in enumerate(SPECIAL)}, "a": 4, "b": 5}


@pytest.mark.parametrize("size", [12, 20, 40, 1000])
def test_no_vocabulary_is_too_large(kind: dict[str, Any], size: int) -> None:
    tokens = trained(TEXTS * 3, size=size, **kind)
    assert tokens.size <= size
    if size < 40:
        assert tokens.size == size


def test_rare_tokens_are_unknown(kind: dict[str, Any]) -> None:
    texts = ["common words here"] * 5 + ["zq"]
    tokens = trained(texts, min_count=2, **kind)
    assert UNK in tokens.encode("zq")
    assert UNK not in tokens.encode("common words here")


@pytest.mark.parametrize("name", ["bpe", "unigram"])
def test_no_piece_is_rarer_than_min_count(name: str) -> None:
    texts = ["lower lowest newer newest wide wider"] * 2 + ["widest", "lowering"] + ["low"] * 9
    least = 4
    tokens = trained(texts, min_count=least, **KINDS[name])
    joined = [f"▁{word}" for text in texts for word in text.split()]
    for piece, number in tokens.vocabulary().items():
        if number > UNK:
            assert sum(word.count(piece) for word in joined) >= least
    assert UNK in tokens.encode("lowering")  # one g in all texts
    assert len(tokens.encode("low")) < len("▁low")  # pieces longer than a letter are left


@pytest.mark.parametrize(("texts", "more"), [([], {}), ([" "], {}), (["a b c"], {"min_count": 2})])
def test_a_vocabulary_of_nothing(kind: dict[str, Any], texts: list[str], more: dict[str, Any]) -> None:
    with pytest.raises(DataError) as caught:
        trained(texts, **kind, **more)
    least = more.get("min_count", 1)
    assert str(caught.value) == (
        f"data.source: no token is left for the vocabulary with min_count {least} and size 20000; "
        "lower min_count or raise size."
    )


def test_words_of(kind: dict[str, Any]) -> None:
    tokens = trained(TEXTS, **kind)
    for text in [*TEXTS, "  the  (old)\u3000house ", "never-seen words▁here ▁ now", ""]:
        ids, words = tokens.encode(text), tokens.words_of(text)
        assert len(words) == len(ids)
        if kind["tokens"] == "characters":
            assert words == list(range(len(ids)))
            continue
        for place, word in enumerate(text.split()):
            own = [number for number, of in zip(ids, words, strict=True) if of == place]
            assert own == tokens.encode(word)
        assert sorted(words) == words


def test_words_of_by_hand() -> None:
    tokens = trained(TEXTS, **KINDS["words, punctuation"])
    assert tokens.words_of("Hello, how are you?") == [0, 0, 1, 2, 3, 3]


def test_texts_in_parts(kind: dict[str, Any]) -> None:
    tokens = trained(TEXTS, **kind)
    texts = [["Hello, how", "", "are you?"], [], ["the cat"]]
    assert tokens.encode_parted(texts) == [
        [*tokens.encode("Hello, how"), STOP, STOP, *tokens.encode("are you?"), STOP],
        [],
        [*tokens.encode("the cat"), STOP],
    ]
    assert tokens.encode_parted([]) == []


def test_plain_words_for_vector_files() -> None:
    tokens = trained(['the ("the") cat'], **KINDS["words, punctuation"])
    vocabulary = tokens.vocabulary()
    assert tokens.plain("▁the") == tokens.plain("the") == "the"
    words = tokens.by_word()
    assert sorted(words["the"]) == sorted([vocabulary["▁the"], vocabulary["the"]])
    assert words["cat"] == [vocabulary["▁cat"]]
    assert not set(words) & set(SPECIAL)
    assert sorted(number for numbers in words.values() for number in numbers) == list(range(4, tokens.size))
    assert trained(["▁a"], **KINDS["words, spaces"]).plain("▁a") == "▁a"


def test_saved_and_loaded(kind: dict[str, Any]) -> None:
    tokens = trained(TEXTS, lowercase=True, **kind)
    again = TextTokenizer.from_json(tokens.to_json())
    assert again.to_json() == tokens.to_json()
    assert again.vocabulary() == tokens.vocabulary()
    for text in TEXTS:
        assert again.encode(text) == tokens.encode(text)
        assert again.decode(again.encode(text)) == tokens.decode(tokens.encode(text))


def damaged() -> list[str]:
    text = trained(TEXTS).to_json()
    parts = json.loads(text)
    vocabulary = parts["tokenizer"]["model"]["vocab"]
    shifted = {token: (number + 1) % len(vocabulary) for token, number in vocabulary.items()}
    moved = parts["tokenizer"] | {"model": parts["tokenizer"]["model"] | {"vocab": shifted}}
    return [
        "",
        text[: len(text) // 2],
        "[]",
        json.dumps(parts | {"format": 99}),
        json.dumps(parts | {"kind": "x"}),
        json.dumps(parts | {"tokenizer": {}}),
        json.dumps(parts | {"tokenizer": moved}),
    ]


@pytest.mark.parametrize("number", range(7))
def test_damaged_json(number: int) -> None:
    with pytest.raises(RunError, match=r"^The saved tokenizer is damaged or of another version: .+\.$"):
        TextTokenizer.from_json(damaged()[number])


def test_half_a_character(kind: dict[str, Any]) -> None:
    tokens = trained(TEXTS, **kind)
    with pytest.raises(DataError) as caught:
        tokens.encode_many(["fine", "a\ud800"])
    assert str(caught.value) == r"Text 'a\ud800' holds half a character (a lone surrogate); remove it."


PRINT_DIGEST = """
import hashlib, json, sys
from sixjars.data.text.tokenizer import TextTokenizer
from sixjars.recipe.sections import TextSettings
texts, kinds = json.load(sys.stdin)
for kind in kinds:
    tokens = TextTokenizer.trained(texts, TextSettings(**kind), "x")
    print(hashlib.sha256((tokens.to_json() + str(tokens.encode_many(texts))).encode()).hexdigest())
assert not {"torch", "pyarrow"} & set(sys.modules), "text needs neither"
"""


def test_training_is_the_same_in_every_process_and_loads_no_torch() -> None:
    texts = [f"{one}{two}{three} {three}{one}, {two}" for one in "abcde" for two in "xyz" for three in "mno"]
    kinds = [kind | {"size": size} for kind in KINDS.values() for size in (25, 60)]
    want = []
    for kind in kinds:
        tokens = trained(texts, **kind)
        content = tokens.to_json() + str(tokens.encode_many(texts))
        want.append(hashlib.sha256(content.encode()).hexdigest())
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PRINT_DIGEST],
            input=json.dumps([texts, kinds]),
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == want


def test_bpe_agrees_with_merging_by_hand() -> None:
    texts = ["xab " * 5 + "yab " * 4 + "zab " * 3 + "xa " * 2]
    words = Counter(f"▁{word}" for word in texts[0].split())
    pieces = {word: list(word) for word in words}
    merged = []
    for _ in range(6):
        pairs: Counter[tuple[str, str]] = Counter()
        for word, parts in pieces.items():
            for pair in pairwise(parts):
                pairs[pair] += words[word]
        best = max(pairs.values())
        choice = next(pair for pair in pairs if pairs[pair] == best)
        if sum(count == best for count in pairs.values()) > 1:
            break  # how equal counts are ordered is the trainer's own affair
        merged.append("".join(choice))
        for word, parts in pieces.items():
            new: list[str] = []
            for part in parts:
                if new and (new[-1], part) == choice:
                    new[-1] += part
                else:
                    new.append(part)
            pieces[word] = new
    assert merged == ["ab", "▁x", "▁xab"]
    letters = {letter for word in words for letter in word}
    size = len(SPECIAL) + len(letters) + len(merged)
    assert set(trained(texts, tokens="bpe", size=size).vocabulary()) == {*SPECIAL, *letters, *merged}
