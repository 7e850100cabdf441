"""From the texts of fields to ids and back: cuts, words to copy, the latest turns, pieces and their parts."""

from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixjars.data.batches import IdColumn, SegmentColumn, laid_flat
from sixjars.data.copying import copyable
from sixjars.data.dataset import SAID, Fields, written_fields
from sixjars.data.fields.label import Labels
from sixjars.data.fields.points import Places
from sixjars.data.fields.text import Cut, Kept, latest
from sixjars.data.text.tokenizer import TextTokenizer
from sixjars.flow.special import STOP, UNK
from sixjars.recipe import Recipe
from sixjars.recipe.sections import TextSettings
from sixjars.runs.recipes import recipe_of

WORDS = TextSettings(split="spaces")


def tokens(*texts: str, **settings: Any) -> TextTokenizer:
    return TextTokenizer.trained(texts, WORDS.model_copy(update=settings), "a test")


def recipe(task: str, *, copying: bool = False, **fields: Any) -> Recipe:
    model: dict[str, Any] = {"decoder": {"copying": True}, "bridge": {"kind": "attention"}} if copying else {}
    return recipe_of({"task": task, "data": {"train": "a.jsonl", **fields}, "model": model}, "test")


def text(column: str, **settings: Any) -> dict[str, Any]:
    return {"column": column, "split": "spaces", **settings}


# Cuts


def test_every_part_ends_in_stop_and_the_limit_counts_the_ends() -> None:
    kept = tokens("a b c d")
    a, b, c, d = (kept.encode(word)[0] for word in "abcd")
    cut = Cut("source", kept, limit=4, parts="lines")
    assert cut.encode(["a b\n\n c \nd"]) == [[a, b, STOP, c]]
    assert cut.encode(["a b\nc\nd", "", " \n "], limited=False) == [[a, b, STOP, c, STOP, d, STOP], [], []]
    assert Cut("source", kept, limit=3).encode(["a b\nc\nd"]) == [[a, b, c]]  # without parts a line end is a space


def test_words_outside_the_vocabulary_have_numbers_where_they_can_be_copied() -> None:
    kept = tokens("a b")
    closed, opened = Cut("source", kept), Cut("source", kept, open=True)
    number = kept.size + crc32(b"zed") % 2**30
    assert closed.encode(["a zed b zed"]) == [[*kept.encode("a"), UNK, *kept.encode("b"), UNK]]
    assert opened.encode(["a zed b zed"]) == [[*kept.encode("a"), number, *kept.encode("b"), number]]
    segments_of = Cut("source", kept, parts="lines", open=True)
    assert segments_of.encode(["zed\na"]) == [[number, STOP, *kept.encode("a"), STOP]]


def test_labels_and_orders_are_cut_as_they_are() -> None:
    several = Labels(["grain", "wheat"], multi_label=True)
    assert Cut("label", several).encode(["wheat, corn, grain"]) == [[1, 0]]
    assert Cut("label", Labels(["no", "yes"]), limit=1).encode(["yes", "perhaps"]) == [[1], []]
    assert Cut("order", Places()).encode(["2 0 1"]) == [[6, 4, 5]]


def test_whatever_changes_the_ids_changes_the_key() -> None:
    one, other = tokens("a b"), tokens("a b c")
    cuts = [
        Cut("source", one),
        Cut("target", one),
        Cut("source", other),
        Cut("source", one, limit=5),
        Cut("source", one, parts="lines"),
        Cut("source", one, parts="turns"),
        Cut("source", one, open=True),
    ]
    assert len({cut.key() for cut in cuts}) == len(cuts)
    assert Cut("source", tokens("a b")).key() == cuts[0].key()


# The latest turns

TURNS = st.lists(st.lists(st.integers(4, 9), min_size=1, max_size=5), min_size=1, max_size=6)


