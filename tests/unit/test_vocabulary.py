"""Vocabularies: which tokens are learned from texts, and under which ids."""

import hashlib
import json
import subprocess
import sys
from collections import Counter
from itertools import pairwise, product
from typing import Any

import pytest

from sixjars.data.fields.text import TextSettings
from sixjars.data.text.tokenizer import TextTokenizer
from sixjars.errors import DataError
from sixjars_runtime.special_tokens import GO, PAD, SPECIAL, STOP, UNK

from .tokenizers import KINDS, TEXTS, trained, vocabulary


@pytest.fixture(params=[*KINDS.values()], ids=[*KINDS])
def kind(request: pytest.FixtureRequest) -> dict[str, Any]:
    chosen: dict[str, Any] = request.param
    return chosen


def test_special_tokens_come_first(kind: dict[str, Any]) -> None:
    tokens = trained(TEXTS, **kind)
    assert (PAD, GO, STOP, UNK) == (0, 1, 2, 3)
    assert list(SPECIAL) == ["<pad>", "<go>", "<stop>", "<unk>"]
    ids = vocabulary(tokens)
    assert [ids[name] for name in SPECIAL] == [0, 1, 2, 3]
    assert sorted(ids.values()) == list(range(tokens.size))


@pytest.mark.parametrize(
    "text", ["<stop>", "a <stop> b", "x<stop>", "<pad><go><stop>", " <stop>", "<stop> <go>"]
)
def test_no_text_makes_a_special_token(kind: dict[str, Any], text: str) -> None:
    often = ["x<stop>", "x<pad>", "x<go>", "<stop>", "<go>", "<pad>", "a b", "<pad><go><stop>"] * 40
    for tokens in (
        trained(often, **kind),
        trained(["a b"], **kind),
        trained(often, min_count=3, **kind),
    ):
        assert not {PAD, GO, STOP} & set(tokens.encode(text))
        again = TextTokenizer.from_json(tokens.to_json())
        assert not {PAD, GO, STOP} & set(again.encode(text))
    assert tokens.decode(tokens.encode(text)) == text.strip()


def test_min_count_and_size_of_words_agree_with_counting() -> None:
    texts = ["a a a a b b b c c d", "e e a"]
    counts = Counter(" ".join(texts).split())
    for least in (1, 2, 3):
        tokens = trained(texts, tokens="words", split="spaces", min_count=least)
        assert set(vocabulary(tokens)) - {*SPECIAL} == {
            word for word, count in counts.items() if count >= least
        }
    expected = {*SPECIAL, "a", "b"}
    assert set(vocabulary(trained(texts, tokens="words", split="spaces", size=6))) == expected


def test_equal_counts_go_by_the_alphabet() -> None:
    tokens = trained(["da cb bc ad"], tokens="words", split="spaces", size=6)
    expected = {**{name: number for number, name in enumerate(SPECIAL)}, "ad": 4, "bc": 5}
    assert vocabulary(tokens) == expected


def test_rare_letters_of_a_unigram_vocabulary_go_by_the_alphabet() -> None:
    """The library gives letters that longer tokens replace scores 0.0001 apart, at random."""
    texts = ["hello world", "held wold", "low lower"] * 30
    whole = json.loads(trained(texts, **KINDS["unigram"], size=60).to_json())
    scores = dict(zip(whole["tokens"], whole["scores"], strict=True))
    assert scores["h"] == scores["w"] == min(scores.values())
    assert [token for token in whole["tokens"] if len(token) == 1][-2:] == ["h", "w"]
    assert whole["scores"] == sorted(whole["scores"], reverse=True)
    assert all(score == round(score, 4) for score in whole["scores"])


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
def test_no_subword_is_rarer_than_min_count(name: str) -> None:
    texts = ["lower lowest newer newest wide wider"] * 2 + ["widest", "lowering"] + ["low"] * 9
    least = 4
    tokens = trained(texts, min_count=least, **KINDS[name])
    joined = [f"▁{word}" for text in texts for word in text.split()]
    for token, number in vocabulary(tokens).items():
        if number > UNK:
            assert sum(word.count(token) for word in joined) >= least
    assert UNK in tokens.encode("lowering")  # one g in all texts
    assert len(tokens.encode("low")) < len("▁low")  # subwords longer than a letter are left


