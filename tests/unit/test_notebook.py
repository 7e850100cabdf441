"""From Python and notebooks: recipes as dicts, tables in memory, search by keywords, HTML."""

from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow
import pytest
from rich.console import Console

import sixjars
from sixjars import ConsoleProgress, Prediction, Reporter, Run, SearchSettings
from sixjars.errors import DataError, RecipeError, RunError
from sixjars.progress import usual_reporter

ROWS = [
    {"word": f"ab{'c' * (at % 5)}", "said": f"ba{'d' * (at % 5)}", "number": at} for at in range(40)
]
RECIPE: dict[str, Any] = {
    "task": "transliteration",
    "data": {
        "source": {"column": "word", "tokens": "characters"},
        "target": {"column": "said", "tokens": "characters"},
        "valid": 0.2,
    },
    "model": {"encoder": {"size": 8}, "decoder": {"size": 8}},
    "learning": {"epochs": 2},
    "evaluation": {"search": {"max_length": 6}, "metrics": ["exact_match"]},
}
WITH_FILE = {**RECIPE, "data": {**RECIPE["data"], "train": "none.tsv"}}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return sixjars.train(RECIPE, data=ROWS, out=tmp_path_factory.mktemp("notebook") / "run")


class Frame:
    """Offers itself to Arrow, as pandas and polars do."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._table = pyarrow.Table.from_pylist(rows)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def old_frame(rows: list[dict[str, Any]]) -> Any:
    """As pandas was before it knew Arrow's stream."""
    return SimpleNamespace(columns=list(rows[0]), to_dict=lambda how: list(rows))


# tables


def test_a_dict_and_a_list_of_dicts(run: Run) -> None:
    assert [score.name for score in run.scores] == ["exact_match"]
    assert [record["epoch"] for record in run.history] == [1, 2]
    assert "train: memory:train\n" in (run.folder / "recipe.yaml").read_text()
    assert run.where == "the validation set of memory:train"
    assert run.predictor().predict("abc").error is None


@pytest.mark.parametrize("made", [Frame, old_frame, pyarrow.Table.from_pylist])
def test_every_kind_of_table_is_the_same_data(made: Any, run: Run, tmp_path: Path) -> None:
    other = sixjars.train(RECIPE, data=made(ROWS), out=tmp_path / "run")
    assert other.history[-1]["loss"] == run.history[-1]["loss"]


def test_splits_by_name_and_numbers_as_texts(tmp_path: Path) -> None:
    data = {**RECIPE["data"], "target": {"column": "number", "tokens": "characters"}}
    recipe, valid = {**RECIPE, "data": data}, pyarrow.Table.from_pylist(ROWS[30:35])
    tables = {"train": ROWS[:30], "valid": valid, "test": ROWS[35:]}
    found = sixjars.train(recipe, data=tables, out=tmp_path / "run")
    assert (found.examples, found.where) == (5, "the test set of memory:test")


def test_resuming_needs_the_same_table(run: Run, tmp_path: Path) -> None:
    named = {**RECIPE, "data": {**RECIPE["data"], "train": "memory:train"}}
    told = r"^memory:train is data that was in memory, not a file; give it again from "
    with pytest.raises(DataError, match=told):
        sixjars.train(named, out=run.folder, resume=True)
    with pytest.raises(RunError, match=r"^the data of .* has changed since it was begun"):
        sixjars.train(RECIPE, data=ROWS[:-1], out=run.folder, resume=True)
    again = sixjars.train(RECIPE, data=ROWS, out=run.folder, resume=True)
    assert again.scores == run.scores


