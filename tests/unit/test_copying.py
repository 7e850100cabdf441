"""Copying: unknown words keep their identity from the text through a batch and back."""

import zlib
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sixjars.data.batches import Batches, IdColumn
from sixjars.data.copying import Copying, copied, copyable
from sixjars.data.fields.text import TextSettings
from sixjars.data.flat import flattened, segment_ids
from sixjars.data.packing import SegmentColumn
from sixjars.data.text.tokenizer import TextTokenizer
from sixjars.errors import DataError
from sixjars.flow.values import Padded
from sixjars_runtime.special_tokens import STOP, UNK
from sixjars_runtime.text.joiners import text_of

from .tokenizers import vocabulary

KINDS: dict[str, dict[str, Any]] = {
    "punctuation": {"tokens": "words", "split": "punctuation"},
    "spaces": {"tokens": "words", "split": "spaces"},
    "characters": {"tokens": "characters"},
}
SIZE = 10


def trained(*texts: str, kind: str = "punctuation", **more: Any) -> TextTokenizer:
    return TextTokenizer.trained(texts, TextSettings(**KINDS[kind], **more), "data.target")


def hashed(tokens: TextTokenizer, word: str) -> int:
    return tokens.size + zlib.crc32(word.encode("utf-8")) % 2**30


def test_a_word_outside_the_vocabulary_has_a_number_of_its_own() -> None:
    tokens = trained("the cat went to (", min_count=1)
    known = vocabulary(tokens)  # no word followed the bracket
    ids = tokens.encode_many(["Ann went to Paris (Ann", "the cat", ""], open=True)
    ann, paris = hashed(tokens, "Ann"), hashed(tokens, "Paris")
    assert ids == [
        [ann, known["went"], known["to"], paris, known["("], ann],
        [known["the"], known["cat"]],
        [],
    ]
    assert max(ids[0]) < 2**31
    assert tokens.encode_many(["Ann went"])[0] == [UNK, known["went"]]


@given(st.lists(st.text(st.sampled_from("ab ,.▁￭(é\u0301İ\n-"), max_size=12), max_size=4))
@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_agree_with_looking_up_at_every_position(
    kind: str, lowercase: bool, texts: list[str]
) -> None:
    tokens = trained("a b, ab", kind=kind, lowercase=lowercase)
    for text, closed, opened in zip(
        texts, tokens.encode_many(texts), tokens.encode_many(texts, open=True), strict=True
    ):
        tokens_of_it = tokens.split(text)
        assert [number if number < tokens.size else UNK for number in opened] == closed
        assert UNK not in opened
        source_words = [hashed(tokens, tokens.plain(token)) for token in tokens_of_it]
        assert [number for number in opened if number >= tokens.size] == [
            number
            for number, looked_up in zip(source_words, closed, strict=True)
            if looked_up == UNK
        ]
        if kind == "punctuation":
            assert text_of(tokens_of_it) == tokens.normalize(text)


@pytest.mark.parametrize(
    ("kind", "can"), [("words", True), ("characters", True), ("bpe", False), ("unigram", False)]
)
def test_subwords_cannot_be_copied(kind: Any, can: bool) -> None:
    assert TextTokenizer.trained(["some words"], TextSettings(tokens=kind), "x").can_copy is can


def rewritten(tokens: TextTokenizer, source: str, target: str) -> str:
    """The target with all that can be copied from the source copied, back as a text."""
    words = Padded.of(tokens.encode_many([source], open=True))
    wanted = Padded.of(tokens.encode_many([target], open=True))
    ids = copied(wanted.values, words.values, words.mask, tokens.size)[0].tolist()
    assert any(number >= tokens.size for number in ids)
    return tokens.decode([*ids, STOP], tokens.split(source))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Paris saw Ann.", "Ann went to Paris."),
        ('So "Ann" (of Paris) went.', "Ann went to Paris."),  # neither stood after a space
        ("Paris saw Ann.", 'to "Ann" (Paris)'),  # neither stands after a space
        ("Mr. Jean-Claude went", "Jean-Claude went."),
        ("Jean and Claude went", "Jean-Claude went."),
        ("to O'Brien", "O'Brien went"),
        ("3,500 went.", "to 3,500."),
        ("€ 5 went €", "to €."),
    ],
)
def test_copied_words_are_joined_as_a_reader_would(source: str, target: str) -> None:
    tokens = trained('went to x. x) "so" x, x-x x\'x (x')
    assert rewritten(tokens, source, target) == target


def test_copied_words_at_spaces_and_copied_characters() -> None:
    tokens, target = trained("went to", kind="spaces"), "Paris went to (Ann"
    assert rewritten(tokens, "(Ann , Paris", target) == target
    assert rewritten(trained("a b c", kind="characters"), "xay", "y a x") == "y a x"


def test_readable_tokens_of_what_was_copied() -> None:
    tokens = trained("went to")
    source_words = tokens.split("Ann went")
    assert source_words == ["Ann", "went"]
    expected = ["Ann", "to", "<unk>"]
    assert tokens.tokens([tokens.size, vocabulary(tokens)["to"], UNK], source_words) == expected
    assert trained("a", kind="characters").tokens([6, 5], ["x", " "]) == ["␣", "x"]


def test_a_sign_that_was_copied_keeps_its_space() -> None:
    tokens = trained("it costs 5")
    assert vocabulary(tokens).keys().isdisjoint("€¥")
    assert rewritten(tokens, "5€ or ¥ 6", "it costs 5€") == "it costs 5€"
    assert rewritten(tokens, "5€ or ¥ 6", "it costs ¥ 5") == "it costs ¥ 5"


