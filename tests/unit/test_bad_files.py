"""Files that cannot be read, and columns that they do not have: one sentence each."""

import gzip
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from .rows import message


def parquet(folder: Path, name: str, columns: Mapping[str, Any]) -> None:
    pyarrow.parquet.write_table(pyarrow.table(dict(columns)), folder / name)


def test_missing_file(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").touch()
    path = tmp_path / "trian.tsv"
    assert message(tmp_path, "trian.tsv") == f"{path} does not exist. Did you mean 'train.tsv'?"
    lost = tmp_path / "no" / "a.parquet"
    told = f"{lost} does not exist. There is no folder {str(tmp_path / 'no')!r} either."
    assert message(tmp_path, "no/a.parquet") == told


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").mkdir()
    (tmp_path / "b").mkdir()
    sentence = message(tmp_path, "a.tsv")
    assert sentence == f"{tmp_path / 'a.tsv'} is a folder, not a file; name a file in it."
    told = f"{tmp_path / 'b'} is a folder, not a file; name a file in it (or write hf:FOLDER)."
    assert message(tmp_path, "b") == told


def test_unknown_ending(tmp_path: Path) -> None:
    known = ".csv, .csv.gz, .json, .json.gz, .jsonl, .jsonl.gz, .parquet, .tsv, .tsv.gz, .txt, .txt.gz, .xlsx"
    told = f"{tmp_path / 'a.tvs'}: ending '.tvs' is unknown. Did you mean '.tsv'? Known: {known}."
    assert message(tmp_path, "a.tvs") == told
    assert "ending '.parquet.gz' is unknown" in message(tmp_path, "a.parquet.gz")


def test_unknown_column(tmp_path: Path) -> None:
    for name, content in {"a.tsv": "en\tde\na\tb\n", "a.csv": "en,de\na,b\n"}.items():
        (tmp_path / name).write_text(content)
        found = message(tmp_path, name, {"source": "enn", "target": "de"})
        told = f"{tmp_path / name}: column 'enn' is unknown. Did you mean 'en'? Known: de, en."
        assert found == told
    parquet(tmp_path, "a.parquet", {"a": pyarrow.array([{"bcd": "x"}])})
    path = tmp_path / "a.parquet"
    told = f"{path}: column 'a.bce' is unknown. Did you mean 'a.bcd'? Known: a.bcd."
    assert message(tmp_path, "a.parquet", {"target": "a.bce"}) == told
    sentence = message(tmp_path, "a.parquet", {"target": 2})
    assert sentence == f"{path}: column 2 is asked for, but there are 1."
    (tmp_path / "a.txt").write_text("a\n")
    told = f"{tmp_path / 'a.txt'}: column 'de' is unknown. Known: 1, text."
    assert message(tmp_path, "a.txt", {"target": "de"}) == told
    (tmp_path / "a.jsonl").write_text('{"a": {"bcd": 1}}\n')
    assert message(tmp_path, "a.jsonl", {"target": "a.bce"}) == (
        f"{tmp_path / 'a.jsonl'}, line 1: column 'a.bce' is unknown. Did you mean 'a.bcd'? Known: "
        "a.bcd."
    )
    assert message(tmp_path, "a.jsonl", {"target": 1}) == (
        f"{tmp_path / 'a.jsonl'}: JSON lines have names, not numbers, so column 1 is not there; "
        "give its name."
    )


def test_a_column_twice_in_the_header(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("en\ten\tde\na\tb\tc\n")
    path = tmp_path / "a.tsv"
    assert message(tmp_path, "a.tsv") == (
        f"{path}: column 'en' is in the header twice; rename one, or give numbers and "
        "`data.header: true`."
    )


def test_a_header_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"\xffen\tde\n")
    assert message(tmp_path, "a.tsv", on_bad_row="skip") == (
        f"{tmp_path / 'a.tsv'}, line 1: byte 1 of the line (0xff) is not UTF-8; save the file as "
        "UTF-8."
    )


def test_names_and_numbers_do_not_mix(tmp_path: Path) -> None:
    assert message(tmp_path, "a.tsv", {"source": "en", "target": 2}) == (
        "Columns are given by name ('en') and by number (2); use names alone, or numbers alone "
        "(then the file has no header)."
    )
    assert message(tmp_path, "a.tsv", {"source": 1, "target": 2}, filter={"kind": "x"}) == (
        "'filter' names column 'kind', but the other columns are given by number; give its number "
        "from 1."
    )


@pytest.mark.parametrize(
    "content", [b"no gzip", gzip.compress(b"a\tb\n" * 9999)[:-9]], ids=["plain", "cut"]
)
def test_damaged_gzip(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.tsv.gz").write_bytes(content)
    told = message(tmp_path, "a.tsv.gz", {"source": 1, "target": 2})
    assert told.startswith(f"{tmp_path / 'a.tsv.gz'} is not a gzip file or is damaged: ")


@pytest.mark.parametrize(("place", "error"), [(10, zlib.error), (2000, gzip.BadGzipFile)])
def test_gzip_with_a_wrong_byte(place: int, error: type[Exception], tmp_path: Path) -> None:
    content = bytearray(gzip.compress(b"word\n" * 1000, 0))
    content[place] ^= 255
    with pytest.raises(error):
        gzip.decompress(content)
    (tmp_path / "a.txt.gz").write_bytes(content)
    for mode in ("error", "skip"):
        told = message(tmp_path, "a.txt.gz", {"target": "text"}, on_bad_row=mode)
        assert told.startswith(f"{tmp_path / 'a.txt.gz'} is not a gzip file or is damaged: ")


def test_damaged_parquet(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"no parquet at all")
    start = f"{tmp_path / 'a.parquet'} is not a Parquet file or is damaged: "
    assert message(tmp_path, "a.parquet").startswith(start)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.tsv").touch()

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert message(tmp_path, "a.tsv") == f"{tmp_path / 'a.tsv'} cannot be read: Permission denied."


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "a.tsv.gz"])
def test_empty_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"") if name.endswith("gz") else b"")
    assert message(tmp_path, name) == f"{tmp_path / name} is empty."


def test_no_rows(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("en\tde\n")
    assert message(tmp_path, "a.tsv") == f"{tmp_path / 'a.tsv'} has no rows."
    parquet(tmp_path, "a.parquet", {"en": pyarrow.array([], pyarrow.string())})
    told = f"{tmp_path / 'a.parquet'} has no rows."
    assert message(tmp_path, "a.parquet", {"target": "en"}) == told


def test_no_row_left(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("kind\ten\tde\nx\ta\tb\ny\t\tc\n")
    path = tmp_path / "a.tsv"
    assert message(tmp_path, "a.tsv", filter={"kind": "y"}, on_bad_row="skip") == (
        f"{path}: no row is left of 2; 1 was bad and 1 did not fit 'filter'. "
        "The first bad one is line 3: column 'en' is empty."
    )
    told = f"{path}: no row is left of 2; 0 were bad and 2 did not fit 'filter'."
    assert message(tmp_path, "a.tsv", filter={"kind": "z"}) == told
