"""What an exported run costs beside torch: cold start, memory, size of the environment, and speed at batches 1 and 64.

python benchmarks/exported.py runs/words words inputs.txt --python ../light/bin/python

`words` is what `sixjars export runs/words words` wrote, `inputs.txt` has one input a line, and the other Python is of
an environment with numpy, onnxruntime and tokenizers alone. Both sides run in turns, on one thread; a ratio is that of
each turn, so that whatever else the machine does meanwhile slows both down. Figures: docs/export.md.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
COLD = """
import json, resource, sys
import {module}
{module}.load(sys.argv[1]).predict(sys.argv[2])
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss * 1024]))
"""
SIZE = """
import json, re, sys
from importlib.metadata import PackageNotFoundError, distribution
found, waiting = set(), sys.argv[1:]
total = 0
while waiting:
    name = re.sub("[-_.]+", "-", waiting.pop()).lower()
    if name in found:
        continue
    found.add(name)
    try:
        one = distribution(name)
    except PackageNotFoundError:  # of another platform
        continue
    total += sum(file.locate().stat().st_size for file in one.files or [] if file.locate().is_file())
    waiting += [re.match("[A-Za-z0-9._-]+", wanted)[0] for wanted in one.requires or [] if "extra ==" not in wanted]
print(json.dumps(total))
"""
"""The files of some packages and of all that they need."""


def asked(python: str, code: str, *words: str) -> Any:
    """What a process of its own prints, on one thread."""
    places = os.pathsep.join(str(ROOT / place) for place in ("src", "runtime/src"))
    surroundings = {**os.environ, "PYTHONPATH": places, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [python, "-c", code, *words], env=surroundings, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def told(what: str, ratios: Sequence[float], bar: str, unit: str) -> None:
    """One line: the median ratio, its spread, the bar, and what both sides took."""
    print(
        f"{what}: {statistics.median(ratios):.3g} ({min(ratios):.3g} to {max(ratios):.3g}); bar: {bar}; {unit}"
    )


def seconds(predict: Callable[[Any], Any], inputs: Sequence[str]) -> float:
    """Of the CPU, for one call."""
    began = time.process_time()
    predict(inputs)
    return time.process_time() - began


def cold(run: Path, exported: Path, one: str, python: str, turns: int) -> None:
    """The first answer of a new process."""
    times, memory, last = [], [], ""
    for _ in range(turns):
        (whole, most), (light, least) = (
            asked(which, COLD.format(module=module), str(folder), one)
            for which, module, folder in (
                (sys.executable, "sixjars", run),
                (python, "sixjars_runtime", exported),
            )
        )
        times.append(light / whole)
        memory.append(least / most)
        last = f"last: {light:.2f} and {whole:.2f} s, {least / 1e6:.0f} and {most / 1e6:.0f} MB"
    told("cold start, CPU time of torch's", times, "at most 0.15", last)
    told("memory of torch's", memory, "at most 0.3", last)


def main() -> None:
    """Print a line for each bar."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("exported", type=Path)
    parser.add_argument("inputs", type=Path, help="one input a line")
    parser.add_argument("--python", default=sys.executable, help="of an environment without torch")
    parser.add_argument("--turns", type=int, default=7)
    given = parser.parse_args()
    inputs = given.inputs.read_text(encoding="utf-8").splitlines()
    cold(given.run, given.exported, inputs[0], given.python, given.turns)
    light = asked(given.python, SIZE, "numpy", "onnxruntime", "tokenizers") / 1e6
    whole = asked(sys.executable, SIZE, "sixjars") / 1e6
    told(
        "environment of torch's", [light / whole], "at most 0.2", f"{light:.0f} and {whole:.0f} MB"
    )
    warm(given.run, given.exported, inputs, given.turns)


def warm(run: Path, exported: Path, inputs: Sequence[str], turns: int) -> None:
    """Answers of both in one process."""
    import torch

    import sixjars
    import sixjars_runtime

    torch.set_num_threads(1)
    ours, theirs = sixjars.load(run, device="cpu"), sixjars_runtime.load(exported)
    for size, bar in ((1, 2.0), (64, 1.3)):
        batches = [(list(inputs) * size)[at * size : (at + 1) * size] for at in range(turns + 1)]
        pairs = [
            (seconds(ours.predict, batch), seconds(theirs.predict, batch)) for batch in batches
        ][1:]
        last = f"last: {1000 * pairs[-1][0]:.1f} and {1000 * pairs[-1][1]:.1f} ms"
        told(
            f"times as fast as torch at batch {size}",
            [one / other for one, other in pairs],
            f"at least {bar}",
            last,
        )


if __name__ == "__main__":
    main()
