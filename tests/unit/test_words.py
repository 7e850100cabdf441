"""Words between white space: what is made of each is what the library makes of whole texts."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixjars.data import flat
from sixjars.data.flat import (
    TextStream,
    Words,
    as_array,
    cut,
    flattened,
    rows_of,
    spread,
    word_counts,
    words_of,
)
from sixjars.data.text.tokenizer import TextEncoding, TextTokenizer
from sixjars.errors import DataError
from sixjars_runtime.special_tokens import STOP
from sixjars_runtime.text.segments import latest
from sixjars_runtime.text.spelling import MARKED_WORDS, TokenizerSettings
from tests.unit.tokenizers import KINDS, TEXTS, trained

LETTERS = "ab ▁￭■.,!-_ΣİéA\u0301\u0323\u00a0\u3000\x1c\x85\u2003\t\n😀각\u1100\u1161\u11a8\u200b"
"""What a tokenizer may treat in its own way: marks, white space, composed letters."""
ODD = st.one_of(st.text(LETTERS, max_size=12), st.text(max_size=8))
TOKENIZERS = {
    f"{name}, {case}": trained(
        [*TEXTS, "a b ab é", "A. _ -"], **kind, lowercase=case == "lowercase", size=60
    )
    for name, kind in KINDS.items()
    for case in ("as written", "lowercase")
}
TOKENIZERS["marked words"] = TextTokenizer.trained(
    TEXTS, TokenizerSettings(split=MARKED_WORDS, size=60), "x"
)


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=60, deadline=None)
@given(texts=st.lists(ODD, max_size=6))
def test_ids_are_those_of_whole_texts(name: str, texts: list[str]) -> None:
    tokens = TOKENIZERS[name]
    whole = [found.ids for found in tokens._tokenizer.encode_batch(texts)]
    assert whole == tokens.encode_many(texts) == rows_of(tokens.encode_flat(as_array(texts)))
    if tokens.can_copy:
        open_rows = tokens.encode_many(texts, open=True)
        assert open_rows == rows_of(tokens.encode_flat(as_array(texts), open=True))
        for text, ids in zip(texts, open_rows, strict=True):
            assert len(ids) == len(tokens.split(text))


def words_by_arrow(texts: list[str]) -> Words:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flat, "_FEW", -1)
        return words_of(as_array(texts))


@pytest.mark.parametrize("found", [words_by_arrow, lambda texts: words_of(as_array(texts))])
@settings(max_examples=100, deadline=None)
@given(texts=st.lists(ODD, max_size=6))
def test_words_are_those_of_python(found: Callable[[list[str]], Words], texts: list[str]) -> None:
    known, places, begins = found(texts)
    split = [[known[at] for at in places[begin:end]] for begin, end in pairwise(begins)]
    assert split == [text.split() or [""] for text in texts]


def test_arrow_splits_at_the_same_characters_as_python() -> None:
    """Every character there is, each between two letters, so that few texts have all words."""
    text = "".join(
        f"a{chr(code)}b" for code in range(sys.maxunicode) if not 0xD800 <= code <= 0xDFFF
    )
    assert len(words_of(as_array([text]))[1]) > 20
    for few, many in zip(words_of(as_array([text])), words_by_arrow([text]), strict=True):
        np.testing.assert_array_equal(few, many)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(ODD, max_size=30), portion=st.integers(1, 9), merged=st.integers(0, 9))
def test_counts_do_not_depend_on_portions(texts: list[str], portion: int, merged: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flat, "MOST_ROWS", portion)
        patch.setattr(flat, "_MERGED", merged)
        found = word_counts(iter(texts))
    split = [text.split() for text in texts]
    want = (
        Counter(word for some in split for word in some),
        sum(max(len(some) - 1, 0) for some in split),
    )
    assert found == want == word_counts(TextStream([as_array(texts)]))


def test_only_so_many_words_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = trained(TEXTS, tokens="words")
    want = tokens.encode_many(TEXTS)
    monkeypatch.setattr("sixjars_runtime.text.spelling._KEPT", 1)
    again = trained(TEXTS, tokens="words")
    assert [again.encode_many([text])[0] for text in TEXTS * 2] == want * 2
    assert sorted(again._words) == sorted({*TEXTS[0].split()})


def test_half_a_character() -> None:
    told = r"Text 'a\\ud800' holds half a character \(a lone surrogate\); remove it\."
    with pytest.raises(DataError, match=told):
        as_array(["fine", "a\ud800"])


@given(rows=st.lists(st.lists(st.integers(4, 9), max_size=5)), limit=st.integers(1, 6))
def test_rows_that_are_cut(rows: list[list[int]], limit: int) -> None:
    assert rows_of(cut(flattened(rows), limit)) == [row[:limit] for row in rows]


@pytest.mark.parametrize("limit", [None, 1, 3, 50])
@pytest.mark.parametrize("segments", ["lines", "turns", "sentences"])
def test_texts_in_segments_are_cut_as_lists_are(segments: str, limit: int | None) -> None:
    tokens = trained(TEXTS, tokens="words")
    texts = ["Hello, how\nare you?\nthe cat", "", "the old house. The cat", "\n\na"]
    whole = TextEncoding("source", tokens, None, segments, False).encode(texts)
    encoding = TextEncoding("source", tokens, limit, segments, False)
    assert encoding.encode(texts) == rows_of(encoding.flat(as_array(texts)))
    for row, ids in zip(whole, encoding.encode(texts), strict=True):
        cut_row = (
            row
            if limit is None
            else latest(row, limit, end=STOP)
            if segments == "turns"
            else row[:limit]
        )
        assert ids == cut_row


@pytest.mark.parametrize("count", [1, 2, 5])
def test_cores_change_nothing(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat, "cores", lambda: count)
    assert list(spread(str, range(20))) == [str(number) for number in range(20)]

    def bad(number: int) -> int:
        if number == 3:
            raise ValueError("three")
        return number

    found: list[int] = []
    with pytest.raises(ValueError, match="three"):
        found.extend(spread(bad, range(20)))
    assert found == [0, 1, 2]


def test_few_items_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes results slowly has no queue of them in memory."""
    monkeypatch.setattr(flat, "cores", lambda: 2)
    begun: list[int] = []

    def items() -> Iterator[int]:
        for number in range(50):
            begun.append(number)
            yield number

    results: Any = spread(str, items())
    assert [next(results) for _ in range(3)] == ["0", "1", "2"]
    assert len(begun) <= 6
    results.close()


def test_portions_of_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow

    column = pyarrow.chunked_array([["a", "bb", "ccc"], ["d"]])
    assert [some.to_pylist() for some in flat.portions(column)] == [["a", "bb", "ccc"], ["d"]]
    monkeypatch.setattr(flat, "MOST_ROWS", 2)
    assert [some.to_pylist() for some in flat.portions(column)] == [["a", "bb"], ["ccc"], ["d"]]
    monkeypatch.setattr(flat, "MOST_BYTES", 1)
    assert [len(some) for some in flat.portions(column)] == [1, 1, 1, 1]
    assert np.concatenate(list(flat.slices(np.arange(3, dtype=np.int32)))).tolist() == [0, 1, 2]
