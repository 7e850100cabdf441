"""How training scales with processes: target tokens a second with `--devices 1` and with more, in turns.

python benchmarks/processes.py                       two processes of one CPU thread each, against one
python benchmarks/processes.py --device cuda --devices 1 2

The model is the base size of the speed benchmark (GRU of 512, additive attention), the batches are those of the sample
of translation; nothing is downloaded. With N processes an update is of the same batch, each process has its share of
the rows, and gradients are added. A turn is the median of its updates, but the first and last ones; the table has the
median of the turns, and how far apart they were. Gradients take the same time to add whatever the batch is, so that
small batches (`--batch 128`) scale less. Other work on the machine spoils it: as many cores must be free as processes.
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

DATA = [
    "data.sample.size=2000",
    "data.sample.valid=20",
    "data.sample.test=20",
    "learning.epochs=1000",
]
FIRST = 2
"""Updates that do not count; nor does the last one."""


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
    found = subprocess.run(
        command, env={**os.environ, **threads}, stdout=subprocess.PIPE, text=True, check=True
    )
    return float(found.stdout.splitlines()[-1])


def measure(given: argparse.Namespace) -> None:
    """Train for a few steps and print the median; the other processes of a training run this too."""
    speeds = Speeds()
    size = [f"model.{part}.size={given.size}" for part in ("encoder", "decoder", "bridge")]
    size += [f"learning.batch_examples={given.batch}", f"learning.steps={given.steps}"]
    with tempfile.TemporaryDirectory() as folder:
        train(
            "translation/sample_attention",
            [*DATA, *size],
            out=os.environ.setdefault(
                "BENCHMARK_RUN", f"{folder}/run"
            ),  # one folder for all processes
            device=given.device,
            devices=given.only,
            fsdp=given.fsdp and given.only > 1,
            reporter=speeds,
        )
    if speeds.found:  # the first process alone is told
        print(statistics.median(speeds.found[FIRST:-1]))  # what follows the last one is no update


def free_cores() -> int:
    """How many of the cores that this process may use were free in the last minute, about."""
    return max(round(len(os.sched_getaffinity(0)) - os.getloadavg()[0]), 0)


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=100),
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--devices", nargs="+", type=int, default=[1, 2], help="numbers of processes to compare"
    )
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--size", type=int, default=512, help="of encoder, decoder and attention")
    parser.add_argument(
        "--batch", type=int, default=512, help="examples of an update, of all processes"
    )
    parser.add_argument(
        "--steps", type=int, default=6, help=f"updates; the first {FIRST} and the last do not count"
    )
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument(
        "--fsdp", action="store_true", help="several processes have a share of the weights each"
    )
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.steps < FIRST + 2:
        parser.error(f"--steps must be at least {FIRST + 2}")
    return given


def main() -> None:
    """Measure, and print the table."""
    given = options()
    if given.only is not None:
        measure(given)
        return
    free = free_cores()
    if given.device == "cpu" and free < max(given.devices) * given.threads:
        print(
            f"note: {free} cores are free, too few for {max(given.devices)} processes of {given.threads} threads."
        )
    turns = [[one(given, count) for count in given.devices] for _ in range(given.turns)]
    print(f"{'processes':>9}  {'tokens a second':>15}  times {given.devices[0]}  least to most")
    for at, count in enumerate(given.devices):
        ratios = sorted(turn[at] / turn[0] for turn in turns)
        speed, middle = (
            statistics.median(values) for values in ([turn[at] for turn in turns], ratios)
        )
        print(f"{count:9}  {speed:15,.0f}  {middle:7.2f}  {ratios[0]:.2f} to {ratios[-1]:.2f}")


if __name__ == "__main__":
    main()
