"""How far the answers of an exported run are those of torch."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, final

from sixjars.recipe.sections import SearchSettings
from sixjars.runs.evaluate import scored_dataset
from sixjars.runs.folder import RunFolder
from sixjars.runs.predict import Predictor
from sixjars.runs.scored_files import file_dataset
from sixjars_runtime.errors import RunError

EXAMPLES = 200
"""How many are compared at most."""
LEAST = 0.98
"""The share of answers that must stay the same with fewer bits."""
BEGIN = 2
"""Words of an example that a language model is given."""

ALONE = 16
"""How many are also given one by one, for an answer must not depend on the others of its batch."""
PROGRAM = """
import json, sys
import sixjars_runtime
model, inputs = sixjars_runtime.load(sys.argv[1]), json.load(sys.stdin)
found = model.nbest(inputs) + [model.nbest([one])[0] for one in inputs[:int(sys.argv[2])]]
json.dump([[[one.text, one.error is None, one.log_probability] for one in few] for few in found], sys.stdout)
"""
"""What a process without torch answers."""


@final
@dataclass(frozen=True)
class Agreement:
    """What was found on some examples.

    >>> print(Agreement(examples=200, same=199, difference=3e-6))
    199 of 200 answers are those of torch (99.5 %), with log P at most 3.0e-06 away
    """

    examples: int
    same: int
    """Examples with the same answers, texts of all n best."""
    difference: float
    """The largest of log P, among answers that are the same."""

    def check(self) -> None:
        """Refuse to change too many answers."""
        if self.same < LEAST * self.examples:
            raise RunError(
                f"with int8 only {self}, but {LEAST:.0%} must be; nothing was written. Use --precision 32."
            )

    def __str__(self) -> str:
        share = f"{self.same} of {self.examples} answers are those of torch ({self.same / self.examples:.1%})"
        return f"{share}, with log P at most {self.difference:.1e} away".replace("%)", " %)")


def compare(
    run: RunFolder,
    predictor: Predictor,
    folder: Path,
    data: str | os.PathLike[str] | None,
    search: SearchSettings | None = None,
) -> Agreement:
    """The answers of the exported run beside those of torch, with the search of the run or another."""
    draws = (
        search or predictor.recipe.evaluation.search
    ).kind == "sample"  # which depends on the number of an input
    with examples_of(run, predictor, data) as inputs:
        ours, theirs = predictor.nbest(inputs, search=search), answers(folder, inputs)
        again = (
            [predictor.nbest([one], search=search)[0] for one in inputs[:ALONE]]
            if draws
            else ours[:ALONE]
        )
    same, difference = 0, 0.0
    for at in range(len(inputs)):
        both = list(zip([*ours, *again][at :: len(inputs)], theirs[at :: len(inputs)], strict=True))
        if all(
            [[one.text, one.error is None] for one in own] == [few[:2] for few in other]
            for own, other in both
        ):
            pairs = (
                (one.log_probability, few[2])
                for own, other in both
                for one, few in zip(own, other, strict=True)
            )
            difference = max(difference, *(abs(one - two) for one, two in pairs))
            same += 1
    return Agreement(len(inputs), same, difference)


def answers(folder: Path, inputs: Sequence[Any]) -> list[list[list[Any]]]:
    """Text, whether there is one, and log P of what a process without torch answers.

    Behind the answers to all inputs are those to the first of them, each given alone.
    """
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), str(ALONE)],
        input=json.dumps(inputs),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1][:300].rstrip(
            "."
        )
        raise RunError(f"the exported model does not run in a process of its own: {reason}.")
    return list(json.loads(done.stdout))


@contextmanager
def examples_of(
    run: RunFolder, predictor: Predictor, data: str | os.PathLike[str] | None
) -> Iterator[list[Any]]:
    """Inputs of the test set of a run, or of other data; those in files or archives as files of their own."""
    dataset = (
        scored_dataset(run) if data is None else file_dataset(run, predictor.fields, Path(data))
    )
    count = min(EXAMPLES, len(dataset))
    if not dataset.fields.inputs:
        yield [" ".join(text.split()[:BEGIN]) for text in dataset.targets[:count]]
        return
    rows = [dict(dataset.inputs[row]) for row in range(count)]
    with TemporaryDirectory() as folder:
        for name, field in dataset.fields.inputs.items():
            for number, row in enumerate(rows if field.is_media else ()):
                own: Any = field
                place = Path(folder) / f"{number}-{Path(row[name]).name}"
                with own.files.open(row[name]) as file, place.open("wb") as copy:
                    shutil.copyfileobj(file, copy)
                row[name] = str(place)
        yield rows
