"""Parquet: every kind of column as text, structures, lists, and bytes that are no text."""

from array import array
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from sixjars.data.tables import read
from sixjars.errors import DataError
from sixjars.recipe.sections import DataSettings
from sixjars_runtime.text.segments import text_of_segments

from .rows import line_numbers, message, reading, rows_of


def parquet(folder: Path, name: str, columns: Mapping[str, Any]) -> None:
    pyarrow.parquet.write_table(pyarrow.table(dict(columns)), folder / name)


MOMENT = datetime(2024, 1, 2, 3, 4, 5)
KINDS: dict[str, tuple[Any, list[str]]] = {
    "text": (["x", "y"], ["x", "y"]),
    "large text": (pyarrow.array(["k", "l"], pyarrow.large_string()), ["k", "l"]),
    "bytes": (pyarrow.array([b"m", "é".encode()]), ["m", "é"]),
    "dictionary": (pyarrow.array(["u", "v"]).dictionary_encode(), ["u", "v"]),
    "dictionary of numbers": (pyarrow.array([7, 8]).dictionary_encode(), ["7", "8"]),
    "whole number": ([1, -(2**60)], ["1", str(-(2**60))]),
    "share": ([0.5, 1.25], ["0.5", "1.25"]),
    "narrow share": (
        pyarrow.array([0.1, 3.0], pyarrow.float32()),
        ["0.1", "3"],
    ),  # not 0.10000000149011612
    "decimal": (pyarrow.array([Decimal("1.50"), Decimal("-2.25")]), ["1.50", "-2.25"]),
    "truth": ([True, False], ["true", "false"]),
    "date": (pyarrow.array([MOMENT.date(), date(1999, 12, 31)]), ["2024-01-02", "1999-12-31"]),
    "moment": (
        pyarrow.array([MOMENT] * 2, pyarrow.timestamp("ms")),
        ["2024-01-02 03:04:05.000"] * 2,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_columns(kind: str, tmp_path: Path) -> None:
    values, texts = KINDS[kind]
    structure = pyarrow.StructArray.from_arrays(
        [pyarrow.array(values), pyarrow.array(["1", "2"])], ["b", "c"]
    )
    parquet(tmp_path, "a.parquet", {"a": structure, "plain": values, "x": ["1", "2"]})
    for column in ("plain", "a.b", 2):
        assert rows_of(reading(tmp_path, "a.parquet", {"target": column})) == [
            (text,) for text in texts
        ]
    found = reading(tmp_path, "a.parquet", {"target": "x"}, filter={"a.b": texts[1]})
    assert rows_of(found) == [("2",)] if texts[0] != texts[1] else [("1",), ("2",)]


def test_a_name_with_a_dot_goes_before_a_structure(tmp_path: Path) -> None:
    nested = pyarrow.array([{"b": {"c": "x", "c.d": "z"}}, {"b": {"c": "y", "c.d": "z"}}])
    parquet(tmp_path, "a.parquet", {"a": nested, "a.b": ["dotted", "name"]})
    for column, wanted in {
        "a.b.c": ["x", "y"],
        "a.b": ["dotted", "name"],
        "a.b.c.d": ["z", "z"],
    }.items():
        assert rows_of(reading(tmp_path, "a.parquet", {"target": column})) == [
            (text,) for text in wanted
        ]


def test_parquet_rows_are_numbered_across_batches(tmp_path: Path) -> None:
    texts = [str(number) for number in range(70_000)]
    parquet(tmp_path, "a.parquet", {"text": [*texts[:-1], ""]})
    with pytest.raises(DataError, match="row 70000: column 'text' is empty"):
        reading(tmp_path, "a.parquet", {"target": "text"})
    found = reading(tmp_path, "a.parquet", {"target": "text"}, on_bad_row="skip")
    assert line_numbers(found) == list(range(1, 70_000))


def test_parquet_bad_rows(tmp_path: Path) -> None:
    nested = pyarrow.array([{"b": "x"}, None, {"b": None}, {"b": "y"}])
    raw = pyarrow.array([b"u", b"v", b"w", b"y\xff"])
    parquet(tmp_path, "a.parquet", {"a": nested, "raw": raw})
    with pytest.raises(DataError) as caught:
        reading(tmp_path, "a.parquet", {"target": "a.b"})
    assert str(caught.value) == f"{tmp_path / 'a.parquet'}, row 2: column 'a.b' has no value."
    found = reading(tmp_path, "a.parquet", {"target": "a.b"}, on_bad_row="skip")
    assert (rows_of(found), found.skipped, line_numbers(found)) == ([("x",), ("y",)], 2, [1, 4])
    with pytest.raises(DataError) as caught:
        reading(tmp_path, "a.parquet", {"target": "raw"})
    assert (
        str(caught.value)
        == f"{tmp_path / 'a.parquet'}, row 4: byte 2 of column 'raw' is not UTF-8."
    )
    assert reading(tmp_path, "a.parquet", {"target": "raw"}, on_bad_row="skip").skipped == 1


def not_utf8(kind: Any, offsets: str = "i") -> Any:
    """A column that is called text, of which the second value is none: what a careless program writes."""
    data = b"good" + b"\xe9vil" + b"fine"
    places = array(offsets, [0, 4, 8, 12]).tobytes()
    return pyarrow.Array.from_buffers(
        kind, 3, [None, pyarrow.py_buffer(places), pyarrow.py_buffer(data)]
    )


BROKEN = {
    "text": not_utf8(pyarrow.string()),
    "large text": not_utf8(pyarrow.large_string(), "q"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_text_that_is_no_utf8_is_a_bad_row(kind: str, tmp_path: Path) -> None:
    """Python raises a UnicodeDecodeError when such a value is looked at."""
    structure = pyarrow.StructArray.from_arrays([BROKEN[kind]], ["b"])
    parquet(tmp_path, "a.parquet", {"raw": BROKEN[kind], "a": structure, "x": ["1", "2", "3"]})
    path = tmp_path / "a.parquet"
    for column in ("raw", "a.b"):
        told = f"row 2: byte 1 of column {column!r} is not UTF-8."
        assert (
            message(tmp_path, "a.parquet", {"source": "x", "target": column}) == f"{path}, {told}"
        )
        found = reading(tmp_path, "a.parquet", {"source": "x", "target": column}, on_bad_row="skip")
        assert (rows_of(found), found.skipped) == ([("1", "good"), ("3", "fine")], 1)
    assert rows_of(reading(tmp_path, "a.parquet", {"target": "x"})) == [("1",), ("2",), ("3",)]


def test_a_dictionary_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    broken = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([0, 1, 2]), not_utf8(pyarrow.string())
    )
    parquet(tmp_path, "a.parquet", {"raw": broken})
    assert message(tmp_path, "a.parquet", {"target": "raw"}).startswith(
        f"{tmp_path / 'a.parquet'} is not a Parquet file or is damaged: "
    )


def test_a_list_of_texts_that_are_no_utf8_is_a_bad_row(tmp_path: Path) -> None:
    lists = pyarrow.ListArray.from_arrays([0, 1, 2, 3], not_utf8(pyarrow.string()))
    parquet(tmp_path, "a.parquet", {"raw": lists})
    settings = DataSettings(folder=str(tmp_path), train="unused")
    for how in ({"many": ["target"]}, {"as_text": {"target": text_of_segments}}):
        with pytest.raises(DataError) as caught:
            read("a.parquet", {"target": "raw"}, settings=settings, **how)
        assert (
            str(caught.value)
            == f"{tmp_path / 'a.parquet'}, row 2: byte 1 of column 'raw' is not UTF-8."
        )


def test_structures_and_lists_are_no_text(tmp_path: Path) -> None:
    structure = pyarrow.array([{"b": "x", "c": {"d": "y"}}])
    parquet(tmp_path, "a.parquet", {"a": structure, "l": [["x"]], "t": pyarrow.array([{"m": [1]}])})
    path = tmp_path / "a.parquet"
    for mode in ("error", "skip"):
        assert message(tmp_path, "a.parquet", {"target": "a"}, on_bad_row=mode) == (
            f"{path}: column 'a' holds an object, not text; name what is in it: a.b, a.c."
        )
        assert message(tmp_path, "a.parquet", {"target": 1}, on_bad_row=mode) == (
            f"{path}: column 1 holds an object, not text; name what is in it: a.b, a.c."
        )
        assert "name what is in it: a.c.d." in message(
            tmp_path, "a.parquet", {"target": "a.c"}, on_bad_row=mode
        )
    assert (
        message(tmp_path, "a.parquet", {"target": "l"})
        == f"{path}, row 1: column 'l' holds a list, not text."
    )
    assert (
        message(tmp_path, "a.parquet", {"target": "t.m"})
        == f"{path}, row 1: column 't.m' holds a list, not text."
    )


def test_unknown_columns(tmp_path: Path) -> None:
    parquet(tmp_path, "a.parquet", {"a": pyarrow.array([{"bcd": "x"}]), "e": ["y"]})
    path = tmp_path / "a.parquet"
    assert (
        message(tmp_path, "a.parquet", {"target": "f"})
        == f"{path}: column 'f' is unknown. Known: a, e."
    )
    for mode in ("error", "skip"):
        assert message(tmp_path, "a.parquet", {"target": "a.bce"}, on_bad_row=mode) == (
            f"{path}: column 'a.bce' is unknown. Did you mean 'a.bcd'? Known: a.bcd."
        )
    assert (
        message(tmp_path, "a.parquet", {"target": "e.x"})
        == f"{path}: column 'e.x' is unknown. Known: a, e."
    )
    assert (
        message(tmp_path, "a.parquet", {"target": 3})
        == f"{path}: column 3 is asked for, but there are 2."
    )


def test_a_column_twice(tmp_path: Path) -> None:
    table = pyarrow.Table.from_arrays(
        [pyarrow.array(["x"]), pyarrow.array(["y"])], names=["en", "en"]
    )
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    for column in ("en", 1, 2):
        assert message(tmp_path, "a.parquet", {"target": column}) == (
            f"{tmp_path / 'a.parquet'}: column 'en' is there twice; rename one."
        )
