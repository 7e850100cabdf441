"""Whether any recipe has become slower: every sample recipe for a few steps, in turns with another version.

python benchmarks/recipes.py --other ../older/src [translation/sample_attention …]

Each version has a process of its own, which trains what it is told and waits. A turn is a whole training of a few
steps: data, updates, validation and the final search. Seconds are those of the CPU (of the clock with --device cuda),
so that other work on the machine slows both alike; the first turn, which loads libraries, does not count.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
FEW = [
    "data.sample.size=400",
    "data.sample.valid=40",
    "data.sample.test=40",
    "learning.epochs=1000000",
]


def serve(given: argparse.Namespace) -> None:
    """Train once for each line of stdin, which names a recipe, and print the seconds or what went wrong."""
    import torch

    import sixjars

    torch.set_num_threads(given.threads)
    clock = time.process_time if given.device == "cpu" else time.perf_counter
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever is printed goes to stderr
    for line in sys.stdin:
        folder = Path(tempfile.mkdtemp())
        began = clock()
        try:
            steps = [f"learning.steps={given.steps}"]
            sixjars.train(line.strip(), [*FEW, *steps], out=folder / "run", device=given.device)
            answer: object = clock() - began
        except Exception as error:  # noqa: BLE001 - an older version may not know a recipe
            answer = f"{type(error).__name__}: {error}"
        shutil.rmtree(folder)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def started(source: Path, cache: str) -> subprocess.Popen[str]:
    """A version that waits for the names of recipes."""
    places = (source, source.parent / "runtime" / "src", os.environ.get("PYTHONPATH", ""))
    paths = os.pathsep.join(map(str, places))
    own = {**os.environ, "PYTHONPATH": paths, "SIXJARS_CACHE": cache}
    command = [sys.executable, __file__, *sys.argv[1:], "--serve"]
    return subprocess.Popen(
        command, env=own, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def asked(version: subprocess.Popen[str], recipe: str) -> object:
    """The seconds of one turn."""
    assert version.stdin is not None
    assert version.stdout is not None
    version.stdin.write(f"{recipe}\n")
    version.stdin.flush()
    return json.loads(version.stdout.readline())


def table(given: argparse.Namespace) -> None:
    """Print a row for each recipe: median seconds of both, and the ratio with its range."""
    folder = ROOT / "src" / "sixjars" / "recipes"
    samples = [
        path.relative_to(folder).with_suffix("").as_posix()
        for path in sorted(folder.glob("*/sample_*.yaml"))
    ]
    print("| recipe | before, s | now, s | before / now |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as cache:
        versions = [
            started(source, f"{cache}/{number}")
            for number, source in enumerate([given.other, ROOT / "src"])
        ]
        for recipe in given.recipes or samples:
            first = [asked(version, recipe) for version in versions]
            if any(isinstance(answer, str) for answer in first):
                print(f"| {recipe} | {first[0]} | {first[1]} | |", flush=True)
                continue
            turns = [
                [float(str(asked(version, recipe))) for version in versions]
                for _ in range(given.turns)
            ]
            before, now = (statistics.median(turn[at] for turn in turns) for at in (0, 1))
            ratios = sorted(turn[0] / turn[1] for turn in turns)
            ratio = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
            print(f"| {recipe} | {before:.2f} | {now:.2f} | {ratio} |", flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recipes", nargs="*")
    parser.add_argument(
        "--other", type=Path, required=True, help="the folder src of another version"
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    (serve if given.serve else table)(given)


if __name__ == "__main__":
    main()
