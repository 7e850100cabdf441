"""Which of several runs are of one recipe and differ in the seed alone: their scores are a mean and a spread."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, final

from sixjars.progress import listed
from sixjars.runs.folder import RunFolder, noted


@final
@dataclass(frozen=True)
class Seeds:
    """Runs of one recipe.

    >>> Seeds((0, 1, 2), (0, 1, 2)).in_words(["a", "b", "c"], [0.5, 0.6, 0.7], str)
    'a, b and c are one recipe with seed 0, 1 and 2: mean 0.6, standard deviation 0.1, from 0.5 to 0.7'
    """

    rows: tuple[int, ...]
    """Which of the runs that are compared."""
    seeds: tuple[int, ...]

    def in_words(self, names: Sequence[str], values: Sequence[float], written: Any) -> str:
        """Their names and seeds, and what the values of a metric say of all of them; `written` shows a value."""
        own = [values[row] for row in self.rows]
        runs, seeds = listed([names[row] for row in self.rows]), listed(list(map(str, self.seeds)))
        middle, spread = written(round(fmean(own), 9)), written(round(stdev(own), 9))
        return (
            f"{runs} are one recipe with seed {seeds}: mean {middle}, standard deviation {spread}, "
            f"from {written(min(own))} to {written(max(own))}"
        )


def seeds_of(runs: Sequence[RunFolder]) -> tuple[Seeds, ...]:
    """The groups of runs that are of one recipe with several seeds, trained on the same rows from the same weights."""
    groups: dict[str, list[int]] = {}
    for row, run in enumerate(runs):
        groups.setdefault(_recipe(run), []).append(row)
    numbers = [run.recipe.learning.seed for run in runs]
    found = [Seeds(tuple(rows), tuple(numbers[row] for row in rows)) for rows in groups.values()]
    return tuple(some for some in found if len({*some.seeds}) > 1)


def _recipe(run: RunFolder) -> str:
    """What two runs of one recipe have in common: not the seeds of training and sampling, nor where things are."""
    values = run.recipe.model_dump(mode="json")
    values["learning"].pop("seed")
    values["learning"].pop("loggers")
    values["evaluation"]["search"].pop("seed")
    values["data"].pop(
        "folder"
    )  # files of the same name in two folders differ in their rows, which are compared
    learned = [noted(run.folder, fact) for fact in ("data", "from")]
    return json.dumps([values, learned], sort_keys=True, default=str)
