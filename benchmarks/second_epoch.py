"""How much faster an epoch is once the features of a frozen backbone are kept: one run, both measured in it.

python benchmarks/second_epoch.py image_captioning/flickr8k_initial data.folder=FOLDER

The first pass over pixels is everything from the start of the run until the features of the last image or video were
extracted: reading the examples, decoding the files, and the backbone. The second epoch is all updates of the second
pass over the training data; validation is not counted.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import final

from sixjars.progress import Reporter
from sixjars.runs.train import train


@final
class Times(Reporter):
    """A reporter that only remembers times."""

    def __init__(self) -> None:
        self.started = self.seen = self.now()
        self.second: float | None = None
        self.last = self.seen
        self.files = 0

    @staticmethod
    def now() -> float:
        """Seconds; whatever the GPU was given is done, because each update waits for its loss."""
        return time.perf_counter()

    def preparing(self, what: str, *, done: int, total: int) -> None:
        """Files are drawn, then hashed, then their features are extracted."""
        if what.startswith("drawing"):
            self.started = self.now()
        elif not what.startswith("hashing"):
            self.seen = self.now()
            self.files += total if done == total else 0

    def stepped(self, *, step: int, loss: float, tokens_per_second: float) -> None:
        """An update was made."""
        self.last = self.now()

    def validated(self, record: Mapping[str, float], *, is_best: bool) -> None:
        """An epoch is over; the second begins after the first of these."""
        if self.second is None:
            self.second = self.now()


def main() -> None:
    """Train two epochs in a temporary folder, with an empty cache, and print both times."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recipe")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    given = parser.parse_args()
    times = Times()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SIXJARS_CACHE"] = str(Path(folder) / "cache")
        two = ["learning.epochs=2", "learning.average=1", "evaluation.search.kind=greedy"]
        train(given.recipe, [*given.overrides, *two], out=Path(folder) / "run", reporter=times)
    assert times.second is not None
    first, second = times.seen - times.started, times.last - times.second
    print(f"{given.recipe}: first pass over the pixels of {times.files:,} files {first:.2f} s")
    print(f"second epoch {second:.2f} s; {first / second:.1f} times faster")


if __name__ == "__main__":
    main()
