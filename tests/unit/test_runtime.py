"""The runtime beside the toolkit: what it reads by itself becomes the same numbers."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as some

import sixjars
from sixjars.data.fields import FIELDS
from sixjars.data.fields.points import PointsField, PointsSettings
from sixjars.data.fields.text import TextField, TextSettings
from sixjars.data.packing import packed as packed_by_torch
from sixjars.data.text.tokenizer import TextTokenizer
from sixjars_runtime.exported.inputs import (
    READERS,
    ReadInput,
    TextReader,
    packed,
    padded,
    tokenizer_of,
)
from sixjars_runtime.exported.outputs import WRITERS
from sixjars_runtime.text.spelling import MARKED_WORDS, TokenizerSettings

TEXTS = [
    "The cat sat, on the mat!",
    "a_b ▁c  d\te",
    "Ünïcode “quotes” (and) hyphen-ated",
    "नमस्ते घर",
    "1.5 kg <stop>",
]
TOKENIZERS = [
    {"tokens": "words"},
    {"tokens": "words", "split": MARKED_WORDS},
    {"tokens": "words", "split": "spaces", "lowercase": True},
    {"tokens": "characters"},
    {"tokens": "characters", "lowercase": True, "min_count": 2},
    {"tokens": "bpe", "size": 60},
    {"tokens": "unigram", "size": 60, "lowercase": True},
]
HARD = ["\u0301", "\x1c", "\x85", "\u2003", "\u3000", "İ", "Σ", "की", "<unk>"]
LETTERS = some.one_of(
    some.sampled_from([*"abc ATe\n\t▁￭.,()'\"-/ß", *HARD]),
    some.characters(exclude_categories=["Cs"]),
)
ANY_TEXT = some.lists(LETTERS, max_size=30).map("".join)


@cache
def both(at: int) -> tuple[TextTokenizer, Any]:
    trained = TextTokenizer.trained(TEXTS * 2, TokenizerSettings(**TOKENIZERS[at]), "source")  # type: ignore[arg-type]
    return trained, tokenizer_of(trained.to_json())


@given(some.integers(0, len(TOKENIZERS) - 1), some.lists(ANY_TEXT, min_size=1, max_size=4))
@example(3, ["", " ", "a  b", "\u0301a"])
@settings(max_examples=150, deadline=None)
def test_texts_become_the_same_ids(at: int, texts: list[str]) -> None:
    ours, theirs = both(at)
    assert theirs.encode_many(texts) == ours.encode_many(texts)
    if ours.can_copy:
        assert theirs.encode_many(texts, open=True) == ours.encode_many(texts, open=True)
    ids = ours.encode(texts[0])
    assert theirs.decode(ids) == ours.decode(ids)
    assert theirs.split(texts[0]) == ours.split(texts[0])


@cache
def fields(segments: str, on_long: str) -> tuple[TextField, TextReader]:
    how = TextSettings(segments=segments, on_long=on_long, max_length=9)  # type: ignore[arg-type]
    field = TextField("source", how).learned(TEXTS)
    return field, TextReader("source", {"settings": how.model_dump(mode="json")}, field.to_json())


@given(
    some.sampled_from(["none", "sentences", "lines", "turns"]),
    some.sampled_from(["cut", "drop"]),
    ANY_TEXT,
)
@settings(max_examples=100, deadline=None)
def test_segments_and_limits_are_the_same(segments: str, on_long: str, text: str) -> None:
    field, reader = fields(segments, on_long)
    assert reader.ids(text, reader.tokenizer) == field.encoders()["source"].encode([text])[0]
    assert reader.words(text, reader.tokenizer) == field.encoding().words(text)


def test_a_text_that_is_too_long_is_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"^the source is longer than data\.source\.max_length\.$"):
        fields("none", "drop")[1].read("a " * 10)
    with pytest.raises(ValueError, match=r"^the source is empty\.$"):
        fields("none", "drop")[1].read(" ")


def test_points_are_the_same_numbers() -> None:
    reader = READERS["points"]("points", {"settings": {"dimensions": 2}}, "null")
    texts = ["0.1,0.7  0.3,-2e3", "1,2"]
    ours = PointsField("points", PointsSettings()).arrays(texts)
    for text, array in zip(texts, ours, strict=True):
        assert reader.read(text).values.tolist() == array.tolist()
    assert reader.text_of([[0.5, 1], [2, 3]]) == "0.5,1 2,3"
    few = "a point has 1 coordinate, but data.points"
    for text, sentence in (("x", "the points: 'x' of point"), ("1 2", few)):
        with pytest.raises(ValueError, match=sentence):
            reader.read(text)


def test_features_are_read_from_arrays(tmp_path: Path) -> None:
    reader = READERS["features"]("image", {}, json.dumps({"channels": 3, "positions": [None]}))
    np.save(tmp_path / "one.npy", np.ones((2, 3)))
    np.save(tmp_path / "bad.npy", np.ones((2, 4)))
    assert reader.read(str(tmp_path / "one")).values.tolist() == np.ones((2, 3)).tolist()
    with pytest.raises(ValueError, match=r"has the shape \(2, 4\), but \(None, 3\) is needed"):
        reader.read(reader.text_of(tmp_path / "bad.npy"))
    with pytest.raises(ValueError, match="does not exist"):
        reader.read("none")


def test_segments_are_packed_as_training_data_is() -> None:
    """In one rectangle and not in several, so they are compared by what an encoder makes of them."""
    lengths = [[3, 1, 2], [5], [1, 1]]
    rows = [ReadInput(np.arange(4, 4 + sum(row)), "", lengths=tuple(row)) for row in lengths]
    made = padded(rows)
    pack, *index = (torch.from_numpy(made[name]) for name in made if name.startswith("segments."))
    own = sixjars.Segments((pack,), index[0], index[1], index[2])
    flat = np.concatenate([*map(np.array, lengths)]), np.array([*map(len, lengths)])
    words = sixjars.TextEncoder(embedding=sixjars.WordEmbedding(vocabulary=12, size=3), size=4)
    encoder = sixjars.HierarchyEncoder(words=words, size=5)
    values, mask = torch.from_numpy(made["values"]), torch.from_numpy(made["mask"])
    one, other = (
        encoder(sixjars.Padded(values, mask, how)) for how in (own, packed_by_torch(*flat))
    )
    for name in ("memory", "summary"):
        assert torch.allclose(getattr(one, name), getattr(other, name), atol=1e-6)
    assert torch.equal(one.segments.segment_of, other.segments.segment_of)
    assert packed([[0]], np.zeros((1, 0), dtype=bool))["segments.packs.0"].tolist() == [[-1]]


def test_every_kind_of_field_is_read_or_written() -> None:
    assert {*READERS, *WRITERS} == set(FIELDS)
