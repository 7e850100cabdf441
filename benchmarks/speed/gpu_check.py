"""What a change of the kernels must pass on a GPU, on one page, in under ten minutes.

    make gpu-check BEFORE=REVISION

1. The contract of all backends on CUDA, recorded training steps and recorded searches.
2. Five recipes, this version beside the one before: the losses of every update.
3. The benchmark of both versions in turns: ratios with their range.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from .table import FLOOR

ROOT = Path(__file__).parents[2]
TESTS = (
    "tests/contracts/test_backends.py",
    "tests/unit/test_captured.py",
    "tests/unit/test_capture.py",
)
RECIPES = (
    "translation/sample_attention",
    "translation/sample_conditional",
    "translation/sample_lstm",
    "summarization/sample_hierarchy",
    "document_classification/sample_attention",
)
UPDATES = 40
"""Enough to record the graph of every shape of these recipes, and to launch it again."""
ALIKE = 2e-3
"""How far losses of two versions may be apart: sums on a GPU are rounded in no fixed order."""
LOSSES = """
import json, sys, tempfile
import sixjars
from sixjars.progress import Reporter

losses = []

class Losses(Reporter):
    def stepped(self, *, step, loss, tokens_per_second):
        losses.append(loss)

recipe, precision, updates = sys.argv[1:]
few = ["data.sample.size=512", f"learning.steps={updates}", "evaluation.search.max_length=8",
       f"learning.precision={precision}"]
with tempfile.TemporaryDirectory() as folder:
    run = sixjars.train(
        recipe, few, out=f"{folder}/run", device="cuda", reporter=Losses(), baselines=False
    )
print(json.dumps(losses))
"""


def environment(source: Path) -> dict[str, str]:
    """The environment of a process that imports the version of a folder `src`."""
    places = [str(source), str(source.parent / "runtime" / "src")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*places, os.environ.get("PYTHONPATH", "")]),
    }


def contract() -> str:
    """The tests on CUDA; how many passed, and the first failures."""
    began = perf_counter()
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS],
        cwd=ROOT,
        env={**environment(ROOT / "src"), "COLUMNS": "220"},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = ran.stdout.strip().splitlines() or ran.stderr.strip().splitlines()[-20:]
    failed = [line[:240] for line in lines if line.startswith(("FAILED", "ERROR"))]
    return "\n".join([f"{lines[-1]} ({perf_counter() - began:.0f} s)", *failed[:10]])


def losses_of(source: Path, recipe: str, precision: str) -> list[float]:
    """The loss of each update of a training by one version."""
    with TemporaryDirectory() as folder:
        script = Path(folder) / "losses.py"
        script.write_text(LOSSES, encoding="utf-8")
        ran = subprocess.run(
            [sys.executable, str(script), recipe, precision, str(UPDATES)],
            env={**environment(source), "SIXJARS_CACHE": folder},
            capture_output=True,
            text=True,
            check=False,
        )
    if ran.returncode:
        raise SystemExit(f"{recipe} by {source} failed:\n{ran.stderr[-2000:]}")
    return [float(loss) for loss in json.loads(ran.stdout.strip().splitlines()[-1])]


def compared(before: Path, recipe: str, precision: str) -> str:
    """A line: whether the losses of two versions are equal, or how far apart they are."""
    ours, theirs = (losses_of(source, recipe, precision) for source in (ROOT / "src", before))
    apart = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs, strict=True))
    verdict = "equal" if ours == theirs else f"{apart:.1e} apart"
    wrong = "" if apart < ALIKE else "  WRONG"
    return f"{recipe:42} {precision:4}  {len(ours)} updates, {verdict}{wrong}"


def benchmarked(before: Path, rounds: int) -> str:
    """The ratio of this version to the one before, for each measurement."""
    words = ["--device", "cuda", "--size", "base", "--rounds", str(rounds), "--src", str(before)]
    words += ["--only", "training", "greedy", "beam", "--precision", "tf32", "bf16", "--peer"]
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.speed", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return "\n".join(ratios(ran.stderr.splitlines())) or (ran.stdout + ran.stderr)[-2000:]


def ratios(lines: Sequence[str]) -> list[str]:
    r"""The lines of the benchmark with the ratio of both medians; those of the floor are left out.

    >>> ratios(["greedy, base, 32×30, bf16: ours 4.0 (3.9–4.1) ms, before 8.0 (7.0–9.0) ms"])
    ['greedy, base, 32×30, bf16: ours 4.0 (3.9–4.1) ms, before 8.0 (7.0–9.0) ms: ratio 0.50']
    """
    found = []
    for line in lines:
        head, colon, rest = line.partition(": ")
        times = [part for part in rest.split(" ms, ") if not part.startswith(FLOOR)]
        medians = [float(part.split()[1].replace(",", "")) for part in times if colon]
        if len(medians) == 2:
            both = ", ".join(f"{part.removesuffix(' ms')} ms" for part in times)
            found.append(f"{head}: {both}: ratio {medians[0] / medians[1]:.2f}")
    return found


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("before", type=Path, help="the folder `src` of the version before")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    before = given.before.resolve()
    print(f"## The contract of all backends, and recorded steps\n\n{contract()}\n", flush=True)
    print("## The losses of five recipes, this version beside the one before\n", flush=True)
    for recipe in RECIPES:
        for precision in ("32", "bf16"):
            print(compared(before, recipe, precision), flush=True)
    print(
        f"\n## The benchmark of both, median (least to most)\n\n{benchmarked(before, given.rounds)}"
    )


if __name__ == "__main__":
    main()
