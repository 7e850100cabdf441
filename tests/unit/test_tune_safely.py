"""Parameter search beside other files, other searches and other processes: nothing of anybody else's is touched."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.errors import RunError
from sixjars.runs.space import space_of
from sixjars.runs.study import Aim, Study

Maker = Callable[..., Any]
RATE = "learning.rate=log(1e-3,1e-1)"


@pytest.mark.parametrize("name", ["trials/001/patient.csv", "trials.csv", "best.yaml", "tune.png"])
def test_files_of_others_stay(recipe: Maker, tmp_path: Path, name: str) -> None:
    theirs = tmp_path / "s" / name
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    with pytest.raises(RunError) as caught:
        sixjars.tune(recipe(), [RATE], trials=1, out=tmp_path / "s", device="cpu")
    there = tmp_path / "s" / name.partition("/")[0]
    assert str(caught.value) == f"{there} is there already, and not of a search; choose another folder with --out."
    assert theirs.read_text() == "theirs"
    assert not (tmp_path / "s" / "study.journal").exists()


def test_only_folders_of_stopped_trials_are_removed(tmp_path: Path) -> None:
    space, aim = space_of([RATE]), Aim("", {}, "loss", "lower", 0)
    first = Study(tmp_path, aim, space, trials=2).ask()
    assert first is not None
    for number in ("001", "002"):
        (tmp_path / "trials" / number).mkdir(parents=True)
    study = Study(tmp_path, aim, space, trials=2)
    again = study.ask()
    assert again is not None
    assert (again.number, again.folder.exists()) == (1, False)
    for _ in range(2):  # the refusal does not make the folder the study's own
        with pytest.raises(RunError) as caught:
            study.ask()
        there = tmp_path / "trials" / "002"
        assert str(caught.value) == f"{there} is not of this search; move it away, or choose another folder with --out."
        assert there.is_dir()
