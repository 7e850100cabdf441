"""Every recipe of the package is found, counted, told apart and run for a few steps."""

import re
from pathlib import Path

import pytest
import yaml

import sixjars
from sixjars.evaluation.metrics import metric_named
from sixjars.model.encoders import ENCODERS
from sixjars.recipe.files import packaged
from sixjars.runs.recipes import read_recipe
from sixjars.tasks import TASKS

from .using import check_use

RECIPES = packaged()
SAMPLES = [name for name in RECIPES if "/sample" in name]
FIRST = [next(name for name in SAMPLES if name.startswith(f"{task}/")) for task in TASKS]
BRIDGES = {name: name for name in ("initial", "every_step", "attention")}
SHOWN = {
    **{
        task.name: BRIDGES
        for task in TASKS.values()
        if task.inputs and task.output.name == "target"
    },
    "conversation": {"initial": "initial", "attention": "two_level"},
    "document_classification": {
        "initial": "initial",
        "attention": "pooling",
        "flat_initial": "initial",
        "flat_attention": "pooling",
        "bag": "pooling",
        "wide_deep": "pooling",
    },
    "pointing": {"sorting": "attention", "hull": "initial", "tours": "initial"},
    "video_captioning": {
        "initial": "initial",
        "local": "initial",
        "attention": "attention",
        "both": "attention",
    },
    "image_question_answering": {"plain": "initial", "attention": "attention"},
    "video_classification": {"plain": "initial", "attention": "pooling"},
    "image_classification": {"plain": "initial", "attention": "pooling"},
    "sentence_pair": {"plain": "initial", "attention": "attention", "words": "attention"},
}
SHOWN["summarization"] = {**BRIDGES, "copy": "two_level", "hierarchy": "two_level"}
"""The variants that each task is shown in, and the bridge of each."""


def test_they_are_all_found() -> None:
    folder = Path(sixjars.__file__).parent / "recipes"
    assert len(RECIPES) == len(list(folder.glob("*/*.yaml"))) >= 80
    assert {name.split("/")[0] for name in RECIPES} == set(TASKS)


@pytest.mark.parametrize(
    ("task", "variant"), [(task, variant) for task in SHOWN for variant in SHOWN[task]]
)
def test_every_task_has_its_variants(task: str, variant: str) -> None:
    assert read_recipe(f"{task}/sample_{variant}").model.bridge["kind"] == SHOWN[task][variant]


def test_every_variant_has_a_recipe() -> None:
    """One recipe at least for each thing that a component can be."""
    recipes = [read_recipe(name) for name in SAMPLES]

    def used(role: str, key: str) -> set[object]:
        return {getattr(recipe.model, role).get(key) for recipe in recipes} - {None}

    seen = {
        "cells": used("decoder", "cell"),
        "encoder cells": used("encoder", "cell"),
        "directions": used("encoder", "direction"),
        "videos": {
            (
                "local" if recipe.model.encoder["reads"] != "frames" else "",
                recipe.model.bridge["kind"],
            )
            for recipe in recipes
            if recipe.task == "video_captioning"
        },
        "questions": used("encoder", "summary"),
        "encoders": used("encoder", "kind"),
        "comparisons": used("encoder", "compare"),
        "joined summaries": used("bridge", "join_summary"),
        "pools": used("encoder", "pool"),
        "copying": used("decoder", "copying"),
        "conditional": used("decoder", "conditional"),
        "visits": used("decoder", "visits"),
        "coverage": {recipe.loss.coverage > 0 for recipe in recipes},
        "segments": {
            getattr(recipe.data.fields.get("source"), "segments", "none") for recipe in recipes
        },
        "bridges": used("bridge", "kind"),
        "scores": used("bridge", "score"),
        "starts": used("bridge", "start"),
        "decoders": used("decoder", "kind"),
        "layers": used("decoder", "layers"),
        "tied": used("decoder", "tied"),
        "vectors": {
            recipe.model.encoder["embedding"]["frozen"]
            for recipe in recipes
            if getattr(recipe.data.fields.get("source"), "vectors", None)
        },
        "guided": {recipe.loss.guide > 0 for recipe in recipes},
        "dropout": {recipe.model.decoder["dropout"] > 0 for recipe in recipes},
        "no encoder": {recipe.model.encoder["kind"] == "none" for recipe in recipes},
        "tokens": {
            getattr(recipe.data.fields.get("target"), "tokens", "words") for recipe in recipes
        },
    }
    assert seen == {
        "cells": {"rnn", "gru", "lstm"},
        "encoder cells": {"rnn", "gru", "lstm"},
        "directions": {"forward", "backward", "both"},
        "videos": {
            ("", "initial"),
            ("local", "initial"),
            ("", "attention"),
            ("local", "attention"),
        },
        "questions": {"both", "question"},
        "encoders": set(ENCODERS),
        "comparisons": {"summaries", "words"},
        "joined summaries": {True, False},
        "pools": {"last", "attention"},
        "copying": {True, False},
        "conditional": {True, False},
        "visits": {"all", "some"},
        "coverage": {True, False},
        "segments": {"none", "lines", "turns"},
        "bridges": {"initial", "every_step", "attention", "location", "pooling", "two_level"},
        "scores": {"additive", "dot", "general"},
        "starts": {"linear", "copy"},
        "decoders": {"sequence", "label", "pointer"},
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


SPOKEN = {
    "rationale_word_near": "on the rationale word or beside it",
    "labels_micro_f1": "micro F1",
    "tour_length_ratio": "times the shortest",
    "valid_tours": "all of them valid",
}
"""How metrics are called where their name says less."""


def letters(text: str) -> str:
    """Small letters and digits alone: `BLEU-4` is `bleu4`."""
    return re.sub(r"[\W_]", "", text.lower())


@pytest.mark.parametrize("name", RECIPES)
def test_the_expect_line_agrees_with_the_key(name: str) -> None:
    text = RECIPES[name].read_text(encoding="utf-8")
    expected = yaml.safe_load(text).get("expect", {})
    assert expected, f"{name} expects nothing"
    told = next(line for line in text.splitlines() if line.startswith("# Expect"))
    for metric, value in expected.items():
        assert letters(SPOKEN.get(metric, metric.split("@")[0])) in letters(told)
        assert f"{value:g}" in told


@pytest.mark.parametrize("name", FIRST)
def test_the_first_of_each_task(name: str, tmp_path: Path) -> None:
    check_recipe(name, tmp_path)


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in FIRST])
def test_all_others(name: str, tmp_path: Path) -> None:
    check_recipe(name, tmp_path)


def check_recipe(name: str, folder: Path) -> None:
    """Two updates on a little data, and then all that people do with a run."""
    size = (
        24 if {slot.kind for slot in TASKS[name.split("/")[0]].inputs} & {"image", "video"} else 40
    )
    made = [
        f"data.sample.{split}={count}"
        for split, count in {"size": size, "valid": 8, "test": 8}.items()
    ]
    few = [
        *made,
        "learning.steps=2",
        "learning.batch_examples=16",
        "evaluation.search.max_length=12",
    ]
    check_use(sixjars.train(name, few, out=folder / "run"), folder)


def test_metrics_that_recipes_expect_exist() -> None:
    for name in RECIPES:
        for metric in read_recipe(name).expect:
            assert metric_named(metric).name == metric
