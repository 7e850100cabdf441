"""A starter recipe fits the user's data, and trains as it is."""

import gzip
import json
from pathlib import Path

import pytest

import sixjars
from sixjars.errors import DataError, RecipeError
from sixjars.tasks.reading import read_recipe
from sixjars.tasks.starter import write_starter
from sixjars.tasks.table import TASKS


def pairs(folder: Path, rows: int = 60, header: str = "") -> Path:
    file = folder / "pairs.tsv"
    lines = [header] if header else []
    file.write_text("\n".join([*lines, *(f"a cat {n}\teine katze {n}" for n in range(rows))]) + "\n", encoding="utf-8")
    return file


@pytest.mark.parametrize("task", TASKS)
def test_it_is_a_right_recipe_without_data_too(task: str, tmp_path: Path) -> None:
    write_starter(tmp_path / "new.yaml", task=task)
    assert read_recipe(str(tmp_path / "new.yaml")).task == task
    assert "# Run     sixjars train" in (tmp_path / "new.yaml").read_text(encoding="utf-8")


def test_it_trains_on_the_data_it_was_made_for(tmp_path: Path) -> None:
    write_starter(tmp_path / "new.yaml", task="translation", data=pairs(tmp_path))
    recipe = read_recipe(str(tmp_path / "new.yaml"))
    assert (recipe.data.source and recipe.data.source.column, recipe.data.target.column) == (1, 2)
    few = ["learning.steps=2", "model.encoder.size=8", "model.decoder.size=8", "evaluation.search.max_length=4"]
    assert sixjars.train(str(tmp_path / "new.yaml"), few, out=tmp_path / "run").scores


def test_columns_are_found_by_their_usual_names(tmp_path: Path) -> None:
    write_starter(tmp_path / "new.yaml", task="translation", data=pairs(tmp_path, header="source\ttarget"))
    recipe = read_recipe(str(tmp_path / "new.yaml"))
    assert (recipe.data.source and recipe.data.source.column, recipe.data.target.column) == ("source", "target")


def test_json_names_its_columns_and_the_longest_text_is_the_document(tmp_path: Path) -> None:
    row = {"id": "1", "title": "short", "article": "a long text " * 30, "summary": "a text", "size": 3}
    with gzip.open(tmp_path / "news.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write((json.dumps(row) + "\n") * 5)
    write_starter(tmp_path / "new.yaml", task="summarization", data=tmp_path / "news.jsonl.gz")
    recipe = read_recipe(str(tmp_path / "new.yaml"))
    assert (recipe.data.source and recipe.data.source.column, recipe.data.target.column) == ("article", "summary")


def test_more_data_makes_a_larger_model(tmp_path: Path) -> None:
    sizes = []
    for rows in (100, 6_000):
        folder = tmp_path / str(rows)
        folder.mkdir()
        write_starter(folder / "new.yaml", task="translation", data=pairs(folder, rows))
        sizes.append(read_recipe(str(folder / "new.yaml")).model.decoder["size"])
    assert sizes == [128, 256]


def test_what_can_be_wrong(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"task 'dialogue' is unknown\. Did you mean 'dialog'"):
        write_starter(tmp_path / "new.yaml", task="dialogue")
    with pytest.raises(DataError, match=r"data file .*nowhere\.tsv does not exist\."):
        write_starter(tmp_path / "new.yaml", task="dialog", data=tmp_path / "nowhere.tsv")
    (tmp_path / "odd.jsonl").write_text("[1, 2]\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"odd\.jsonl, line 1 cannot be read: .*\."):
        write_starter(tmp_path / "new.yaml", task="dialog", data=tmp_path / "odd.jsonl")
    (tmp_path / "here.yaml").write_text("task: dialog\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"here\.yaml exists already; choose another name\."):
        write_starter(tmp_path / "here.yaml", task="dialog")
    assert not (tmp_path / "new.yaml").exists()
