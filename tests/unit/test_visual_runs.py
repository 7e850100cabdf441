"""Images and videos the whole way: trained, scored, predicted from, explained, resumed."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

import sixjars
from sixjars.evaluation.metrics import metric_named
from sixjars.evaluation.score import judged
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.data.splits import splits_of
from sixjars.runs.evaluate import evaluate
from sixjars.runs.explanation.explain import explain
from sixjars.runs.folder.run_folder import open_run
from sixjars.runs.recipes import Blueprint
from sixjars.samples import sample_folder
from sixjars_runtime.errors import Interrupted, shown

from .conftest import one_for_each_task
from .trained import assert_same

BACKBONE = {"name": "small", "widths": [4, 6]}
WORDS = {"size": 8, "embedding": {"size": 6}}
ATTENTION = {"kind": "attention", "size": 8}
IMAGE, VIDEO = {"size": 16}, {"size": 16, "frames": 4}
CELLS, FRAMES = 16, 4
"""What two halvings leave of 16×16 pixels; what is taken of a video."""
RECIPES: dict[str, dict[str, Any]] = {
    "image_captioning": {
        "data": {"image": IMAGE},
        "model": {"encoder": {"backbone": BACKBONE}, "bridge": ATTENTION, "decoder": WORDS},
    },
    "image_question_answering": {
        "data": {"image": IMAGE, "question": {}, "label": {}},
        "model": {
            "encoder": {"image": {"backbone": BACKBONE}, "question": WORDS, "summary": "question"},
            "bridge": ATTENTION,
            "decoder": {"size": 8},
        },
    },
    "video_captioning": {
        "data": {"video": VIDEO},
        "model": {
            "encoder": {"backbone": BACKBONE, "reads": "both", "size": 8},
            "bridge": ATTENTION,
            "decoder": WORDS,
        },
    },
    "video_classification": {
        "data": {"video": VIDEO, "label": {}},
        "model": {
            "encoder": {"backbone": BACKBONE, "size": 8},
            "bridge": {"kind": "pooling", "size": 8},
            "decoder": {"size": 8},
        },
    },
}
"""A small model of each task; all have attention."""
CLASSIFYING = ("image_question_answering", "video_classification")
QUESTION = "how many things are there ?"
Run = Callable[[str], Path]


def write(folder: Path, task: str, **data: Any) -> str:
    """The recipe of a task as a file."""
    made = RECIPES[task]
    settings = {"sample": {"size": 40, "valid": 8, "test": 12}, **made["data"], **data}
    values = {
        "task": task,
        "data": {key: value for key, value in settings.items() if value is not None},
        "model": made["model"],
        "learning": {"epochs": 2, "batch_examples": 16, "rate": 0.01},
        "evaluation": {"search": {"max_length": 6}},
    }
    path = folder / f"{task}.yaml"
    path.write_text(yaml.safe_dump(values))
    return str(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return one_for_each_task(tmp_path_factory, write)


def files(task: str, count: int = 3) -> list[str]:
    return [str(path) for path in sorted(sample_folder(task).iterdir()) if path.is_file()][:count]


def asked(task: str, count: int = 3) -> list[Any]:
    if task != "image_question_answering":
        return files(task, count)
    return [{"image": file, "question": QUESTION} for file in files(task, count)]


@pytest.mark.parametrize("task", RECIPES)
def test_what_training_scored_is_scored_again(task: str, run: Run) -> None:
    kept = json.loads((run(task) / "scores.json").read_text())
    found = evaluate(run(task))
    assert found.examples == 12
    assert {score.name: score.value for score in found.scores} == {
        name: pytest.approx(value["value"]) for name, value in kept["scores"].items()
    }
    assert bool(found.classes) == (found.confusion is not None) == (task in CLASSIFYING)


@pytest.mark.parametrize("task", RECIPES)
def test_it_learned_something(task: str, run: Run) -> None:
    log = [json.loads(line) for line in (run(task) / "log.jsonl").read_text().splitlines()]
    assert log[-1]["train_loss"] < log[0]["train_loss"]


@pytest.mark.parametrize("task", RECIPES)
def test_files_give_the_numbers_that_were_stored_of_them(task: str, run: Run) -> None:
    """The same answers from a file that is given as from its features in the cache."""
    opened = open_run(run(task))
    blueprint = Blueprint.of(opened.recipe)
    fields = opened.restored(blueprint.fields)
    test, network = splits_of(blueprint, fields).scored, opened.network(blueprint, fields)
    metrics = [metric_named("exact_match")]
    kept = judged(network, test, opened.recipe.evaluation, metrics).outcomes[1]
    folder = sample_folder(task)
    given = [dict(row) for row in test.inputs]
    for row in given:
        row |= {name: str(folder / row[name]) for name in ("image", "video") if name in row}
    found = sixjars.load(run(task)).predict(given)
    assert [prediction.text for prediction in found] == [outcome.candidates[0] for outcome in kept]


@pytest.mark.parametrize("task", RECIPES)
def test_weights_lie_on_cells_or_frames(task: str, run: Run) -> None:
    predictor = sixjars.load(run(task))
    video = task.startswith("video")
    for found in predictor.predict(asked(task)):
        assert found.layout.kind == ("frames" if video else "grid")
        assert found.layout.shape == (() if video else (4, 4))
        assert found.source == (("1", "2", "3", "4") if video else ())
        assert len(found.weights) == len(found.tokens) >= 1
        assert all(len(row) == (FRAMES if video else CELLS) for row in found.weights)
        ones = [1.0] * len(found.tokens)
        assert [sum(row) for row in found.weights] == pytest.approx(ones, abs=1e-5)
        assert found.to_json()["layout"] == (["frames"] if video else ["grid", 4, 4])
    assert set(found.inputs) == set(predictor.inputs)


@pytest.mark.parametrize("task", RECIPES)
def test_the_same_alone_or_in_a_batch(task: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = sixjars.load(run(task))
    together = predictor.predict(asked(task, 7))
    monkeypatch.setattr("sixjars.runs.prediction.requests.FILES_AT_ONCE", 3)
    portions = predictor.predict(asked(task, 7))
    alone = [predictor.predict([one])[0] for one in asked(task, 7)]
    texts = [[found.text for found in every] for every in (together, alone, portions)]
    assert texts[0] == texts[1] == texts[2]
    scores = [found.score for found in alone]
    assert [found.score for found in together] == pytest.approx(scores, abs=1e-4)


@pytest.mark.parametrize("task", CLASSIFYING)
def test_labels_are_told_with_their_probabilities(task: str, run: Run) -> None:
    predictor = sixjars.load(run(task))
    label = predictor.fields.output
    labels = label.tokens(range(label.facts()["classes"]))
    for found in predictor.nbest(asked(task), search=SearchSettings(nbest=100)):
        assert sorted(answer.text for answer in found) == sorted(labels)
        chances = [answer.probability for answer in found]
        assert chances == sorted(chances, reverse=True)
        assert sum(chances) == pytest.approx(1.0, abs=1e-5)
        assert all(answer.finished and answer.tokens == (answer.text,) for answer in found)
    assert len(predictor.nbest(asked(task, 1), search=SearchSettings(nbest=2))[0]) == 2


@pytest.mark.parametrize("task", RECIPES)
def test_a_run_explains_itself(task: str, run: Run) -> None:
    told = explain(str(run(task)))
    weights = {weight.name: weight for section in told.sections for weight in section.weights}
    network = sixjars.load(run(task)).network
    assert {name: weight.count for name, weight in weights.items()} == {
        name: weight.numel() for name, weight in network.named_parameters()
    }
    unused = {name for name, weight in weights.items() if not weight.trainable}
    assert told.count == sum(weight.count for name, weight in weights.items() if name not in unused)
    # What is read of the image is its cells, if the summary is that of the question.
    whole = (
        "encoder.image.backbone.backbone.vector",
        "encoder.image.backbone.backbone.even",
        "encoder.image.whole",
    )
    wanted = {f"{name}.{kind}" for name in whole for kind in ("weight", "bias")}
    assert unused == (wanted if task == "image_question_answering" else set())
    lines = [line for section in told.sections for line in section.lines]
    assert any("CNN(" in line for line in lines)
    assert any("16×16 pixels" in line for line in lines)
    assert any("P(y | " in line for line in lines) == (task in CLASSIFYING)
    assert all(weight.letter != "–" for weight in weights.values())


def test_a_recipe_is_explained_before_anything_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "cache"))
    for task in RECIPES:
        assert explain(write(tmp_path, task)).count > 1000
        assert not sample_folder(task).exists()


def test_questions_reach_the_answer(run: Run) -> None:
    """Two questions about one image are answered differently: the question is read."""
    predictor = sixjars.load(run("image_question_answering"))
    file = files("image_question_answering", 1)[0]
    questions = (QUESTION, "what colour is the circle ?")
    one, two = predictor.predict([{"image": file, "question": text} for text in questions])
    assert one.log_probability != two.log_probability


def test_inputs_that_cannot_be_used(run: Run, tmp_path: Path) -> None:
    file = files("image_question_answering", 1)[0]
    answering = sixjars.load(run("image_question_answering"))
    captioning = sixjars.load(run("image_captioning"))
    (tmp_path / "text.png").write_bytes(b"no image")
    both = "input 1: must name image and question, but has image."
    for predictor, given, told in (
        (answering, file, f"input 1: must be a dict of image and question, but is {shown(file)}."),
        (answering, {"image": file}, both),
        (answering, {"image": file, "question": " "}, "input 1: the question is empty."),
        (captioning, {"video": file}, "input 1: must name image, but has video."),
        (
            captioning,
            str(tmp_path / "no.png"),
            f"input 1: the image file {tmp_path / 'no.png'} does not exist.",
        ),
        (captioning, str(tmp_path), f"input 1: the image file {tmp_path} is a folder."),
    ):
        assert predictor.predict([given])[0].error == told
    good, bad, other = captioning.predict([file, str(tmp_path / "text.png"), file])
    assert good.text == other.text == captioning.predict([file])[0].text
    damaged = f"input 2: the image: {tmp_path / 'text.png'} is not an image, or damaged from its first bytes; JPEG, "
    assert str(bad.error).startswith(damaged)
    assert captioning.predict([]) == []


@pytest.mark.parametrize("task", ["image_captioning", "video_classification"])
def test_many_threads_get_what_one_gets(task: str, run: Run) -> None:
    predictor = sixjars.load(run(task))
    given = asked(task, 6)
    wanted = [predictor.predict([one])[0] for one in given]
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda one: predictor.predict([one])[0], given * 3))
    assert found == wanted * 3


def test_a_run_that_was_stopped_goes_on(tired: Any, tmp_path: Path) -> None:
    """Dropout, images and labels included: bit for bit as one that never was stopped."""
    recipe, stopped = write(tmp_path, "video_classification"), tmp_path / "stopped"
    few = ["model.encoder.dropout=0.3", "learning.validate_every=1"]
    sixjars.train(recipe, few, out=tmp_path / "whole")
    for attempt in range(10):
        try:
            sixjars.train(recipe, few, out=stopped, resume=attempt > 0, reporter=tired(2))
        except Interrupted:
            continue
        break
    assert attempt > 1
    assert_same(stopped, tmp_path / "whole", "model.safetensors", "log.jsonl", "scores.json")
