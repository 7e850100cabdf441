"""Whoever follows a training reads few files of the package: fewer than 46 are entered."""

import sys
import threading
from inspect import unwrap
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import sixjars
from sixjars import samples

SOURCE = Path(sixjars.__file__).parent
FEWER_THAN = 46
KERNELS = {"kernels/compiling.py", "kernels/compiled.py"}
"""What only stands in for torch operations is not counted, as the kernels for CUDA are not."""
FEW = [
    *("data.sample.size=16", "data.sample.valid=4", "data.sample.test=4"),
    *("learning.steps=2", "learning.validate_every=1", "evaluation.search.max_length=4"),
]


def entered(recipe: str, out: Path) -> set[str]:
    """The files that have a function which a training calls; what is called at import does not count."""
    files = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        sixjars.train(recipe, FEW, out=out, device="cpu")
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    inside = {file for file in files if file.startswith(str(SOURCE))}
    return {
        name
        for name in (Path(file).relative_to(SOURCE).as_posix() for file in inside)
        if name not in KERNELS
    }


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
    files = entered(recipe, tmp_path / "second")
    assert 30 < len(files) < FEWER_THAN, sorted(files)
