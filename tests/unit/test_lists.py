"""Readers: a list of texts is as many rows, or one value that becomes a text, where the caller allows it."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from sixjars.recipe.data import Column
from sixjars_runtime.text.segments import text_of_labels, text_of_segments

from .rows import readers, with_lines

CAPTIONS: dict[str, Column] = {"image": "image", "target": "caption"}
MANY = ("target",)
Row = tuple[str, ...]


reading, message = readers(CAPTIONS)


def test_a_list_is_as_many_rows(tmp_path: Path) -> None:
    lines = [
        {"image": "a.jpg", "caption": ["one", "two", 3]},
        {"image": "b.jpg", "caption": "alone"},
        {"image": "c.jpg", "caption": ["last"]},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    wanted = [
        ("a.jpg", "one", "1"),
        ("a.jpg", "two", "1"),
        ("a.jpg", "3", "1"),
        ("b.jpg", "alone", "2"),
        ("c.jpg", "last", "3"),
    ]
    assert with_lines(reading(tmp_path, "a.jsonl", many=MANY)) == wanted
    assert (
        with_lines(reading(tmp_path, "a.jsonl", many=MANY, filter={"caption": "two"}))
        == wanted[1:2]
    )
    path = tmp_path / "a.jsonl"
    assert (
        message(tmp_path, "a.jsonl") == f"{path}, line 1: column 'caption' holds a list, not text."
    )
    assert (
        message(tmp_path, "a.jsonl", many=("image",))
        == f"{path}, line 1: column 'caption' holds a list, not text."
    )


def test_lists_in_two_columns_are_all_pairs(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"q": ["1", "2"], "a": ["x", "y"]}\n')
    found = reading(tmp_path, "a.jsonl", {"source": "q", "target": "a"}, many=("source", "target"))
    assert with_lines(found) == [("1", "x", "1"), ("1", "y", "1"), ("2", "x", "1"), ("2", "y", "1")]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("[]", "column 'caption' holds an empty list."),
        ('["x", null]', "column 'caption' holds a list with null in it; it may hold texts alone."),
        (
            '["x", ["y"]]',
            "column 'caption' holds a list with a list in it; it may hold texts alone.",
        ),
        (
            '["x", {"y": 1}]',
            "column 'caption' holds a list with an object in it; it may hold texts alone.",
        ),
        (
            '["x", "\\ud800"]',
            "column 'caption' holds half a character (a lone surrogate), which is no text.",
        ),
        ("null", "column 'caption' has no value."),
    ],
)
def test_bad_lists(value: str, sentence: str, tmp_path: Path) -> None:
    good = '{"image": "g.jpg", "caption": ["one"]}\n'
    (tmp_path / "a.jsonl").write_text(good + f'{{"image": "b.jpg", "caption": {value}}}\n' + good)
    assert message(tmp_path, "a.jsonl", many=MANY) == f"{tmp_path / 'a.jsonl'}, line 2: {sentence}"
    found = reading(tmp_path, "a.jsonl", many=MANY, on_bad_row="skip")
    assert (with_lines(found), found.skipped) == ([("g.jpg", "one", "1"), ("g.jpg", "one", "3")], 1)


def test_an_empty_text_in_a_list_is_left_out_alone(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"image": "a.jpg", "caption": ["one", " ", "two"]}\n')
    assert (
        message(tmp_path, "a.jsonl", many=MANY)
        == f"{tmp_path / 'a.jsonl'}, line 1: column 'caption' is empty."
    )
    found = reading(tmp_path, "a.jsonl", many=MANY, on_bad_row="skip")
    assert (with_lines(found), found.skipped) == ([("a.jpg", "one", "1"), ("a.jpg", "two", "1")], 1)


TABLES: dict[str, tuple[Any, list[Any]]] = {
    "strings": (pyarrow.list_(pyarrow.string()), ["one", "two"]),
    "large": (pyarrow.large_list(pyarrow.large_string()), ["one", "two"]),
    "numbers": (pyarrow.list_(pyarrow.int64()), [1, 2]),
}


def table_of_lists(kind: Any, texts: list[Any]) -> Any:
    lists = pyarrow.array([texts, [], texts[:1], [texts[0], None], None], kind)
    return pyarrow.table({"image": list("abcde"), "caption": lists})


@pytest.mark.parametrize(("kind", "texts"), TABLES.values(), ids=TABLES)
def test_lists_in_parquet(kind: Any, texts: list[Any], tmp_path: Path) -> None:
    pyarrow.parquet.write_table(table_of_lists(kind, texts), tmp_path / "a.parquet")
    found = reading(tmp_path, "a.parquet", many=MANY, on_bad_row="skip")
    one, two = map(str, texts)
    assert (with_lines(found), found.skipped) == (
        [("a", one, "1"), ("a", two, "1"), ("c", one, "3")],
        3,
    )
    path = tmp_path / "a.parquet"
    assert (
        message(tmp_path, "a.parquet", many=MANY)
        == f"{path}, row 2: column 'caption' holds an empty list."
    )
    assert (
        message(tmp_path, "a.parquet") == f"{path}, row 1: column 'caption' holds a list, not text."
    )
    for start, sentence in (
        (3, "holds a list with null in it; it may hold texts alone."),
        (4, "has no value."),
    ):
        pyarrow.parquet.write_table(table_of_lists(kind, texts).slice(start), path)
        assert (
            message(tmp_path, "a.parquet", many=MANY)
            == f"{path}, row 1: column 'caption' {sentence}"
        )


def test_lists_of_bytes_stay_a_fault(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(
        pyarrow.table({"image": ["a"], "caption": [[b"x"]]}), tmp_path / "a.parquet"
    )
    told = "row 1: column 'caption' holds a list with bytes in it; it may hold texts alone."
    assert message(tmp_path, "a.parquet", many=MANY) == f"{tmp_path / 'a.parquet'}, {told}"


def test_lists_from_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dataset:
        def with_format(self, _: str) -> "Dataset":
            return self

        def iter(self, batch_size: int) -> list[Any]:
            return [table_of_lists(*TABLES["strings"]).slice(0, 1)] * min(batch_size, 2)

    module = ModuleType("datasets")
    module.load_dataset = lambda *_, **__: Dataset()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)
    found = reading(tmp_path, "hf:some", many=MANY)
    assert with_lines(found) == [
        ("a", "one", "1"),
        ("a", "two", "1"),
        ("a", "one", "2"),
        ("a", "two", "2"),
    ]


def test_unknown_boxes_may_be_empty(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("image\tcaption\tplaces\na\tb\t\nc\td\t0:0,0,1,1\n")
    found = reading(tmp_path, "a.tsv", {**CAPTIONS, "boxes": "places"})
    assert [row[2] for row in with_lines(found)] == ["", "0:0,0,1,1"]


# A list that is one value


AS_TEXT = {"target": text_of_segments}


def nested(value: object) -> str:
    """Points in lists in a list, as a caller may write them as text."""
    if not isinstance(value, list) or not all(isinstance(one, list) for one in value):
        raise ValueError("holds no list of lists.")
    return " ".join(",".join(str(number) for number in one) for one in value)


def test_a_list_as_text_is_one_text(tmp_path: Path) -> None:
    rows_of = [
        {"image": "a", "caption": ["one\nand", "two", 3, True], "labels": ["x", "y"]},
        {"image": "b", "caption": "plain\nstays", "labels": "x, y"},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in rows_of))
    columns: dict[str, Column] = {**CAPTIONS, "label": "labels"}
    as_text = {"target": text_of_segments, "label": text_of_labels}
    wanted = [("a", "one and\ntwo\n3\ntrue", "x, y", "1"), ("b", "plain\nstays", "x, y", "2")]
    for more in ({}, {"many": MANY}, {"filter": {"labels": "x, y"}}):
        found = reading(tmp_path, "a.jsonl", columns, **{"as_text": as_text, **more})
        assert with_lines(found) == wanted
    alone = {"label": text_of_labels}
    assert len(with_lines(reading(tmp_path, "a.jsonl", columns, many=MANY, as_text=alone))) == 5


def test_as_text_and_many_beside_each_other(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"image": ["a", "b"], "caption": ["one", "two"]}\n')
    found = reading(tmp_path, "a.jsonl", many=MANY, as_text={"image": text_of_segments})
    assert with_lines(found) == [("a\nb", "one", "1"), ("a\nb", "two", "1")]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("[]", "column 'caption' holds an empty list."),
        ('["x", null]', "column 'caption' holds a list with null in it; it may hold texts alone."),
        (
            '["x", {"y": 1}]',
            "column 'caption' holds a list with an object in it; it may hold texts alone.",
        ),
        (
            '["x", "\\ud800"]',
            "column 'caption' holds half a character (a lone surrogate), which is no text.",
        ),
        ('["", " "]', "column 'caption' is empty."),
        ('{"x": ["y"]}', "column 'caption' holds an object, not text."),
        ("null", "column 'caption' has no value."),
    ],
)
def test_bad_lists_as_text(value: str, sentence: str, tmp_path: Path) -> None:
    good = '{"image": "g", "caption": ["one"]}\n'
    (tmp_path / "a.jsonl").write_text(good + f'{{"image": "b", "caption": {value}}}\n' + good)
    assert (
        message(tmp_path, "a.jsonl", as_text=AS_TEXT)
        == f"{tmp_path / 'a.jsonl'}, line 2: {sentence}"
    )
    found = reading(tmp_path, "a.jsonl", as_text=AS_TEXT, on_bad_row="skip")
    assert (with_lines(found), found.skipped) == ([("g", "one", "1"), ("g", "one", "3")], 1)


@pytest.mark.parametrize(("kind", "texts"), TABLES.values(), ids=TABLES)
def test_lists_as_text_in_parquet(kind: Any, texts: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(table_of_lists(kind, texts), path)
    found = reading(tmp_path, "a.parquet", many=MANY, as_text=AS_TEXT, on_bad_row="skip")
    one, two = map(str, texts)
    assert (with_lines(found), found.skipped) == ([("a", f"{one}\n{two}", "1"), ("c", one, "3")], 3)
    sentence = "column 'caption' holds an empty list."
    assert message(tmp_path, "a.parquet", as_text=AS_TEXT) == f"{path}, row 2: {sentence}"


def test_lists_in_lists_are_for_the_caller(tmp_path: Path) -> None:
    points = [[[0.5, 1.25], [2.0, 3.0]], [[4.0, 5.0]]]
    kinds = {
        "a.parquet": pyarrow.list_(pyarrow.list_(pyarrow.float64())),
        "b.parquet": pyarrow.list_(pyarrow.list_(pyarrow.float32(), 2)),
    }
    for name, kind in kinds.items():
        table = pyarrow.table({"image": ["a", "b"], "caption": pyarrow.array(points, kind)})
        pyarrow.parquet.write_table(table, tmp_path / name)
    (tmp_path / "c.jsonl").write_text(
        "".join(
            json.dumps({"image": image, "caption": one}) + "\n"
            for image, one in zip("ab", points, strict=True)
        )
    )
    for name in (*kinds, "c.jsonl"):
        found = reading(tmp_path, name, as_text={"target": nested})
        assert with_lines(found) == [("a", "0.5,1.25 2.0,3.0", "1"), ("b", "4.0,5.0", "2")]
        told = "1: column 'caption' holds a list with a list in it; it may hold texts alone."
        assert message(tmp_path, name, as_text=AS_TEXT).endswith(told)


def test_lists_as_text_from_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dataset:
        def with_format(self, _: str) -> "Dataset":
            return self

        def iter(self, batch_size: int) -> list[Any]:
            return [table_of_lists(*TABLES["strings"]).slice(0, 1)] * min(batch_size, 2)

    module = ModuleType("datasets")
    module.load_dataset = lambda *_, **__: Dataset()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)
    assert with_lines(reading(tmp_path, "hf:some", as_text=AS_TEXT)) == [
        ("a", "one\ntwo", "1"),
        ("a", "one\ntwo", "2"),
    ]


def test_a_backslash_in_a_table_of_lines_stays(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("image\tcaption\na\tone\\ntwo\n")
    assert with_lines(reading(tmp_path, "a.tsv", as_text=AS_TEXT)) == [("a", "one\\ntwo", "2")]
