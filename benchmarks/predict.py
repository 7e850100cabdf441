"""How much faster `sixjars predict` is than another version of it: whole commands, one after the other, in turns.

python benchmarks/predict.py runs/en-hi sentences.txt --other ../older/src

Both versions read the same file with the same run; their answers must be equal. The ratio is that of each turn, so that
whatever else the machine does meanwhile slows both down.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def timed(source: Path, run: Path, inputs: Path, output: Path) -> tuple[float, float]:
    """Seconds on the clock and of the CPU that one command takes, with the package in a folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "sixjars",
        "predict",
        str(run),
        "--input",
        str(inputs),
        "--output",
        str(output),
    ]
    paths = os.pathsep.join(map(str, (source, source.parent / "runtime" / "src")))
    subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=True)
    took = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the seconds of each turn, and the median ratio with its spread."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("inputs", type=Path, help="one input a line")
    parser.add_argument(
        "--other", type=Path, required=True, help="the folder src of the other version"
    )
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    own = Path(__file__).parents[1] / "src"
    clock, work = [], []
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder) / "other.txt", Path(folder) / "own.txt"]
        for turn in range(given.turns):
            sources = zip((given.other, own), outputs, strict=True)
            (other, other_cpu), (here, here_cpu) = (
                timed(one, given.run, given.inputs, out) for one, out in sources
            )
            clock.append(other / here)
            work.append(other_cpu / here_cpu)
            print(
                f"turn {turn + 1}: other {other:.1f} s ({other_cpu:.1f} s of CPU), this {here:.1f} s ({here_cpu:.1f} s)"
            )
        same = outputs[0].read_bytes() == outputs[1].read_bytes()
    for name, ratios in (("clock", clock), ("CPU", work)):
        print(
            f"{name}: {statistics.median(ratios):.1f} times as fast ({min(ratios):.1f} to {max(ratios):.1f})"
        )
    print("answers are equal" if same else "answers differ")


if __name__ == "__main__":
    main()
