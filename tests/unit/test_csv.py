"""CSV: quoted fields, quotation marks as letters, line breaks, exact line numbers, and records that break the rules."""

import csv
import io
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixjars.data.tables import Examples, read, rows, table_file
from sixjars.data.tables.delimited import records_of
from sixjars.data.tables.dialect import dialect_of, refitted
from sixjars.data.tables.rows import Key, RowFault
from sixjars.data.text.files import lines_of
from sixjars.errors import DataError
from sixjars.recipe.data import Column, TableSettings
from sixjars.recipe.sections import DataSettings

NAMED: dict[str, Column] = {"source": "en", "target": "de"}
NUMBERED: dict[str, Column] = {"source": 1, "target": 2}
Rows = list[tuple[str, str, int]]


def reading(
    folder: Path, columns: Mapping[str, Column] = NAMED, on_bad_row: Any = "error"
) -> Examples:
    return read(
        "a.csv",
        columns,
        settings=DataSettings(folder=str(folder), train="unused", on_bad_row=on_bad_row),
    )


def read_rows(folder: Path, content: str | bytes, columns: Mapping[str, Column] = NAMED) -> Rows:
    (folder / "a.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    return rows_of(reading(folder, columns))


def rows_of(examples: Examples) -> Rows:
    return list(zip(*(column.to_pylist() for column in examples.table.columns), strict=True))


def message(folder: Path, on_bad_row: str = "error") -> str:
    with pytest.raises(DataError) as caught:
        reading(folder, on_bad_row=on_bad_row)
    return str(caught.value)


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize(
    ("record", "fields"),
    [
        ("a,b", ("a", "b")),
        ('"a, b",c', ("a, b", "c")),
        ('"a ""b"" c",d', ('a "b" c', "d")),
        ('"a\nb\n\nc",d', ("a\nb\n\nc", "d")),
        ('"a\r\nb",d', ("a\r\nb", "d")),
        ('"a\rb",d', ("a\rb", "d")),
        ('5" pipe,d', ('5" pipe', "d")),
        ('a "b" c,"d"', ('a "b" c', "d")),
        (' "a",d', (' "a"', "d")),
        ("a\rb,c\rd", ("a\rb", "c\rd")),
        ('a\rb,"c, d"', ("a\rb", "c, d")),
        ("a\0b,c", ("a\0b", "c")),
        ("a,b,c,d", ("a", "b")),
        ("a\u2028b,\x85c\x0b", ("a\u2028b", "\x85c\x0b")),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_fields(record: str, fields: tuple[str, str], end: str, tmp_path: Path) -> None:
    lines = 1 + record.count("\n")
    wanted = [("x", "y", 2), (*fields, 3), ("z", "z", 3 + lines), (*fields, 4 + lines)]
    text = end.join(["en,de", "x,y", record, "z,z", record])
    assert read_rows(tmp_path, text) == wanted  # no line break at the end
    assert read_rows(tmp_path, text + end) == wanted


def test_a_byte_order_mark_and_quotes_in_the_header(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbf"en","de ""x"", y"\r\na,b\r\n'
    assert read_rows(tmp_path, content, {"source": "en", "target": 'de "x", y'}) == [("a", "b", 2)]
    assert read_rows(tmp_path, b'"e\nn",de\na,b\n', {"source": "e\nn", "target": "de"}) == [
        ("a", "b", 3)
    ]


@pytest.mark.parametrize("begin", [b"sep=;\r\n", b"\xef\xbb\xbfsep=;\r\n", b"sep=;\n"])
def test_the_line_that_excel_begins_with_is_no_row(begin: bytes, tmp_path: Path) -> None:
    """It names the delimiter; lines are counted as they are in the file."""
    path = tmp_path / "a.csv"
    path.write_bytes(begin + b"en;de\r\na;b\r\n")
    assert list(lines_of(path)) == [(2, b"en;de\r\n"), (3, b"a;b\r\n")]
    assert dialect_of(path).names == ["en", "de"]
    other = tmp_path / "a.txt"
    other.write_bytes(begin)
    assert [number for number, _ in lines_of(other)] == [1]


def test_a_field_longer_than_the_csv_module_allows(tmp_path: Path) -> None:
    long = 'word, "quoted"\n' * 20_000
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [("en", "de"), (long, "b"), ("y" * 200_000, "z")]
    )
    assert read_rows(tmp_path, out.getvalue()) == [(long, "b", 2), ("y" * 200_000, "z", 20_003)]


@pytest.mark.parametrize("mode", ["error", "skip"])
@pytest.mark.usefixtures("block")
def test_stray_quotes_swallow_no_rows(mode: str, tmp_path: Path) -> None:
    texts = ['a 5" pipe' if row in (10, 900) else f"row {row}" for row in range(1, 1001)]
    (tmp_path / "a.csv").write_text("".join(f"{text},x\n" for text in texts))
    found = reading(tmp_path, NUMBERED, mode)
    assert rows_of(found) == [(text, "x", line) for line, text in enumerate(texts, 1)]
    assert found.skipped == 0


NOT_CSV = "is not CSV: ',' expected after '\"'; double each quotation mark inside a quoted field."
NO_UTF8 = "byte {} of the line (0xff) is not UTF-8; save the file as UTF-8."


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (b'"c"x,d', NOT_CSV),
        (b'c,"d" ', NOT_CSV),
        (b'"c\n\nc"x,d', NOT_CSV),
        (b'"c""d"e,f', NOT_CSV),
        (b"c\xff,d", NO_UTF8.format(2)),
        (b'c,"\xff\n"', NO_UTF8.format(4)),
        (b'"c\n\xff","d\nd"', NO_UTF8.format(1)),
        (b'"\xff"x,d', NO_UTF8.format(2)),
        (b'"c"', "has 1 column, but column 2 is asked for."),
        (b"", "the line is empty."),
        (b'""', "the line is empty."),
        (b'c,""', "column 'de' is empty."),
    ],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_bad_record_is_one_bad_row_named_by_its_first_line(
    record: bytes, sentence: str, end: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(end.join([b"en,de", b'"a\n\n",b', record, b"x,y", record, b'"z",z', b""]))
    line = 6 if b"\n\xff" in record else 5  # of a line that is no UTF-8, its own
    assert message(tmp_path) == f"{path}, line {line}: {sentence}"
    found = reading(tmp_path, on_bad_row="skip")
    height = 1 + record.count(b"\n")
    assert rows_of(found) == [("a\n\n", "b", 2), ("x", "y", 5 + height), ("z", "z", 6 + 2 * height)]
    assert found.skipped == 2


@pytest.mark.parametrize("mode", ["error", "skip"])
@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('en,de\na,b\nc,"x\nd,e\n', 3),
        ('en,de\na,b\n"c\nc","d\n5"" e,f\ng,h\ni,j', 4),
        ('en,de\na,"', 2),
        ('en,"de\na,b\n', 1),
        ('"e\nn","de\na,b\n', 2),
        ('en,de\r\n"a\r\nb","\r\nc', 3),
        ('en,de\na\rb,"c\n', 2),
    ],
)
def test_a_quotation_mark_that_is_never_closed(
    content: str, line: int, mode: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content.encode())
    sentence = "a quotation mark opens a field here and is never closed; close it, or double it."
    assert message(tmp_path, mode) == f"{path}, line {line}: {sentence}"


def test_a_header_that_breaks_the_rules(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('"en"x,de\na,b\n')
    assert message(tmp_path, "skip") == f"{tmp_path / 'a.csv'}, line 1: {NOT_CSV}"


# Against others


def after(state: str, letter: str) -> str:
    """What a letter makes of the state of a field: not begun, of letters, inside quotes, behind them, or broken."""
    if letter == '"':
        return {"begins": "quoted", "quoted": "closed", "closed": "quoted"}.get(state, state)
    if state == "quoted" or (state == "broken" and letter != "\n"):
        return state
    if letter in ",\n":
        return "begins"
    return "broken" if state == "closed" else "letters"


def by_hand(text: str) -> list[tuple[int, list[str] | None]] | int:
    """The records of a text, letter by letter: first line and fields, nothing for a bad one; or where a quote opens."""
    found: list[tuple[int, list[str] | None]] = []
    fields: list[str] = [""]
    state, line, first, opened, broken = "begins", 1, 1, 0, False
    for letter in text if text.endswith("\n") else text + "\n":
        before, state = state, after(state, letter)
        broken |= state == "broken"
        line += letter == "\n"
        if letter == "\n" and state == "begins":
            found.append((first, None if broken else fields))
            first, fields, broken = line, [""], False
        elif state == "begins":
            fields.append("")
        elif state != "closed" and before != "begins":
            fields[-1] += letter
        elif state == "letters":
            fields[-1] += letter
        elif state == "quoted":
            opened = line
    return opened if state == "quoted" else found


@settings(max_examples=600, deadline=None)
@given(text=st.text('ab,"\n\u00e9', min_size=1, max_size=40), crlf=st.booleans())
def test_records_agree_with_a_machine_that_reads_letters(text: str, crlf: bool) -> None:
    wanted = by_hand(text)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.csv")
        path.write_bytes(text.replace("\n", "\r\n" if crlf else "\n").encode())
        if isinstance(wanted, int):
            with pytest.raises(DataError, match=f"line {wanted}: a quotation mark opens"):
                list(records_of(path, ","))
            return
        found = [
            (
                line,
                None
                if isinstance(fields, RowFault)
                else [field.replace("\r\n", "\n") for field in fields],
            )
            for line, fields in records_of(path, ",")
        ]
    assert found == wanted


ANY = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12
).filter(str.strip)


@settings(max_examples=200, deadline=None)
@given(
    pairs=st.lists(st.tuples(ANY, ANY), min_size=1, max_size=8),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    end=st.sampled_from(["\n", "\r\n"]),
    at_once=st.integers(1, 9),
)
def test_tables_agree_with_pyarrow(
    pairs: list[tuple[str, str]], quoting: Any, end: str, at_once: int
) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator=end, quoting=quoting)
    starts = []
    for pair in pairs:
        starts.append(out.getvalue().count("\n") + 1)
        writer.writerow(pair)
    content = out.getvalue().encode()
    theirs = pyarrow.csv.read_csv(
        io.BytesIO(content),
        read_options=pyarrow.csv.ReadOptions(column_names=["one", "two"]),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={"one": pyarrow.string(), "two": pyarrow.string()}
        ),
    )
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "AT_ONCE", at_once)
        ours = read_rows(Path(folder), content, NUMBERED)
    assert ours == list(
        zip(*(column.to_pylist() for column in theirs.columns), starts, strict=True)
    )
    assert [row[:2] for row in ours] == pairs


