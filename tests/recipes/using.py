"""What everybody does with a run: ask it about something raw, score it again, have it explained."""

from math import prod
from pathlib import Path

import sixjars
from sixjars.data.labels import Labels
from sixjars.serving.predictor import Asked
from sixjars.tasks.evaluating import evaluated
from sixjars.tasks.explaining import explained
from sixjars.tasks.table import Task
from sixjars.tasks.training import Trained

from .stand_ins import film, picture

JARS = ["task", "data", "model: encoder", "model: bridge", "model: decoder", "loss", "learning", "evaluation"]
FILES = {"recipe.yaml", "run.json", "tokens", "model.safetensors", "log.jsonl", "scores.json", "checkpoints"}


def raw(task: Task, folder: Path) -> Asked:
    """Something to ask about that was in no corpus."""
    given = {"source": "ghar" if task.name == "transliteration" else "the dog is here now"}
    given |= {"question": "what colour is it ?", "image": str(folder / "raw.png"), "video": str(folder / "raw.mp4")}
    (folder / "raw.png").write_bytes(picture("raw.png"))
    (folder / "raw.mp4").write_bytes(film("raw.mp4"))
    asked = {name: given[name] for name in task.inputs}
    return asked if len(asked) > 1 else next(iter(asked.values()), "the dog")


def check_use(trained: Trained, folder: Path) -> None:
    """A run is whole: what it holds, what it says, how it is scored, how it is explained."""
    assert {path.name for path in trained.folder.iterdir()} >= FILES
    predictor = sixjars.load(trained.folder)
    prediction = predictor.predict([raw(predictor.task, folder)])[0]
    looks = predictor.recipe.model.bridge["kind"] in ("attention", "pooling")
    assert len(prediction.weights) == (len(prediction.pieces) if looks else 0)
    if prediction.layout.kind == "grid" and looks:
        assert {len(row) for row in prediction.weights} == {prod(prediction.layout.shape)}
    kept = predictor.tokens[predictor.task.output]
    assert prediction.text in kept.names if isinstance(kept, Labels) else prediction.text is not None
    again = evaluated(trained.folder)
    assert [score.value for score in again.scores] == [score.value for score in trained.scores]
    assert [jar.name for jar in explained(str(trained.folder)).jars] == JARS
