"""The page about parameter search: its commands run one after the other, with little data, and it says what is true."""

import re
import shlex
from pathlib import Path

import pytest

from sixjars.cli import app
from sixjars.tuning.result import PICTURE, RECIPE, TABLE
from sixjars.tuning.search_space import RANGES, space_of
from sixjars.tuning.study import EARLIEST, FEWEST, FILE, MOST
from sixjars.tuning.tune import HOPELESS

PAGE = (Path(__file__).parents[2] / "docs" / "tuning.md").read_text(encoding="utf-8")
CALLS = [
    shlex.split(line)[1:]
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S)
    for line in block.splitlines()
]
LITTLE = [
    "data.sample.valid=8",
    "data.sample.test=8",
    "learning.steps=2",
    "evaluation.search.max_length=5",
    "expect={}",
]


def little(call: list[str]) -> list[str]:
    """The same call with little data and few trials: as many fewer as there were."""
    few = {"20": "2", "25": "3", "4": "2"}
    words = [
        few.get(word, word) if before == "--trials" else word
        for before, word in zip(["", *call], call, strict=False)
    ]
    return [
        *[word for word in words if not word.startswith("data.sample.size")],
        "data.sample.size=64",
        *LITTLE,
    ]


@pytest.mark.usefixtures("quick_trials")
def test_its_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert [call[0] for call in CALLS] == ["tune", "train", "tune", "tune"]
    said = []
    for call in CALLS:
        app(little(call) if call[0] == "tune" else call, standalone_mode=False)
        said.append(capfd.readouterr())
    assert f"train and score it: sixjars {shlex.join(CALLS[1])}\n" in said[0].out
    assert len(re.findall("^trial ", said[2].err, re.M)) == 1  # one more
    listed = set(re.findall(r"^\| `([\w/.]+)`", PAGE.partition("in `runs/search`")[2], re.M))
    assert {RECIPE, TABLE, PICTURE, FILE} < listed
    assert [name for name in listed if not (tmp_path / "runs/search" / name).is_file()] == []


def test_its_spaces_can_be_read() -> None:
    shown = re.findall(r"^\| `([\w.]+=[^`]+)` \|", PAGE, re.M)
    assert len(shown) == 7
    kinds = {text.partition("=")[2].partition("(")[0] for text in shown}
    assert set(RANGES) < kinds
    for text in shown:
        space_of([text, "x.y=[1,2]"])


def test_its_numbers_are_those_of_the_code() -> None:
    words = {2: "second", 3: "three"}
    assert f"from its {words[EARLIEST]} validation on" in PAGE
    assert f"at least {FEWEST} and at most {MOST}" in PAGE
    assert f"When the first {words[HOPELESS]} trials fail" in PAGE
