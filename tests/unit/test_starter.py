"""A starter recipe fits the user's data, and trains as it is."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sixjars
from sixjars.errors import DataError, RecipeError
from sixjars.recipe.files import inline, loaded
from sixjars.runs.recipes import read_recipe
from sixjars.starter.write import new
from sixjars.tasks import TASKS

from .starters import Start
from .starters import start as start


def pairs(rows: int = 60, *header: str) -> list[tuple[str, ...]]:
    return [
        *([header] if header else []),
        *((f"a cat {n}", f"eine katze {n}") for n in range(rows)),
    ]


@pytest.mark.parametrize("task", TASKS)
def test_it_is_a_right_recipe_without_data_too(task: str, tmp_path: Path) -> None:
    new(tmp_path / "new.yaml", task=task)
    assert read_recipe(str(tmp_path / "new.yaml")).task == task
    assert "# Run     sixjars train" in (tmp_path / "new.yaml").read_text(encoding="utf-8")


def test_it_trains_on_the_data_it_was_made_for(start: Start, tmp_path: Path) -> None:
    starter = start("translation", pairs())
    assert starter.columns == [1, 2]
    small = ["model.encoder.size=8", "model.decoder.size=8", "model.decoder.embedding.size=8"]
    few = ["learning.steps=2", *small, "evaluation.search.max_length=4"]
    assert sixjars.train(str(starter.path), few, out=tmp_path / "run").scores


def test_columns_are_found_by_their_usual_names(start: Start, tmp_path: Path) -> None:
    starter = start("translation", pairs(60, "source", "target"))
    assert starter.columns == ["source", "target"]
    assert "{column: source, " in starter.text  # plain names stay plain
    assert f"  train: {tmp_path / 'rows.tsv'}\n" in starter.text


def test_an_ending_in_capitals_is_the_same(start: Start) -> None:
    starter = start("translation", "source,target\nI am here,ich bin hier\n", "pairs.CSV")
    assert starter.columns == ["source", "target"]


def test_json_names_its_columns_and_the_longest_text_is_the_document(
    start: Start, tmp_path: Path
) -> None:
    long = "a long text " * 30
    row = {"id": "1", "title": "short", "article": long, "summary": "a text", "size": 3}
    with gzip.open(tmp_path / "news.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write((json.dumps(row) + "\n") * 5)
    starter = start("summarization", tmp_path / "news.jsonl.gz")
    assert starter.columns == ["article", "summary"]


@pytest.mark.parametrize(("rows", "size"), [(100, 128), (6_000, 256)])
def test_more_data_makes_a_larger_model(rows: int, size: int, start: Start) -> None:
    assert start("translation", pairs(rows)).recipe.model.decoder["size"] == size


def test_what_can_be_wrong(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"task 'dialogue' is unknown\. Did you mean 'dialog'"):
        new(tmp_path / "new.yaml", task="dialogue")
    with pytest.raises(DataError, match=r"data file .*nowhere\.tsv does not exist\."):
        new(tmp_path / "new.yaml", task="dialog", data=tmp_path / "nowhere.tsv")
    (tmp_path / "odd.jsonl").write_text("[1, 2]\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"odd\.jsonl, line 1 cannot be read: .*\."):
        new(tmp_path / "new.yaml", task="dialog", data=tmp_path / "odd.jsonl")
    (tmp_path / "here.yaml").write_text("task: dialog\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"here\.yaml exists already; choose another name\."):
        new(tmp_path / "here.yaml", task="dialog")
    assert not (tmp_path / "new.yaml").exists()


ODD = ["no", "on", "1.5", "1", "a: b", "a, b", "{a}", "x #y", "~", "'a'", '"', "a\\b", " a "]
ODD += ["é: ß", "", "2020-01-01", "5e-4", "0x1", "1_000", "!!int"]


@pytest.mark.parametrize("name", ODD)
def test_odd_names_of_columns_are_quoted(name: str, start: Start) -> None:
    starter = start("translation", [{"source": "a cat", name: "eine katze"}] * 5)
    assert starter.columns == ["source", name]


@pytest.mark.parametrize("folder", ["a #b", "a: b", "a, b", "{a}", "it's", "[1]"])
def test_odd_paths_are_quoted(folder: str, start: Start, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir()
    starter = start("translation", pairs(), f"{folder}/pairs.tsv")
    assert starter.recipe.data.train == str(tmp_path / folder / "pairs.tsv")


@given(
    name=st.text(st.characters(exclude_categories=["Cs"]))
    | st.text("no1.~:#,-?&*![]{}'\" \n\t")
    | st.integers(1, 10**20)
)
def test_every_name_comes_back_from_inline(name: str | int) -> None:
    found = loaded(
        f"data:\n  train: {inline(name)}\n  target: {{column: {inline(name)}, tokens: words}}\n"
    )
    assert found == {"data": {"train": name, "target": {"column": name, "tokens": "words"}}}
    assert "\n" not in inline(name)


def test_a_parquet_file_that_cannot_be_read(tmp_path: Path) -> None:
    whole = tmp_path / "whole.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"source": ["a"], "target": ["b"]}), whole)
    for content in (b"", b"no parquet at all", whole.read_bytes()[:-20]):
        (tmp_path / "odd.parquet").write_bytes(content)
        with pytest.raises(DataError) as caught:
            new(tmp_path / "new.yaml", task="translation", data=tmp_path / "odd.parquet")
        start = f"{tmp_path / 'odd.parquet'} is not a Parquet file or is damaged: "
        assert str(caught.value).startswith(start)
        assert str(caught.value).endswith(".")
        assert "\n" not in str(caught.value)
    pyarrow.parquet.write_table(
        pyarrow.table({"source": pyarrow.array([], pyarrow.string())}), whole
    )
    with pytest.raises(DataError) as caught:
        new(tmp_path / "new.yaml", task="translation", data=whole)
    assert str(caught.value) == f"{whole} has no rows."
    assert not (tmp_path / "new.yaml").exists()


def test_the_first_rows_of_a_parquet_file_choose_its_columns(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.parquet"
    content = {
        "id": list(range(50)),
        "on": [f"a cat {n}" for n in range(50)],
        "target": ["eine katze"] * 50,
    }
    pyarrow.parquet.write_table(pyarrow.table(content), file)
    taken: list[list[int]] = []

    class Counting(pyarrow.parquet.ParquetFile):  # type: ignore[misc]
        def iter_batches(self, *args: Any, **more: Any) -> Iterator[Any]:
            sizes: list[int] = []
            taken.append(sizes)
            for batch in super().iter_batches(*args, **more):
                sizes.append(len(batch))
                yield batch

    monkeypatch.setattr(pyarrow.parquet, "ParquetFile", Counting)
    monkeypatch.delattr(pyarrow.parquet, "read_table")
    starter = start("translation", file)
    assert taken == [[50], [50]]  # the first rows for the names, then all for the sizes
    assert starter.columns == ["on", "target"]


def test_bleu_does_not_choose_where_targets_have_fewer_than_four_words(start: Start) -> None:
    """It is 0 there however good the outputs are."""
    short = start("translation", pairs()).recipe
    assert (short.evaluation.metrics, short.learning.metric) == (("chrf",), "chrf")
    longer = [(f"a big cat {n}", f"eine große Katze {n}") for n in range(60)]
    assert start("translation", longer).recipe.learning.metric == "bleu"
