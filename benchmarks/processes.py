"""How training scales with processes: target tokens a second with `--devices 1` and with more, in turns.

python benchmarks/processes.py                       two processes of one CPU thread each, against one
python benchmarks/processes.py --device cuda --devices 1 2

The model is the base size of the speed benchmark (GRU of 512, additive attention), the batches are those of the sample
of translation. With N processes an update is of the same batch, each process has its share of the rows, and gradients
are added. The median of all updates but the first few, in each turn.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from typing import final

from sixjars import train
from sixjars.progress import Reporter

MODEL = ["model.encoder.size=512", "model.decoder.size=512", "model.bridge.size=512"]
DATA = ["data.sample.size=4000", "data.sample.valid=20", "data.sample.test=20", "learning.epochs=1000"]
FIRST = 3
"""Updates that do not count."""


@final
class Speeds(Reporter):
    """A reporter that only remembers how fast updates were."""

    def __init__(self) -> None:
        self.found: list[float] = []

    def stepped(self, *, step: int, loss: float, tokens_per_second: float) -> None:
        """An update was made."""
        self.found.append(tokens_per_second)


def one(given: argparse.Namespace, count: int) -> float:
    """Tokens a second with so many processes, measured in a process of its own, which starts the others."""
    command = [sys.executable, __file__, *sys.argv[1:], "--only", str(count)]
    threads = {"OMP_NUM_THREADS": str(given.threads)}
    found = subprocess.run(command, env={**os.environ, **threads}, stdout=subprocess.PIPE, text=True, check=True)
    return float(found.stdout.splitlines()[-1])


def measure(given: argparse.Namespace) -> None:
    """Train for a few steps and print the median; the other processes of a training run this too."""
    speeds = Speeds()
    size = [f"learning.batch_examples={given.batch}", f"learning.steps={given.steps}"]
    with tempfile.TemporaryDirectory() as folder:
        train(
            "translation/sample_attention",
            [*MODEL, *DATA, *size],
            out=os.environ.setdefault("BENCHMARK_RUN", f"{folder}/run"),  # one folder for all processes
            device=given.device,
            devices=given.only,
            reporter=speeds,
        )
    if speeds.found:  # the first process alone is told
        print(statistics.median(speeds.found[FIRST:]))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--devices", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--batch", type=int, default=128, help="examples of an update, of all processes")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only is not None:
        measure(given)
        return
    turns = [[one(given, count) for count in given.devices] for _ in range(given.turns)]
    for at, count in enumerate(given.devices):
        ratios = sorted(turn[at] / turn[0] for turn in turns)
        speed = statistics.median(turn[at] for turn in turns)
        middle, least, most = statistics.median(ratios), ratios[0], ratios[-1]
        print(f"{count} processes: {speed:,.0f} tokens a second, {middle:.2f} times one ({least:.2f} to {most:.2f})")


if __name__ == "__main__":
    main()