@given(turns=TURNS, limit=st.integers(1, 40))
def test_the_latest_turns_are_whole_and_no_more_would_fit(turns: list[list[int]], limit: int) -> None:
    whole = [[*turn, STOP] for turn in turns]
    found = latest([number for turn in whole for number in turn], limit, end=STOP)
    counts = [count for count in range(1, len(whole) + 1) if sum(map(len, whole[-count:])) <= limit]
    wanted = [number for turn in whole[-max(counts) :] for number in turn] if counts else whole[-1][:limit]
    assert found == wanted
    assert 1 <= len(found) <= limit


def test_a_conversation_loses_its_beginning_and_a_document_its_end() -> None:
    kept = tokens("> < one two three")
    said = "one\ntwo\nthree"
    turns, lines = (Cut("source", kept, limit=6, parts=parts) for parts in ("turns", "lines"))
    assert kept.tokens(turns.encode([said])[0]) == ["<", "two", "<stop>", ">", "three", "<stop>"]
    assert kept.tokens(lines.encode([said])[0]) == ["one", "<stop>", "two", "<stop>", "three", "<stop>"]
    assert kept.tokens(Cut("source", kept, limit=3, parts="lines").encode([said])[0]) == ["one", "<stop>", "two"]
    assert latest([], 3, end=STOP) == []


# Fields of a recipe


@pytest.fixture
def copying() -> Fields:
    """A vocabulary of few words, and a decoder that copies the others."""
    values = recipe("summarization", copying=True, source=text("a", parts="lines"), target=text("b"))
    kept: dict[str, Kept] = {"source": tokens("he went home"), "target": tokens("he went away")}
    return Fields.of(values, kept)


def test_each_kind_of_field_is_cut_in_its_own_way() -> None:
    values = recipe("document_classification", source=text("a", parts="lines"), label={"multi_label": True})
    fields = Fields.of(values, {"source": tokens("a b"), "label": Labels(["x", "y"], multi_label=True)})
    assert {name: (cut.limit, cut.parts, cut.open) for name, cut in fields.cuts.items()} == {
        "source": (200, "lines", False),
        "label": (None, "none", False),
    }
    assert not fields.copies
    assert isinstance(fields.encoded("source", ["a"]), SegmentColumn)
    labels = fields.encoded("label", ["y, x", "z"])
    assert isinstance(labels, IdColumn)
    assert labels.padded(np.array([1])).values.shape == (1, 1)  # one place at least, also where no label is known
    single = Fields.of(
        recipe("document_classification", source=text("a", parts="lines"), label={}),
        {"source": tokens("a b"), "label": Labels(["x", "y"])},
    )
    assert single.cuts["label"].limit == 1


def test_orders_end_in_stop_and_points_are_not_written() -> None:
    values = recipe("pointing", points={}, order={})
    assert set(written_fields(values)) == {"order"}
    fields = Fields.of(values, {"order": Places()})
    assert fields.encoded("order", ["1 0"]).padded(np.array([0])).values.tolist() == [[5, 4, STOP]]
    assert fields.normal("points", " 1,2  3,4 ") == " 1,2  3,4 "
    assert fields.text_of("order", [5, 4, STOP], []) == "1 0"
    assert fields.tokens_of("order", [5, 4, STOP], []) == ["1", "0", "<stop>"]


def test_what_can_be_copied_is_cut_by_the_words_of_the_target(copying: Fields) -> None:
    assert copying.copies
    assert (copying.cuts[SAID].column, copying.cuts[SAID].parts, copying.cuts[SAID].open) == ("source", "lines", True)
    assert copying.cuts["target"].open
    assert not copying.cuts["source"].open