def test_evaluate_takes_a_table(run: Run) -> None:
    found = sixjars.evaluate(run.folder, data=ROWS[:7])
    assert (found.examples, found.where) == (7, "memory:data")
    assert sixjars.evaluate(run.folder, data=Frame(ROWS[:7])).scores == found.scores
    with pytest.raises(DataError, match=r"^memory:train is data that was in memory"):
        sixjars.evaluate(run.folder)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (3, "data must be a pandas or Arrow table, or a list of dicts, but is 3 (int)."),
        ([1], "data must be a pandas or Arrow table, or a list of dicts, but is [1] (list)."),
        (
            {"trian": []},
            "data must be a pandas or Arrow table, or a list of dicts, or one of these for each "
            "of train, ",
        ),
        ([], "memory:train has no rows."),
        ([{"word": "a", "said": None}], "memory:train, row 1: column 'said' has no value."),
        ([{"word": "a", "said": float("nan")}], "memory:train, row 1: column 'said' has no value."),
        ([{"word": "a"}], "memory:train, row 1: column 'said' is unknown. Known: word."),
        ([{"word": "a", "said": object}], "memory:train, row 1: column 'said' holds "),
        (pyarrow.table({"word": ["a"]}), "memory:train: column 'said' is unknown. Known: word."),
    ],
)
def test_tables_that_cannot_be_used(data: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        sixjars.train(RECIPE, data=data, out=tmp_path / "run")
    assert str(caught.value).startswith(message)


def test_dicts_have_names_not_numbers(tmp_path: Path) -> None:
    recipe = {**RECIPE, "data": {"source": {"column": 1}, "target": {"column": 2}}}
    told = r"^memory:train: dicts have names, not numbers, so column 1 is not there; give"
    with pytest.raises(DataError, match=told):
        sixjars.train(recipe, data=ROWS, out=tmp_path / "run")


# recipes


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (
            {**WITH_FILE, "lr": 1},
            "recipe: key 'lr' is unknown. Did you mean 'learning.rate'? Known: ",
        ),
        (
            {**WITH_FILE, "learning": {"rate": "fast"}},
            "recipe: learning.rate: should be a valid number, but is 'fast'.",
        ),
        (
            {**RECIPE, "loss": {"kind": len}},
            "recipe: loss.kind: must be a text, a number, a list or a section, but is ",
        ),
        (
            {**RECIPE, "model": {"encoder": {"kind": Reporter}}},
            "recipe: model.encoder.kind: is a class; write its name, ",
        ),
        (7, "recipe: must be a file, a name or a dict, but is 7."),
    ],
)
def test_faults_of_a_dict(recipe: Any, message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        sixjars.read_recipe(recipe)
    assert str(caught.value).startswith(message)


def test_a_dict_that_holds_itself() -> None:
    recipe = dict(RECIPE)
    recipe["loss"] = recipe
    with pytest.raises(RecipeError, match="sections are nested more than 20 deep"):
        sixjars.read_recipe(recipe)


def test_a_dict_is_explained_and_overridden() -> None:
    recipe = {**RECIPE, "data": {**RECIPE["data"], "train": Path("none.tsv")}}
    assert sixjars.explain(recipe).count > 0
    assert sixjars.read_recipe(recipe, ["learning.epochs=7"]).learning.epochs == 7
    assert RECIPE["learning"] == {"epochs": 2}
    once = str(sixjars.explain(recipe, ["learning.epochs=1", "learning.steps=1"]))
    assert "'at most 1 epoch, 1 step'" in once


# prediction


def test_one_input_is_one_prediction(run: Run) -> None:
    predictor = run.predictor()
    one = predictor.predict("abc")
    assert one == predictor.predict(["abc"])[0] == predictor.predict({"source": "abc"})
    assert one.attention.shape == (len(one.tokens), len(one.source))
    assert np.allclose(one.attention.sum(1), 1.0)
    assert predictor.predict(iter(["abc"])) == [one]


def test_search_by_keywords(run: Run) -> None:
    predictor = run.predictor()
    beam = SearchSettings(kind="beam", width=5, nbest=3, max_length=6)
    wanted = predictor.nbest(["abc", "ab"], search=beam)
    assert predictor.predict(["abc", "ab"], search="beam", width=5, nbest=3) == wanted
    [alone] = predictor.nbest(["abc"], search=beam)
    assert predictor.predict("abc", search="beam", nbest=3) == alone
    assert predictor.predict("abc", nbest=3) == alone  # several outputs need a beam
    assert predictor.predict("abc", search="beam", width=5) == alone[0]
    assert predictor.predict(["abc"], search=beam) == [alone[0]]
    assert len(predictor.predict("abc", nbest=7)) == 7
    assert len(predictor.predict("abc", nbest=1)) == 1  # a list whenever a number is given


@pytest.mark.parametrize(
    ("inputs", "settings", "message"),
    [
        (3, {}, "give a text, or a list of inputs, but not 3 (int)."),
        (None, {}, "give a text, or a list of inputs, but not None (NoneType)."),
        (
            "abc",
            {"search": 5},
            "search must be 'greedy', 'beam' or 'sample', or SearchSettings, but is 5.",
        ),
        (
            "abc",
            {"search": "beem"},
            "predict: search.kind: should be 'greedy', 'sample' or 'beam', but is 'beem'. Did",
        ),
        (
            "abc",
            {"widht": 5},
            "predict: search: key 'widht' is unknown. Did you mean 'width'? Known: ",
        ),
        (
            "abc",
            {"width": "wide"},
            "predict: search.width: should be a valid integer, but is 'wide'.",
        ),
        (
            "abc",
            {"search": "greedy", "nbest": 2},
            "greedy search finds one output, but nbest is 2; search with beam or ",
        ),
    ],
)
def test_wrong_arguments_are_a_sentence(
    inputs: Any, settings: dict[str, Any], message: str, run: Run
) -> None:
    with pytest.raises((DataError, RecipeError)) as caught:
        run.predictor().predict(inputs, **settings)
    assert str(caught.value).startswith(message)


def test_wrong_inputs_are_a_sentence(run: Run) -> None:
    none, number, wrong = run.predictor().predict([None, 5, {"text": "abc"}])
    assert none.error == "input 1: the source has no value."
    assert number.error == "input 2: the source must be a text, but is 5."
    assert wrong.error == "input 3: must name source, but has text."


# what a notebook shows


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(html: str) -> _Text:
    reader = _Text()
    reader.feed(html)
    return reader


def test_html_of_runs_and_evaluations(run: Run) -> None:
    shown = read(run._repr_html_())
    assert {"exact_match", "epoch", "loss"} <= set(shown.texts)
    found = read(sixjars.evaluate(run.folder, data=ROWS)._repr_html_())
    assert {"exact_match", "40"} <= set(found.texts)


def test_html_of_predictions_is_escaped() -> None:
    wild = "<script>alert(1)</script>"
    one = Prediction(text=wild, source=(wild, "b"), tokens=(wild,), weights=((0.25, 0.75),))
    shown = read(one._repr_html_())
    assert "script" not in shown.tags
    assert shown.texts.count(wild) == 3
    assert one._repr_html_().count('title="0.750"') == 1
    assert "<script" not in Prediction("", error=wild)._repr_html_()
    # its positions have no names
    image = Prediction(text="a", tokens=("a",), weights=((0.5, 0.5),))
    assert {"0", "1"} <= set(read(image._repr_html_()).texts)
    told = "too many for a table"
    assert told in Prediction("a", tokens=("a",), weights=((0.0,) * 300,))._repr_html_()
    assert "table" not in read(Prediction("a")._repr_html_()).tags


def test_progress_is_shown_where_a_person_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for terminal, notebook in ((True, False), (False, True), (False, False)):
        monkeypatch.setattr(Console, "is_terminal", terminal)
        monkeypatch.setattr("rich.console._is_jupyter", lambda found=notebook: found)
        assert isinstance(usual_reporter(), ConsoleProgress) == (terminal or notebook)
