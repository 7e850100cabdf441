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
def reviews(tmp_path: Path) -> Path:
    """A workbook with a second sheet that is something else."""
    rows = [("id", "review", "rating"), *ROWS[:30], (), *ROWS[30:]]
    return workbook(tmp_path / "reviews.xlsx", {"Reviews": rows, "Notes": [("nothing",)]})


def test_from_new_to_predict(
    reviews: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = call("new", "mine.yaml", "--task", "document_classification", "--data", "reviews.xlsx")
    assert "source = 'review' (by its name), label = 'rating' (by its name)" in said.err
    found = yaml.safe_load(Path("mine.yaml").read_text())
    assert (found["data"]["source"]["column"], found["data"]["label"]["column"]) == (
        "review",
        "rating",
    )
    assert "delimiter" not in found["data"]
    few = ["learning.steps=2", "learning.folds=null", "learning.metric=loss"]
    assert call("train", "mine.yaml", *few, "--out", "run").code == 0
    assert call("evaluate", "run", "--data", "reviews.xlsx").code == 0
    assert call("predict", "run", "--input", "reviews.xlsx", "--output", "out.csv").code == 0
    assert (
        Path("out.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    )  # without it, Excel misreads umlauts
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


def started(call: Call, path: Path) -> tuple[str, dict[str, Any]]:
    """What `new` says of a workbook, and the data section that it writes."""
    said = call("new", "mine.yaml", "--task", "document_classification", "--data", path.name)
    assert said.code == 0, said
    found: dict[str, Any] = yaml.safe_load(Path("mine.yaml").read_text())["data"]
    Path("mine.yaml").unlink()
    return said.err, found


def test_a_title_above_the_table(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = [("id", "review", "rating"), *ROWS]
    path = workbook(tmp_path / "a.xlsx", {"A": [(None, "Reviews of 2024"), ("by us",), (), *table]})
    told, found = started(call, path)
    assert (
        "a.xlsx: 'Reviews of 2024' above the table is taken for a title, not for a row.\n" in told
    )
    assert (found["source"]["column"], found["label"]["column"]) == ("review", "rating")
    assert "sheet" not in found
    assert next(sheet_rows(path)) == (4, ["id", "review", "rating"])
    assert [cells for _, cells in sheet_rows(workbook(path, {"A": [("one",), ("two",)]}))] == [
        ["one"],
        ["two"],
    ]


def test_the_sheet_with_the_data_is_found(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = [("id", "review", "rating"), *ROWS]
    told, found = started(
        call, workbook(tmp_path / "a.xlsx", {"Info": [("by", "me")], "None": [], "Data": table})
    )
    assert "a.xlsx: the sheet 'Data' is read.\n" in told
    assert found["sheet"] == "Data"
    told, found = started(
        call, workbook(tmp_path / "a.xlsx", {"May": table, "June": table, "Info": [("by", "me")]})
    )
    assert "a.xlsx: the sheet 'May' is read; data.sheet chooses another: 'June'.\n" in told
    assert "sheet" not in found
    told, found = started(
        call, workbook(tmp_path / "a.xlsx", {"May": table, "Info": [("by", "me")]})
    )
    assert "sheet" not in told
    workbook(tmp_path / "b.xlsx", {"One": [], "Two": []})
    said = call("new", "mine.yaml", "--task", "document_classification", "--data", "b.xlsx")
    assert said.sentence == "b.xlsx is empty: the sheet 'One' has no cell with a value."


def test_the_only_sheet_is_answered_whatever_its_name(tmp_path: Path, call: Call) -> None:
    path = workbook(
        tmp_path / "a.xlsx",
        {"Notes": [("nothing",)], "Reviews": [("id", "review", "rating"), *ROWS]},
    )
    sixjars.train(recipe(path, sheet="Reviews"), out=tmp_path / "run")
    new = workbook(
        tmp_path / "new.xlsx", {"Sheet1": [("review",), *[(text,) for _, text, _ in ROWS]]}
    )
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


def test_a_sheet_is_chosen_by_its_name(tmp_path: Path) -> None:
    path = workbook(
        tmp_path / "a.xlsx",
        {"Notes": [("nothing",)], "Reviews": [("id", "review", "rating"), *ROWS]},
    )
    assert sixjars.train(recipe(path, sheet="Reviews"), out=tmp_path / "run").scores
    with pytest.raises(
        DataError, match=r"a\.xlsx: sheet 'Review' is unknown\. Did you mean 'Reviews'\?"
    ):
        sixjars.train(recipe(path, sheet="Review"), out=tmp_path / "run2")
    with pytest.raises(DataError, match=r"a\.xlsx: column 'review' is unknown\. Known: nothing\."):
        sixjars.train(recipe(path), out=tmp_path / "run2")
    (tmp_path / "b.csv").write_text("review,rating\na,b\n")
    with pytest.raises(
        DataError,
        match=r"^'sheet' names a sheet of an \.xlsx workbook, but the data is .*b\.csv; rem",
    ):
        sixjars.train(recipe(tmp_path / "b.csv", sheet="x"), out=tmp_path / "run2")


def test_a_bad_row_is_named_by_its_number_in_the_sheet(tmp_path: Path) -> None:
    path = workbook(
        tmp_path / "a.xlsx", {"One": [("review", "rating"), ("a", "good"), (), ("b", None)]}
    )
    with pytest.raises(
        DataError, match=r"a\.xlsx, row 4: column 'rating' is empty\. Mend or remove"
    ):
        sixjars.train(recipe(path), out=tmp_path / "run")


def test_a_header_that_is_read_as_data_is_noted(tmp_path: Path, call: Call) -> None:
    path = workbook(tmp_path / "a.xlsx", {"One": [("id", "review", "rating"), *ROWS]})
    values = recipe(path, source={"column": 2}, label={"column": 3, "min_count": 2})
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(values))
    said = call("train", tmp_path / "r.yaml", "--out", tmp_path / "run")
    assert "the first line ('id', 'review', 'rating') looks like a header" in said.err


def test_cells_become_text(tmp_path: Path) -> None:
    values = (
        1,
        2.5,
        True,
        None,
        "=1+1",
        datetime(2026, 1, 31),
        datetime(2026, 1, 31, 12, 30),
        " a ",
    )
    path = workbook(
        tmp_path / "a.xlsx", {"One": [("a", "b", "c", "d", "e", "f", "g", "h", "i"), values]}
    )
    [_, (number, cells)] = sheet_rows(path)
    assert number == 2
    assert cells == ["1", "2.5", "true", "", "", "2026-01-31", "2026-01-31 12:30:00", " a ", ""]


def test_what_is_no_workbook_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.xlsx").write_text("a,b\n")
    with zipfile.ZipFile(tmp_path / "zip.xlsx", "w") as packed:
        packed.writestr("a.txt", "a")
    good = workbook(tmp_path / "good.xlsx", {"One": [("a",)]})
    (tmp_path / "cut.xlsx").write_bytes(good.read_bytes()[:2000])
    for name in ("text", "zip", "cut"):
        with pytest.raises(
            DataError,
            match=rf"{name}\.xlsx is not an \.xlsx workbook, is damaged, or is locked with",
        ):
            list(sheet_rows(tmp_path / f"{name}.xlsx"))
    monkeypatch.setattr(excel, "LARGEST", 1000)
    with pytest.raises(
        DataError, match=r"good\.xlsx unpacks to [\d,]+ bytes, but 1,000 are the most; save it as "
    ):
        list(sheet_rows(good))


def test_without_openpyxl_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workbook(tmp_path / "a.xlsx", {"One": [("a",)]})
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(
        MissingExtra, match=r"^openpyxl is not installed\. Run: pip install 'sixjars\[excel\]'$"
    ):
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
    rows = [("review", "rating"), ("a", "good"), ("b", "bad")]
    path = changed(
        workbook(tmp_path / "a.xlsx", {"One": rows}),
        "xl/worksheets/sheet1.xml",
        b"</sheetData>",
        b"<",
    )
    with pytest.raises(
        DataError,
        match=r"a\.xlsx is not an \.xlsx workbook, is damaged, or is locked with a password",
    ):
        list(sheet_rows(path))
    path = workbook(tmp_path / "b.xlsx", {"One": rows})
    changed(path, "xl/worksheets/sheet1.xml", b'<row r="3"', b'<row r="2000000"')
    with pytest.raises(
        DataError,
        match=r"b\.xlsx has a row beyond 1,048,576, the most of a sheet; is it damaged\?$",
    ):
        list(sheet_rows(path))


def test_an_empty_sheet_is_a_sentence(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", {"One": [], "Two": [("a",)]})
    with pytest.raises(
        DataError, match=r"a\.xlsx is empty: the sheet 'One' has no cell with a value\.$"
    ):
        sixjars.train(recipe(path), out=tmp_path / "run")


def test_a_sheet_with_a_chart_has_no_cells(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.worksheets[0].title = "One"
    book.worksheets[0].append(("a",))
    book.create_chartsheet("Chart").add_chart(openpyxl.chart.BarChart())
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(DataError, match=r"a\.xlsx: sheet 'Chart' is unknown\. Known: One\.$"):
        list(sheet_rows(tmp_path / "a.xlsx", "Chart"))
