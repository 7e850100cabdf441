"""What can be looked at: explanations, heat maps, curves, comparisons."""

import shutil
from pathlib import Path

import pytest
from rich.console import Console

import sixjars
from sixjars.errors import DataError, RecipeError, RunError
from sixjars.evaluation.by_length import Bucket, edges_of, scores_by_length
from sixjars.evaluation.metrics import Outcome
from sixjars.inspection.curves import draw_by_length
from sixjars.inspection.heatmap import draw, in_terminal
from sixjars.model.build import build
from sixjars.progress import Reporter
from sixjars.recipe.files import packaged
from sixjars.runs.compare import compare
from sixjars.runs.explain import explain
from sixjars.runs.recipes import read_recipe

FEW = [
    "data.sample.size=64",
    "data.sample.valid=4",
    "data.sample.test=12",
    "learning.steps=2",
    "evaluation.search.max_length=4",
]


@pytest.mark.parametrize("name", [name for name in packaged() if "sample" in name])
def test_every_parameter_has_its_letter_shape_and_count(name: str) -> None:
    recipe = read_recipe(name)
    fields = {"vocabulary": 50, "vectors": None, "pixels": 64, "pretrained": False, "cells": True}
    fields |= {"classes": 4, "multi_label": False, "numbers": 2}
    network = build(recipe.model, {name: fields for name in recipe.data.fields()})
    jars = explain(name, FEW[:3]).jars
    told = {weight.name: weight for jar in jars for weight in jar.weights}
    truth = dict(network.named_parameters())
    assert {weight.name for weight in told.values() if weight.learned} == set(truth)
    assert not [weight.name for weight in told.values() if weight.learned and weight.letter == "–"]
    assert all(len(told[name].shape) == truth[name].dim() for name in truth)
    assert all(jar.lines for jar in jars)


def test_a_recipe_without_its_data_is_explained_all_the_same(tmp_path: Path) -> None:
    told = explain("translation/multi30k_attention")
    data = next(jar for jar in told.jars if jar.name == "data")
    assert any("the data is not here" in line for line in data.lines)
    assert told.count > 1_000_000


@pytest.mark.parametrize("name", [name for name in packaged() if name.startswith("pointing/")])
def test_a_network_that_points_is_explained_without_making_its_data(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*_: object, **__: object) -> None:
        raise AssertionError("tours are being solved")

    monkeypatch.setattr("sixjars.runs.data.make", made)
    told = explain(name)
    recipe = read_recipe(name)
    assert recipe.data.points is not None
    network = build(recipe.model, {"points": {"numbers": recipe.data.points.numbers}, "order": {}})
    assert told.count == sum(weight.numel() for weight in network.parameters())
    [data] = [jar for jar in told.jars if jar.name == "data"]
    assert not any("the data is not here" in line for line in data.lines)


def test_a_picture_is_made_and_long_titles_fit(tmp_path: Path) -> None:
    weights = [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]
    draw(tmp_path / "new" / "map.png", weights, source=["I", "go"], target=["mein", "ja", "<stop>"], title="word " * 40)
    assert (tmp_path / "new" / "map.png").read_bytes().startswith(b"\x89PNG")


def test_the_terminal_shows_every_word_and_the_large_weights() -> None:
    console = Console(width=60, record=True, force_terminal=False)
    console.print(in_terminal([[0.93, 0.07], [0.01, 0.99]], source=["I", "go"], target=["mein", "ja"]))
    text = console.export_text()
    assert all(word in text for word in ("I", "go", "mein", "ja", ".93", ".99", ".07", "·"))


def test_by_length_loses_nobody_and_tells_of_empty_ranges() -> None:
    outcomes = [Outcome((str(n),), (str(n) if n < 5 else "no",)) for n in range(10)]
    lengths = [3, 3, 4, 4, 5, 40, 41, 42, 43, 44]
    edges = edges_of(lengths, buckets=5)
    buckets = scores_by_length(outcomes, lengths, metric="exact_match", edges=edges)
    assert [(bucket.count, bucket.value) for bucket in buckets] == [(5, 1.0), (0, None), (0, None), (0, None), (5, 0.0)]


def test_curves_are_drawn(tmp_path: Path) -> None:
    draw_by_length(tmp_path / "curve.png", {"a": [Bucket(1, 5, 3, 0.9), Bucket(6, 10, 3, 0.4)]}, metric="exact_match")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_comparison_trains_recipes_and_takes_runs_as_they_are(tmp_path: Path) -> None:
    made = {}
    for how in ("initial", "attention"):
        made[how] = sixjars.train(f"transliteration/sample_{how}", FEW, out=tmp_path / f"run_{how}").folder
    found = compare(
        [str(folder) for folder in made.values()], out=tmp_path, metric="exact_match", device="cpu", reporter=Reporter
    )
    assert [contender.name for contender in found.contenders] == ["initial", "attention"]
    assert sum(bucket.count for bucket in found.contenders[0].buckets) == 12
    assert found.picture.is_file()


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"compare needs two recipes or runs, or more\."):
        compare(["x"], out=tmp_path, metric="bleu", device="cpu", reporter=Reporter)
    with pytest.raises(RecipeError, match=r"metric 'blue' is unknown\. Did you mean 'bleu'"):
        compare(["x", "y"], out=tmp_path, metric="blue", device="cpu", reporter=Reporter)
    run = sixjars.train("language_model/sample_gru", FEW, out=tmp_path / "lm").folder
    for name in (str(run), "language_model/sample_gru"):
        with pytest.raises(
            DataError, match="is a language_model model; it reads no text whose length could be compare"
        ):
            compare([name, name], out=tmp_path, metric="perplexity", device="cpu", reporter=Reporter)
    shutil.copytree(run, tmp_path / "transliteration-sample_initial")
    names = ["transliteration/sample_initial", "transliteration/sample_attention"]
    with pytest.raises(RunError, match="was begun with another recipe"):
        compare(names, out=tmp_path, metric="exact_match", device="cpu", reporter=Reporter)


def test_words_with_dollars_are_words(tmp_path: Path) -> None:
    draw(tmp_path / "map.png", [[1.0]], source=["$5_{"], target=["$x$ ^_"], title="$a_{ $")
    assert (tmp_path / "map.png").is_file()
