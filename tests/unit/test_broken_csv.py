"""CSV files with a few mistakes: one costs its own row, and a starter recipe reads the others as they are meant."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from sixjars.data.tables import read
from sixjars.data.tables.delimited import records_of
from sixjars.data.tables.rows import RowFault
from sixjars.errors import DataError
from sixjars.recipe.sections import DataSettings
from tests.conftest import Call

from .starters import LABELS, Start
from .starters import start as start

UNCLOSED = "a quotation mark opens a field here and is never closed; close it, or double it."
GOOD = [f'Re: {row},"the bill, number {row}, is ready",{"ab"[row % 2]}' for row in range(60)]
PLAIN = [f"Re: {row},the parcel is here,{'ab'[row % 2]}" for row in range(60)]
OPEN = 'Re: y,"the parcel is broken,a'


def written(folder: Path, lines: Sequence[str]) -> Path:
    path = folder / "a.csv"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("lines", [GOOD, PLAIN, [*GOOD[:30], 'Re: m,"two\nlines",a', *GOOD[30:]]])
@pytest.mark.parametrize("at", [20, 30, 59, 60])
def test_a_field_that_is_never_closed_costs_one_row(
    lines: list[str], at: int, tmp_path: Path
) -> None:
    whole = [
        fields for _, fields in records_of(written(tmp_path, ["subject,text,label", *lines]), ",")
    ]
    path = written(tmp_path, ["subject,text,label", *lines[:at], OPEN, *lines[at:]])
    found = list(records_of(path, ","))
    line = 2 + "\n".join([*lines[:at], ""]).count("\n")
    assert [one for one in found if isinstance(one[1], RowFault)] == [
        (line, RowFault(line, UNCLOSED))
    ]
    assert [fields for _, fields in found if not isinstance(fields, RowFault)] == whole


def test_several_fields_that_are_never_closed(tmp_path: Path) -> None:
    path = written(tmp_path, ["subject,text,label", *GOOD, OPEN, OPEN, *PLAIN, OPEN, *PLAIN])
    found = list(records_of(path, ","))
    assert [line for line, fields in found if isinstance(fields, RowFault)] == [62, 63, 124]
    assert [line for line, _ in found] == list(range(1, 185))


def test_lines_inside_a_quoted_field_are_no_records(tmp_path: Path) -> None:
    long = 'Re: l,"he said\nthat "this" is wrong\nand more",a'
    found = list(records_of(written(tmp_path, ["subject,text,label", *GOOD, long]), ","))
    assert [fields.sentence[:10] for _, fields in found if isinstance(fields, RowFault)] == [
        "is not CSV"
    ]


def test_other_lines_behind_a_field_that_is_never_closed(tmp_path: Path) -> None:
    path = written(tmp_path, ["subject,text,label", *GOOD, OPEN, "a word", "another"])
    with pytest.raises(DataError) as raised:
        list(records_of(path, ","))
    assert str(raised.value) == f"{path}, line 62: {UNCLOSED}"


@pytest.mark.parametrize("at", [0, 30, 60])
def test_a_starter_recipe_keeps_quotes(at: int, start: Start, tmp_path: Path) -> None:
    data = written(tmp_path, ["subject,text,label", *GOOD[:at], OPEN, *GOOD[at:]])
    starter = start(LABELS, data)
    assert "quotes:" not in starter.text
    assert "delimiter:" not in starter.text
    assert "on_bad_row: skip" in starter.text
    [note] = [note for note in starter.notes if "bad row" in note]
    assert note.startswith(f"{data}: 1 bad row was skipped. Line {at + 2}: ")
    # what a row looks like is not known at the beginning
    assert note.endswith(UNCLOSED) == (at > 0)


def test_quotation_marks_that_are_letters(start: Start, tmp_path: Path) -> None:
    lines = [
        f'"{n}" is what he said,{"ab"[n % 2]}' if n % 9 == 0 else f"{n} it is,a" for n in range(60)
    ]
    assert "quotes: false" in start(LABELS, written(tmp_path, ["text,label", *lines])).text


@pytest.mark.parametrize("bad", [6, 7])
def test_a_starter_recipe_that_does_not_skip_says_so(
    bad: int, start: Start, tmp_path: Path
) -> None:
    starter = start(LABELS, written(tmp_path, ["subject,text,label", *GOOD, *["Re: x,,a"] * bad]))
    sentence = (
        f"{bad} bad rows to 60 good ones are more than 10%, so the recipe does not skip them (on_bad_row: error): "
        "training stops at the first. Mend them, or write `on_bad_row: skip` to train without them."
    )
    assert (sentence in starter.notes) == starter.stops == (bad > 6)
    assert f"on_bad_row: {'skip' if bad == 6 else 'error'}" in starter.text


@pytest.mark.parametrize("bad", [6, 7])
def test_the_next_command_works_where_rows_are_bad(bad: int, call: Call, tmp_path: Path) -> None:
    data = written(tmp_path, ["subject,text,label", *GOOD, *["Re: x,,a"] * bad])
    recipe, options = tmp_path / "a.yaml", ("--task", "document_classification", "--no-estimate")
    said = call("new", recipe, "--data", data, *options)
    more = ["data.on_bad_row=skip"] if bad > 6 else []
    assert said.err.endswith(f"; next: {' '.join(['sixjars train', str(recipe), *more])}\n")
    out = ["--out", tmp_path / "run", "--device", "cpu", "learning.steps=1", "learning.folds=2"]
    if bad > 6:
        assert call("train", recipe, *out).err.splitlines()[-1] == (
            f"sixjars: {data}, line 62: column 'text' is empty. Mend or remove it, or train with "
            "data.on_bad_row=skip, which leaves such rows out."
        )
        assert call("train", recipe, *more, *out).code == 0


CURLY = "curly quotation marks do not enclose a text"
INSIDE = "a delimiter inside a text ends it"


@pytest.mark.parametrize(
    ("marks", "why"), [("\u201c\u201d", CURLY), ("\u201e\u201c", CURLY), ("''", INSIDE)]
)
def test_rows_that_are_wider_than_the_header(
    marks: str, why: str, start: Start, tmp_path: Path
) -> None:
    wide = [f"Re: {row},{marks[0]}well, it is ready{marks[1]},a" for row in range(7)]
    data = written(tmp_path, ["subject,text,label", *PLAIN, *wide])
    settings = DataSettings(train="unused")
    found = read(str(data), {"source": "text", "label": "label"}, settings=settings)
    sentence = (
        f"{data}: 7 of the first 67 rows have more values than the header, which has 3 names "
        f"(line 62, 63, 64, 65, 66, ...), so values may be in the wrong columns: {why}. "
        'Enclose such texts in straight quotation marks (") and read '
        "them with `data.quotes: true`, or choose another delimiter."
    )
    assert found.notes == (sentence,)
    assert sentence in start(LABELS, data).notes
    numbered = settings.model_copy(update={"header": True})
    assert read(str(data), {"source": 2, "label": 3}, settings=numbered).notes == (sentence,)


def test_empty_values_behind_the_last_column_are_no_matter(tmp_path: Path) -> None:
    data = written(tmp_path, ["subject,text,label", *(f"{line},, " for line in PLAIN)])
    assert read(str(data), {"source": "text"}, settings=DataSettings(train="unused")).notes == ()
