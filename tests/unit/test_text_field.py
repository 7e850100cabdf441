"""From texts to ids and back: segments, limits, turns, words to copy, tokens."""

from types import SimpleNamespace
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixjars.data.dataset import Dataset, Fields
from sixjars.data.field import Equipment, Positions
from sixjars.data.fields.label import LabelField, LabelSettings
from sixjars.data.fields.text import TextField, TextSettings
from sixjars.data.packing import SegmentColumn
from sixjars.data.storage.cache import Examples
from sixjars.data.text.tokenizer import TextEncoding, TextTokenizer
from sixjars.flow.values import Batch
from sixjars_runtime.special_tokens import STOP, UNK
from sixjars_runtime.text.segments import latest

WORDS = TextSettings(split="spaces")


def tokens(*texts: str, **settings: Any) -> TextTokenizer:
    return TextTokenizer.trained(texts, WORDS.model_copy(update=settings), "a test")


def encoding(
    own: TextTokenizer, *, limit: int | None = None, segments: str = "none", copies: bool = False
) -> TextEncoding:
    return TextEncoding("source", own, limit, segments, copies)


def text(
    name: str, *texts: str, options: dict[str, Any] | None = None, **settings: Any
) -> TextField:
    """A field that learned these texts; with `options`, the output of a decoder."""
    made = TextField(name, TextSettings(**{"split": "spaces", **settings})).learned(texts)
    return made if options is None else made.equipped(Equipment(target_options=options))


def dataset(fields: Fields, **columns: list[str]) -> Dataset:
    return Dataset.in_memory(Examples.of(columns, where="a test"), fields)


def test_a_large_vocabulary_is_written_as_all_numbers_are() -> None:
    words = text("source", " ".join(f"w{n}" for n in range(2000)), size=1212)
    assert words.facts()["vocabulary"] == 1212
    assert words.describe() == "words, a vocabulary of 1,212"


def only_batch(data: Dataset) -> Batch:
    [rows] = data.batches().in_order(1)
    return data.batches().collate(rows)


def copies(data: Dataset) -> list[int]:
    """What can be copied of the only row."""
    copied = only_batch(data).inputs["source"].copy_ids
    assert copied is not None
    return list(copied[0].tolist())


# Encoding


def test_every_segment_ends_in_stop_and_the_limit_counts_the_ends() -> None:
    own = tokens("a b c d")
    a, b, c, d = (own.encode(word)[0] for word in "abcd")
    assert encoding(own, limit=4, segments="lines").encode(["a b\n\n c \nd"]) == [[a, b, STOP, c]]
    whole = encoding(own, segments="lines").encode(["a b\nc\nd", "", " \n "])
    assert whole == [[a, b, STOP, c, STOP, d, STOP], [], []]
    # without segments a line end is a space
    assert encoding(own, limit=3).encode(["a b\nc\nd"]) == [[a, b, c]]


def test_words_outside_the_vocabulary_have_numbers_where_they_can_be_copied() -> None:
    own = tokens("a b")
    number = own.size + crc32(b"zed") % 2**30
    assert encoding(own).encode(["a zed b zed"]) == [[*own.encode("a"), UNK, *own.encode("b"), UNK]]
    opened = encoding(own, copies=True).encode(["a zed b zed"])
    assert opened == [[*own.encode("a"), number, *own.encode("b"), number]]
    in_lines = encoding(own, segments="lines", copies=True)
    assert in_lines.encode(["zed\na"]) == [[number, STOP, *own.encode("a"), STOP]]


def test_whatever_changes_the_ids_changes_the_key() -> None:
    own, other = tokens("a b"), tokens("a b c")
    every = [
        encoding(own),
        encoding(other),
        encoding(own, limit=5),
        encoding(own, segments="lines"),
        encoding(own, segments="turns"),
        encoding(own, copies=True),
    ]
    assert len({one.key() for one in every}) == len(every)
    assert encoding(tokens("a b")).key() == every[0].key()


# The latest turns

TURNS = st.lists(st.lists(st.integers(4, 9), min_size=1, max_size=5), min_size=1, max_size=6)


