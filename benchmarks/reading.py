"""How fast a large file becomes training data, and how much memory that takes: rows a second, and the peak.

python benchmarks/reading.py --rows 1000000

Makes a TSV of synthetic sentence pairs in a temporary folder, reads it with an empty cache, learns both vocabularies,
tokenizes, plans an epoch and makes an update of a tiny model. Then the same again, with what is in the cache. The peak
of a file with few rows is that of the libraries.
"""

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, final

import numpy as np

from sixjars.progress import Reporter
from sixjars.runs.train import train
from sixjars_runtime.errors import SixJarsError

WORDS, LETTERS, AT_ONCE, FEW = 60_000, "abcdefghijklmnopqrstuvwxyzäöü", 20_000, 1000


@final
class Reached(SixJarsError):
    """The first update was made, which is all that is measured."""


@final
class Phases(Reporter):
    """Remembers when each phase was first heard of, and ends after the first update."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.times: dict[str, float] = {}
        self.ready_peak = 0.0

    def reading(self, what: str, *, rows: int, total: int | None = None) -> None:
        """Rows are read, counted or tokenized."""
        name = "reading" if what.startswith("reading") else what
        self.times.setdefault(name, time.perf_counter() - self.began)

    def begin(self, *, step: int, total: int) -> None:
        """All is ready."""
        self.times["ready"] = time.perf_counter() - self.began
        self.ready_peak = peak()

    def stepped(self, *, step: int, loss: float, tokens_per_second: float) -> None:
        """An update was made."""
        self.times["first update"] = time.perf_counter() - self.began
        raise Reached


def write_pairs(path: Path, rows: int) -> None:
    """Sentences of words whose frequencies fall as those of a language do."""
    noise = np.random.default_rng(0)
    letters = noise.integers(len(LETTERS), size=(2, WORDS, 10))
    lengths = noise.integers(2, 11, size=(2, WORDS))
    sides = [
        [
            "".join(LETTERS[at] for at in word[:length])
            for word, length in zip(side, sizes, strict=True)
        ]
        for side, sizes in zip(letters, lengths, strict=True)
    ]

    def sentences(words: list[str], count: int) -> list[str]:
        sizes = noise.integers(4, 20, size=count)
        chosen = iter(np.minimum(noise.zipf(1.15, size=int(sizes.sum())) - 1, WORDS - 1).tolist())
        return [
            " ".join(words[next(chosen)] for _ in range(size)).capitalize() + "." for size in sizes
        ]

    with path.open("w", encoding="utf-8") as file:
        file.write("source\ttarget\n")
        for start in range(0, rows, AT_ONCE):
            count = min(AT_ONCE, rows - start)
            both = (sentences(words, count) for words in sides)
            file.writelines(f"{source}\t{target}\n" for source, target in zip(*both, strict=True))


def measured(file: Path, folder: Path, batch_tokens: int) -> Phases:
    """Times until the first update."""
    size: dict[str, Any] = {"size": 16, "embedding": {"size": 8}}
    recipe = {
        "task": "translation",
        "data": {
            "train": str(file),
            "source": {"column": "source"},
            "target": {"column": "target"},
        },
        "model": {
            "encoder": {"kind": "text", **size},
            "bridge": {"size": 16},
            "decoder": {"kind": "sequence", **size},
        },
        "learning": {"steps": 2, "batch_tokens": batch_tokens},
    }
    phases = Phases()
    try:
        train(recipe, out=folder, reporter=phases, device="cpu")
    except Reached:
        return phases
    raise SystemExit("No update was made.")


def peak() -> float:
    """The most memory that this process has had, in MB."""
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> None:
    """Make the file, measure twice, and print both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batch-tokens", type=int, default=500)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SIXJARS_CACHE"] = f"{folder}/cache"
        few, file = Path(folder, "few.tsv"), Path(folder, "pairs.tsv")
        write_pairs(few, FEW)
        measured(few, Path(folder, "few"), given.batch_tokens)  # libraries are loaded now
        print(f"{FEW:,} pairs: peak {peak():,.0f} MB")
        write_pairs(file, given.rows)
        print(f"{given.rows:,} pairs, {file.stat().st_size / 1e6:,.0f} MB")
        for number, name in enumerate(("empty cache", "second time")):
            found = measured(file, Path(folder, f"run{number}"), given.batch_tokens)
            told = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in found.times.items())
            memory = f"peak {found.ready_peak:,.0f} MB, {peak():,.0f} MB after an update"
            print(f"{name}: {given.rows / found.times['ready']:,.0f} rows/s, {memory}; {told}")


if __name__ == "__main__":
    main()
