"""What a run costs in use, all of it: without torch, in 8 bits, in the browser, and as a server with many clients.

python benchmarks/in_use.py runs/words inputs.txt --python ../light/bin/python

`inputs.txt` has one input a line, and the other Python is of an environment with numpy, onnxruntime and tokenizers
alone. The run is exported into a temporary folder; then the three benchmarks run one after the other, each with one
thread: exported.py (32 and 8 bits), web.py and serving.py. Figures: docs/serving.md.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def ran(*words: str | Path) -> None:
    """One command, whose output is shown."""
    print(f"\n$ {' '.join(map(str, words))}", flush=True)
    subprocess.run(
        [sys.executable, *map(str, words)], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


def main() -> None:
    """All of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("inputs", type=Path)
    parser.add_argument("--python", required=True, help="that of an environment without torch")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for bits in ("32", "int8"):
            out = Path(folder) / bits
            ran("-m", "sixjars", "export", given.run, out, "--precision", bits)
            ran(HERE / "exported.py", given.run, out, given.inputs, "--python", given.python)
    ran(HERE / "web.py", given.run)
    ran(HERE / "serving.py", given.run)


if __name__ == "__main__":
    main()
