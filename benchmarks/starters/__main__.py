"""The command: measure data sets one after the other, or keep what was measured."""

import argparse
import json
from pathlib import Path

from . import __doc__ as about
from .data_sets import SETS
from .measure import MOST_ROWS, measured
from .table import KEPT, keep


def main() -> None:
    """Measure the sets that are named, or write the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.starters",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", type=Path, nargs="?", help="the folder with the data sets")
    parser.add_argument("--only", default=",".join(SETS), help="data sets, divided by commas")
    parser.add_argument("--rows", default=f"200,1000,{MOST_ROWS}", help="sizes of the tables")
    parser.add_argument("--seeds", default="0", help="seeds, divided by commas")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--work", type=Path, default=Path("build/starters"))
    parser.add_argument("--out", type=Path, default=Path("build/starters/rows.jsonl"))
    parser.add_argument("--table", type=Path, nargs="+", help="files of rows to keep")
    parser.add_argument("--machine", default="two CPU cores", help="what --table says of it")
    options = parser.parse_args()
    if options.table:
        keep(options.table, KEPT, options.machine)
        return
    if options.data is None:
        parser.error("name the folder with the data sets.")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for name in options.only.split(","):
        for rows in map(int, options.rows.split(",")):
            for seed in map(int, options.seeds.split(",")):
                place = options.work.resolve() / f"{name}-{rows}-{seed}"
                try:
                    result = measured(
                        name, options.data.resolve(), place, rows, seed, options.device
                    )
                except RuntimeError as error:
                    result = {"set": name, "rows": rows, "seed": seed, "error": str(error)}
                print(json.dumps(result), flush=True)
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
