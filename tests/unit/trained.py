"""Runs that are made quickly for a test, and a reporter that keeps what is noted."""

from pathlib import Path
from typing import Any, final

import sixjars
from sixjars.progress import Reporter


def one_step(recipe: str, out: Path, *changes: str, size: int = 16, **options: Any) -> Path:
    """The folder of a run of one update, on so many synthetic examples."""
    few = [f"data.sample.size={size}", "data.sample.valid=4", "data.sample.test=4"]
    changes = (*few, "learning.steps=1", *changes)
    return sixjars.train(recipe, changes, out=out, device="cpu", **options).folder


def assert_same(first: Path, second: Path, *names: str) -> None:
    """These files of both runs are the same, byte by byte."""
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


@final
class Notes(Reporter):
    """The sentences, in their order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, sentence: str) -> None:
        self.lines.append(sentence)
