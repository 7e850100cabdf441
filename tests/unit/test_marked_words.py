"""Runs of older versions, whose words carry the mark of a space: they compute as they did."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixjars.data.fields.text import TextField, TextSettings
from sixjars.data.text.tokenizer import TextTokenizer
from sixjars_runtime.exported.inputs import tokenizer_of
from sixjars_runtime.special_tokens import UNK
from sixjars_runtime.text.spelling import MARKED_WORDS, TokenizerSettings

SAVED = json.dumps(
    {
        "format": 2,
        "kind": "words",
        "split": "punctuation",
        "lowercase": False,
        "tokens": [*'▁x|)|▁invoice|"|,|-|.|so|the|x|▁"|▁(|▁the|▁to|▁went'.split("|")],
        "merges": [],
        "scores": [],
    },
    ensure_ascii=False,
)
"""What the version before format 3 wrote of two lines."""
OLD = TextTokenizer.from_json(SAVED)
COPIED = OLD.split('So "Ann" (of Paris) went ￭.')


@pytest.mark.parametrize("made", [OLD, tokenizer_of(SAVED)], ids=["toolkit", "runtime"])
def test_ids_and_texts_are_those_of_that_version(made: Any) -> None:
    """Printed by that version."""
    text = "the invoice (invoice) ▁x"
    assert made.encode(text) == [16, 6, 15, 3, 5, 3, 13]
    assert made.split(text) == ["▁the", "▁invoice", "▁(", "invoice", ")", "▁_", "x"]
    assert made.decode(made.encode(text)) == "the invoice ( <unk>) <unk>x"
    assert made.normalize(text) == "the invoice (invoice) _x"
    assert made.encode_many(['went to "invoice"'], open=True) == [[18, 17, 14, 275060567, 7]]
    assert made.encode("<p>invoice</p>, so") == [3, 3, 3, 3, 3, 3, 3, 3, 8, 3]
    assert COPIED == ["▁So", '▁"', "Ann", '"', "▁(", "of", "▁Paris", ")", "▁went", "▁￭", "."]
    assert made.decode([21, 4, 5], COPIED) == "Ann x)"
    assert made.decode([4, 21, 25, 21], COPIED) == "x Ann Paris Ann"
    assert made.tokens([4, 21, 25, 21], COPIED) == ["x", "Ann", "Paris", "Ann"]
    assert made.to_json() == SAVED


@given(st.lists(st.text("ab ▁.,(-'Ü😀", max_size=12), min_size=1, max_size=4))
def test_texts_come_back(texts: list[str]) -> None:
    settings = TokenizerSettings(split=MARKED_WORDS)
    made = TextTokenizer.trained([*texts, "a"], settings, "x")
    again = TextTokenizer.from_json(made.to_json())
    assert json.loads(made.to_json())["format"] == 2
    for text, ids in zip(texts, made.encode_many(texts), strict=True):
        assert UNK not in ids
        assert made.decode(ids) == " ".join(text.replace("▁", "_").split())
        assert again.encode(text) == ids
        assert "".join(made.split(text)).replace("▁", " ").removeprefix(" ") == made.normalize(text)


def test_more_words_are_spelled_as_the_old_ones() -> None:
    """A run that starts from an older one keeps its words, and learns new ones beside them."""
    field = TextField("source", TextSettings(size=24)).restored(SAVED)
    grown = field.learned(["the zebra (invoice), zebra"])
    assert json.loads(grown.to_json())["format"] == 2
    assert grown.tokenizer._names == [*OLD._names, "▁zebra", "invoice"]
    assert grown.tokenizer.encode("the zebra (invoice") == [16, 19, 15, 20]


def test_a_new_run_has_the_new_format() -> None:
    saved = json.loads(TextField("source", TextSettings()).learned(["(a)"]).to_json())
    expected = (3, "punctuation", ["(￭", "a", "￭)"])
    assert (saved["format"], saved["split"], saved["tokens"]) == expected
    for kind in (
        {"split": "spaces"},
        {"tokens": "characters"},
        {"tokens": "bpe"},
        {"tokens": "unigram"},
    ):
        text = TextField("source", TextSettings(**kind)).learned(["(a)"]).to_json()  # type: ignore[arg-type]
        assert json.loads(text)["format"] == 2  # unchanged, so older versions can read it
        assert TextTokenizer.from_json(text.replace('"format": 2', '"format": 3')).to_json() == text
