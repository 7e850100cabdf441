"""The page about fine-tuning: its commands run one after the other, on the files that it shows."""

import re
import shlex
from pathlib import Path

import pytest

from sixjars.cli import app
from sixjars.errors import RunError
from sixjars.runs.training.resume import MAY_CHANGE

PAGE = Path(__file__).parents[2] / "docs" / "fine_tuning.md"
FENCE = re.compile(
    r"(?<!-->\n)^```(?P<language>\w+)(?: file=(?P<file>\S+))?\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
FIRST = [
    "data.sample.size=64",
    "data.sample.valid=8",
    "data.sample.test=8",
    "learning.steps=2",
    "expect={}",
]


def test_its_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The first run is made small; the others are as they stand there."""
    monkeypatch.chdir(tmp_path)
    blocks = list(FENCE.finditer(PAGE.read_text(encoding="utf-8")))
    for block in blocks:
        if block["file"]:
            Path(block["file"]).write_text(block["body"], encoding="utf-8")
    said = []
    for line in "".join(
        block["body"] for block in blocks if block["language"] == "sh"
    ).splitlines():
        call = shlex.split(line)[1:]
        app(
            [*call, *(FIRST if "runs/old" in call and "--from" not in call else [])],
            standalone_mode=False,
        )
        out, err = capfd.readouterr()
        assert out
        said.append(err.splitlines()[0] if err else "")
    counts = r": [\d,]+ parameters; vocabulary of source: \d+ \+ \d+ new; vocabulary of target: \d+ \+ \d+ new"
    assert re.fullmatch(rf"note: started from runs/old{counts}\.", said[1])
    assert said[3].endswith("; the new rows of decoder.embedding.table.weight are frozen.")
    assert said[6] == "note: runs/new goes on with changes: learning.epochs was 20 and is 30."
    assert said[7] == "note: there is no run in runs/job to resume yet, so one is begun."
    assert said[8].startswith("note: the training of runs/job has ended already (at step ")
    with pytest.raises(RunError, match="Resume with the same one"):
        app(
            ["train", "new.yaml", "--out", "runs/new", "--resume", "learning.rate=1"],
            standalone_mode=False,
        )


def test_it_names_all_that_may_change() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [key for key in MAY_CHANGE if f"`{key}`" not in text] == []
