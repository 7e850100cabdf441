"""Parallel files: line i of each is row i, and a bad line is named by its own file."""

import gzip
from pathlib import Path

import pytest

from sixjars.errors import DataError
from sixjars.recipe.data import Column, Files

from .rows import line_numbers, message, reading, rows_of


def test_parallel_files(tmp_path: Path) -> None:
    (tmp_path / "x.en").write_text("a\nb\n")
    (tmp_path / "x.de.gz").write_bytes(gzip.compress(b"c\r\nd"))
    found = reading(tmp_path, {"en": "x.en", "de": "x.de.gz"})
    assert rows_of(found) == [("a", "c"), ("b", "d")]
    assert line_numbers(found) == [1, 2]
    assert found.where == f"{tmp_path / 'x.en'} + {tmp_path / 'x.de.gz'}"


@pytest.mark.usefixtures("block")
def test_bad_lines_name_their_own_file(tmp_path: Path) -> None:
    (tmp_path / "x.en").write_bytes(b"a\nb\nc\nd\xff\ne\n")
    (tmp_path / "x.de").write_text("f\n \nh\ni\nj\n")
    files: Files = {"en": "x.en", "de": "x.de"}
    with pytest.raises(DataError) as caught:
        reading(tmp_path, files)
    assert str(caught.value) == f"{tmp_path / 'x.de'}, line 2: column 'de' is empty."
    found = reading(tmp_path, files, on_bad_row="skip")
    assert rows_of(found) == [("a", "f"), ("c", "h"), ("e", "j")]
    assert (found.skipped, line_numbers(found)) == (2, [1, 3, 5])
    (tmp_path / "x.de").write_text("f\ng\nh\ni\nj\n")
    with pytest.raises(DataError) as caught:
        reading(tmp_path, files)
    assert str(caught.value) == (
        f"{tmp_path / 'x.en'}, line 4: byte 2 of the line (0xff) is not UTF-8; save the file as "
        "UTF-8."
    )


@pytest.mark.parametrize("mode", ["error", "skip"])
@pytest.mark.usefixtures("block")
def test_files_of_unequal_length(mode: str, tmp_path: Path) -> None:
    lengths = {"en": 3, "de": 5, "fr": 4}
    for name, count in lengths.items():
        (tmp_path / f"x.{name}").write_text("a\n" * count)
    columns: dict[str, Column] = {name: name for name in lengths}
    told = ", ".join(f"{tmp_path / f'x.{name}'} has {count}" for name, count in lengths.items())
    assert message(tmp_path, {name: f"x.{name}" for name in lengths}, columns, on_bad_row=mode) == (
        f"Parallel files must have equally many lines, but {told}."
    )


@pytest.mark.usefixtures("block")
def test_empty_lines_at_the_end_of_one_file_are_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.en").write_text("a\nb\n\n \n")
    (tmp_path / "x.de").write_bytes(b"c\r\nd\r\n")
    found = reading(tmp_path, {"en": "x.en", "de": "x.de"})
    assert rows_of(found) == [("a", "c"), ("b", "d")]
    (tmp_path / "x.en").write_text("a\nb\n\n e\n")
    told = f"{tmp_path / 'x.en'} has 4, {tmp_path / 'x.de'} has 2"
    columns: dict[str, Column] = {"en": "en", "de": "de"}
    sentence = f"Parallel files must have equally many lines, but {told}."
    assert message(tmp_path, {"en": "x.en", "de": "x.de"}, columns) == sentence


def test_a_line_that_is_bad_in_both_files_is_one_row(tmp_path: Path) -> None:
    (tmp_path / "x.en").write_bytes(b"a\n\xff\n\nd\n")
    (tmp_path / "x.de").write_bytes(b"a\n\xff\n\nd\n")
    found = reading(tmp_path, {"en": "x.en", "de": "x.de"}, on_bad_row="skip")
    assert (found.skipped, line_numbers(found)) == (2, [1, 4])


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "x.en").write_text("a\n")
    (tmp_path / "x.de").touch()
    assert message(tmp_path, {"en": "x.en", "de": "x.de"}) == f"{tmp_path / 'x.de'} is empty."


def test_an_unknown_column(tmp_path: Path) -> None:
    told = "Parallel files: column 'de' is unknown. Did you mean 'den'? Known: den, en."
    assert message(tmp_path, {"en": "x.en", "den": "x.de"}) == told