IDS = st.lists(st.lists(st.integers(0, 16), min_size=6, max_size=6), min_size=1, max_size=4)


@given(IDS, st.lists(st.integers(0, 6), min_size=4, max_size=4), IDS)
def test_numbers_of_a_batch_equal_a_loop(
    source: list[list[int]], ends: list[int], target: list[list[int]]
) -> None:
    rows = min(len(source), len(target))
    source, target = source[:rows], target[:rows]
    ids = torch.tensor(source)
    mask = torch.arange(6) < torch.tensor(ends[:rows])[:, None]
    real = [row[:end] for row, end in zip(source, ends, strict=False)]
    assert copyable(ids, mask, SIZE).tolist() == [
        [number if number < SIZE else SIZE + row.index(number) for number in row]
        + [0] * (6 - len(row))
        for row in real
    ]
    assert copied(torch.tensor(target), ids, mask, SIZE).tolist() == [
        [n if n < SIZE else SIZE + row.index(n) if n in row else UNK for n in wanted]
        for row, wanted in zip(real, target, strict=True)
    ]
    assert ids.tolist() == source  # what was given is as it was


def test_a_batch_has_what_copying_would_output() -> None:
    """The words 70, 80 and 90 have no id; 90 is in the wrong source, and 80 in none."""
    source = SegmentColumn(flattened([[5, STOP, UNK, 6, UNK, STOP], [UNK, STOP]]))
    words = SegmentColumn(flattened([[5, STOP, 70, 6, 70, STOP], [90, STOP]]))
    target = IdColumn(flattened([[70, 80, 5], [90, 70]]), stop=STOP)
    found = Batches({"source": source}, target, joint=Copying(words, SIZE, "source"))
    batch = found.collate(torch.tensor([1, 0]))
    read = batch.inputs["source"]
    assert read.copy_ids is not None
    assert read.values.tolist() == [[UNK, 0, 0, 0], [5, UNK, 6, UNK]]
    assert read.copy_ids.tolist() == [[10, 0, 0, 0], [5, 11, 6, 11]]
    assert batch.target.values.tolist() == [[10, UNK, STOP, 0], [11, UNK, 5, STOP]]
    assert batch.target.mask.tolist() == [[True, True, True, False], [True] * 4]
    assert read.segments is not None
    assert read.segments.segment_of.tolist() == [[0, 0, 0, 0], [0, 1, 1, 1]]
    assert found.input_lengths.tolist() == [4, 1]


def test_segments_of_few_shapes_have_as_many_places_to_copy_from() -> None:
    """A training on CUDA packs them so; it ended with an error before."""
    source, words = (
        SegmentColumn(flattened([[5, STOP, one, 6, STOP], [one, STOP]])) for one in (UNK, 70)
    )
    target = IdColumn(flattened([[70], [5]]), stop=STOP)
    batches = Batches({"source": source}, target, joint=Copying(words, SIZE, "source"))
    batches.have_few_shapes()
    read = batches.collate(torch.tensor([0, 1])).inputs["source"]
    assert read.copy_ids is not None
    assert read.copy_ids.shape == read.mask.shape == (2, 128)
    assert read.copy_ids[:, :3].tolist() == [[5, SIZE + 1, 6], [SIZE, 0, 0]]
    assert not read.copy_ids[:, 3:].any()


def test_a_batch_from_texts_to_a_text() -> None:
    """With vocabularies of their own: the source's knows Ann, the target's does not."""
    reads, writes = trained("Ann went to Rome."), trained("to Rome.")
    texts, wanted = [["Rome.", "Ann went"], ["to Bob"]], ["Ann to Rome.", "Ann to Bob"]
    source = SegmentColumn(segment_ids(reads.encode_flat, texts))
    words = SegmentColumn(segment_ids(writes.encode_flat, texts, open=True))
    target = IdColumn(flattened(writes.encode_many(wanted, open=True)), stop=STOP)
    batch = Batches(
        {"source": source}, target, joint=Copying(words, writes.size, "source")
    ).collate(torch.tensor([0, 1]))
    texts_written = [
        writes.decode(ids, [token for part in parts for token in writes.split(part)])
        for ids, parts in zip(batch.target.values.tolist(), texts, strict=True)
    ]
    assert texts_written == ["Ann to Rome.", "<unk> to Bob"]
    assert UNK not in batch.inputs["source"].values[0].tolist()


def test_an_input_that_is_split_otherwise_is_refused() -> None:
    source, words, target = (IdColumn(flattened([[5], row])) for row in ([5, 6], [5, 6, 7], [5]))
    with pytest.raises(DataError) as caught:
        Batches({"source": source}, target, joint=Copying(words, SIZE, "source"))
    assert str(caught.value) == (
        "Row 2 of the source has 2 tokens by its own settings and 3 by the target's; to copy, "
        "give both the same tokens, split and lowercase."
    )


def test_without_rows_there_is_nothing_to_copy() -> None:
    none = IdColumn(flattened([]))
    batch = Batches({"source": none}, none, joint=Copying(none, SIZE, "source")).collate(
        torch.from_numpy(np.zeros(0, int))
    )
    assert batch.inputs["source"].copy_ids is not None
    assert batch.inputs["source"].copy_ids.shape == (0, 0)
