"""Readers: every format gives the same rows, and a filter keeps some of them."""

import csv
import gzip
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixjars.data.tables import Examples, rows
from sixjars.recipe.data import Column, Files

from .rows import line_numbers, reading, rows_of

Pairs = list[tuple[str, str]]


def as_tsv(pairs: Pairs) -> bytes:
    return "".join(f"{one}\t{two}\n" for one, two in [("en", "de"), *pairs]).encode()


def as_csv(pairs: Pairs) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([("en", "de"), *pairs])
    return out.getvalue().encode()


def as_jsonl(pairs: Pairs) -> bytes:
    return "".join(
        json.dumps({"en": one, "de": two}, ensure_ascii=False) + "\n" for one, two in pairs
    ).encode()


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
PRINTABLE = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cf"]), min_size=1, max_size=12
).filter(str.strip)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.usefixtures("block")
def test_every_format_is_read(name: str, tmp_path: Path) -> None:
    pairs = [("I am home.", "Ich bin zu Hause."), ("நான்", "ik ❤"), ("a", "b")]
    (tmp_path / name).write_bytes(WRITERS[name](pairs))
    found = reading(tmp_path, name)
    assert rows_of(found) == pairs
    first = 2 if ".tsv" in name or ".csv" in name else 1
    assert line_numbers(found) == [first, first + 1, first + 2]
    assert found.skipped == 0
    assert found.where == str(tmp_path / name)
    assert found.table.schema == pyarrow.schema(
        [("source", pyarrow.string()), ("target", pyarrow.string()), ("line", pyarrow.int64())]
    )


@settings(max_examples=60, deadline=None)
@given(
    pairs=st.lists(st.tuples(PRINTABLE, PRINTABLE), min_size=1, max_size=6), size=st.integers(1, 9)
)
@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "a.parquet"])
def test_round_trip(name: str, pairs: Pairs, size: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "AT_ONCE", size)
        Path(folder, name).write_bytes(WRITERS[name](pairs))
        assert rows_of(reading(Path(folder), name)) == pairs


def test_numbers_mean_no_header(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("one\ttwo\tthree\nfour\tfive\n")
    found = reading(tmp_path, "a.tsv", {"target": 1, "source": 2})
    assert rows_of(found) == [("one", "two"), ("four", "five")]
    assert found.table.column_names == ["target", "source", "line"]


def test_a_quote_in_tsv_is_a_letter(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text('en\tde\n"a\tb"\n""\t"c"\n')
    assert rows_of(reading(tmp_path, "a.tsv")) == [('"a', 'b"'), ('""', '"c"')]


def test_byte_order_mark_and_crlf_and_no_last_newline(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"\xef\xbb\xbfen\tde\r\na\tb\r\nc\td")
    (tmp_path / "a.csv").write_bytes(b'\xef\xbb\xbf"en",de\r\na,"b"\r\nc,d')
    (tmp_path / "a.jsonl").write_bytes(
        b'\xef\xbb\xbf{"en": "a", "de": "b"}\r\n{"en": "c", "de": "d"}'
    )
    for name in ("a.tsv", "a.csv", "a.jsonl"):
        assert rows_of(reading(tmp_path, name)) == [("a", "b"), ("c", "d")]


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("a\x0bb\u2028c\x85d\re\nf\n".encode())
    assert rows_of(reading(tmp_path, "a.txt", {"target": "text"})) == [
        ("a\x0bb\u2028c\x85d\re",),
        ("f",),
    ]


@pytest.mark.parametrize("column", ["text", 1])
def test_plain_text_is_one_column(column: Column, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\tb\nc\n")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"a\tb\nc\n"))
    for name in ("a.txt", "a.txt.gz"):
        assert rows_of(reading(tmp_path, name, {"target": column})) == [("a\tb",), ("c",)]


def test_endings_in_capitals_and_absolute_paths(tmp_path: Path) -> None:
    (tmp_path / "A.TSV").write_bytes(as_tsv([("a", "b")]))
    assert rows_of(reading(Path("elsewhere"), str(tmp_path / "A.TSV"))) == [("a", "b")]


def test_json_numbers_become_text_and_paths_reach_inside(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"a": {"b": {"c": 1.50}}, "x.y": 123456789012345678901}\n{"a": {"b": {"c": true}}, "x.y": "d"}\n'
    )
    found = reading(tmp_path, "a.jsonl", {"source": "a.b.c", "target": "x.y"})
    assert rows_of(found) == [("1.50", "123456789012345678901"), ("true", "d")]


def test_an_alignment_may_be_empty(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\t0-0\nc\td\t\n")
    found = reading(tmp_path, "a.tsv", {"source": 1, "target": 2, "alignment": 3})
    assert rows_of(found) == [("a", "b", "0-0"), ("c", "d", "")]


def test_a_filter_keeps_rows_and_counts_none_as_bad(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("kind\ten\tde\nx\ta\tb\ny\t\t\nx\tc\td\n")
    found = reading(tmp_path, "a.tsv", filter={"kind": "x"})
    assert (rows_of(found), found.skipped, line_numbers(found)) == (
        [("a", "b"), ("c", "d")],
        0,
        [2, 4],
    )
    (tmp_path / "b.csv").write_text("x,a,b\ny,,\n")
    assert rows_of(reading(tmp_path, "b.csv", {"source": 2, "target": 3}, filter={"1": "x"})) == [
        ("a", "b")
    ]
    (tmp_path / "c.jsonl").write_text('{"m": {"n": 1}, "t": "a"}\n{"m": {"n": null}, "t": 3}\n')
    assert rows_of(reading(tmp_path, "c.jsonl", {"target": "t"}, filter={"m.n": "1"})) == [("a",)]
    (tmp_path / "d.en").write_text("a\n\n")
    (tmp_path / "d.kind").write_text("x\ny\n")
    files: Files = {"en": "d.en", "kind": "d.kind"}
    assert rows_of(reading(tmp_path, files, {"target": "en"}, filter={"kind": "x"})) == [("a",)]


def test_examples_from_no_file() -> None:
    found = Examples.of({"source": ["a"], "target": ["b"]}, where="the sample")
    assert (rows_of(found), line_numbers(found), found.skipped, found.where) == (
        [("a", "b")],
        [1],
        0,
        "the sample",
    )
