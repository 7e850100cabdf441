"""Pictures and films the whole way: trained, scored, asked from Python and from the command line, drawn."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import sixjars
from sixjars.errors import DataError, Interrupted
from sixjars.evaluation.score import outcomes_of
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.data import sample_folder
from sixjars.runs.evaluate import evaluate, scored_part
from sixjars.runs.explain import explain
from sixjars.runs.folder import open_run

EYES = {"name": "small", "widths": [4, 6]}
WORDS = {"size": 8, "embedding": {"size": 6}}
LOOKS = {"kind": "attention", "size": 8}
PICTURE, FILM = {"size": 16}, {"size": 16, "frames": 4}
CELLS, FRAMES = 16, 4
"""What two halvings leave of 16×16 pixels; what is taken of a film."""
RECIPES: dict[str, dict[str, Any]] = {
    "image_captioning": {
        "data": {"image": PICTURE},
        "model": {"encoder": {"backbone": EYES}, "bridge": LOOKS, "decoder": WORDS},
    },
    "image_question_answering": {
        "data": {"image": PICTURE, "question": {}, "label": {}},
        "model": {
            "encoder": {"image": {"backbone": EYES}, "question": WORDS, "summary": "question"},
            "bridge": LOOKS,
            "decoder": {"size": 8},
        },
    },
    "video_captioning": {
        "data": {"video": FILM},
        "model": {"encoder": {"backbone": EYES, "reads": "both", "size": 8}, "bridge": LOOKS, "decoder": WORDS},
    },
    "video_classification": {
        "data": {"video": FILM, "label": {}},
        "model": {
            "encoder": {"backbone": EYES, "size": 8},
            "bridge": {"kind": "pooling", "size": 8},
            "decoder": {"size": 8},
        },
    },
}
"""A little of each system: all of them look somewhere."""
WRITING, CHOOSING = ("image_captioning", "video_captioning"), ("image_question_answering", "video_classification")
QUESTION = "how many things are there ?"
Run = Callable[[str], Path]


def write(folder: Path, task: str, **data: Any) -> str:
    """The recipe of a system as a file."""
    made = RECIPES[task]
    values = {
        "task": task,
        "data": {"sample": {"size": 40, "valid": 8, "test": 12}, **made["data"], **data},
        "model": made["model"],
        "learning": {"epochs": 2, "batch_examples": 16, "rate": 0.01},
        "evaluation": {"search": {"max_length": 6}},
    }
    path = folder / f"{task}.yaml"
    path.write_text(yaml.safe_dump({**values, "data": {k: v for k, v in values["data"].items() if v is not None}}))
    return str(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A trained run of each system, made when it is first asked for."""
    made: dict[str, Path] = {}

    def find(task: str) -> Path:
        if task not in made:
            folder = tmp_path_factory.mktemp(task)
            made[task] = sixjars.train(write(folder, task), out=folder / "run").folder
        return made[task]

    return find


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
    assert bool(found.classes) == (found.confusion is not None) == (task in CHOOSING)


@pytest.mark.parametrize("task", RECIPES)
def test_it_learned_something(task: str, run: Run) -> None:
    log = [json.loads(line) for line in (run(task) / "log.jsonl").read_text().splitlines()]
    assert log[-1]["train_loss"] < log[0]["train_loss"]


@pytest.mark.parametrize("task", RECIPES)
def test_files_are_seen_as_the_kept_ones_are(task: str, run: Run) -> None:
    """The same answers from a file that is asked for as from the numbers that were kept of it."""
    opened = open_run(run(task))
    part, network = scored_part(opened), opened.network(opened.tokens())
    kept = outcomes_of(network, part, opened.recipe.evaluation, ["exact_match"])
    folder = sample_folder(task)
    given = [
        {name: str(folder / text) if name in ("image", "video") else text for name, text in row.items()}
        for row in part.inputs
    ]
    said = sixjars.load(run(task)).predict(given)
    assert [prediction.text for prediction in said] == [outcome.best for outcome in kept]


@pytest.mark.parametrize("task", RECIPES)
def test_weights_lie_on_cells_or_frames(task: str, run: Run) -> None:
    predictor = sixjars.load(run(task))
    films = task.startswith("video")
    for found in predictor.predict(asked(task)):
        assert found.layout.kind == ("frames" if films else "grid")
        assert found.layout.shape == (() if films else (4, 4))
        assert found.source == (("1", "2", "3", "4") if films else ())
        assert len(found.weights) == len(found.tokens) >= 1
        assert all(len(row) == (FRAMES if films else CELLS) for row in found.weights)
        assert [sum(row) for row in found.weights] == pytest.approx([1.0] * len(found.tokens), abs=1e-5)
        assert found.to_json()["layout"] == (["frames"] if films else ["grid", 4, 4])
    assert set(found.inputs) == set(predictor.task.inputs)


