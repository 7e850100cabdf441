"""What everybody does with a run: predict from a raw input, look at it, score and explain it."""

from math import prod
from pathlib import Path

import numpy as np

import sixjars
from sixjars.drawing.html.views import VALUES, fragment
from sixjars.drawing.terminal import view_in_terminal
from sixjars.drawing.view import view_of
from sixjars.drawing.view_names import fitting_views
from sixjars.runs.evaluate import evaluate
from sixjars.runs.explanation.explain import explain
from sixjars.runs.prediction.prediction import Prediction
from sixjars.runs.prediction.predictor import Predictor
from sixjars.runs.prediction.requests import Input
from sixjars.runs.prediction.teacher_forcing import forced_predictions
from sixjars.runs.run import Run

from .stand_ins import image, video

SECTIONS = [
    "task",
    "data",
    "model: encoder",
    "model: bridge",
    "model: decoder",
    "loss",
    "learning",
    "evaluation",
]
FILES = {
    "recipe.yaml",
    "run.json",
    "model.safetensors",
    "log.jsonl",
    "cost.json",
    "scores.json",
    "checkpoints",
}


def raw(predictor: Predictor, folder: Path) -> Input:
    """An input that was in no corpus."""
    fields = predictor.recipe.data.fields
    given = {
        "source": "ghar" if predictor.recipe.task == "transliteration" else "the dog is here now"
    }
    if getattr(fields.get("source"), "segments", "none") != "none":
        given["source"] += "\nso it is\nand there is zyxw"
    one = getattr(fields.get("points"), "dimensions", 2) == 1
    given["points"] = "0.4 0.1 0.9" if one else "0.1,0.9 0.5,0.2 0.7,0.7"
    given |= {
        "question": "what colour is it ?",
        "image": str(folder / "raw.png"),
        "video": str(folder / "raw.mp4"),
    }
    given["target"] = "the dog"  # of a language model
    given |= {"sentence1": "some dogs are here", "sentence2": "no dog is zyxw"}
    (folder / "raw.png").write_bytes(image("raw.png"))
    (folder / "raw.mp4").write_bytes(video("raw.mp4"))
    wanted = {name: given[name] for name in predictor.inputs}
    return wanted if len(wanted) > 1 else next(iter(wanted.values()))


def check_use(trained: Run, folder: Path) -> None:
    """A run is whole: its files, its predictions, its scores, its explanation."""
    assert {path.name for path in trained.folder.iterdir()} >= FILES
    predictor = sixjars.load(trained.folder)
    learned = {f"{name}.json" for name, field in predictor.fields.all.items() if field.learns}
    assert {path.name for path in (trained.folder / "fields").glob("*")} == learned
    given = raw(predictor, folder)
    prediction = predictor.predict([given])[0]
    assert prediction.error is None
    check_weights(prediction, predictor)
    check_text(prediction, predictor)
    if prediction.weights:
        check_views(prediction, predictor)
        check_forced(given, prediction, predictor)
        check_faithfulness(trained)
    # After a cross-validation the run has the means over its folds, each scored on its own rows.
    scored = [*(trained.folder / "folds").glob("*")] or [trained.folder]
    again = [[score.value for score in evaluate(folder).scores] for folder in scored]
    rtol = 0.0 if len(scored) == 1 else 1e-12  # a mean is rounded
    kept = [score.value for score in trained.scores]
    np.testing.assert_allclose(np.mean(again, axis=0), kept, rtol=rtol, equal_nan=False)
    assert [section.name for section in explain(str(trained.folder)).sections] == SECTIONS


def check_weights(prediction: Prediction, predictor: Predictor) -> None:
    """Weights where there is attention: a row for each token, over all positions of the source."""
    attends = predictor.recipe.model.bridge["kind"] in (
        "attention",
        "location",
        "pooling",
        "two_level",
    )
    attends = attends or predictor.fields.output.name == "order"
    assert predictor.has_attention == attends
    steps = 1 if predictor.fields.output.name == "label" else len(prediction.tokens)
    assert len(prediction.weights) == (steps if attends else 0)
    if prediction.layout.kind == "grid" and attends:
        assert {len(row) for row in prediction.weights} == {prod(prediction.layout.shape)}
    if prediction.source and attends:
        assert {len(row) for row in prediction.weights} == {len(prediction.source)}
    if prediction.segments:
        assert len(prediction.segments) == len(prediction.source)
        assert sorted(set(prediction.segments)) == list(
            range(len(prediction.inputs["source"].splitlines()))
        )


def check_views(prediction: Prediction, predictor: Predictor) -> None:
    """Each view that fits is drawn as HTML and in the terminal."""
    view = view_of(predictor, [prediction])
    names = set(fitting_views(view)) & set(VALUES)
    assert names
    for name in names:
        assert f'data-view="{name}"' in fragment(view, name)
        assert list(view_in_terminal(view, name, width=80))


def check_forced(given: Input, prediction: Prediction, predictor: Predictor) -> None:
    """Where its own output is forced, a model attends to the same."""
    if not prediction.text:
        return
    [again] = forced_predictions(predictor, [given], [prediction.text])
    assert again.error is None
    same = min(len(again.tokens), len(prediction.tokens))
    if again.tokens[:same] == prediction.tokens[:same]:  # a text may be split in other ways too
        assert np.allclose(again.attention[:same], prediction.attention[:same], atol=1e-4)


def check_faithfulness(trained: Run) -> None:
    """Whatever is attended to can be erased, and has gradients."""
    for reference in (False, True):
        found = sixjars.check_attention(trained.folder, examples=2, reference=reference)
        assert list(found.measures) == ["erasure", "gradient"]
        assert all(-1 <= one.tau.mean <= 1 for one in found.measures.values())


def check_text(prediction: Prediction, predictor: Predictor) -> None:
    """A label, several labels, positions of points that were given, or some text."""
    output = predictor.fields.output
    if output.name == "label":
        known = set(output.tokens(range(output.facts()["classes"])))
        assert (
            set(prediction.text.split(", ") if output.multi_label else [prediction.text]) <= known
        )
    elif output.name == "order":
        positions = [int(position) for position in prediction.text.split()]
        assert 1 <= len(set(positions)) == len(positions)
        assert set(positions) <= {0, 1, 2}
    else:
        assert "<unk>" not in prediction.tokens  # banned by default