@pytest.mark.parametrize("names", ["en,de", " en , de\t", '" en","de "'])
def test_blanks_around_names_do_not_count(names: str, tmp_path: Path) -> None:
    wanted = [("a", "b", 2)]
    assert read_rows(tmp_path, f"{names}\na,b\n") == wanted
    own: dict[str, Key] = {"source": "en", "target": "de"}
    [row] = table_file(tmp_path / "a.csv", own).rows()  # type: ignore[union-attr]  # it has columns
    assert row.values == {"source": "a", "target": "b"}


def test_blanks_count_where_names_differ_in_them_alone(tmp_path: Path) -> None:
    assert read_rows(tmp_path, "en, en,de\na,b,c\n", {"source": " en", "target": "de"}) == [
        ("b", "c", 2)
    ]
    assert read_rows(tmp_path, "en, en,de\na,b,c\n") == [("a", "c", 2)]


def test_a_recipe_may_have_the_blanks(tmp_path: Path) -> None:
    assert read_rows(tmp_path, " en,de\na,b\n", {"source": " en", "target": "de"}) == [
        ("a", "b", 2)
    ]


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        (
            "a.csv",
            b'en,de\n\xc3\xa4,x\n"two\nlines\xe4",y\nc,\xe4\n',
            "line 4: byte 6 of the line (0xe4)",
        ),
        ("a.tsv", b"en\tde\n\xc3\xa4\tx\nb\xe4\ty\nc\t\xe4\n", "line 3: byte 2 of the line (0xe4)"),
        (
            "a.jsonl",
            b'{"en": "\xc3\xa4"}\n{"en": ["b\xe4"]}\n{"en": "c", "de": "\xe4"}\n',
            "line 2: byte 11 of the line (0xe4)",
        ),
    ],
)
def test_an_input_that_is_not_utf8_is_told_as_a_row_of_the_data_is(
    name: str, content: bytes, line: str, tmp_path: Path
) -> None:
    """In a column that nobody reads it does not matter."""
    (tmp_path / name).write_bytes(content)
    found = [row.values for row in table_file(tmp_path / name, {"source": "en"}).rows()]  # type: ignore[union-attr]
    sentence = f"{line} is not UTF-8; save the file as UTF-8."
    number = int(line.split()[1].rstrip(":"))
    assert found == [{"source": "ä"}, RowFault(number, sentence), {"source": "c"}]
    with pytest.raises(DataError) as caught:
        read(name, {"source": "en"}, settings=DataSettings(folder=str(tmp_path), train="unused"))
    assert str(caught.value) == f"{tmp_path / name}, {sentence}"


