"""How long whole commands take from a cold start: a fresh process, nothing imported."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from .table import lines, spread

RECIPE = ["transliteration/sample_attention", "data.sample.size=256", "learning.steps=20"]
"""A small model; how well it answers does not matter."""


def timed(words: Sequence[str], path: Path) -> float:
    """Seconds of one command with the packages of a folder."""
    paths = os.pathsep.join([str(path), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    began = perf_counter()
    command = [sys.executable, "-m", *words]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=True, capture_output=True)
    return perf_counter() - began


def cold(sources: dict[str, Path], peers: dict[str, Path], rounds: int) -> list[str]:
    """`--help`, and the first prediction of a small model, of every version of ours; and the help of each peer."""
    found: dict[tuple[str, str], list[float]] = {}
    with TemporaryDirectory() as folder:
        run, inputs = f"{folder}/run", Path(folder) / "inputs.txt"
        inputs.write_text("namaste\n", encoding="utf-8")
        timed(["sixjars", "train", *RECIPE, "--out", run], next(iter(sources.values())))
        for _ in range(rounds):
            for name, path in sources.items():
                predict = ["sixjars", "predict", run, "--input", str(inputs)]
                found.setdefault(("--help", name), []).append(timed(["sixjars", "--help"], path))
                found.setdefault(("first prediction", name), []).append(timed(predict, path))
            for name, path in peers.items():
                found.setdefault(("--help", name), []).append(timed([name, "--help"], path))
    rows = [[what, name, spread(taken)] for (what, name), taken in sorted(found.items())]
    return lines([["from a cold start", "", "seconds"], *rows])
