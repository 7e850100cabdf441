"""The agreement of the answers of an exported run with those of torch."""

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
from sixjars.runs.data.scored_files import file_dataset
from sixjars.runs.evaluate import scored_dataset
from sixjars.runs.folder.run_folder import RunFolder
from sixjars.runs.prediction.predictor import Predictor
from sixjars_runtime.errors import RunError

EXAMPLES = 200
"""The most examples that are compared."""
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
rows = model.nbest(inputs) + [model.nbest([each])[0] for each in inputs[:int(sys.argv[2])]]
plain = [[[one.text, one.error is None, one.log_probability] for one in row] for row in rows]
json.dump(plain, sys.stdout)
"""
"""A program that answers without torch."""


@final
@dataclass(frozen=True)
class Agreement:
    """How many answers are the same, and how much their probabilities differ.

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
            missed = f"with int8 only {self}, but {LEAST:.0%} must be"
            raise RunError(f"{missed}; nothing was written. Use --precision 32.")

    def __str__(self) -> str:
        share = f"{self.same / self.examples:.1%}".replace("%", " %")
        answers = f"{self.same} of {self.examples} answers are those of torch ({share})"
        return f"{answers}, with log P at most {self.difference:.1e} away"


def compare(
    run: RunFolder,
    predictor: Predictor,
    folder: Path,
    data: str | os.PathLike[str] | None,
    search: SearchSettings | None = None,
) -> Agreement:
    """Compare the answers of the exported run with torch's, by the run's search or another."""
    with examples_of(run, predictor, data) as inputs:
        ours, theirs = predictor.nbest(inputs, search=search), exported_predictions(folder, inputs)
        again = ours[:ALONE]
        # samples depend on the number of an input
        if (search or predictor.recipe.evaluation.search).kind == "sample":
            again = [predictor.nbest([each], search=search)[0] for each in inputs[:ALONE]]
    count, gaps = len(inputs), list[float]()
    for at in range(count):
        # the answers to an input, and those to it alone
        expected = [each for predictions in [*ours, *again][at::count] for each in predictions]
        outputs = [each for answered in theirs[at::count] for each in answered]
        texts = [[each.text, each.error is None] for each in expected]
        if texts == [output[:2] for output in outputs]:
            pairs = zip(expected, outputs, strict=True)
            gaps.append(max(abs(each.log_probability - output[2]) for each, output in pairs))
    return Agreement(count, len(gaps), max(gaps, default=0.0))


def exported_predictions(folder: Path, inputs: Sequence[Any]) -> list[list[list[Any]]]:
    """The predictions of a process without torch: text, whether there is one, and log P.

    Behind the predictions for all inputs are those for the first of them, each given alone.
    """
    command = [sys.executable, "-c", PROGRAM, str(folder), str(ALONE)]
    given = json.dumps(inputs)
    done = subprocess.run(command, input=given, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it ended without a word"]
        reason = lines[-1][:300].rstrip(".")
        raise RunError(f"the exported model does not run in a process of its own: {reason}.")
    return list(json.loads(done.stdout))


@contextmanager
def examples_of(
    run: RunFolder, predictor: Predictor, data: str | os.PathLike[str] | None
) -> Iterator[list[Any]]:
    """Inputs of the test set of a run, or of other data; media as files of their own."""
    if data is None:
        dataset = scored_dataset(run)
    else:
        dataset = file_dataset(run.recipe, predictor.fields, Path(data))
    count = min(EXAMPLES, len(dataset))
    if not dataset.fields.inputs:
        yield [" ".join(text.split()[:BEGIN]) for text in dataset.targets[:count]]
        return
    rows = [dict(dataset.inputs[row]) for row in range(count)]
    with TemporaryDirectory() as folder:
        for name, field in dataset.fields.inputs.items():
            for number, row in enumerate(rows if field.is_media else ()):
                media: Any = field
                place = Path(folder) / f"{number}-{Path(row[name]).name}"
                with media.files.open(row[name]) as file, place.open("wb") as copy:
                    shutil.copyfileobj(file, copy)
                row[name] = str(place)
        yield rows