def mails(path: Path, delimiter: str, quoting: Any, lines: int, count: int) -> Path:
    """An export: bodies of several lines, empty ones too; of HTML with commas, semicolons, quotes."""
    items = [[f"item {n}, {at}; see below" for at in range(lines)] for n in range(9)]
    plain = ["\n".join(["Dear team,", "", *some]) for some in items]
    html = '<style>p {{margin:0cm; x:y}}</style><p class="a">We agreed on {0},50; thanks&nbsp;</p>'
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, delimiter=delimiter, quoting=quoting)
        rows.writerow(["Subject", "Body", "From: (Name)", "Received", "Category"])
        for at in range(count):
            body = html.format(at) if at % 3 else plain[at % 9]
            label = ("Billing", "", "Sales")[at % 3]
            rows.writerow([f"order {at}", body, "Lukas", f"{at % 28}.04.2025 9:50", label])
    return path


@pytest.mark.parametrize("delimiter", [";", ",", "|"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL], ids=["some", "every field"])
@pytest.mark.parametrize(("lines", "count"), [(6, 600), (60, 300), (4000, 30)])
def test_the_delimiter_is_judged_over_records(
    delimiter: str, quoting: Any, lines: int, count: int, tmp_path: Path
) -> None:
    """Also where the lines that are looked at end inside of a field."""
    found = dialect_of(mails(tmp_path / "mails.csv", delimiter, quoting, lines, count))
    assert (found.delimiter, found.quotes, found.header) == (delimiter, True, True)
    assert {*map(len, found.rows)} == {5}


def test_a_second_file_of_such_records_has_a_delimiter_of_its_own(tmp_path: Path) -> None:
    path = mails(tmp_path / "new.csv", ";", csv.QUOTE_MINIMAL, 6, 300)
    found = refitted(path, ["Body", "Category"], TableSettings())
    assert found == {"delimiter": ";", "quotes": True}


@pytest.mark.parametrize(
    ("body", "settings"),
    [('"Hi,\nwhere is ""it""?"', {"quotes": True}), ('"Hi", he said', {})],
)
def test_a_tsv_for_evaluation_is_read_by_its_own_quotation_marks(
    body: str, settings: dict[str, bool], tmp_path: Path
) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(f"Body\tQueue\n{body}\tBilling\nHello\tOther\n", encoding="utf-8")
    assert refitted(path, ["Body", "Queue"], TableSettings()) == settings
    assert refitted(path, ["Body", "Queue"], TableSettings(quotes=False)) == {}
