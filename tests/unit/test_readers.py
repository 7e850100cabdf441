"""Readers: every format gives the same rows, and every bad row is named by file and line."""

import csv
import gzip
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixjars.data.readers import Examples, Examples.of, lines, read
from sixjars.errors import DataError, MissingExtra
from sixjars.recipe.sections import Column, Files
from sixjars.recipe.sections import DataSettings

BOTH: dict[str, Column] = {"source": "en", "target": "de"}
Pairs = list[tuple[str, str]]


def reading(folder: Path, files: Files, columns: Mapping[str, Column] = BOTH, **more: Any) -> Examples:
    return read(files, columns, settings=DataSettings(folder=str(folder), train="unused", **more))


def rows(examples: Examples) -> list[tuple[str, ...]]:
    names = [name for name in examples.table.column_names if name != "line"]
    return list(zip(*(examples.table.column(name).to_pylist() for name in names), strict=True))


def line_numbers(examples: Examples) -> list[int]:
    found: list[int] = examples.table.column("line").to_pylist()
    return found


def as_tsv(pairs: Pairs) -> bytes:
    return "".join(f"{one}\t{two}\n" for one, two in [("en", "de"), *pairs]).encode()


def as_csv(pairs: Pairs) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([("en", "de"), *pairs])
    return out.getvalue().encode()


def as_jsonl(pairs: Pairs) -> bytes:
    return "".join(json.dumps({"en": one, "de": two}, ensure_ascii=False) + "\n" for one, two in pairs).encode()


def as_parquet(pairs: Pairs) -> bytes:
    out = io.BytesIO()
    table = pyarrow.table({"en": [one for one, _ in pairs], "de": [two for _, two in pairs]})
    pyarrow.parquet.write_table(table, out)
    return out.getvalue()


WRITERS: dict[str, Callable[[Pairs], bytes]] = {
    "a.tsv": as_tsv,
    "a.csv": as_csv,
    "a.jsonl": as_jsonl,
    "a.json": as_jsonl,
    "a.parquet": as_parquet,
    "a.tsv.gz": lambda pairs: gzip.compress(as_tsv(pairs)),
    "a.csv.gz": lambda pairs: gzip.compress(as_csv(pairs)),
    "a.jsonl.gz": lambda pairs: gzip.compress(as_jsonl(pairs)),
    "a.json.gz": lambda pairs: gzip.compress(as_jsonl(pairs)),
}
PRINTABLE = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf"]), min_size=1, max_size=12).filter(str.strip)
ANY_LINES = st.text(st.characters(exclude_categories=["Cs", "Cf"], exclude_characters="\r\0"), min_size=1, max_size=12)