@pytest.mark.parametrize(("texts", "more"), [([], {}), ([" "], {}), (["a b c"], {"min_count": 2})])
def test_a_vocabulary_of_nothing(
    kind: dict[str, Any], texts: list[str], more: dict[str, Any]
) -> None:
    with pytest.raises(DataError) as caught:
        trained(texts, **kind, **more)
    least = more.get("min_count", 1)
    assert str(caught.value) == (
        f"data.source: no token is left for the vocabulary with min_count {least} and size 20000; "
        "lower min_count or raise size."
    )


def test_plain_words_for_vector_files() -> None:
    tokens = trained(['the ("the") cat'], **KINDS["words, punctuation"])
    ids = vocabulary(tokens)
    assert {tokens.plain(token) for token in ("￭(￭", "(￭", "￭(", "(")} == {"("}
    words = tokens.by_word()
    assert words["the"] == [ids["the"]]  # before it is a space, then a quotation mark
    assert words["cat"] == [ids["cat"]]
    assert sorted(words['"']) == sorted([ids['￭"￭'], ids['￭"']])
    assert not set(words) & set(SPECIAL)
    assert sorted(number for numbers in words.values() for number in numbers) == list(
        range(4, tokens.size)
    )
    assert trained(["▁a"], **KINDS["words, spaces"]).plain("▁a") == "▁a"


PRINT_DIGEST = """
import hashlib, importlib, json, pkgutil, sys
import sixjars.data.text, sixjars_runtime
names = [one.name for one in pkgutil.iter_modules(sixjars.data.text.__path__, "sixjars.data.text.")]
names += [one.name for one in pkgutil.walk_packages(sixjars_runtime.__path__, "sixjars_runtime.")]
assert "sixjars_runtime.text.segments" in names and "sixjars.data.text.vectors" in names
for name in names:
    importlib.import_module(name)
assert not {"torch", "pyarrow"} & set(sys.modules), "no module of this package loads them"
from sixjars_runtime.text.spelling import TokenizerSettings
from sixjars.data.text.tokenizer import TextTokenizer
texts, kinds = json.load(sys.stdin)
for kind in kinds:
    tokens = TextTokenizer.trained(texts, TokenizerSettings(**kind), "x")
    print(hashlib.sha256((tokens.to_json() + str(tokens.encode_many(texts))).encode()).hexdigest())
assert "torch" not in sys.modules, "text does not need it"
"""


def test_training_is_the_same_in_every_process_and_loads_no_torch() -> None:
    letters = product("abcde", "xyz", "mno")
    texts = [f"{one}{two}{three} {three}{one}, {two}" for one, two, three in letters]
    texts.append("sixjumpedoverlazyquickfowlbght")  # letters that are rare
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
    split = {word: list(word) for word in words}
    merged = []
    for _ in range(6):
        pairs: Counter[tuple[str, str]] = Counter()
        for word, parts in split.items():
            for pair in pairwise(parts):
                pairs[pair] += words[word]
        best = max(pairs.values())
        choice = next(pair for pair in pairs if pairs[pair] == best)
        if sum(count == best for count in pairs.values()) > 1:
            break  # how equal counts are ordered is the trainer's own affair
        merged.append("".join(choice))
        for word, parts in split.items():
            new: list[str] = []
            for part in parts:
                if new and (new[-1], part) == choice:
                    new[-1] += part
                else:
                    new.append(part)
            split[word] = new
    assert merged == ["ab", "▁x", "▁xab"]
    letters = {letter for word in words for letter in word}
    size = len(SPECIAL) + len(letters) + len(merged)
    assert set(vocabulary(trained(texts, tokens="bpe", size=size))) == {*SPECIAL, *letters, *merged}


def test_extra_words_have_room_beyond_the_size() -> None:
    before, settings = trained(["a b c"], size=7), TextSettings(size=7)
    grown = before.grown(trained(["a d e f"]), settings, extra=2)
    assert grown.tokens(range(7, grown.size)) == ["d", "e"]
    assert before.grown(trained(["a d e f"]), settings).size == 7
