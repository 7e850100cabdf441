"""The kept table of the benchmark, made of the lines that it wrote."""

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from statistics import mean
from typing import Any, Final

import yaml

from .data_sets import SETS

KEPT: Final = Path(__file__).parents[1] / "results" / "starters.yaml"
COLUMNS: Final = (
    "data",
    "rows",
    "score",
    "`new` and `train`",
    "best baseline",
    "which one",
    "difference",
    "CPU minutes",
    "GB",
    "a quarter of the updates costs",
)
PERCENT: Final = {"accuracy@1": "accuracy", "labels_micro_f1": "micro F1"}
"""Scores between 0 and 1 of which a point is a hundredth, as of those that are left."""
ABOUT: Final = "# What `new` and `train` make of real tables, beside what costs nothing.\n"
COMMAND: Final = "python -m benchmarks.starters FOLDER_WITH_THE_DATA"


def keep(files: Iterable[Path], kept: Path, machine: str) -> None:
    """Put what was measured into the kept table, in place of the rows of the same set and size."""
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    latest = {
        (line["set"], line["rows"], line["seed"]): line for line in lines if "error" not in line
    }
    sizes: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for (name, rows, _), line in sorted(latest.items()):
        sizes.setdefault((name, rows), []).append(line)
    rows = _rows_in(kept)
    for (name, size), seeds in sizes.items():
        rows[name, f"{size:,}"] = _row(name, size, seeds, machine)
    order = list(SETS)
    ordered = sorted(
        rows.items(),
        key=lambda item: (order.index(item[0][0]), int(item[0][1].replace(",", ""))),
    )
    table = {
        "kind": "score",
        "columns": list(COLUMNS),
        "names": 2,
        "rows": [row for _, row in ordered],
    }
    text = yaml.safe_dump({"tables": {"scores": table}}, sort_keys=False, width=10_000)
    kept.write_text(ABOUT + text, encoding="utf-8")


def _rows_in(kept: Path) -> dict[tuple[str, str], Any]:
    """The rows that are kept already, by data set and size."""
    if not kept.is_file():
        return {}
    rows = yaml.safe_load(kept.read_text(encoding="utf-8"))["tables"]["scores"]["rows"]
    return {(row["cells"][0], row["cells"][1]): row for row in rows}


def _row(name: str, size: int, seeds: Sequence[Mapping[str, Any]], machine: str) -> dict[str, Any]:
    """A row of the kept table: the mean over seeds, with the range where there are several."""
    metric = seeds[0]["metric"]
    digits = 1 if metric == "bleu" else 3
    scores = [line["score"] for line in seeds]
    baseline = mean(line["baseline"] for line in seeds) if "baseline" in seeds[0] else None
    costs = [line["quarter_costs"] for line in seeds if line.get("quarter_costs") is not None]
    cells = [
        name,
        f"{size:,}",
        PERCENT.get(metric, metric),
        _with_range(scores, digits),
        "–" if baseline is None else f"{baseline:.{digits}f}",
        seeds[0].get("by", "–"),
        "–" if baseline is None else f"{mean(scores) - baseline:+.{digits}f}",
        f"{mean(line['cpu_s'] for line in seeds) / 60:.1f}",
        f"{max(line['gb'] for line in seeds):.1f}",
        f"{mean(costs):.1f}" if costs else "–",
    ]
    return {
        "cells": cells,
        "command": COMMAND,
        "machine": machine,
        "date": date.today().isoformat(),
        "commit": _commit(),
        "seeds": ", ".join(str(line["seed"]) for line in seeds),
        "chosen": "rows held out of the table",
        "scored": f"{seeds[0]['dev']:,} rows of `dev`",
    }


def _with_range(values: Sequence[float], digits: int) -> str:
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{mean(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
