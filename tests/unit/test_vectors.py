"""Word vectors: both text formats, only the wanted words, and every malformed line named."""

import gzip
from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixjars.data.text.vectors import read_vectors, words_in
from sixjars.errors import DataError

GLOVE = "the 0.1 -2 3e-1\n. . . 7 8 9\ncat 4 5 6\nthe 9 9 9\nCat 1 1 1\n"


def written(folder: Path, content: str | bytes, name: str = "v.txt") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("head", ["", "5 3\n"], ids=["glove", "word2vec"])
@pytest.mark.parametrize("packed", [False, True])
def test_both_formats(head: str, packed: bool, tmp_path: Path) -> None:
    content = (head + GLOVE).encode()
    path = written(
        tmp_path, gzip.compress(content) if packed else content, "v.txt.gz" if packed else "v.txt"
    )
    values, rows = read_vectors(path, {"cat": 9, "dog": 5, "the": 7})
    assert rows == [7, 9]
    assert values.dtype == numpy.float32
    numpy.testing.assert_array_equal(
        values, numpy.array([[0.1, -2, 0.3], [4, 5, 6]], dtype=numpy.float32)
    )


def test_binary_formats_are_told_apart_from_text(tmp_path: Path) -> None:
    random = numpy.random.default_rng(0)
    fasttext = (793712314).to_bytes(4, "little") + (12).to_bytes(4, "little") + random.bytes(4000)
    rows = [
        f"word{at} ".encode() + random.normal(size=50).astype("<f4").tobytes() for at in range(40)
    ]
    for name, content in (("cc.en.300.bin", fasttext), ("news.bin", b"40 50\n" + b"".join(rows))):
        path = written(tmp_path, content, name)
        with pytest.raises(DataError) as caught:
            read_vectors(path, {"word1": 0})
        assert str(caught.value) == (
            f"{path} is binary, but vectors are read as text: of fastText take the .vec file "
            "beside the .bin, of "
            "word2vec save with binary=False."
        )
        with pytest.raises(DataError, match="is binary, but vectors are read as text"):
            next(words_in(path))


def test_words_with_spaces(tmp_path: Path) -> None:
    values, rows = read_vectors(written(tmp_path, GLOVE), {". . .": 1, ".": 2})
    assert rows == [1]
    assert values.tolist() == [[7, 8, 9]]


def test_lowercase_stands_in_only_where_the_word_is_missing(tmp_path: Path) -> None:
    values, rows = read_vectors(written(tmp_path, GLOVE), {"The": 0, "Cat": 1, "cat": 2, "CAT": 3})
    assert rows == [0, 1, 2, 3]
    assert values[1].tolist() == [1, 1, 1]
    assert values[2].tolist() == values[3].tolist() == [4, 5, 6]
    numpy.testing.assert_allclose(values[0], [0.1, -2, 0.3], rtol=1e-6)


def test_crlf_trailing_spaces_and_byte_order_mark(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeffthe 1 2 \r\ncat 3 4 \r\n")
    values, rows = read_vectors(path, {"the": 0, "cat": 1})
    assert (values.tolist(), rows) == ([[1, 2], [3, 4]], [0, 1])


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(
        st.text(st.characters(categories=["L"]), min_size=1, max_size=5),
        st.lists(st.floats(-9, 9, width=32), min_size=4, max_size=4),
        min_size=1,
        max_size=8,
    )
)
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory, vectors: dict[str, list[float]]
) -> None:
    content = "".join(f"{word} {' '.join(map(repr, values))}\n" for word, values in vectors.items())
    path = written(tmp_path_factory.mktemp("v"), content)
    values, rows = read_vectors(path, {word: row for row, word in enumerate(vectors)})
    assert rows == list(range(len(vectors)))
    numpy.testing.assert_array_equal(values, numpy.array([*vectors.values()], dtype=numpy.float32))


FAULTS: list[tuple[str, str, str]] = [
    *(
        ("the 1 2 3\ncat 1 2\ndog 1 2 3\n", word, ", line 2: has 2 numbers, but a vector has 3.")
        for word in ("the", "cat", "dog")  # unwanted ones are looked at too
    ),
    ("the 1 2 3\n\n", "the", ", line 2: has 0 numbers, but a vector has 3."),
    ("the 1 2 3\ncat 1 2 3 4\n", "cat", ", line 2: has 4 numbers, but a vector has 3."),
    ("the 1 2 3\ncat 1  2\n", "cat", ", line 2: has 2 numbers, but a vector has 3."),
    ("the 1 2 3\ncat 1 x 3\n", "cat", ", line 2: 'x' is not a number."),
    *(
        (f"a 1 2\ncat 1 {number}\n", "cat", ", line 2: a number of a vector is not finite.")
        for number in ("nan", "-inf", "1e39")  # the last is too large for 32 bits
    ),
    (
        "hello world again\n",
        "hello",
        ", line 1: holds no vector; a line is a word and its numbers, between spaces.",
    ),
    (GLOVE, "emu", " has a vector for none of the 2 words of the vocabulary."),
    ("", "a", " is empty."),
]


@pytest.mark.parametrize(("content", "word", "sentence"), FAULTS)
def test_every_fault_is_a_sentence(content: str, word: str, sentence: str, tmp_path: Path) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DataError) as caught:
        read_vectors(path, {word: 0, "more": 1})
    assert str(caught.value) == f"{path}{sentence}"


def test_only_the_first_vector_of_a_wanted_word_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, "the 1 2 3\nthe cat 1 x 3\nthe 1 x 3\ndog 7 8 9\n")
    values, rows = read_vectors(path, {"the": 0, "dog": 1})
    assert (values.tolist(), rows) == ([[1, 2, 3], [7, 8, 9]], [0, 1])


def test_nothing_is_read_after_the_last_wanted_word(tmp_path: Path) -> None:
    values, _ = read_vectors(written(tmp_path, "the 1 2\nbroken\n"), {"the": 0})
    assert values.tolist() == [[1, 2]]


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"w\.txt does not exist\.$"):
        read_vectors(tmp_path / "w.txt", {"a": 0})
