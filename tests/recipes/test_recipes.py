"""Every recipe that comes with the package is found, counted, told apart and run for a few steps."""

import re
from pathlib import Path

import pytest
import yaml

import sixjars
from sixjars.evaluation.metrics import metric_named
from sixjars.recipe.reading import packaged
from sixjars.tasks.evaluating import evaluated
from sixjars.tasks.explaining import explained
from sixjars.tasks.reading import read_recipe
from sixjars.tasks.table import TASKS

RECIPES = packaged()
SAMPLES = [name for name in RECIPES if "/sample" in name]
REAL = [name for name in RECIPES if "/sample" not in name]
BRIDGES = ("initial", "every_step", "attention")


def test_they_are_all_found() -> None:
    folder = Path(sixjars.__file__).parent / "recipes"
    assert len(RECIPES) == len(list(folder.rglob("*.yaml"))) >= 35
    assert {name.split("/")[0] for name in RECIPES} == set(TASKS)


@pytest.mark.parametrize("task", [task.name for task in TASKS.values() if task.reads])
@pytest.mark.parametrize("bridge", BRIDGES)
def test_every_system_has_every_bridge(task: str, bridge: str) -> None:
    assert read_recipe(f"{task}/sample_{bridge}").model.bridge["kind"] == bridge


def test_every_variant_has_a_recipe() -> None:
    """One recipe at least for each thing that a part can be told to be."""
    told = [read_recipe(name) for name in SAMPLES]
    seen = {
        "cells": {recipe.model.decoder["cell"] for recipe in told},
        "encoder cells": {recipe.model.encoder.get("cell") for recipe in told} - {None},
        "directions": {recipe.model.encoder.get("direction") for recipe in told} - {None},
        "scores": {recipe.model.bridge.get("score") for recipe in told} - {None},
        "starts": {recipe.model.bridge["start"] for recipe in told},
        "layers": {recipe.model.decoder["layers"] for recipe in told},
        "tied": {recipe.model.decoder["tied"] for recipe in told},
        "vectors": {
            recipe.model.encoder["embedding"]["tuned"]
            for recipe in told
            if recipe.data.source is not None and recipe.data.source.vectors
        },
        "guided": {recipe.loss.guide > 0 for recipe in told},
        "dropout": {recipe.model.decoder["dropout"] > 0 for recipe in told},
        "no encoder": {recipe.model.encoder["kind"] == "none" for recipe in told},
        "tokens": {recipe.data.target.tokens for recipe in told},
    }
    assert seen == {
        "cells": {"rnn", "gru", "lstm"},
        "encoder cells": {"rnn", "gru", "lstm"},
        "directions": {"forward", "backward", "both"},
        "scores": {"additive", "dot", "general"},
        "starts": {"linear", "copy"},
        "layers": {1, 2},
        "tied": {True, False},
        "vectors": {True, False},
        "guided": {True, False},
        "dropout": {True, False},
        "no encoder": {True, False},
        "tokens": {"words", "characters"},
    }


@pytest.mark.parametrize("name", RECIPES)
def test_it_opens_with_its_command_cost_and_score(name: str) -> None:
    lines = RECIPES[name].read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(r"# .{20,}\.", lines[0])
    assert lines[1].startswith(f"# Run     sixjars train {name}")
    assert re.fullmatch(r"# Cost    .{5,}", lines[2])
    assert re.fullmatch(r"# Expect  .{5,}", lines[3])


@pytest.mark.parametrize("name", RECIPES)
def test_the_expect_line_says_what_the_key_says(name: str) -> None:
    text = RECIPES[name].read_text(encoding="utf-8")
    expected = yaml.safe_load(text).get("expect", {})
    assert expected, f"{name} expects nothing"
    told = next(line for line in text.splitlines() if line.startswith("# Expect"))
    for metric, value in expected.items():
        assert metric.replace("_", " ").split("@")[0] in told.replace("BLEU", "bleu")
        assert f"{value:g}" in told


@pytest.mark.parametrize("name", SAMPLES)
def test_it_trains_predicts_evaluates_and_explains_itself(name: str, tmp_path: Path) -> None:
    few = [
        "data.sample.size=96",
        "data.sample.valid=8",
        "data.sample.test=8",
        "learning.steps=2",
        "learning.batch_examples=16",
    ]
    trained = sixjars.train(name, [*few, "evaluation.search.max_length=8"], out=tmp_path / "run")
    files = {path.name for path in trained.folder.iterdir()}
    assert files >= {
        "recipe.yaml",
        "run.json",
        "tokens",
        "model.safetensors",
        "log.jsonl",
        "scores.json",
        "checkpoints",
    }
    predictor = sixjars.load(trained.folder)
    asked = ["ghar"] if "transliteration" in name else ["the dog is here now"]
    prediction = predictor.predict(asked)[0]
    attends = predictor.recipe.model.bridge["kind"] == "attention"
    assert len(prediction.weights) == (len(prediction.pieces) if attends else 0)
    again = evaluated(trained.folder)
    assert [score.value for score in again.scores] == [score.value for score in trained.scores]
    jars = [jar.name for jar in explained(str(trained.folder)).jars]
    assert jars == [
        "task",
        "data",
        "model: encoder",
        "model: bridge",
        "model: decoder",
        "loss",
        "learning",
        "evaluation",
    ]


@pytest.mark.parametrize("name", REAL)
def test_it_runs_on_a_stand_in_for_its_data(name: str, tmp_path: Path) -> None:
    """The files that the recipe names, made up: a few lines in the right columns."""
    recipe = read_recipe(name)
    parts = [
        part for part in (recipe.data.train, recipe.data.valid, recipe.data.test) if not isinstance(part, float | None)
    ]
    for part in parts:
        _make_up(part, recipe.data.where, tmp_path)
    small = [f"model.{role}.size=16" for role in ("encoder", "decoder")]
    if recipe.model.decoder["tied"]:
        small.append("model.decoder.embedding.size=16")
    few = [f"data.folder={tmp_path}", "learning.steps=2", "evaluation.search.max_length=6", *small]
    trained = sixjars.train(name, few, out=tmp_path / "run")
    assert {score.name for score in trained.scores} >= set(recipe.expect)


def _make_up(files: object, where: dict[str, str], folder: Path) -> None:
    import gzip

    lines = ["a dog runs\tein hund rennt\t1", "two men sit\tzwei maenner sitzen\t2", "the sea\tdas meer\t1"] * 12
    columns = {name: number for number, name in enumerate(files)} if isinstance(files, dict) else {}
    named = files.items() if isinstance(files, dict) else [("", str(files))]
    for column, name in named:
        picked = [line.split("\t")[columns[column]] if column else line for line in lines]
        content = ("\n".join(picked) + "\n").encode()
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)


def test_metrics_that_recipes_expect_exist() -> None:
    for name in RECIPES:
        for metric in read_recipe(name).expect:
            assert metric_named(metric).name == metric
