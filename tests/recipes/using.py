"""What everybody does with a run: ask it about something raw, score it again, have it explain."""

from math import prod
from pathlib import Path
from typing import Any

import sixjars
from sixjars.data.fields.label import Labels
from sixjars.data.fields.points import Places
from sixjars.runs.evaluate import evaluate
from sixjars.runs.explain import explain
from sixjars.runs.predict import Prediction, Predictor, Wanted
from sixjars.runs.train import Trained

from .stand_ins import film, picture

JARS = ["task", "data", "model: encoder", "model: bridge", "model: decoder", "loss", "learning", "evaluation"]
FILES = {"recipe.yaml", "run.json", "tokens", "model.safetensors", "log.jsonl", "scores.json", "checkpoints"}


def raw(predictor: Predictor, folder: Path) -> Wanted:
    """Something to ask about that was in no corpus."""
    task, points = predictor.task, predictor.recipe.data.points
    given = {"source": "ghar" if task.name == "transliteration" else "the dog is here now"}
    if predictor.recipe.data.source is not None and predictor.recipe.data.source.parts != "none":
        given["source"] += "\nso it is\nand there is zyxw"
    if points is not None:
        given["points"] = "0.4 0.1 0.9" if points.numbers == 1 else "0.1,0.9 0.5,0.2 0.7,0.7"
    given |= {"question": "what colour is it ?", "image": str(folder / "raw.png"), "video": str(folder / "raw.mp4")}
    (folder / "raw.png").write_bytes(picture("raw.png"))
    (folder / "raw.mp4").write_bytes(film("raw.mp4"))
    asked = {name: given[name] for name in task.inputs}
    return asked if len(asked) > 1 else next(iter(asked.values()), "the dog")


def check_use(trained: Trained, folder: Path) -> None:
    """A run is whole: what it holds, what it says, how it is scored, how it is explain."""
    assert {path.name for path in trained.folder.iterdir()} >= FILES
    predictor = sixjars.load(trained.folder)
    prediction = predictor.predict([raw(predictor, folder)])[0]
    check_looks(prediction, predictor)
    check_said(prediction, predictor.tokens[predictor.task.output])
    again = evaluate(trained.folder)
    assert [score.value for score in again.scores] == [score.value for score in trained.scores]
    assert [jar.name for jar in explain(str(trained.folder)).jars] == JARS


def check_looks(prediction: Prediction, predictor: Predictor) -> None:
    """Weights are there where somebody looks: a row for each thing said, over all that was read."""
    looks = predictor.recipe.model.bridge["kind"] in ("attention", "pooling", "two_level")
    looks = looks or predictor.task.output == "order"
    assert predictor.looks == looks
    said = 1 if predictor.task.output == "label" else len(prediction.tokens)
    assert len(prediction.weights) == (said if looks else 0)
    if prediction.layout.kind == "grid" and looks:
        assert {len(row) for row in prediction.weights} == {prod(prediction.layout.shape)}
    if prediction.source and looks:
        assert {len(row) for row in prediction.weights} == {len(prediction.source)}
    if prediction.parts:
        assert len(prediction.parts) == len(prediction.source)
        assert sorted(set(prediction.parts)) == list(range(len(prediction.inputs["source"].splitlines())))


def check_said(prediction: Prediction, kept: Any) -> None:
    """A label, several labels, positions of points that were given, or some text."""
    if isinstance(kept, Labels):
        assert set(prediction.text.split(", ") if kept.several else [prediction.text]) <= set(kept.names)
    elif isinstance(kept, Places):
        places = [int(place) for place in prediction.text.split()]
        assert 1 <= len(set(places)) == len(places)
        assert set(places) <= {0, 1, 2}
    else:
        assert prediction.text is not None