@pytest.mark.parametrize("task", RECIPES)
def test_the_same_alone_or_in_a_batch(task: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = sixjars.load(run(task))
    together = predictor.predict(asked(task, 7))
    monkeypatch.setattr("sixjars.runs.predict.FILES_AT_ONCE", 3)
    portions = predictor.predict(asked(task, 7))
    alone = [predictor.predict([one])[0] for one in asked(task, 7)]
    assert [found.text for found in together] == [found.text for found in alone] == [found.text for found in portions]
    scores = [found.score for found in alone]
    assert [found.score for found in together] == pytest.approx(scores, abs=1e-4)


@pytest.mark.parametrize("task", CHOOSING)
def test_labels_are_told_with_their_probabilities(task: str, run: Run) -> None:
    predictor = sixjars.load(run(task))
    labels = predictor.tokens["label"]
    for found in predictor.nbest(asked(task), search=SearchSettings(nbest=100)):
        assert sorted(answer.text for answer in found) == sorted(labels.tokens(range(labels.size)))
        chances = [answer.probability for answer in found]
        assert chances == sorted(chances, reverse=True)
        assert sum(chances) == pytest.approx(1.0, abs=1e-5)
        assert all(answer.finished and answer.tokens == (answer.text,) for answer in found)
    assert len(predictor.nbest(asked(task, 1), search=SearchSettings(nbest=2))[0]) == 2


@pytest.mark.parametrize("task", RECIPES)
def test_a_run_explains_itself(task: str, run: Run) -> None:
    told = explain(str(run(task)))
    network = open_run(run(task)).network(open_run(run(task)).tokens())
    learned = sum(weight.numel() for weight in network.parameters())
    assert told.count == learned
    lines = [line for jar in told.jars for line in jar.lines]
    assert any("CNN(I)" in line for line in lines)
    assert any("16×16 pixels" in line for line in lines)
    assert any("P(y | x)" in line for line in lines) == (task in CHOOSING)
    assert not [weight.name for jar in told.jars for weight in jar.weights if weight.letter == "–"]


def test_a_recipe_is_explained_before_anything_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "cache"))
    for task in RECIPES:
        assert explain(write(tmp_path, task)).count > 1000
        assert not sample_folder(task).exists()


def test_questions_reach_the_answer(run: Run) -> None:
    """Where a picture is asked two things, the answers are about both: the question's words count."""
    predictor = sixjars.load(run("image_question_answering"))
    file = files("image_question_answering", 1)[0]
    one, two = predictor.predict(
        [{"image": file, "question": text} for text in (QUESTION, "what colour is the circle ?")]
    )
    assert one.log_probability != two.log_probability


def test_what_cannot_be_asked(run: Run, tmp_path: Path) -> None:
    file = files("image_question_answering", 1)[0]
    answering, captioning = sixjars.load(run("image_question_answering")), sixjars.load(run("image_captioning"))
    (tmp_path / "text.png").write_bytes(b"no picture")
    for predictor, given, told in (
        (answering, file, "input 1 must name image and question; image_question_answering needs them."),
        (answering, {"image": file}, "input 1 must name image and question; image_question_answering needs them."),
        (answering, {"image": file, "question": " "}, "input 1: the question is empty."),
        (captioning, {"video": file}, "input 1 must name image; image_captioning needs them."),
        (captioning, str(tmp_path / "no.png"), f"input 1: the image file {tmp_path / 'no.png'} does not exist."),
        (captioning, str(tmp_path), f"input 1: the image file {tmp_path} is a folder."),
    ):
        with pytest.raises(DataError) as error:
            predictor.predict([given])
        assert str(error.value) == told
    with pytest.raises(DataError, match=r"text\.png is not a picture, or damaged from its first bytes"):
        captioning.predict([file, str(tmp_path / "text.png")])
    assert captioning.predict([]) == []


def test_a_run_that_was_stopped_goes_on(tired: Any, tmp_path: Path) -> None:
    """Dropout, pictures and labels included: bit for bit as one that never was stopped."""
    few = ["model.encoder.dropout=0.3", "learning.validate_every=1"]
    recipe = write(tmp_path, "video_classification")
    sixjars.train(recipe, few, out=tmp_path / "whole")
    for attempt in range(10):
        try:
            sixjars.train(recipe, few, out=tmp_path / "stopped", resume=attempt > 0, reporter=tired(2))
        except Interrupted:
            continue
        break
    assert attempt > 1
    for file in ("model.safetensors", "log.jsonl", "scores.json"):
        assert (tmp_path / "stopped" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
