"""Runs of one recipe that differ in the seed alone: their scores are a mean and a spread."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, final

from sixjars.progress import listed
from sixjars.runs.folder.run_folder import RunFolder, noted


@final
@dataclass(frozen=True)
class Seeds:
    """Runs of one recipe.

    >>> seeds = Seeds((0, 1, 2), (0, 1, 2))
    >>> seeds.in_words(["a", "b", "c"], [0.5, 0.6, 0.7], str).partition(": ")[2]
    'mean 0.6, standard deviation 0.1, from 0.5 to 0.7'
    """

    rows: tuple[int, ...]
    """Their places among the runs that are compared."""
    seeds: tuple[int, ...]

    def in_words(self, names: Sequence[str], values: Sequence[float], written: Any) -> str:
        """Names, seeds, and mean and spread of a metric's values; `written` formats a value."""
        scores = [values[row] for row in self.rows]
        runs, seeds = listed([names[row] for row in self.rows]), listed(list(map(str, self.seeds)))
        middle, spread = written(round(fmean(scores), 9)), written(round(stdev(scores), 9))
        return (
            f"{runs} are one recipe with seed {seeds}: mean {middle}, standard deviation {spread}, "
            f"from {written(min(scores))} to {written(max(scores))}"
        )


def seeds_of(runs: Sequence[RunFolder]) -> tuple[Seeds, ...]:
    """The groups of runs of one recipe with several seeds, of the same rows and first weights."""
    groups: dict[str, list[int]] = {}
    for row, run in enumerate(runs):
        groups.setdefault(_recipe(run), []).append(row)
    numbers = [run.recipe.learning.seed for run in runs]
    groups_of_seeds = [
        Seeds(tuple(rows), tuple(numbers[row] for row in rows)) for rows in groups.values()
    ]
    return tuple(group for group in groups_of_seeds if len({*group.seeds}) > 1)


def alike_first(groups: Sequence[Seeds]) -> set[int]:
    """The runs that differ from the first in the seed alone: they are no rivals of it."""
    return {row for group in groups if 0 in group.rows for row in group.rows}


def _recipe(run: RunFolder) -> str:
    """The common part of runs of one recipe: neither seeds nor the places of files."""
    values = run.recipe.model_dump(mode="json")
    values["learning"].pop("seed")
    values["learning"].pop("loggers")
    values["evaluation"]["search"].pop("seed")
    # Files of the same name in two folders differ in their rows, which are compared.
    values["data"].pop("folder")
    learned = [noted(run.folder, fact) for fact in ("data", "from")]
    return json.dumps([values, learned], sort_keys=True, default=str)
