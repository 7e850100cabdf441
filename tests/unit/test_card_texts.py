"""What the card of a whole search says of texts: each kind of vocabulary has its steps, to ids and back."""

from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from sixjars.data.fields.text import TextField, TextSettings
from sixjars.data.text.tokenizer import TextTokenizer
from sixjars.serving.export.card import read_in_words, written_in_words
from sixjars_runtime.text.spelling import MARKED_WORDS, TokenizerSettings
from tests.unit.tokenizers import KINDS, TEXTS

READ = {
    "words, punctuation": "`home (now)` is `home`, `(￭`, `now` and `￭)`",
    "words, spaces": "2. each word is a token\n",
    "characters": "each code point is a token, the spaces too",
    "bpe": "a pair of `merges`",
    "unigram": "whose `scores` sum to the most",
}
WRITTEN = {
    "words, punctuation": "`<unk>` for 3\n2. join them with one space, and leave out every `￭ ￭`, ` ￭` and `￭ `",
    "words, spaces": "2. join them with one space",
    "characters": "2. join them",
    "bpe": "`<unk>` for 3\n2. join them, replace every `▁` by a space",
    "unigram": "`<unk>` for 3\n2. join them, replace every `▁` by a space",
}


def field(**settings: Any) -> TextField:
    return TextField("source", TextSettings(**settings)).learned(TEXTS)


def numbered(steps: list[str]) -> str:
    assert [step.split(". ")[0] for step in steps] == [str(at + 1) for at in range(len(steps))]
    return "\n".join(steps)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_vocabulary_has_its_steps(kind: str) -> None:
    made = field(**KINDS[kind])
    read = numbered(read_in_words(made))
    assert READ[kind] in read
    assert (
        "the id of a token is 4 + its place in `tokens` of `fields/source.json`, from 0; of others, 3"
        in read
    )
    assert read.endswith("a row has at least one id, and at most 200; the others are cut off")
    assert WRITTEN[kind] in numbered(written_in_words(made))


def test_words_of_an_older_run_have_the_steps_of_that_version() -> None:
    settings = TokenizerSettings(split=MARKED_WORDS)
    made = field().restored(TextTokenizer.trained(TEXTS, settings, "x").to_json())
    assert "`home, now` is `▁home`, `,` and `▁now`" in numbered(read_in_words(made))
    written = "`<unk>` for 3 (`▁<unk>`)\n2. join them, replace every `▁` by a space"
    assert written in numbered(written_in_words(made))


def test_steps_depend_on_the_settings() -> None:
    assert read_in_words(field(lowercase=True))[0] == "1. lowercase every code point"
    assert (
        read_in_words(field(on_long="error", max_length=7))[-1]
        == "6. a row has at least one id, and at most 7"
    )
    turns = read_in_words(field(segments="turns"))
    assert (
        turns[0]
        == "1. split the text into turns, as `sixjars_runtime` does; each goes through what follows"
    )
    assert turns[-1].endswith(
        "200, one for the end of each segment counted; the last turns are read, as many as fit"
    )
    assert len(read_in_words(field(), limited=False)) == len(read_in_words(field())) - 1


def test_a_tokenizer_of_a_file_is_named(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "house": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    made = field(tokens={"file": str(tmp_path / "tokenizer.json")})
    read, written = numbered(read_in_words(made)), numbered(written_in_words(made))
    for said in (read, written):
        assert (
            "with a `tokenizer.json` of Hugging Face, which is `content` of `fields/source.json` in base64"
            in said
        )
        assert "its tokens without the special ones, in its order, are 4, 5, and so on" in said
    assert "its unknown token is 3" in read
