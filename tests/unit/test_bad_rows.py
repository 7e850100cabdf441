"""Bad rows: each is named by file and line, or counted and left out."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixjars.data.tables import rows
from sixjars.errors import DataError

from .rows import line_numbers, reading, rows_of

FEW = "has 1 column, but column 2 is asked for."
TSV: dict[str, tuple[bytes, str]] = {
    "too few columns": (b"c", FEW),
    "empty line": (b"", "the line is empty."),
    "empty text": (b"c\t", "column 'de' is empty."),
    "white text": (" \u3000\tc".encode(), "column 'en' is empty."),
    "no UTF-8": (b"c\td\x81", "byte 4 of the line (0x81) is not UTF-8; save the file as UTF-8."),
}
JSON: dict[str, tuple[bytes, str]] = {
    "no key": (b'{"en": "c", "x": {}}', "column 'de' is unknown. Known: en, x."),
    "broken": (
        b'{"en": c',
        "is not JSON: Expecting value at column 8; each line is one object.",
    ),
    "array": (
        b'["c"]',
        'is JSON, but not an object; each line is one object, like {"text": "..."}.',
    ),
    "null": (b'{"en": "c", "de": null}', "column 'de' has no value."),
    "list": (b'{"en": "c", "de": ["x"]}', "column 'de' holds a list, not text."),
    "object": (b'{"en": "c", "de": {"x": 1}}', "column 'de' holds an object, not text."),
    "empty line": (b" ", "the line is empty."),
    "surrogate": (
        b'{"en": "c", "de": "\\ud800"}',
        "column 'de' holds half a character (a lone surrogate), which is no text.",
    ),
    "deep": (b"[" * 200_000, "is not JSON that can be read: too many brackets inside brackets."),
}
BAD: dict[str, tuple[str, bytes, int, str]] = {
    "csv, few": ("a.csv", b'en,de\n"a\n\n",b\n"c"\nd,e\n', 5, FEW),
    "csv, empty": ("a.csv", b'en,de\n"a\n",b\nc,""\nd,e\n', 4, "column 'de' is empty."),
}
"""Between two good rows, a bad one: file, content, line and sentence."""
for name, (row, sentence) in TSV.items():
    BAD[name] = ("a.tsv", b"en\tde\na\tb\n" + row + b"\nd\te\n", 3, sentence)
for name, (row, sentence) in JSON.items():
    rows_of_json = (b'{"en": "a", "de": "b"}', row, b'{"en": "d", "de": "e"}\n')
    BAD[f"json, {name}"] = ("a.jsonl", b"\n".join(rows_of_json), 2, sentence)


@pytest.mark.parametrize(("name", "content", "line", "sentence"), BAD.values(), ids=BAD)
@pytest.mark.usefixtures("block")
def test_bad_rows(name: str, content: bytes, line: int, sentence: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        reading(tmp_path, name)
    assert str(caught.value) == f"{tmp_path / name}, line {line}: {sentence}"
    found = reading(tmp_path, name, on_bad_row="skip")
    assert found.skipped == 1
    expected = [("a", "b"), ("d", "e")]
    assert [tuple(text.strip() for text in row) for row in rows_of(found)] == expected
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
    wanted = [
        (text_in_json(one), text_in_json(two), line) for line, (one, two) in enumerate(pairs, 1)
    ]
    good = [row for row in wanted if None not in row]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "AT_ONCE", at_once)
        lines = (json.dumps({"en": one, "de": two}) + "\n" for one, two in pairs)
        Path(folder, "a.jsonl").write_text("".join(lines))
        if not good:
            told = f"no row is left of {len(pairs)}; {len(pairs)} (was|were) bad"
            with pytest.raises(DataError, match=told):
                reading(Path(folder), "a.jsonl", on_bad_row="skip")
            return
        found = reading(Path(folder), "a.jsonl", on_bad_row="skip")
    assert [
        (*row, line) for row, line in zip(rows_of(found), line_numbers(found), strict=True)
    ] == good
    assert found.skipped == len(pairs) - len(good)


def test_rows_of_a_list_on_one_line_are_counted_and_named(tmp_path: Path) -> None:
    pairs = [{"en": "a", "de": "b"}, {"en": "c"}, {"en": "d", "de": ""}, 5, {"en": "e", "de": "f"}]
    (tmp_path / "a.json").write_text(json.dumps(pairs))
    with pytest.raises(DataError, match=r"a\.json, row 2: column 'de' is unknown"):
        reading(tmp_path, "a.json")
    found = reading(tmp_path, "a.json", on_bad_row="skip")
    assert (found.skipped, line_numbers(found)) == (3, [1, 5])
    assert found.notes == (
        f"{tmp_path / 'a.json'}: 3 bad rows were skipped. Row 2: column 'de' is unknown. Known: "
        "en. "
        "Row 3: column 'de' is empty. Row 4: is no object; a list holds objects here.",
    )
    (tmp_path / "b.json").write_text(json.dumps(pairs, indent=0))
    found = reading(tmp_path, "b.json", on_bad_row="skip")
    assert (found.skipped, line_numbers(found)) == (3, [2, 14])


def test_one_bad_row_is_told_of_in_the_singular(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"en": "a"}\n{"en": "a", "de": "b"}\n')
    told = r"no row is left of 2; 1 was bad and 1 did not fit 'filter'\."
    with pytest.raises(DataError, match=told):
        reading(tmp_path, "a.jsonl", on_bad_row="skip", filter={"en": "x"})
