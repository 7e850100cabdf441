"""The contract of files with columns, for each format: the same texts for training and prediction, and appended rows."""

import csv
import json
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow
import pyarrow.parquet
import pytest

from sixjars.data.tables import FORMATS, read, table_file
from sixjars.data.tables.rows import RowFault
from sixjars.data.tables.table_file import TableFile
from sixjars.errors import DataError
from sixjars.recipe.data import TableSettings
from sixjars.recipe.sections import DataSettings

COLUMNS: dict[str, str | int] = {"source": "en", "target": "score"}
ROWS = [{"id": at, "en": f'ä "{at}", b', "score": at / 2} for at in range(5)]
NAMES = ["a.csv", "a.tsv", "a.json", "lines.json", "wrapped.json", "a.jsonl", "a.parquet", "a.xlsx"]


def written(path: Path) -> Path:
    """The rows as a file."""
    as_json = json.dumps(ROWS, ensure_ascii=False)
    if path.suffix in (".csv", ".tsv"):
        with path.open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, list(ROWS[0]), delimiter=",\t"[path.suffix == ".tsv"])
            table.writeheader()
            table.writerows(ROWS)
    elif path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    elif path.suffix == ".xlsx":
        book = openpyxl.Workbook()
        for cells in ([*ROWS[0]], *([*row.values()] for row in ROWS)):
            book.worksheets[0].append(cells)
        book.save(path)
    elif path.name == "wrapped.json":
        path.write_text(f'{{"version": 1,\n"rows": {as_json}}}', encoding="utf-8")
    elif path.name == "a.json":
        path.write_text(as_json, encoding="utf-8")
    else:
        path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS), encoding="utf-8")
    return path


def opened(path: Path, columns: Any = None) -> TableFile:
    table = table_file(path, columns or COLUMNS)
    assert table is not None
    return table


def trained_on(path: Path, **settings: Any) -> list[tuple[str, ...]]:
    data = DataSettings(folder=str(path.parent), train=path.name, **settings)
    table = read(path.name, COLUMNS, settings=data).table
    return list(zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_prediction_reads_what_training_reads(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / name)
    quotes = {"quotes": True} if name == "a.tsv" else {}
    rows = [row.values for row in opened(path).rows()]
    assert [
        tuple(dict(row).values()) for row in rows if not isinstance(row, RowFault)
    ] == trained_on(path, **quotes)


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_appended_and_read_again(name: str, tmp_path: Path) -> None:
    table = opened(written(tmp_path / name))
    rows = list(table.rows())
    out = tmp_path / f"out{table.output_ending}"
    writer = table.writer(out, {"de": str, "probability": float})
    for part in (rows[:2], rows[2:]):
        writer.append(part, [["x", 0.5]] * len(part))
    writer.close()
    again = opened(out, {**COLUMNS, "de": "de", "sure": "probability"})
    for before, after in zip(rows, again.rows(), strict=True):
        values = dict(after.values) if not isinstance(after.values, RowFault) else {}
        assert (values.pop("de"), float(values.pop("sure"))) == ("x", 0.5)
        assert values == before.values
    assert again.names == ["id", "en", "score", "de", "probability"]


def test_every_format_is_tried() -> None:
    assert {Path(name).suffix for name in NAMES} == FORMATS.keys() - {".txt"}


@pytest.mark.parametrize("size", [1, 5, 1 << 16])
def test_the_place_of_a_fault_in_a_long_list(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many bytes are read at once."""
    monkeypatch.setattr("sixjars.data.text.files.FIRST", size)
    monkeypatch.setattr("sixjars.data.text.files.BLOCK", size)
    path = tmp_path / "a.json"
    good = '{"en": "ä",\n "score": 1}'
    for rest, place in (
        (", x]", "line 5: is not JSON: Expecting value at column 15."),
        ('\n, {"en" "b"}]', "line 6: is not JSON: Expecting ':' delimiter at column 9."),
        (f" {good}]", "line 5: is not JSON: a comma or the end of the list is missing."),
        ("", "line 5: is not JSON: a comma or the end of the list is missing."),
        (",", "line 5: is not JSON: Expecting value at column 14."),
    ):
        path.write_text(f"[{good},\n\n{good}{rest}", encoding="utf-8")
        for use in (lambda: trained_on(path), lambda: list(opened(path).rows())):
            with pytest.raises(DataError) as caught:
                use()
            assert str(caught.value) == f"{path}, {place}"


def test_a_member_of_a_list_that_is_not_utf8_is_a_bad_row(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'[{"en": "a", "score": 1},\n{"en": "\xff", "score": 2}]')
    assert trained_on(path, on_bad_row="skip") == [("a", "1")]
    wrong = "line 2: is not UTF-8; save the file as UTF-8."
    with pytest.raises(DataError, match=wrong):
        trained_on(path)
    assert [row.values for row in opened(path).rows()][1] == RowFault(2, wrong)
    other = [row.values for row in opened(path, {"target": "score"}).rows()]
    assert other == [{"target": "1"}, {"target": "2"}]


def test_numbers_and_bytes_of_parquet_are_the_texts_of_training(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    columns = {"en": pyarrow.array([b"\xc3\xa4", b"\xff"]), "score": pyarrow.array([1.0, 2.5])}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    assert trained_on(path, on_bad_row="skip") == [("ä", "1")]
    first, second = [row.values for row in opened(path).rows()]
    assert first == {"source": "ä", "target": "1"}
    assert second == RowFault(2, "byte 1 of column 'en' is not UTF-8.")


@pytest.mark.parametrize(
    ("content", "columns", "delimiter"),
    [
        ("a;b\nc;d\n", {"source": 1}, ";"),
        ("a;b\nc;d\n", {"source": 2}, ";"),
        ("one; two\nthree\n", {"source": 1}, ";"),
        ("one, two\nthree; four\n", {"source": 1}, ","),
        ("id;en\n1;a, b\n2;c, d, e\n", {"source": "en"}, ";"),
        ("id|source\n1|a, b\n", {"source": "en"}, "|"),
        ('id\ten\n"1\t2\n', {"source": "en"}, "\t"),
    ],
)
def test_the_delimiter_is_the_one_that_gives_the_columns(
    content: str, columns: Any, delimiter: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content, encoding="utf-8")
    table = table_file(path, columns, TableSettings())
    assert table is not None
    assert getattr(table, "delimiter", None) == delimiter


def test_the_delimiter_is_asked_about_where_no_line_is_split_by_it() -> None:
    """A comma in a text is no delimiter where other lines have their columns."""
    from sixjars.data.tables.table_file import picked

    records = [(1, ["so, so"]), (2, ["good", "pos"]), (3, ["no, thanks"])]
    first, _, last = (record for _, record in picked(records, {"label": 2}, empty=False))
    asks = "Is the delimiter ','? Then write `data.delimiter: ','`."
    short = "has 1 column, but column 2 is asked for."
    assert isinstance(first, RowFault)
    assert isinstance(last, RowFault)
    assert (first.sentence, last.sentence) == (f"{short} {asks}", short)
