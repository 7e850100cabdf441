"""Bad rows: each is named by file and line, or counted and left out."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixjars.data.readers import Examples, read, rows
from sixjars.errors import DataError
from sixjars.recipe.data import Column, DataSettings, Files

BOTH: dict[str, Column] = {"source": "en", "target": "de"}


def reading(folder: Path, files: Files, columns: Mapping[str, Column] = BOTH, **more: Any) -> Examples:
    return read(files, columns, settings=DataSettings(folder=str(folder), train="unused", **more))


def rows_of(examples: Examples) -> list[tuple[str, ...]]:
    names = [name for name in examples.table.column_names if name != "line"]
    return list(zip(*(examples.table.column(name).to_pylist() for name in names), strict=True))


def line_numbers(examples: Examples) -> list[int]:
    found: list[int] = examples.table.column("line").to_pylist()
    return found


@pytest.fixture(params=[2, 1 << 14], ids=["a few at once", "all at once"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "AT_ONCE", request.param)


BAD: dict[str, tuple[str, bytes, int, str]] = {
    "too few columns": ("a.tsv", b"en\tde\na\tb\nc\nd\te\n", 3, "has 1 column, but column 2 is asked for."),
    "empty line": ("a.tsv", b"en\tde\na\tb\n\nd\te\n", 3, "the line is empty."),
    "empty text": ("a.tsv", b"en\tde\na\tb\nc\t\nd\te\n", 3, "column 'de' is empty."),
    "white text": ("a.tsv", "en\tde\na\tb\n \u3000\tc\nd\te\n".encode(), 3, "column 'en' is empty."),
    "no UTF-8": (
        "a.tsv",
        b"en\tde\na\tb\nc\td\xe9\nd\te\n",
        3,
        "byte 4 of the line (0xe9) is not UTF-8; save the file as UTF-8.",
    ),
    "csv, few": ("a.csv", b'en,de\n"a\n\n",b\n"c"\nd,e\n', 5, "has 1 column, but column 2 is asked for."),
    "csv, empty": ("a.csv", b'en,de\n"a\n",b\nc,""\nd,e\n', 4, "column 'de' is empty."),
    "json, no key": (
        "a.jsonl",
        b'{"en": "a", "de": "b"}\n{"en": "c", "x": {}}\n{"en": "d", "de": "e"}\n',
        2,
        "column 'de' is unknown. Known: en, x.",
    ),
    "json, broken": (
        "a.jsonl",
        b'{"en": "a", "de": "b"}\n{"en": c\n{"en": "d", "de": "e"}\n',
        2,
        "is not JSON: Expecting value at column 8; each line is one object.",
    ),
    "json, array": (
        "a.jsonl",
        b'{"en": "a", "de": "b"}\n["c"]\n{"en": "d", "de": "e"}\n',
        2,
        'is JSON, but not an object; each line is one object, like {"text": "..."}.',
    ),
    "json, null": (
        "a.jsonl",
        b'{"en": "a", "de": "b"}\n{"en": "c", "de": null}\n{"en": "d", "de": "e"}\n',
        2,
        "column 'de' has no value.",
    ),
    "json, list": (
        "a.jsonl",
        b'{"en": "a", "de": "b"}\n{"en": "c", "de": ["x"]}\n{"en": "d", "de": "e"}\n',
        2,
        "column 'de' holds a list, not text.",
    ),
    "json, object": (
        "a.jsonl",
        b'{"en": "a", "de": "b"}\n{"en": "c", "de": {"x": 1}}\n{"en": "d", "de": "e"}\n',
        2,
        "column 'de' holds an object, not text.",
    ),
    "json, empty line": (
        "a.jsonl",
        b'{"en": "a", "de": "b"}\n \n{"en": "d", "de": "e"}\n',
        2,
        "the line is empty.",
    ),
    "json, surrogate": (
        "a.jsonl",
        b'{"en": "a", "de": "b"}\n{"en": "c", "de": "\\ud800"}\n{"en": "d", "de": "e"}\n',
        2,
        "column 'de' holds half a character (a lone surrogate), which is no text.",
    ),
    "json, deep": (
        "a.jsonl",
        b'{"en": "a", "de": "b"}\n' + b"[" * 200_000 + b'\n{"en": "d", "de": "e"}\n',
        2,
        "is not JSON that can be read: too many brackets inside brackets.",
    ),
}


@pytest.mark.parametrize(("name", "content", "line", "sentence"), BAD.values(), ids=BAD)
@pytest.mark.usefixtures("block")
def test_bad_rows(name: str, content: bytes, line: int, sentence: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        reading(tmp_path, name)
    assert str(caught.value) == f"{tmp_path / name}, line {line}: {sentence}"
    found = reading(tmp_path, name, on_bad_row="skip")
    assert found.skipped == 1
    assert [tuple(text.strip() for text in row) for row in rows_of(found)] == [("a", "b"), ("d", "e")]
    assert line_numbers(found)[-1] == line + 1


def test_the_first_bad_row_is_the_one_named(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"en\tde\na\tb\n \tb\nc\nd\xff\te\n")
    with pytest.raises(DataError, match="line 3: column 'en' is empty"):
        reading(tmp_path, "a.tsv")
    found = reading(tmp_path, "a.tsv", on_bad_row="skip")
    assert (found.skipped, line_numbers(found)) == (3, [2])


def test_when_all_rows_are_bad_the_first_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"en": "a", "de": [1]}\n{"en": "a"}\n')
    with pytest.raises(DataError) as caught:
        reading(tmp_path, "a.jsonl", on_bad_row="skip")
    assert str(caught.value) == (
        f"{tmp_path / 'a.jsonl'}: no row is left of 2; 2 were bad and 0 did not fit 'filter'. "
        "The first bad one is line 1: column 'de' holds a list, not text."
    )


VALUES = st.one_of(
    st.text(max_size=4),
    st.sampled_from(["\ud800", "a\udfff", "é", " "]),
    st.integers(),
    st.floats(allow_nan=False),
    st.booleans(),
    st.none(),
    st.lists(st.text(max_size=2), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)


def text_in_json(value: object) -> str | None:
    """What a value of JSON is as text; nothing where it makes a bad row."""
    if isinstance(value, list | dict) or value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    half = any("\ud800" <= letter <= "\udfff" for letter in text)
    return None if half or not text.strip() else text


@settings(max_examples=200, deadline=None)
@given(pairs=st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=9), at_once=st.integers(1, 9))
def test_one_odd_value_changes_no_other_row(pairs: list[tuple[Any, Any]], at_once: int) -> None:
    wanted = [(text_in_json(one), text_in_json(two), line) for line, (one, two) in enumerate(pairs, 1)]
    good = [row for row in wanted if None not in row]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "AT_ONCE", at_once)
        lines = (json.dumps({"en": one, "de": two}) + "\n" for one, two in pairs)
        Path(folder, "a.jsonl").write_text("".join(lines))
        if not good:
            with pytest.raises(DataError, match=f"no row is left of {len(pairs)}; {len(pairs)} were bad"):
                reading(Path(folder), "a.jsonl", on_bad_row="skip")
            return
        found = reading(Path(folder), "a.jsonl", on_bad_row="skip")
    assert [(*row, line) for row, line in zip(rows_of(found), line_numbers(found), strict=True)] == good
    assert found.skipped == len(pairs) - len(good)
