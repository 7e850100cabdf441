"""What Python says to somebody who gives data in another way than it is taken, each time with a way that works."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.cli import app
from sixjars.errors import DataError, RecipeError, RunError

LABELS: dict[str, Any] = {
    "task": "document_classification",
    "data": {"source": {"column": "text", "segments": "sentences"}, "label": {"column": "label"}},
    "learning": {"steps": 1},
}
ROWS = [
    {"text": f"it is {'good' if at % 2 else 'bad'} {at}", "label": "pn"[at % 2]} for at in range(30)
]
ELSEWHERE = " To score the run on another file with the same columns, say --data FILE (in Python: data='FILE')."


def write(path: str, delimiter: str = ",", header: str = "text") -> str:
    lines = [
        f"{header}{delimiter}label",
        *(f"{row['text']}{delimiter}{row['label']}" for row in ROWS),
    ]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def of_file(file: str) -> dict[str, Any]:
    return {**LABELS, "data": {**LABELS["data"], "train": file}}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def told(kind: type[Exception], call: Any, *given: Any, **named: Any) -> str:
    with pytest.raises(kind) as caught:
        call(*given, **named)
    return str(caught.value)


def test_segments_are_asked_for_with_both_ways() -> None:
    """Each of the two is taken."""
    plain = {**LABELS, "data": {"source": {"column": "text"}, "label": {"column": "label"}}}
    assert told(RecipeError, sixjars.train, plain, data=ROWS, out="run") == (
        "recipe: data.source.segments: must be sentences, lines or turns, for an encoder of kind hierarchy reads a "
        "text in segments; say which (segments: sentences), or take another encoder (model.encoder: {kind: text})."
    )
    for way in (["data.source.segments=sentences"], ["model.encoder.kind=text"]):
        sixjars.read_recipe({**plain, "data": {**plain["data"], "train": "x.csv"}}, way)


def test_new_takes_files_alone() -> None:
    assert told(DataError, sixjars.new, "mine.yaml", task="document_classification", data=ROWS) == (
        "data must be a file, a folder or several files, but is of type list; give a table in memory to "
        "sixjars.train with a recipe as a dict, or save it as a .csv file first."
    )
    assert (
        told(DataError, sixjars.new, 5, task="dialog")
        == "the recipe to write is given by its file, but this is 5."
    )
    assert told(RecipeError, sixjars.new, "mine.yaml", task=5).startswith(
        "the command line: task '5' is unknown."
    )
    assert not Path("mine.yaml").exists()


@pytest.mark.parametrize("data", ["file.csv", Path("file.csv"), {"train": "file.csv"}])
def test_train_says_where_a_file_is_named(data: Any) -> None:
    assert told(DataError, sixjars.train, LABELS, data=data, out="run") == (
        "data is a table in memory, but 'file.csv' names a file; name it in the recipe, data: {train: FILE}, or in the "
        "overrides, ['data.train=FILE']."
    )
    assert sixjars.train(LABELS, [f"data.train={write('file.csv')}"], out="run").scores


def test_held_out_rows_of_a_table_are_scored_when_it_is_given_again() -> None:
    run = sixjars.train(LABELS, data=ROWS, out="run")
    assert told(DataError, sixjars.evaluate, run) == (
        "memory:train is data that was in memory, not a file; give it again from Python: data={'train': TABLE}."
        + ELSEWHERE
    )
    again = sixjars.evaluate(run, data={"train": ROWS})
    assert (again.examples, again.where, again.scores) == (run.examples, run.where, run.scores)
    assert sixjars.evaluate(run, data=ROWS).examples == len(ROWS)
    changed = told(RunError, sixjars.evaluate, run, data={"train": ROWS[:-1]})
    assert changed.startswith("the data of run has changed since it was begun")
    named = sixjars.train(of_file(write("file.csv")), out="named")
    assert told(DataError, sixjars.evaluate, named, data={"train": ROWS}) == (
        "named was not trained on a table in memory for 'train', so its held-out rows are not in one; give the table "
        "alone to score all of its rows: data=TABLE."
    )


def test_a_run_on_another_machine_asks_for_a_file() -> None:
    run = sixjars.train(of_file(write("file.csv")), out="run")
    sixjars.pack(run, "run.sixjars", licence="CC BY 4.0")
    shutil.move("file.csv", "elsewhere.csv")
    assert (
        told(DataError, sixjars.evaluate, "run.sixjars") == f"file.csv does not exist.{ELSEWHERE}"
    )
    assert sixjars.evaluate("run.sixjars", data="elsewhere.csv").examples == len(ROWS)
    assert (
        told(DataError, sixjars.evaluate, "run.sixjars", data="no.csv") == "no.csv does not exist."
    )


def test_evaluate_finds_the_delimiter_of_another_file(capsys: pytest.CaptureFixture[str]) -> None:
    sixjars.train(of_file(write("file.csv")), out="run")
    app(["evaluate", "run", "--data", write("semicolons.csv", ";")], standalone_mode=False)
    said = capsys.readouterr()
    assert "30 examples of semicolons.csv" in said.out
    assert (
        "note: semicolons.csv has ';' between its columns, and is read that way; ',' was expected."
        in said.err
    )
    assert sixjars.evaluate("run", data=write("tabs.tsv", "\t")).examples == len(ROWS)
    other = {
        **of_file("semicolons.csv"),
        "data": {**of_file("semicolons.csv")["data"], "delimiter": ";"},
    }
    sixjars.train(other, out="other")
    assert sixjars.evaluate("other", data="tabs.tsv").examples == len(ROWS)
    assert sixjars.evaluate("other", data="file.csv").examples == len(ROWS)
    assert told(DataError, sixjars.evaluate, "run", data=write("typo.csv", ";", "txt")).startswith(
        "typo.csv: column"
    )
    numbers = {
        **LABELS["data"],
        "source": {"column": 1, "segments": "sentences"},
        "label": {"column": 2},
        "header": True,
    }
    sixjars.train({**LABELS, "data": {**numbers, "train": "file.csv"}}, out="numbers")
    assert sixjars.evaluate("numbers", data="semicolons.csv").examples == len(ROWS)


def test_each_of_several_files_is_read_by_its_own_delimiter(
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = [write("semicolons.csv", ";"), write("tabs.tsv", "\t")]
    data = {**LABELS["data"], "train": files, "valid": write("file.csv"), "delimiter": ";"}
    Path("mine.yaml").write_text(
        sixjars.read_recipe({**LABELS, "data": data}).to_yaml(), encoding="utf-8"
    )
    app(["train", "mine.yaml", "--out", "run"], standalone_mode=False)
    said = capsys.readouterr().err
    assert f"{2 * len(ROWS)} training, {len(ROWS)} validation" in said
    assert [line for line in said.splitlines() if "between its columns" in line] == [
        "note: tabs.tsv has '\\t' between its columns, and is read that way; ';' was expected.",
        "note: file.csv has ',' between its columns, and is read that way; ';' was expected.",
    ]
    data["train"] = ["semicolons.csv", write("typo.tsv", "\t", "txt")]
    assert told(DataError, sixjars.train, {**LABELS, "data": data}, out="typo") == (
        "typo.tsv: column 'text' is unknown. Did you mean 'txt'? Known: label, txt. "
        'Is the delimiter "\\t"? Then write `data.delimiter: "\\t"`.'
    )


def test_a_header_that_is_not_divided_is_shown_whole() -> None:
    assert told(DataError, sixjars.train, of_file(write("semicolons.csv", ";")), out="run") == (
        "semicolons.csv: the header is one column, 'text;label'. Is the delimiter ';'? Then write "
        "`data.delimiter: ';'`."
    )


def test_a_misspelt_header_is_shown_in_columns() -> None:
    assert told(DataError, sixjars.train, of_file(write("typo.csv", ";", "txt")), out="run") == (
        "typo.csv: column 'text' is unknown. Did you mean 'txt'? Known: label, txt. Is the delimiter ';'? Then write "
        "`data.delimiter: ';'`."
    )


def test_a_run_with_overrides_is_resumed_by_its_own_recipe() -> None:
    Path("mine.yaml").write_text(
        sixjars.read_recipe(of_file("none.csv")).to_yaml(), encoding="utf-8"
    )
    sixjars.train("mine.yaml", [f"data.train={write('file.csv')}"], out="run")
    assert told(RunError, sixjars.train, "mine.yaml", out="run", resume=True) == (
        "run was begun with another recipe: data.train was 'file.csv' and is 'none.csv'. Resume with the same "
        "one; run/recipe.yaml is what it was begun with, overrides included."
    )
    assert told(RecipeError, sixjars.train, LABELS, out="run", resume=True) == (
        "recipe: data: needs either 'train' (a file) or 'sample' (a synthetic corpus), not both. (run/recipe.yaml is "
        "what it was begun with, overrides included.)"
    )
    app(["train", "run/recipe.yaml", "--out", "run", "--resume"], standalone_mode=False)


def test_the_best_recipe_of_a_search_in_memory_is_trained_from_python() -> None:
    tuning = sixjars.tune(LABELS, ["learning.rate=[0.1,0.01]"], data=ROWS, trials=2, out="search")
    assert (
        tuning.command
        == "sixjars.train('search/best.yaml', out='search/best', data={'train': TABLE})"
    )
    assert tuning.command in tuning.recipe.read_text(encoding="utf-8")
    assert sixjars.train(
        "search/best.yaml", out="search/best", data={"train": ROWS}
    ).scores  # the same
