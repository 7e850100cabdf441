"""Excel workbooks: read as other tables are, guarded, and answered in a CSV file."""

import sys
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import yaml

import sixjars
from sixjars.data.tables import excel
from sixjars.data.tables.excel import sheet_rows
from sixjars.errors import DataError, MissingExtra

from .conftest import Call

ROWS = [(n, f"word{n % 4} and more", ["good", "bad", "fair"][n % 3]) for n in range(60)]
TABLE = [("id", "review", "rating"), *ROWS]
NEW = ("new", "mine.yaml", "--task", "document_classification", "--data")


def workbook(path: Path, sheets: dict[str, list[Any]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refused(path: Path, sentence: str, sheet: str | None = None) -> None:
    """Its rows are refused with a sentence that begins with its name."""
    with pytest.raises(DataError) as caught:
        list(sheet_rows(path, sheet))
    assert str(caught.value).startswith(f"{path}{sentence}")


def started(call: Call, path: Path) -> tuple[str, dict[str, Any]]:
    """What `new` says of a workbook, and the data section that it writes."""
    said = call(*NEW, path.name)
    assert said.code == 0, said
    data: dict[str, Any] = yaml.safe_load(Path("mine.yaml").read_text())["data"]
    assert (data["source"]["column"], data["label"]["column"]) == ("review", "rating")
    return said.err, data


@pytest.mark.usefixtures("here")
def test_from_new_to_predict(tmp_path: Path, call: Call) -> None:
    """A second sheet is something else."""
    rows = [*TABLE[:31], (), *TABLE[31:]]
    workbook(tmp_path / "reviews.xlsx", {"Reviews": rows, "Notes": [("nothing",)]})
    told, data = started(call, Path("reviews.xlsx"))
    assert "source = 'review' (by its name), label = 'rating' (by its name)" in told
    assert "delimiter" not in data
    few = ["learning.steps=2", "learning.folds=null", "learning.metric=loss"]
    assert call("train", "mine.yaml", *few, "--out", "run").code == 0
    assert call("evaluate", "run", "--data", "reviews.xlsx").code == 0
    assert call("predict", "run", "--input", "reviews.xlsx", "--output", "out.csv").code == 0
    # without it, Excel misreads umlauts
    assert Path("out.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    lines = Path("out.csv").read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == "id,review,rating,predicted_rating,predicted_probability"
    assert len(lines) == 61
    assert lines[1].startswith("0,word0 and more,good,")
    assert len(call("predict", "run", "--input", "reviews.xlsx").out.splitlines()) == 60
    refused = call("predict", "run", "--input", "reviews.xlsx", "--output", "out.xlsx")
    assert refused.sentence == (
        "--output out.xlsx should end in .csv, which answers to .xlsx files are kept as; it gets the same columns and "
        "the answers; or in .txt, for one answer a line."
    )


@pytest.mark.usefixtures("here")
def test_a_title_above_the_table(tmp_path: Path, call: Call) -> None:
    rows = [(None, "Reviews of 2024"), ("by us",), (), *TABLE]
    path = workbook(tmp_path / "a.xlsx", {"A": rows})
    told, data = started(call, path)
    assert (
        "a.xlsx: 'Reviews of 2024' above the table is taken for a title, not for a row.\n" in told
    )
    assert "sheet" not in data
    assert next(sheet_rows(path)) == (4, ["id", "review", "rating"])
    workbook(path, {"A": [("one",), ("two",)]})
    assert [cells for _, cells in sheet_rows(path)] == [["one"], ["two"]]


INFO = {"Info": [("by", "me")]}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("sheets", "told", "sheet"),
    [
        ({**INFO, "None": [], "Data": TABLE}, "the sheet 'Data' is read.\n", "Data"),
        (
            {"May": TABLE, "June": TABLE, **INFO},
            "the sheet 'May' is read; data.sheet chooses another: 'June'.\n",
            None,
        ),
        ({"May": TABLE, **INFO}, "", None),
    ],
)
def test_the_sheet_with_the_data_is_found(
    sheets: dict[str, Any], told: str, sheet: str | None, tmp_path: Path, call: Call
) -> None:
    said, data = started(call, workbook(tmp_path / "a.xlsx", sheets))
    assert f"a.xlsx: {told}" in said if told else "sheet" not in said
    assert data.get("sheet") == sheet


@pytest.mark.usefixtures("here")
def test_a_workbook_without_a_value(tmp_path: Path, call: Call) -> None:
    workbook(tmp_path / "b.xlsx", {"One": [], "Two": []})
    sentence = "b.xlsx is empty: the sheet 'One' has no cell with a value."
    assert call(*NEW, "b.xlsx").sentence == sentence


def test_the_only_sheet_is_answered_whatever_its_name(tmp_path: Path, call: Call) -> None:
    path = workbook(tmp_path / "a.xlsx", {"Notes": [("nothing",)], "Reviews": TABLE})
    sixjars.train(recipe(path, sheet="Reviews"), out=tmp_path / "run")
    rows = [("review",), *[(text,) for _, text, _ in ROWS]]
    new = workbook(tmp_path / "new.xlsx", {"Sheet1": rows})
    assert len(call("predict", tmp_path / "run", "--input", new).out.splitlines()) == 60


def recipe(path: Path, **data: Any) -> dict[str, Any]:
    fields = {"source": {"column": "review"}, "label": {"column": "rating"}}
    model = {
        "encoder": {"kind": "text", "size": 4},
        "decoder": {"kind": "label"},
        "bridge": {"kind": "pooling"},
    }
    learning = {"steps": 1}
    values = {"train": str(path), **fields, **data}
    return {"task": "document_classification", "data": values, "model": model, "learning": learning}


def untrained(folder: Path, match: str, path: Path, **data: Any) -> None:
    with pytest.raises(DataError, match=match):
        sixjars.train(recipe(path, **data), out=folder / "none")


def test_a_sheet_is_chosen_by_its_name(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", {"Notes": [("nothing",)], "Reviews": TABLE})
    assert sixjars.train(recipe(path, sheet="Reviews"), out=tmp_path / "run").scores
    told = r"a\.xlsx: sheet 'Review' is unknown\. Did you mean 'Reviews'\?"
    untrained(tmp_path, told, path, sheet="Review")
    untrained(tmp_path, r"a\.xlsx: column 'review' is unknown\. Known: nothing\.", path)
    (tmp_path / "b.csv").write_text("review,rating\na,b\n")
    told = r"^'sheet' names a sheet of an \.xlsx workbook, but the data is .*b\.csv; rem"
    untrained(tmp_path, told, tmp_path / "b.csv", sheet="x")


def test_a_bad_row_is_named_by_its_number_in_the_sheet(tmp_path: Path) -> None:
    rows = [("review", "rating"), ("a", "good"), (), ("b", None)]
    path = workbook(tmp_path / "a.xlsx", {"One": rows})
    untrained(tmp_path, r"a\.xlsx, row 4: column 'rating' is empty\. Mend or remove", path)


def test_a_header_that_is_read_as_data_is_noted(tmp_path: Path, call: Call) -> None:
    path = workbook(tmp_path / "a.xlsx", {"One": TABLE})
    values = recipe(path, source={"column": 2}, label={"column": 3, "min_count": 2})
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(values))
    said = call("train", tmp_path / "r.yaml", "--out", tmp_path / "run")
    assert "the first line ('id', 'review', 'rating') looks like a header" in said.err


def test_cells_become_text(tmp_path: Path) -> None:
    moments = datetime(2026, 1, 31), datetime(2026, 1, 31, 12, 30)
    values = (1, 2.5, True, None, "=1+1", *moments, " a ")
    path = workbook(tmp_path / "a.xlsx", {"One": [tuple("abcdefghi"), values]})
    [_, (number, cells)] = sheet_rows(path)
    assert number == 2
    assert cells == ["1", "2.5", "true", "", "", "2026-01-31", "2026-01-31 12:30:00", " a ", ""]


DAMAGED = " is not an .xlsx workbook, is damaged, or is locked with a password."


def test_what_is_no_workbook_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.xlsx").write_text("a,b\n")
    with zipfile.ZipFile(tmp_path / "zip.xlsx", "w") as packed:
        packed.writestr("a.txt", "a")
    good = workbook(tmp_path / "good.xlsx", {"One": [("a",)]})
    (tmp_path / "cut.xlsx").write_bytes(good.read_bytes()[:2000])
    for name in ("text", "zip", "cut"):
        refused(tmp_path / f"{name}.xlsx", DAMAGED)
    monkeypatch.setattr(excel, "LARGEST", 1000)
    with pytest.raises(
        DataError, match=r"unpacks to [\d,]+ bytes, but 1,000 are the most; save it"
    ):
        list(sheet_rows(good))


def test_without_openpyxl_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workbook(tmp_path / "a.xlsx", {"One": [("a",)]})
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    told = r"^openpyxl is not installed\. Run: pip install 'sixjars\[excel\]'$"
    with pytest.raises(MissingExtra, match=told):
        list(sheet_rows(path))


def changed(path: Path, part: str, old: bytes, new: bytes) -> Path:
    """The workbook with something else in one of its files."""
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    assert old in parts[part]
    parts[part] = parts[part].replace(old, new)
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    return path


def test_a_damaged_sheet_is_a_sentence(tmp_path: Path) -> None:
    rows, sheet = [("review", "rating"), ("a", "good"), ("b", "bad")], "xl/worksheets/sheet1.xml"
    path = workbook(tmp_path / "a.xlsx", {"One": rows})
    refused(changed(path, sheet, b"</sheetData>", b"<"), DAMAGED)
    path = workbook(tmp_path / "b.xlsx", {"One": rows})
    changed(path, sheet, b'<row r="3"', b'<row r="2000000"')
    refused(path, " has a row beyond 1,048,576, the most of a sheet; is it damaged?")


def test_an_empty_sheet_is_a_sentence(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", {"One": [], "Two": [("a",)]})
    untrained(tmp_path, r"a\.xlsx is empty: the sheet 'One' has no cell with a value\.$", path)


def test_a_sheet_with_a_chart_has_no_cells(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.worksheets[0].title = "One"
    book.worksheets[0].append(("a",))
    book.create_chartsheet("Chart").add_chart(openpyxl.chart.BarChart())
    book.save(tmp_path / "a.xlsx")
    refused(tmp_path / "a.xlsx", ": sheet 'Chart' is unknown. Known: One.", "Chart")