@pytest.fixture(params=[5, 1 << 24], ids=["small blocks", "one block"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK", request.param)


# Every format


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.usefixtures("block")
def test_every_format_is_read(name: str, tmp_path: Path) -> None:
    pairs = [("I am home.", "Ich bin zu Hause."), ("நான்", "ik ❤"), ("a", "b")]
    (tmp_path / name).write_bytes(WRITERS[name](pairs))
    found = reading(tmp_path, name)
    assert rows(found) == pairs
    first = 2 if ".tsv" in name or ".csv" in name else 1
    assert line_numbers(found) == [first, first + 1, first + 2]
    assert found.skipped == 0
    assert found.where == str(tmp_path / name)
    assert found.table.schema == pyarrow.schema(
        [("source", pyarrow.string()), ("target", pyarrow.string()), ("line", pyarrow.int64())]
    )


@settings(max_examples=60, deadline=None)
@given(pairs=st.lists(st.tuples(PRINTABLE, PRINTABLE), min_size=1, max_size=6), size=st.integers(1, 40))
@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "a.parquet"])
def test_round_trip(name: str, pairs: Pairs, size: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK", size)
        Path(folder, name).write_bytes(WRITERS[name](pairs))
        assert rows(reading(Path(folder), name)) == pairs


@settings(max_examples=150, deadline=None)
@given(
    pairs=st.lists(st.tuples(ANY_LINES.filter(str.strip), ANY_LINES.filter(str.strip)), min_size=1, max_size=6),
    size=st.integers(1, 40),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_csv_with_line_breaks_agrees_with_the_csv_module(pairs: Pairs, size: int, quoting: Any, end: str) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=end, quoting=quoting)
    starts = []
    for pair in pairs:
        starts.append(out.getvalue().count("\n") + 1)
        writer.writerow(pair)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK", size)
        Path(folder, "a.csv").write_bytes(out.getvalue().encode())
        found = reading(Path(folder), "a.csv", {"source": 1, "target": 2})
    assert rows(found) == pairs
    assert line_numbers(found) == starts


def test_numbers_mean_no_header(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("one\ttwo\tthree\nfour\tfive\n")
    found = reading(tmp_path, "a.tsv", {"target": 1, "source": 2})
    assert rows(found) == [("one", "two"), ("four", "five")]
    assert found.table.column_names == ["target", "source", "line"]


def test_a_quote_in_tsv_is_a_letter(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text('en\tde\n"a\tb"\n""\t"c"\n')
    assert rows(reading(tmp_path, "a.tsv")) == [('"a', 'b"'), ('""', '"c"')]


def test_byte_order_mark_and_crlf_and_no_last_newline(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"\xef\xbb\xbfen\tde\r\na\tb\r\nc\td")
    (tmp_path / "a.csv").write_bytes(b'\xef\xbb\xbf"en",de\r\na,"b"\r\nc,d')
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"en": "a", "de": "b"}\r\n{"en": "c", "de": "d"}')
    for name in ("a.tsv", "a.csv", "a.jsonl"):
        assert rows(reading(tmp_path, name)) == [("a", "b"), ("c", "d")]


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("a\x0bb\u2028c\x85d\re\nf\n".encode())
    assert rows(reading(tmp_path, "a.txt", {"target": "text"})) == [("a\x0bb\u2028c\x85d\re",), ("f",)]


@pytest.mark.parametrize("column", ["text", 1])
def test_plain_text_is_one_column(column: Column, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\tb\nc\n")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"a\tb\nc\n"))
    for name in ("a.txt", "a.txt.gz"):
        assert rows(reading(tmp_path, name, {"target": column})) == [("a\tb",), ("c",)]


def test_endings_in_capitals_and_absolute_paths(tmp_path: Path) -> None:
    (tmp_path / "A.TSV").write_bytes(as_tsv([("a", "b")]))
    assert rows(reading(Path("elsewhere"), str(tmp_path / "A.TSV"))) == [("a", "b")]


def test_more_columns_than_needed_are_fine(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('x,en,de\n1,a,b,c,d\n2,"a",b,c\n')
    assert rows(reading(tmp_path, "a.csv")) == [("a", "b"), ("a", "b")]


def test_csv_fields_longer_than_the_csv_module_allows(tmp_path: Path) -> None:
    long = 'word, "quoted"\n' * 20_000
    (tmp_path / "a.csv").write_bytes(as_csv([(long, "b")]))
    assert rows(reading(tmp_path, "a.csv")) == [(long, "b")]


def test_json_numbers_become_text_and_paths_reach_inside(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"a": {"b": {"c": 1.50}}, "x.y": 123456789012345678901}\n{"a": {"b": {"c": true}}, "x.y": "d"}\n'
    )
    found = reading(tmp_path, "a.jsonl", {"source": "a.b.c", "target": "x.y"})
    assert rows(found) == [("1.50", "123456789012345678901"), ("true", "d")]


def parquet(folder: Path, name: str, columns: Mapping[str, Any]) -> None:
    pyarrow.parquet.write_table(pyarrow.table(dict(columns)), folder / name)


def test_parquet_kinds_paths_and_numbers(tmp_path: Path) -> None:
    nested = pyarrow.array([{"b": {"c": "x"}}, {"b": {"c": "y"}}])
    columns = {
        "a": nested,
        "a.b": ["dotted", "name"],
        "number": [1, 2],
        "share": [0.5, 1.25],
        "truth": [True, False],
        "few": pyarrow.array(["u", "v"]).dictionary_encode(),
        "large": pyarrow.array(["k", "l"], pyarrow.large_string()),
        "raw": pyarrow.array([b"m", b"n"]),
    }
    parquet(tmp_path, "a.parquet", columns)
    for column, want in {
        "a.b.c": ["x", "y"],
        "a.b": ["dotted", "name"],
        "number": ["1", "2"],
        "share": ["0.5", "1.25"],
        "truth": ["true", "false"],
        "few": ["u", "v"],
        "large": ["k", "l"],
        "raw": ["m", "n"],
    }.items():
        assert rows(reading(tmp_path, "a.parquet", {"target": column})) == [(text,) for text in want]
    assert rows(reading(tmp_path, "a.parquet", {"target": 3})) == [("1",), ("2",)]


def test_parquet_rows_are_numbered_across_batches(tmp_path: Path) -> None:
    texts = [str(number) for number in range(70_000)]
    parquet(tmp_path, "a.parquet", {"text": [*texts[:-1], ""]})
    with pytest.raises(DataError, match="row 70000: column 'text' is empty"):
        reading(tmp_path, "a.parquet", {"target": "text"})
    found = reading(tmp_path, "a.parquet", {"target": "text"}, on_bad_row="skip")
    assert line_numbers(found) == list(range(1, 70_000))


# Parallel files


def test_parallel_files(tmp_path: Path) -> None:
    (tmp_path / "x.en").write_text("a\nb\n")
    (tmp_path / "x.de.gz").write_bytes(gzip.compress(b"c\r\nd"))
    found = reading(tmp_path, {"en": "x.en", "de": "x.de.gz"})
    assert rows(found) == [("a", "c"), ("b", "d")]
    assert line_numbers(found) == [1, 2]
    assert found.where == f"{tmp_path / 'x.en'} + {tmp_path / 'x.de.gz'}"


@pytest.mark.usefixtures("block")
def test_parallel_bad_lines_name_their_own_file(tmp_path: Path) -> None:
    (tmp_path / "x.en").write_bytes(b"a\nb\nc\nd\xff\ne\n")
    (tmp_path / "x.de").write_text("f\n \nh\ni\nj\n")
    files: Files = {"en": "x.en", "de": "x.de"}
    with pytest.raises(DataError) as caught:
        reading(tmp_path, files)
    assert str(caught.value) == f"{tmp_path / 'x.de'}, line 2: column 'de' is empty."
    found = reading(tmp_path, files, on_bad_row="skip")
    assert rows(found) == [("a", "f"), ("c", "h"), ("e", "j")]
    assert (found.skipped, line_numbers(found)) == (2, [1, 3, 5])
    (tmp_path / "x.de").write_text("f\ng\nh\ni\nj\n")
    with pytest.raises(DataError) as caught:
        reading(tmp_path, files)
    assert str(caught.value) == (
        f"{tmp_path / 'x.en'}, line 4: byte 2 of the line (0xff) is not UTF-8; save the file as UTF-8."
    )


def test_parallel_files_of_unequal_length(tmp_path: Path) -> None:
    (tmp_path / "x.en").write_text("a\nb\n")
    (tmp_path / "x.de").write_text("c\n")
    with pytest.raises(DataError) as caught:
        reading(tmp_path, {"en": "x.en", "de": "x.de"})
    one, two = tmp_path / "x.en", tmp_path / "x.de"
    assert str(caught.value) == f"Parallel files must have equally many lines: {one} has 2, but {two} has 1."


def test_parallel_unknown_column(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^Parallel files: column 'de' is unknown\. .*Known: den, en\.$"):
        reading(tmp_path, {"en": "x.en", "den": "x.de"})


# Rows that are left out


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
    "csv, after quote": (
        "a.csv",
        b'en,de\na,b\n"c"x,e\nd,e\n',
        3,
        "text follows the quotation mark that closes a field; double each mark inside a quoted field.",
    ),
    "csv, never closed": (
        "a.csv",
        b'en,de\na,b\nc,"x\nd,e\n',
        3,
        "a quotation mark opens a field here and is never closed; close it, or, if it is a letter, quote the field "
        "and double it.",
    ),
    "csv, no UTF-8": (
        "a.csv",
        b'en,de\n"a\n",b\nc,"\xff\n"\nd,e\n',
        4,
        "byte 4 of the line (0xff) is not UTF-8; save the file as UTF-8.",
    ),
    "json, no key": (
        "a.jsonl",
        b'{"en": "a", "de": "b"}\n{"en": "c", "x": {}}\n{"en": "d", "de": "e"}\n',
        2,
        "key 'de' is unknown. Known: en, x.",
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
        "key 'de' holds a list, not text.",
    ),
    "json, object": (
        "a.jsonl",
        b'{"en": "a", "de": "b"}\n{"en": "c", "de": {"x": 1}}\n{"en": "d", "de": "e"}\n',
        2,
        "key 'de' holds an object, not text.",
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
        "key 'de' holds half a character (a lone surrogate), which is no text.",
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
    assert [tuple(text.strip() for text in row) for row in rows(found)] == [("a", "b"), ("d", "e")]
    after = line + (2 if name == "a.csv" and b"\xff\n" in content else 1)
    assert line_numbers(found)[-1] == after


def test_the_first_bad_row_is_the_one_named(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"en\tde\na\tb\n \tb\nc\nd\xff\te\n")
    with pytest.raises(DataError, match="line 3: column 'en' is empty"):
        reading(tmp_path, "a.tsv")
    found = reading(tmp_path, "a.tsv", on_bad_row="skip")
    assert (found.skipped, line_numbers(found)) == (3, [2])


@pytest.mark.parametrize("mode", ["error", "skip"])
@pytest.mark.usefixtures("block")
def test_stray_quotes_swallow_no_rows(mode: str, tmp_path: Path) -> None:
    texts = ['a 5" pipe' if row in (10, 900) else f"row {row}" for row in range(1, 1001)]
    (tmp_path / "a.csv").write_text("".join(f"{text},x\n" for text in texts))
    found = reading(tmp_path, "a.csv", {"source": 1, "target": 2}, on_bad_row=mode)
    assert rows(found) == [(text, "x") for text in texts]
    assert (found.skipped, line_numbers(found)) == (0, list(range(1, 1001)))


UNCLOSED = (
    "a quotation mark opens a field here and is never closed; close it, or, if it is a letter, quote the field "
    "and double it."
)


@pytest.mark.usefixtures("block")
def test_a_quote_that_never_closes_spoils_one_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('en,de\na,b\n"c\nc","d\n5"" e,f\ng,h\ni,j')
    assert message(tmp_path, "a.csv") == f"{tmp_path / 'a.csv'}, line 4: {UNCLOSED}"
    found = reading(tmp_path, "a.csv", on_bad_row="skip")
    assert rows(found) == [("a", "b"), ('5"" e', "f"), ("g", "h"), ("i", "j")]
    assert (found.skipped, line_numbers(found)) == (1, [2, 5, 6, 7])


@pytest.mark.parametrize(("header", "line"), [('en,"de\n', 1), ('"e\nn","de\n', 2)])
def test_a_header_that_never_closes(header: str, line: int, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(header + "a,b\n")
    for mode in ("error", "skip"):
        assert message(tmp_path, "a.csv", on_bad_row=mode) == f"{tmp_path / 'a.csv'}, line {line}: {UNCLOSED}"


def after(state: str, letter: str) -> str:
    if letter == '"':
        return {"begins": "quoted", "quoted": "closed", "closed": "quoted", "letters": "letters"}[state]
    if state == "quoted":
        return "quoted"
    return "begins" if letter in ",\n" else "letters"


def records_letter_by_letter(text: str) -> tuple[list[tuple[int, str]], list[int]]:
    """What RFC 4180 makes of a text, told as a machine that reads one letter at a time."""
    found: list[tuple[int, str]] = []
    start = opened = 0
    state = "begins"
    for at, letter in enumerate(text):
        opened = at if state == "begins" else opened
        state = after(state, letter)
        if letter == "\n" and state != "quoted":
            found.append((text.count("\n", 0, start) + 1, text[start:at]))
            start = at + 1
    if state == "quoted":
        cut = text.find("\n", opened) + 1 or len(text)
        shift = text.count("\n", 0, cut)
        more, faults = records_letter_by_letter(text[cut:])
        line = text.count("\n", 0, opened) + 1
        return found + [(number + shift, rest) for number, rest in more], [line, *(one + shift for one in faults)]
    if start < len(text):
        found.append((text.count("\n", 0, start) + 1, text[start:]))
    return found, []


@settings(max_examples=600, deadline=None)
@given(text=st.text('ab,"\n', min_size=1, max_size=40), size=st.integers(1, 40))
def test_csv_records_agree_with_a_machine_that_reads_letters(text: str, size: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK", size)
        Path(folder, "a.csv").write_bytes(text.encode())
        blocks = list(lines.lines_of(Path(folder, "a.csv"), quotes=True))
    found = [pair for one in blocks for pair in zip(one.numbers.tolist(), one.texts.to_pylist(), strict=True)]
    faults = [fault.line for one in blocks for fault in one.faults]
    assert (found, faults) == records_letter_by_letter(text)


LETTERS = st.text('ab" é', min_size=1, max_size=6).filter(lambda text: text[0] != '"' and text.strip() != "")
QUOTED = (
    st.text('ab", é\n', min_size=1, max_size=6).filter(str.strip).map(lambda text: '"' + text.replace('"', '""') + '"')
)


@settings(max_examples=300, deadline=None)
@given(
    pairs=st.lists(st.tuples(LETTERS | QUOTED, LETTERS | QUOTED), min_size=1, max_size=8),
    size=st.integers(1, 60),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_csv_with_quotes_as_letters_agrees_with_the_csv_module(pairs: Pairs, size: int, end: str) -> None:
    text = "".join(f"{one},{two}{end}" for one, two in pairs)
    reader = csv.reader(io.StringIO(text, newline=""))
    wanted, starts, before = [], [], 0
    for row in reader:
        wanted.append(tuple(row))
        starts.append(before + 1)
        before = reader.line_num
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK", size)
        Path(folder, "a.csv").write_bytes(text.encode())
        found = reading(Path(folder), "a.csv", {"source": 1, "target": 2})
    assert rows(found) == wanted
    assert line_numbers(found) == starts


def test_parquet_bad_rows(tmp_path: Path) -> None:
    nested = pyarrow.array([{"b": "x"}, None, {"b": None}, {"b": "y"}])
    raw = pyarrow.array([b"u", b"v", b"w", b"y\xff"])
    parquet(tmp_path, "a.parquet", {"a": nested, "raw": raw})
    with pytest.raises(DataError) as caught:
        reading(tmp_path, "a.parquet", {"target": "a.b"})
    assert str(caught.value) == f"{tmp_path / 'a.parquet'}, row 2: column 'a.b' has no value."
    found = reading(tmp_path, "a.parquet", {"target": "a.b"}, on_bad_row="skip")
    assert (rows(found), found.skipped, line_numbers(found)) == ([("x",), ("y",)], 2, [1, 4])
    with pytest.raises(DataError) as caught:
        reading(tmp_path, "a.parquet", {"target": "raw"})
    assert str(caught.value) == f"{tmp_path / 'a.parquet'}, row 4: byte 2 of column 'raw' is not UTF-8."
    assert reading(tmp_path, "a.parquet", {"target": "raw"}, on_bad_row="skip").skipped == 1


def test_an_alignment_may_be_empty(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\t0-0\nc\td\t\n")
    found = reading(tmp_path, "a.tsv", {"source": 1, "target": 2, "alignment": 3})
    assert rows(found) == [("a", "b", "0-0"), ("c", "d", "")]


def test_where_keeps_rows_and_counts_none_as_bad(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("kind\ten\tde\nx\ta\tb\ny\t\t\nx\tc\td\n")
    found = reading(tmp_path, "a.tsv", where={"kind": "x"})
    assert (rows(found), found.skipped, line_numbers(found)) == ([("a", "b"), ("c", "d")], 0, [2, 4])
    (tmp_path / "b.csv").write_text("x,a,b\ny,,\n")
    assert rows(reading(tmp_path, "b.csv", {"source": 2, "target": 3}, where={"1": "x"})) == [("a", "b")]
    (tmp_path / "c.jsonl").write_text('{"m": {"n": 1}, "t": "a"}\n{"m": {"n": null}, "t": 3}\n')
    assert rows(reading(tmp_path, "c.jsonl", {"target": "t"}, where={"m.n": "1"})) == [("a",)]
    (tmp_path / "d.en").write_text("a\n\n")
    (tmp_path / "d.kind").write_text("x\ny\n")
    files: Files = {"en": "d.en", "kind": "d.kind"}
    assert rows(reading(tmp_path, files, {"target": "en"}, where={"kind": "x"})) == [("a",)]


# Files that cannot be read


def message(folder: Path, files: Files, columns: Mapping[str, Column] = BOTH, **more: Any) -> str:
    with pytest.raises(DataError) as caught:
        reading(folder, files, columns, **more)
    return str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").touch()
    path = tmp_path / "trian.tsv"
    assert message(tmp_path, "trian.tsv") == f"{path} does not exist. Did you mean 'train.tsv'?"
    lost = tmp_path / "no" / "a.parquet"
    assert message(tmp_path, "no/a.parquet") == (
        f"{lost} does not exist. There is no folder {str(tmp_path / 'no')!r} either."
    )


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").mkdir()
    (tmp_path / "b").mkdir()
    assert message(tmp_path, "a.tsv") == f"{tmp_path / 'a.tsv'} is a folder, not a file; name a file in it."
    assert message(tmp_path, "b") == (
        f"{tmp_path / 'b'} is a folder, not a file; name a file in it (or write hf:FOLDER)."
    )


def test_unknown_ending(tmp_path: Path) -> None:
    known = ".csv, .csv.gz, .json, .json.gz, .jsonl, .jsonl.gz, .parquet, .tsv, .tsv.gz, .txt, .txt.gz"
    assert message(tmp_path, "a.tvs") == (
        f"{tmp_path / 'a.tvs'}: ending '.tvs' is unknown. Did you mean '.tsv'? Known: {known}."
    )
    assert "ending '.parquet.gz' is unknown" in message(tmp_path, "a.parquet.gz")


def test_unknown_column(tmp_path: Path) -> None:
    for name in ("a.tsv", "a.csv"):
        (tmp_path / name).write_bytes(WRITERS[name]([("a", "b")]))
        found = message(tmp_path, name, {"source": "enn", "target": "de"})
        assert found == f"{tmp_path / name}: column 'enn' is unknown. Did you mean 'en'? Known: de, en."
    parquet(tmp_path, "a.parquet", {"a": pyarrow.array([{"bcd": "x"}])})
    path = tmp_path / "a.parquet"
    assert message(tmp_path, "a.parquet", {"target": "a.bce"}) == (
        f"{path}: column 'a.bce' is unknown. Did you mean 'a.bcd'? Known: a.bcd."
    )
    assert message(tmp_path, "a.parquet", {"target": 2}) == f"{path}: column 2 is asked for, but there are 1."
    (tmp_path / "a.txt").write_text("a\n")
    assert message(tmp_path, "a.txt", {"target": "de"}) == (
        f"{tmp_path / 'a.txt'}: column 'de' is unknown. Known: 1, text."
    )
    (tmp_path / "a.jsonl").write_text('{"a": {"bcd": 1}}\n')
    assert message(tmp_path, "a.jsonl", {"target": "a.bce"}) == (
        f"{tmp_path / 'a.jsonl'}, line 1: key 'a.bce' is unknown. Did you mean 'a.bcd'? Known: a.bcd."
    )
    assert message(tmp_path, "a.jsonl", {"target": 1}) == (
        f"{tmp_path / 'a.jsonl'}: JSON lines have names, not numbers, so column 1 is not there; give its name."
    )


def test_a_column_twice_in_the_header(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("en\ten\tde\na\tb\tc\n")
    path = tmp_path / "a.tsv"
    assert message(tmp_path, "a.tsv") == (f"{path}: column 'en' is in the header twice; rename one or give its number.")


def test_a_header_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"\xff\xfee\0n\0\t\0d\0e\0\n\0")
    assert message(tmp_path, "a.tsv", on_bad_row="skip") == (
        f"{tmp_path / 'a.tsv'}, line 1: byte 1 of the line (0xff) is not UTF-8; save the file as UTF-8."
    )


def test_parquet_columns_that_hold_no_text(tmp_path: Path) -> None:
    parquet(tmp_path, "a.parquet", {"a": pyarrow.array([{"b": "x", "c": "y"}]), "l": [["x"]]})
    path = tmp_path / "a.parquet"
    assert message(tmp_path, "a.parquet", {"target": "a"}) == (
        f"{path}: column 'a' holds struct<b: string, c: string>, not text. Name one of its parts: a.b, a.c."
    )
    assert "column 'l' holds list<" in message(tmp_path, "a.parquet", {"target": "l"}, on_bad_row="skip")


def test_names_and_numbers_do_not_mix(tmp_path: Path) -> None:
    assert message(tmp_path, "a.tsv", {"source": "en", "target": 2}) == (
        "Columns are given by name ('en') and by number (2); use names alone, or numbers alone "
        "(then the file has no header)."
    )
    assert message(tmp_path, "a.tsv", {"source": 1, "target": 2}, where={"kind": "x"}) == (
        "'where' names column 'kind', but the other columns are given by number; give its number from 1."
    )


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(b"a\tb\n" * 9999)[:-9]], ids=["plain", "cut"])
def test_damaged_gzip(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.tsv.gz").write_bytes(content)
    assert message(tmp_path, "a.tsv.gz").startswith(f"{tmp_path / 'a.tsv.gz'} is not a gzip file or is damaged: ")


def test_gzip_with_a_wrong_byte(tmp_path: Path) -> None:
    content = bytearray(gzip.compress(os.urandom(5000)))
    content[2000] ^= 255
    (tmp_path / "a.txt.gz").write_bytes(content)
    assert "is not a gzip file or is damaged" in message(tmp_path, "a.txt.gz", {"target": "text"}, on_bad_row="skip")


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
    assert message(tmp_path, "a.parquet", {"target": "en"}) == f"{tmp_path / 'a.parquet'} has no rows."


def test_no_row_left(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("kind\ten\tde\nx\ta\tb\ny\t\tc\n")
    path = tmp_path / "a.tsv"
    assert message(tmp_path, "a.tsv", where={"kind": "y"}, on_bad_row="skip") == (
        f"{path}: no row is left of 2; 1 were bad and 1 did not fit 'where'."
    )


def test_a_line_of_more_than_two_gigabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_LONGEST", 10)
    monkeypatch.setattr(lines, "BLOCK", 4)
    (tmp_path / "a.csv").write_text('en,de\n"aaaaaaaaaaaaaa\n')
    assert message(tmp_path, "a.csv") == (
        f"{tmp_path / 'a.csv'}, line 2: longer than 2 GB; is a quotation mark left open?"
    )


# The hub


class FakeDataset:
    """As much of `datasets.Dataset` as is used."""

    def with_format(self, kind: str) -> "FakeDataset":
        assert kind == "arrow"
        return self

    def iter(self, batch_size: int) -> Iterator[Any]:
        assert batch_size > 0
        for pairs in ([("a", "b"), ("c", "d")], [("e", ""), ("g", "h")]):
            translation = pyarrow.array([{"en": one, "de": two} for one, two in pairs])
            yield pyarrow.table({"translation": translation})


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None, str]]:
    calls: list[tuple[str, str | None, str]] = []

    def load_dataset(path: str, name: str | None = None, *, split: str) -> FakeDataset:
        calls.append((path, name, split))
        if path == "lost":
            raise FileNotFoundError("Dataset 'lost' is not on the hub.\nTraceback")
        return FakeDataset()

    module = ModuleType("datasets")
    module.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)
    return calls


HUB: dict[str, Column] = {"source": "translation.en", "target": "translation.de"}


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("hf:wmt", ("wmt", None, "train")),
        ("hf:org/wmt:test", ("org/wmt", None, "test")),
        ("hf:org/wmt@de-en:train[:10%]", ("org/wmt", "de-en", "train[:10%]")),
        ("hf:wmt@de-en", ("wmt", "de-en", "train")),
    ],
)
def test_hub_names(name: str, call: tuple[str, str | None, str], loaded: list[Any], tmp_path: Path) -> None:
    found = reading(tmp_path, name, HUB, on_bad_row="skip")
    assert loaded == [call]
    assert rows(found) == [("a", "b"), ("c", "d"), ("g", "h")]
    assert (found.skipped, line_numbers(found), found.where) == (1, [1, 2, 4], name)


def test_hub_takes_a_folder_beside_the_recipe(loaded: list[Any], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    reading(tmp_path, "hf:mine:test", HUB, on_bad_row="skip")
    assert loaded == [(str(tmp_path / "mine"), None, "test")]


@pytest.mark.usefixtures("loaded")
def test_hub_errors(tmp_path: Path) -> None:
    assert message(tmp_path, "hf:wmt", HUB) == "hf:wmt, row 3: column 'translation.de' is empty."
    assert message(tmp_path, "hf:lost", HUB) == "hf:lost cannot be loaded: Dataset 'lost' is not on the hub."
    assert message(tmp_path, "hf:@x", HUB) == (
        "'hf:@x' is no name of a dataset; write hf:NAME, hf:NAME:SPLIT or hf:NAME@CONFIG:SPLIT."
    )
    assert "column 'translation.fr' is unknown" in message(tmp_path, "hf:wmt", {"target": "translation.fr"})


def test_hub_needs_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra) as caught:
        reading(tmp_path, "hf:wmt", HUB)
    assert str(caught.value) == "datasets is not installed. Run: pip install 'sixjars[hub]'"


def test_examples_from_no_file() -> None:
    found = Examples.of({"source": ["a"], "target": ["b"]}, where="the sample")
    assert (rows(found), line_numbers(found), found.skipped, found.where) == (
        [("a", "b")],
        [1],
        0,
        "the sample",
    )
