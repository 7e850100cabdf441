"""The result of a parameter search: a table of its trials, the best recipe, and a drawing."""

import csv
import io
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

from sixjars.drawing.matplotlib.tuning import draw_tuning
from sixjars.learning.checkpoints import write_whole
from sixjars.progress import listed
from sixjars.recipe.sections import Recipe
from sixjars.runs.notebook import table

TABLE, RECIPE, PICTURE = "trials.csv", "best.yaml", "tune.png"
WRITTEN = (TABLE, RECIPE, PICTURE)
SHOWN = 10
"""Trials that tie and are named by their numbers; of more, only the count is given."""


@final
@dataclass(frozen=True)
class Tuning:
    """The result of a parameter search. All scores are those of the validation set.

    >>> row = {"number": 1, "learning.rate": 0.01, "score": 0.9, "state": "complete"}
    >>> axes, start = {"learning.rate": "log"}, ("--from", "runs/a")
    >>> tuning = Tuning(Path("runs/t"), "exact_match", "higher", axes, (row,), start)
    >>> tuning.best, tuning.score
    ({'learning.rate': 0.01}, 0.9)
    >>> tuning.command
    'sixjars train runs/t/best.yaml --out runs/t/best --from runs/a'
    """

    folder: Path
    metric: str
    better: Literal["higher", "lower"]
    axes: Mapping[str, str]
    """The axis of each key that was searched."""
    trials: tuple[dict[str, Any], ...]
    """For each its number, the value of each key, score, state, epochs, seconds, why it failed."""
    options: tuple[str, ...] = ()
    """Options of the command that trains the best recipe."""
    memory: tuple[str, ...] = ()
    """Arguments for what was in memory, such as `data=TABLE`: the best is trained from Python."""

    @property
    def ranked(self) -> list[dict[str, Any]]:
        """Complete trials, the best one first, then the others."""
        sign = -1.0 if self.better == "higher" else 1.0
        complete = [row for row in self.trials if row["state"] == "complete"]
        others = [row for row in self.trials if row["state"] != "complete"]
        return sorted(complete, key=lambda row: sign * row["score"]) + others

    @property
    def best_trial(self) -> dict[str, Any] | None:
        """The complete trial with the best score; of equal ones the first."""
        return next((row for row in self.ranked[:1] if row["state"] == "complete"), None)

    @property
    def tied(self) -> list[dict[str, Any]]:
        """The complete trials that share the best score, in their order; none for a single best."""
        best = self.best_trial
        equal = []
        for row in self.ranked if best else ():
            if row["state"] == "complete" and row["score"] == self.score:
                equal.append(row)
        return equal if len(equal) > 1 else []

    @property
    def tie_in_words(self) -> str:
        """A sentence that the best trials tie, and which keys made no difference; or nothing."""
        tied = self.tied
        if not tied:
            return ""
        complete = sum(row["state"] == "complete" for row in self.trials)
        keys = [key for key in self.axes if len({json.dumps(row.get(key)) for row in tied}) > 1]
        numbers = listed([str(row["number"]) for row in tied[:SHOWN]])
        which = f"{len(tied)} of {complete} complete trials"
        so = "so nothing decides between their values of"
        if len(tied) == complete:
            which = f"all {complete} complete trials"
            so = "so it made no difference which was taken of"
        which += f" ({numbers})" if len(tied) <= SHOWN else ""
        finer = "; a finer metric may tell them apart: learning.metric=loss"
        return (
            f"{which} tie at {self.metric} {self.score:.4g}, {so} {listed(keys or ['every key'])}. "
            f"Trial {tied[0]['number']} is kept because it was the first"
            f"{'' if self.metric == 'loss' else finer}."
        )

    @property
    def best(self) -> dict[str, Any]:
        """The best values."""
        best = self.best_trial or {}
        return {key: best[key] for key in self.axes if key in best}

    @property
    def score(self) -> float | None:
        """The score of the best trial."""
        return None if self.best_trial is None else float(self.best_trial["score"])

    @property
    def recipe(self) -> Path:
        """The recipe with the best values."""
        return self.folder / RECIPE

    @property
    def picture(self) -> Path:
        """The drawing."""
        return self.folder / PICTURE

    @property
    def command(self) -> str:
        """The command, or the Python, that trains the best recipe and scores it."""
        recipe, out = str(self.recipe), str(self.folder / "best")
        if self.memory:
            return f"sixjars.train({', '.join([repr(recipe), f'out={out!r}', *self.memory])})"
        return shlex.join(["sixjars", "train", recipe, "--out", out, *self.options])

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        values: dict[str, Any] = {"metric": self.metric, "better": self.better, "split": "valid"}
        values |= {"score": self.score, "best": self.best}
        values["tied"] = [row["number"] for row in self.tied]
        values |= {"recipe": str(self.recipe), "picture": str(self.picture)}
        return values | {"command": self.command, "trials": list(self.trials)}

    def write_table(self) -> None:
        """Write `trials.csv`."""
        columns = ["number", *self.axes, "score", "state", "epochs", "seconds", "why"]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_plain(row.get(name, "")) for name in columns] for row in self.trials)
        write_whole(self.folder / TABLE, text.getvalue().encode())

    def write_recipe(self, recipe: Recipe) -> None:
        """Write `best.yaml`, under a comment on its origin."""
        best = self.best_trial or {}
        lines = [
            f"The best of {len(self.trials)} trials of a parameter search, "
            f"trial {best.get('number')}.",
            *(f"  {text_of(key, value)}" for key, value in self.best.items()),
            f"{self.metric} {self.score:.6g} on the validation set; the test set was not scored.",
            f"Run     {self.command}",
            *([f"Of equals the first: {self.tie_in_words}"] if self.tied else []),
        ]
        comments = "".join(f"# {line}\n" for line in lines)
        write_whole(self.recipe, (comments + recipe.to_yaml()).encode())

    def draw(self) -> None:
        """Draw `tune.png`."""
        title = f"{self.metric.replace('_', ' ')} on the validation set"
        trials = len(self.trials)
        if self.tied:
            title += f"; {len(self.tied)} of {trials} trials tie for the best: {self.score:.4g}"
        elif self.best_trial is not None:
            number = self.best_trial["number"]
            title += f"; best: {self.score:.4g} in trial {number} of {trials}"
        axes, metric, better = self.axes, self.metric, self.better
        draw_tuning(self.picture, self.trials, axes, metric=metric, better=better, title=title)

    def _repr_html_(self) -> str:
        """The trials, for a notebook."""
        columns = ["number", *self.axes, "score", "state", "epochs", "seconds"]
        rows = [[_plain(row.get(name, "")) for name in columns] for row in self.ranked]
        about = f"{self.folder}: {self.metric} on the validation set, {self.better} is better"
        return table(columns, rows, f"{about}; {self.tie_in_words}" if self.tied else about)


def _plain(value: Any) -> Any:
    if value is None:
        return ""
    return value if isinstance(value, str | int | float) else json.dumps(value)


def text_of(key: str, value: Any) -> str:
    """A key and its value for a person.

    >>> text_of("learning.rate", 0.001), text_of("learning.freeze", ["encoder"])
    ('learning.rate 0.001', 'learning.freeze ["encoder"]')
    """
    return f"{key} {value if isinstance(value, str) else json.dumps(value)}"


def line_of(
    row: Mapping[str, Any], keys: Sequence[str], metric: str, *, trials: int, is_best: bool
) -> str:
    """The end of a trial in one line."""
    line = f"trial {row['number']:>{len(str(trials))}} of {trials}  "
    line += ", ".join(text_of(key, row[key]) for key in keys)
    if row["score"] is not None:
        line += f"  {metric} {row['score']:.4g}" + (" best" if is_best else "")
    if row["state"] == "pruned":
        line += f"  pruned at epoch {row['epochs']:.3g}"
    elif row["state"] == "failed":
        line += f"  failed: {row['why']}"
    return line
