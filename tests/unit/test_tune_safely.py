"""Parameter search beside other files, other searches and other processes: nothing of anybody else's is touched."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.errors import RunError
from sixjars.runs.alone import alone
from sixjars.runs.space import space_of
from sixjars.runs.study import FILE, Aim, Study

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
    assert not (tmp_path / "s" / FILE).exists()


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


def test_one_search_at_a_time_in_a_folder(recipe: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fcntl")
    file, out = recipe(learning={"steps": 1, "metric": "loss"}), tmp_path / "s"
    with alone(out / FILE), pytest.raises(RunError) as caught:
        sixjars.tune(file, [RATE], trials=1, out=out, device="cpu", resume=True)
    told = f"another search is at work in {out}; wait for its end, or choose another folder with --out."
    assert str(caught.value) == told
    sixjars.tune(file, [RATE], trials=1, out=out, device="cpu", resume=True)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with alone(out / FILE), alone(out / FILE):
        pass


def test_a_disk_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def flock(*given: Any) -> None:
        raise OSError(38, "no locks")

    monkeypatch.setattr(fcntl, "flock", flock)
    with alone(tmp_path / FILE), alone(tmp_path / FILE):
        pass