def test_copied_names_come_back(copying: Fields) -> None:
    """Through the numbers that a batch has: `size` and the first position of the word, lines counted on."""
    given_text = {"source": "he met Zed\nZed went to Ur"}
    size = copying.tokens["target"].size
    words = copying.encoded(SAID, [given_text["source"]]).padded(np.array([0]))
    said = copyable(words.values, words.mask, size)[0].tolist()
    assert said[1:4] == [size + 1, size + 2, size + 2]
    assert said[6] == size + 6
    beyond = copying.beyond(given_text, limited=False)
    assert beyond == "he met Zed Zed went to Ur".split()
    assert copying.text_of("target", [*said, STOP], beyond) == "he met Zed Zed went to Ur"
    assert copying.tokens_of("target", [said[6], STOP], beyond) == ["Ur", "<stop>"]


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
    """The first turns are dropped before the batch is made, and so they are where its numbers are spelled."""
    source = {"column": "a", "segments": "turns", "max_length": limit}
    values = recipe("conversation", copying=True, source=source, target={"column": "b"})
    kept = tokens("> < met he", split="punctuation")
    fields = Fields.of(values, {"source": kept, "target": kept})
    told = "he met Zed\nUr\nhe met Ann Lu"
    words = fields.column(SAID, laid_flat(fields.cuts[SAID].encode([told]))).padded(np.array([0]))
    said = copyable(words.values, words.mask, kept.size)[0].tolist()
    assert " ".join(fields.tokens_of("target", said, fields.beyond({"source": told}, limited=True))) == left


def test_names_keep_their_spaces_between_signs() -> None:
    values = recipe(
        "summarization", copying=True, source={"column": "a", "segments": "sentences"}, target={"column": "b"}
    )
    kept = tokens("He won , ( ) .", split="punctuation")
    fields = Fields.of(values, {"source": kept, "target": kept})
    given_text = {"source": "He won (Zed), Ur. Zed won."}
    words = fields.encoded(SAID, [given_text["source"]]).padded(np.array([0]))
    said = copyable(words.values, words.mask, kept.size)[0].tolist()
    beyond = fields.beyond(given_text, limited=False)
    zed, ur = (said[beyond.index(name)] for name in ("Zed", "▁Ur"))
    he, won = kept.encode("He won")
    assert fields.text_of("target", [zed, won, STOP], beyond) == "Zed won"
    assert fields.text_of("target", [he, won, ur, STOP], beyond) == "He won Ur"


def test_without_copying_there_is_nothing_beyond() -> None:
    values = recipe("summarization", source=text("a"), target=text("b"))
    fields = Fields.of(values, {"source": tokens("a"), "target": tokens("a")})
    assert fields.beyond({"source": "a zed"}, limited=False) == []
    assert fields.text_of("target", [UNK, STOP], []) == "<unk>"


# What the encoder reads


def test_pieces_know_their_parts(copying: Fields) -> None:
    assert copying.source_pieces("he went\n\nhome Zed") == (["he", "went", "home", "Zed"], [0, 0, 1, 1])
    assert copying.source_pieces("he") == (["he"], [0])
    flat = Fields.of(recipe("translation", source=text("a"), target=text("b")), copying.tokens)
    assert flat.source_pieces("he went\nhome") == (["he", "went", "home"], [])


def test_pieces_are_never_cut_short() -> None:
    values = recipe("conversation", source=text("a", parts="turns", max_length=2), target=text("b"))
    kept = tokens("> < yes no")
    fields = Fields.of(values, {"source": kept, "target": kept})
    assert fields.source_pieces("yes no\nno") == (["<", "yes", "no", ">", "no"], [0, 0, 0, 1, 1])
    assert fields.encoded("source", ["yes no\nno"]).lengths.tolist() == [5]
    assert [len(ids) for ids in fields.cuts["source"].encode(["yes no\nno no no"])] == [2]


def test_regular_texts_keep_their_parts() -> None:
    values = recipe("conversation", source=text("a", parts="turns", lowercase=True), target=text("b"))
    kept = tokens("> < yes no", lowercase=True)
    fields = Fields.of(values, {"source": kept, "target": kept})
    assert fields.normal("source", " Yes  no \n\n NO") == "< yes no\n> no"
    assert fields.normal("target", "Yes\n NO") == "yes no"
