"""`filter` in a recipe: values of YAML and JSON are compared as files write them."""

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from sixjars.data.tables import read
from sixjars.errors import DataError, RecipeError
from sixjars.recipe.files import values_of
from sixjars.runs.recipes import recipe_of

ROWS = [
    {"source": "one", "good": True, "year": 2019, "score": 0.5, "name": "true"},
    {"source": "two", "good": False, "year": 2020, "score": 0.5, "name": "false"},
    {"source": "three", "good": True, "year": 2020, "score": 1.5, "name": "2020"},
]
RECIPE = "task: language_model\ndata: {{train: {file}, folder: {folder}, filter: {filter}, target: {{column: source}}}}"


def written(folder: Path, file: str) -> None:
    """The same rows in each format."""
    table = "".join(
        "\t".join(value if isinstance(value, str) else json.dumps(value) for value in row) + "\n"
        for row in (list(ROWS[0]), *(row.values() for row in ROWS))
    )
    contents = {
        "rows.jsonl": "".join(json.dumps(row) + "\n" for row in ROWS),
        "rows.tsv": table,
        "rows.csv": table.replace("\t", ","),
    }
    if file in contents:
        (folder / file).write_text(contents[file])
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), folder / file)


def kept(folder: Path, file: str, wanted: str) -> list[str]:
    """The rows that a filter, as a recipe has it, leaves of a file."""
    text = RECIPE.format(file=file, folder=folder, filter=wanted)
    data = recipe_of(values_of(text, "a test"), "a test").data
    texts: list[str] = (
        read(file, {"target": "source"}, settings=data).table.column("target").to_pylist()
    )
    return texts


@pytest.mark.parametrize("file", ["rows.jsonl", "rows.tsv", "rows.csv", "rows.parquet"])
def test_values_of_a_recipe_mean_the_same_in_every_format(file: str, tmp_path: Path) -> None:
    written(tmp_path, file)
    assert kept(tmp_path, file, "{good: true}") == ["one", "three"]
    assert kept(tmp_path, file, "{good: false, score: 0.5}") == ["two"]
    assert kept(tmp_path, file, "{year: 2020}") == ["two", "three"]
    assert kept(tmp_path, file, "{year: '2020', good: 'true'}") == ["three"]
    assert kept(tmp_path, file, "{name: true}") == ["one"]
    told = r"no row is left of 3; 0 were bad and 3 did not fit 'filter'\.$"
    with pytest.raises(DataError, match=told):
        kept(tmp_path, file, "{year: 1999}")


def test_it_is_kept_in_a_run_as_text(tmp_path: Path) -> None:
    text = RECIPE.format(
        file="rows.tsv", folder=tmp_path, filter="{good: true, year: 2020, name: x}"
    )
    recipe = recipe_of(values_of(text, "a test"), "a test")
    assert recipe.data.filter == {"good": "true", "year": "2020", "name": "x"}
    assert recipe_of(values_of(recipe.to_yaml(), "a test"), "a test") == recipe


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("[good]", "data.filter: should be a section of keys, but is ['good']."),
        ("{good: [true]}", "data.filter.good: should be a valid string, but is [True]."),
        ("{good: {a: 1}}", "data.filter.good: should be a valid string, but is {'a': 1}."),
        ("{good: null}", "data.filter.good: should be a valid string, but is None."),
    ],
)
def test_what_is_no_value_is_refused(wanted: str, told: str) -> None:
    text = RECIPE.format(file="rows.tsv", folder=".", filter=wanted)
    with pytest.raises(RecipeError) as caught:
        recipe_of(values_of(text, "a test"), "a test")
    assert str(caught.value) == f"a test: {told}"
