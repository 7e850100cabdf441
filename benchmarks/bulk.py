"""Many rows through two workers of Ray, one of which is killed: is every row answered once, and how long it takes.

python benchmarks/bulk.py --rows 1000000

A tiny run of transliteration is trained first. Rows have numbers; the answers are read back, and their numbers must be
those of the rows, in their order. A worker is killed when a third of the parts is written. Needs `sixjars[scale]`.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PARTS = 100
LETTERS = "abdeghijklmnprstu"
TINY = [
    *("data.sample.size=200", "data.sample.valid=20", "data.sample.test=20", "learning.epochs=1"),
    *(
        "model.encoder.size=16",
        "model.decoder.size=16",
        "model.bridge.size=16",
        "evaluation.search.max_length=12",
    ),
]


def write_rows(path: Path, rows: int) -> None:
    """Words of three to eight letters, each with its number."""
    draw = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        file.write("id\troman\n")
        for number in range(rows):
            word = "".join(draw.choices(LETTERS, k=draw.randint(3, 8)))
            file.write(f"{number}\t{word}\n")


def workers_of(parent: int) -> list[int]:
    """The processes of a Ray session that have a run in memory."""
    parents, named = {}, set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int(
                (folder / "stat").read_text().rpartition(")")[2].split()[1]
            )
            if "PartWorker" in (folder / "cmdline").read_text():
                named.add(int(folder.name))
        except OSError:  # it has ended
            continue
    found = [parent]
    for one in found:
        found += [child for child, own in parents.items() if own == one]
    return [number for number in found if number in named]


def killed_at(work: "subprocess.Popen[str]", out: Path, parts: int) -> None:
    """Kill a worker as soon as so many parts are written."""
    while len(list(out.glob("in-*"))) < parts:
        if work.poll() is not None:
            raise SystemExit("the work ended before a worker could be killed; give it more --rows.")
        time.sleep(0.2)
    victims = workers_of(work.pid)
    os.kill(victims[0], signal.SIGKILL)
    print(f"killed one of {len(victims)} workers after {parts} parts", flush=True)


def numbers_in(out: Path) -> Iterator[int]:
    """The numbers of all answered rows; an answer may not be missing."""
    for part in sorted(out.glob("in-*.tsv")):
        with part.open(encoding="utf-8") as file:
            next(file)
            for line in file:
                number, _, answer = line.rstrip("\n").split("\t")
                assert answer, f"row {number} has no answer"
                yield int(number)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    from sixjars import train

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = train(
            "transliteration/sample_attention", TINY, out=folder / "run", device="cpu"
        ).folder
        write_rows(folder / "in.tsv", given.rows)
        command = [
            sys.executable,
            "-m",
            "sixjars",
            "predict",
            str(run),
            "--input",
            f"{folder}/in.tsv",
        ]
        command += [
            "--output",
            f"{folder}/out",
            "--part-rows",
            str(-(-given.rows // PARTS)),
            "--device",
            "cpu",
        ]
        begun = time.monotonic()
        work = subprocess.Popen(
            [*command, "--engine", "ray", "--workers", str(given.workers)], text=True
        )
        killed_at(work, folder / "out", PARTS // 3)
        if work.wait() != 0:
            raise SystemExit(f"the work ended with exit code {work.returncode}.")
        took, found = time.monotonic() - begun, list(numbers_in(folder / "out"))
    lost, twice = given.rows - len(set(found)), len(found) - len(set(found))
    ordered = "in their order" if found == sorted(found) else "in another order"
    print(f"{len(found):,} rows in {took / 60:.1f} minutes, {ordered}: {lost} lost, {twice} twice")
    if lost or twice:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
