"""How long whole commands take from a cold start: a fresh process, nothing imported."""

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from .table import OURS, lines, spread

RECIPE = ["transliteration/sample_attention", "data.sample.size=256", "learning.steps=20"]
"""A small model; how well it answers does not matter."""
TORCH = ("import torch", "torch")
"""What every prediction does, and what all else is compared with: other work on the machine slows both."""


def timed(words: Sequence[str], path: Path) -> tuple[float, float]:
    """Seconds of one Python command with the packages of a folder: on the clock, and of the CPU."""
    places = (path, path.parent / "runtime" / "src", os.environ.get("PYTHONPATH", ""))
    paths = os.pathsep.join(map(str, places)).rstrip(os.pathsep)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": paths},
        check=True,
        capture_output=True,
    )
    took, after = perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def failure(error: subprocess.CalledProcessError) -> str:
    r"""How a command ended, with the last line of its stderr.

    >>> failure(subprocess.CalledProcessError(1, ["python"], stderr=b"Traceback:\nImportError: no module x.\n"))
    'ended with exit code 1 (ImportError: no module x)'
    """
    lines = (error.stderr or b"").decode(errors="replace").split("\n")
    last = next(
        (line.strip().rstrip(".") for line in reversed(lines) if line.strip()), "it printed nothing"
    )
    return f"ended with exit code {error.returncode} ({last})"


def cold(sources: dict[str, Path], peers: dict[str, Path], rounds: int) -> list[str]:
    """`--help`, and the first prediction of a small model, of every version of ours; and the help of each peer.

    A peer or an earlier version whose command does not run is left out, with a sentence.
    """
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with TemporaryDirectory() as folder:
        run = f"{folder}/run"
        timed(["-m", "sixjars", "train", *RECIPE, "--out", run], sources[OURS])
        commands = {TORCH: (["-c", TORCH[0]], sources[OURS])}
        for name, path in sources.items():
            commands["--help", name] = ["-m", "sixjars", "--help"], path
            commands["first prediction", name] = ["-m", "sixjars", "predict", run, "namaste"], path
        commands |= {
            ("--help", name): (["-m", name, "--help"], path) for name, path in peers.items()
        }
        for _ in range(rounds):
            for what, (words, path) in list(commands.items()):
                try:
                    found.setdefault(what, []).append(timed(words, path))
                except subprocess.CalledProcessError as error:
                    if what == TORCH or what[1] == OURS:
                        raise
                    print(
                        f"{what[1]} is left out of {what[0]!r}, for it {failure(error)}.",
                        file=sys.stderr,
                    )
                    del commands[what], found[what]
    rows = []
    for what, taken in sorted(found.items()):
        ratios = [own / torch for (_, own), (_, torch) in zip(taken, found[TORCH], strict=True)]
        clock, work = zip(*taken, strict=True)
        rows.append([*what, spread(clock), spread(work), spread(ratios)])
    return lines([["from a cold start", "", "seconds", "CPU seconds", "of `import torch`"], *rows])
