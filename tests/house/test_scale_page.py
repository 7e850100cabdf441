"""docs/scale.md: what its test in test_pages cannot run. Ray and torchrun are stood in for, Slurm's programs too."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.house.test_pages import DOCS, FENCE, OURS

import sixjars
from sixjars.bulk import on_ray
from sixjars.bulk.job import BulkJob
from sixjars.cli import app

PAGE = (DOCS / "scale.md").read_text(encoding="utf-8")
NOT_RUN = [block["body"] for block in FENCE.finditer(PAGE) if block["reason"]]
SCRIPTS = {block["file"]: block["body"] for block in FENCE.finditer(PAGE) if block["file"]}
LITTLE = [
    *("data.sample.size=24", "data.sample.valid=4", "data.sample.test=4"),
    *("learning.steps=2", "evaluation.search.max_length=5"),
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sixjars.train(
        "transliteration/sample_attention", LITTLE, out=tmp_path_factory.mktemp("scale") / "run"
    ).folder


@pytest.fixture(autouse=True)
def _desk(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a run and a file to answer."""
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    Path("data/a.tsv").write_text("id\troman\n" + "".join(f"{at}\tghar\n" for at in range(9)))
    shutil.copytree(trained, "runs/words")


def by_hand(
    job: BulkJob, *, workers: int | None = None, address: str | None = None
) -> Iterator[Any]:
    """What Ray does: a worker takes parts."""
    assert (workers, address) in ((None, None), (None, "auto"))
    worker = on_ray.PartWorker(job.order, job.left)
    for at in range(len(job.left)):
        said = worker({"id": [at]})
        assert said["error"] == [""]
        yield on_ray.AS_TEXT.validate_json(said["counts"][0]), said["notes"][0]


def test_the_commands_with_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_ray, "predicted_on_ray", by_hand)
    for line in NOT_RUN[0].splitlines():
        app(shlex.split(line)[1:], standalone_mode=False)
    assert [
        len(Path(f"{out}/a.tsv").read_text().splitlines()) for out in ("from-ray", "from-cluster")
    ] == [10, 10]


def test_the_command_with_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_ray, "predicted_on_ray", by_hand)
    Path("data/a.tsv").rename("data/a.csv")
    Path("data/a.csv").write_text("id,roman\n1,ghar\n")
    line = NOT_RUN[1].replace(
        "s3://my-bucket/rows/*.parquet", f"file://{Path('data').resolve()}/*.csv"
    )
    app(shlex.split(line)[1:], standalone_mode=False)
    assert len(Path("from-bucket/a.csv").read_text().splitlines()) == 2


def torchrun_of(words: list[str]) -> Any:
    """The options of torchrun, as it reads them itself."""
    from torch.distributed.run import get_args_parser

    return get_args_parser().parse_args(words)


def test_the_commands_with_torchrun() -> None:
    found = [torchrun_of(shlex.split(line)[1:]) for line in NOT_RUN[2].splitlines()]
    assert [one.node_rank for one in found] == [0, 1]
    assert {one.nnodes for one in found} == {"2"}
    assert found[0].training_script == "sixjars"
    app([*found[0].training_script_args, *LITTLE], standalone_mode=False)
    assert Path("runs/together/model.safetensors").is_file()


def test_an_array_of_jobs(warm_python: str) -> None:
    Path("predict.slurm").write_text(SCRIPTS["predict.slurm"])
    for number in (1, 2):  # the second finds nothing left to do
        code = f"{OURS.format(python=warm_python)}; . ./predict.slurm"
        env = {**os.environ, "SLURM_ARRAY_TASK_ID": str(number)}
        done = subprocess.run(
            ["bash", "-e", "-c", code], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert f"rows answered: {[9, 0][number - 1]}; " in done.stderr
    assert len(Path("from-slurm/a.tsv").read_text().splitlines()) == 10


def test_a_training_under_slurm() -> None:
    """Each node calls torchrun with its number; a job that begins again says --resume."""
    Path("bin").mkdir()
    stand_ins = {
        "scontrol": "printf 'one\\ntwo\\n'",
        "srun": 'for SLURM_NODEID in 0 1; do export SLURM_NODEID; "$@"; done',
        "torchrun": 'printf "%s\\n" "$*"',
    }
    for name, body in stand_ins.items():
        Path("bin", name).write_text(f"#!/bin/bash\n{body}\n")
        Path("bin", name).chmod(0o755)
    Path("train.slurm").write_text(SCRIPTS["train.slurm"])
    env = {
        **os.environ,
        "PATH": f"{Path('bin').resolve()}:{os.environ['PATH']}",
        "SLURM_NNODES": "2",
    }
    for resumed in (False, True):
        done = subprocess.run(
            ["bash", "train.slurm"], env=env, capture_output=True, text=True, check=True
        )
        found = [torchrun_of(shlex.split(line)) for line in done.stdout.splitlines()]
        expected = [(0, "2", "one"), (1, "2", "one")]
        assert [(one.node_rank, one.nnodes, one.master_addr) for one in found] == expected
        assert all(("--resume" in one.training_script_args) == resumed for one in found)
        app([*found[0].training_script_args, *LITTLE], standalone_mode=False)
    nodes = re.search(r"--nodes=(\d+)", SCRIPTS["train.slurm"])
    assert nodes is not None
    assert nodes[1] == "2"