@given(turns=TURNS, limit=st.integers(1, 40))
def test_the_latest_turns_are_whole_and_no_more_would_fit(
    turns: list[list[int]], limit: int
) -> None:
    whole = [[*turn, STOP] for turn in turns]
    found = latest([number for turn in whole for number in turn], limit, end=STOP)
    counts = [count for count in range(1, len(whole) + 1) if sum(map(len, whole[-count:])) <= limit]
    wanted = (
        [number for turn in whole[-max(counts) :] for number in turn]
        if counts
        else whole[-1][:limit]
    )
    assert found == wanted
    assert 1 <= len(found) <= limit


def test_a_conversation_loses_its_beginning_and_a_document_its_end() -> None:
    own = tokens("> < one two three")
    said = "one\ntwo\nthree"
    turns, lines = (
        encoding(own, limit=6, segments=kind).encode([said])[0] for kind in ("turns", "lines")
    )
    assert own.tokens(turns) == ["<", "two", "<stop>", ">", "three", "<stop>"]
    assert own.tokens(lines) == ["one", "<stop>", "two", "<stop>", "three", "<stop>"]
    short = encoding(own, limit=3, segments="lines").encode([said])[0]
    assert own.tokens(short) == ["one", "<stop>", "two"]
    assert latest([], 3, end=STOP) == []


# Copying


@pytest.fixture
def copying() -> Fields:
    """A vocabulary of few words, and a decoder that copies the others."""
    source = text("source", "he went home", segments="lines")
    return Fields({"source": source}, text("target", "he went away", options={"copies": True}))


def test_what_can_be_copied_is_split_by_the_words_of_the_target(copying: Fields) -> None:
    found = copying.encoders()
    assert set(found) == {"source", "target", "copies of source"}
    both = found["copies of source"]
    assert isinstance(both, TextEncoding)
    assert (both.column, both.segments, both.copies) == ("source", "lines", True)
    assert both.tokenizer.to_json() == copying.output.to_json()
    assert [getattr(found[name], "copies") for name in ("source", "target")] == [False, True]  # noqa: B009


def test_copied_names_come_back(copying: Fields) -> None:
    """Through the numbers of a batch: `size` and the first position of the word."""
    data = dataset(copying, source=["he met Zed\nZed went to Ur"], target=["Zed met Ann"])
    size = copying.output.facts()["vocabulary"]
    batch, ids = only_batch(data), copies(data)
    assert ids[1:4] == [size + 1, size + 2, size + 2]
    assert ids[6] == size + 6
    words = data.source_words(0)
    assert words == "he met Zed Zed went to Ur".split()
    assert copying.output.decode([*ids, STOP], words) == "he met Zed Zed went to Ur"
    assert copying.output.tokens([ids[6], STOP], words) == ["Ur", "<stop>"]
    assert batch.target.values.tolist() == [[size + 2, size + 1, UNK, STOP]]  # nobody can copy Ann
    assert data.positions(0, 7) == Positions(tuple(words), (0, 0, 0, 1, 1, 1, 1), tuple(range(7)))


@pytest.mark.parametrize(
    ("limit", "left"),
    [
        (3, "> he met"),
        (4, "> he met Ann"),
        (6, "> he met Ann Lu"),
        (8, "> he met Ann Lu"),
        (9, "< Ur > he met Ann Lu"),
        (40, "> he met Zed < Ur > he met Ann Lu"),
    ],
)
def test_what_is_copied_from_a_conversation_that_was_cut(limit: int, left: str) -> None:
    """The first turns are dropped before the batch is made, and where it is spelled."""
    source = text("source", "met he", segments="turns", max_length=limit, split="punctuation")
    target = text("target", "> < met he", options={"copies": True}, split="punctuation")
    data = dataset(
        Fields({"source": source}, target), source=["he met Zed\nUr\nhe met Ann Lu"], target=["he"]
    )
    assert " ".join(target.tokens(copies(data), data.source_words(0))) == left


