"""How long the tours of a trained run are, for numbers of cities that it was not trained on.

python benchmarks/tours.py runs/tours_large

Up to 12 cities the true tour is the shortest there is; beyond, it is a good one (2-opt).
"""

import argparse
import json
import tempfile
from pathlib import Path

from sixjars.runs.evaluate import evaluate
from sixjars.samples import generate

CITIES = (5, 7, 10, 12, 15, 20)
METRICS = ("tour_length_ratio", "tour_over_nearest", "valid_tours")


def main() -> None:
    """A line for each number of cities."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--tours", type=int, default=200, help="tours of each length")
    given = parser.parse_args()
    print(f"{'cities':>6} {'over true':>10} {'over nearest':>13} {'valid':>6}")
    for cities in CITIES:
        rows = generate(
            "pointing", kind="tours", size=0, valid=0, test=given.tours, longest=cities, seed=1
        )["test"]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "tours.jsonl"
            file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
            found = {
                score.name: score.value
                for score in evaluate(given.run, data=file, metrics=METRICS).scores
            }
        ratio, nearest, valid = (found[name] for name in METRICS)
        print(f"{cities:6} {ratio:10.4f} {nearest:13.4f} {valid:6.3f}", flush=True)


if __name__ == "__main__":
    main()
