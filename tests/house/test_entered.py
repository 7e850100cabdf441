"""Whoever follows a training, a prediction or `new` reads few files: see how many are entered."""

import sys
import threading
from collections.abc import Callable
from inspect import unwrap
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from torch import Tensor

import sixjars
import sixjars_runtime
from sixjars import samples
from sixjars.learning.loop import Trainer

SOURCE = Path(sixjars.__file__).parent
RUNTIME = Path(sixjars_runtime.__file__).parent
FEWER_THAN = 45
"""Files of the toolkit, for a training with its data and scores; without those in `kernels/`, which only stand in for
the reference and may be left out at first (docs/architecture.md)."""
FEWER_FOR_AN_UPDATE = 20
"""Files of the toolkit, for one update from batch to weights, those in `kernels/` among them."""
FEWER_TO_PREDICT = 35
"""Files of the toolkit and of its runtime, for a run that is loaded and predicts one sentence."""
FEWER_FOR_NEW = 20
"""Files of both, from a table to a recipe."""
KERNELS = {"sixjars/kernels/compiling.py", "sixjars/kernels/compiled.py"}
"""What only stands in for torch operations is not counted, as the kernels for CUDA are not."""
FEW = [
    *("data.sample.size=16", "data.sample.valid=4", "data.sample.test=4"),
    *("learning.steps=2", "learning.validate_every=1", "evaluation.search.max_length=4"),
]


def entered(call: Callable[[], object], *folders: Path) -> set[str]:
    """The files of these folders that have a function which is called; what is called at import does not count."""
    files = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            files.add(Path(frame.f_code.co_filename))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    names = {
        Path(file).relative_to(folder.parent).as_posix()
        for folder in folders
        for file in files
        if Path(file).is_relative_to(folder)
    }
    return names - KERNELS


@pytest.mark.parametrize(
    "recipe",
    [
        "image_captioning/sample_attention",
        "image_captioning/sample_pretrained",
        "image_question_answering/sample_attention",
        "summarization/sample_copy",
        "video_captioning/sample_both",
    ],
)
def test_a_training_enters_few_files(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first training imports everything; the second begins with an empty cache as it did, and draws its data.

    Two things are left out of all tests, and with them the files that only they enter: the picture of the learning
    curves, which reads the log again (`drawn_curves` would bring it back), and the baselines (`scored_baselines`).
    """
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "one cache"))
    sixjars.train(recipe, FEW, out=tmp_path / "first", device="cpu")
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "another cache"))
    monkeypatch.setattr(samples, "generate", unwrap(samples.generate))
    out = tmp_path / "second"
    files = entered(lambda: sixjars.train(recipe, FEW, out=out, device="cpu"), SOURCE)
    read = {name for name in files if not name.startswith("sixjars/kernels/")}
    assert 30 < len(read) < FEWER_THAN, sorted(read)


@pytest.mark.parametrize("recipe", ["translation/sample_attention", "video_captioning/sample_both"])
def test_an_update_enters_few_files(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update, counted = Trainer.update, []

    def noted(self: Trainer, load: Any) -> Tensor:
        losses: list[Tensor] = []
        counted.append(entered(lambda: losses.append(update(self, load)), SOURCE))
        return losses[0]

    monkeypatch.setattr(Trainer, "update", noted)
    sixjars.train(recipe, FEW, out=tmp_path / "run", device="cpu")
    assert 10 < len(counted[-1]) < FEWER_FOR_AN_UPDATE, sorted(counted[-1])


def test_a_prediction_enters_few_files(tmp_path: Path) -> None:
    """The first prediction imports everything. No training is so short that its outputs are all `<stop>`."""
    few = [*FEW, "evaluation.search.min_length=3"]
    run = sixjars.train("translation/sample_attention", few, out=tmp_path / "run", device="cpu")
    outputs = []

    def predict() -> None:
        outputs.append(sixjars.load(run.folder, device="cpu").predict("I am going home"))

    predict()
    files = entered(predict, SOURCE, RUNTIME)
    assert 20 < len(files) < FEWER_TO_PREDICT, sorted(files)
    assert outputs[0] == outputs[1]
    assert outputs[0].text


ROWS = {
    "translation": ("en,de", ["the {} house {},das {} Haus {}", "a {} dog {},ein {} Hund {}"]),
    "document_classification": ("text,label", ["it was {} {},good", "it was not {} {},bad"]),
}


@pytest.mark.parametrize("task", list(ROWS))
def test_new_enters_few_files(task: str, tmp_path: Path) -> None:
    """From a file of rows to a recipe, without what is not in it: no other format, kind of field or metric."""
    header, rows = ROWS[task]
    lines = [rows[number % 2].format(*["old", number] * 2) for number in range(60)]
    data = tmp_path / "data.csv"
    data.write_text("\n".join([header, *lines]), encoding="utf-8")
    sixjars.new(tmp_path / "first.yaml", task=task, data=data)
    files = entered(
        lambda: sixjars.new(tmp_path / "second.yaml", task=task, data=data), SOURCE, RUNTIME
    )
    assert 10 < len(files) < FEWER_FOR_NEW, sorted(files)
    assert not {name for name in files if name.startswith(("sixjars/runs/", "sixjars/evaluation/"))}