def test_names_keep_their_spaces_between_signs() -> None:
    known = "He won , ( ) ."
    source = text("source", known, segments="sentences", split="punctuation")
    target = text("target", known, options={"copies": True}, split="punctuation")
    data = dataset(
        Fields({"source": source}, target), source=["He won (Zed), Ur. Zed won."], target=["He"]
    )
    words = data.source_words(0)
    zed, ur = (copies(data)[words.index(name)] for name in ("Zed", "Ur"))
    he, won = target.tokenizer.encode("He won")
    assert target.decode([zed, won, STOP], words) == "Zed won"
    assert target.decode([he, won, ur, STOP], words) == "He won Ur"
    # for a person without the tokenizer's marks
    assert "Zed" in data.positions(0, len(words)).tokens
    assert "Ur" in data.positions(0, len(words)).tokens


def test_without_copying_there_are_no_source_words() -> None:
    fields = Fields({"source": text("source", "a")}, text("target", "a", options={}))
    data = dataset(fields, source=["a zed"], target=["a"])
    assert data.source_words(0) == []
    assert fields.output.decode([UNK, STOP]) == "<unk>"


def test_only_words_of_a_text_with_the_same_tokens_are_copied() -> None:
    target = text("target", "a b")
    assert target.copy_misfits(text("source", "a b")) == []
    none = ["there is no source text to copy from."]
    assert (
        target.copy_misfits(None)
        == target.copy_misfits(LabelField("label", LabelSettings()))
        == none
    )
    # a field from outside
    assert (
        target.copy_misfits(SimpleNamespace(holds="tokens", name="source", settings=None)) == none
    )
    assert LabelField("label", LabelSettings()).copy_misfits(None) == [
        "copies words, but data.label is of kind label."
    ]


def test_unknown_words_become_copies_of_what_was_attended_to() -> None:
    source, target = text("source", "x"), text("target", "a b")
    size = target.facts()["vocabulary"]
    weights = [[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]]
    ids, words = target.replacing_unknown([4, UNK, UNK], weights, source, "zed ur")
    assert ids == [4, size, size + 1]
    assert target.decode([*ids[1:], STOP], words) == "zed ur"
    labels = LabelField("label", LabelSettings())
    assert target.replacing_unknown([4, UNK], weights, labels, "x") == ([4, UNK], [])
    assert labels.replacing_unknown([1], weights, source, "x") == ([1], [])


# What an encoder reads


def test_tokens_know_their_segments() -> None:
    source = text("source", "he went home", segments="lines")
    data = dataset(
        Fields({"source": source}, text("target", "a", options={})),
        source=["he went\n\nhome Zed", "he"],
    )
    assert data.positions(0, 4) == Positions(
        ("he", "went", "home", "<unk:Zed>"), (0, 0, 1, 1), (0, 1, 2, 3)
    )
    assert data.positions(1, 1) == Positions(("he",), (0,), (0,))
    assert isinstance(source.column(data.table), SegmentColumn)
    flat = dataset(
        Fields({"source": text("source", "he went home")}, data.fields.output),
        source=["he went\nhome"],
    )
    assert flat.positions(0, 3) == Positions(("he", "went", "home"), (), (0, 1, 2))


def test_a_text_that_was_cut_is_known_to_be() -> None:
    source = text("source", "a b c", max_length=3)
    data = dataset(
        Fields({"source": source}, text("target", "a", options={})),
        source=["a b c", "a b c a", "a"],
    )
    assert data.lengths("source") == [3, 3, 1]
    assert source.truncated(data.table, range(3)).tolist() == [False, True, False]


def test_normalized_texts_keep_their_segments() -> None:
    source = text("source", "> < yes no", segments="turns", lowercase=True)
    assert source.normalize(" Yes  no \n\n NO") == "< yes no\n> no"
    assert text("target", "yes no", lowercase=True).normalize("Yes\n NO") == "yes no"


def test_a_list_in_a_file_is_segments_or_several_answers() -> None:
    assert text("source", "a", segments="lines").lists == "value"
    assert text("source", "a").lists == "refused"
    assert text("target", "a", options={}).lists == "rows"
    in_lines = text("source", "a", segments="lines")
    assert in_lines.arguments('["a", "b"]') == [["a", "b"]]
    assert in_lines.arguments("[a] b") == ["[a] b"]
    assert text("source", "a").arguments('["a"]') == ['["a"]']
