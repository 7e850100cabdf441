"""Whether attention weights can be trusted: their agreement with erasing inputs and gradients."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from sixjars.data.dataset import Dataset
from sixjars.drawing.matplotlib.faithfulness import draw_faithfulness
from sixjars.evaluation.agreement import AttentionAgreement
from sixjars.evaluation.faithfulness import CheckedExample, checked_examples, falls_of
from sixjars.kernels.backends import Device, device_named
from sixjars.progress import Reporter, listening
from sixjars.recipe.allowed_code import AllowedCode
from sixjars.runs.data.scored_files import file_dataset
from sixjars.runs.evaluate import scored_dataset
from sixjars.runs.folder.run_folder import open_run
from sixjars.runs.prediction.prediction import Prediction
from sixjars.runs.prediction.predictor import Predictor
from sixjars.runs.prediction.teacher_forcing import with_output
from sixjars_runtime.errors import DataError

EXAMPLES: Final = 200
"""Examples that are checked, where nobody says how many."""
MEASURES: Final = {"erasure": "erasing", "gradient": "gradients"}
"""The measures that weights are compared with, and their names."""
OWN, GIVEN = "the model's own outputs", "the reference outputs (teacher forcing)"
NOT_SAID = (
    "High agreement does not prove that the weights are the reason of an output, and low agreement "
    "does not prove that they are useless: other weights may explain it as well (Jain & Wallace "
    "2019; Wiegreffe & Pinter 2019)."
)
"""The limits of the numbers, with sources."""


@final
@dataclass(frozen=True)
class AttentionCheck:
    """How far the attention weights of a run order the input as erasing it and as gradients do.

    >>> AttentionCheck({}, "the test set", 12, 10, 0, outputs=OWN).to_json()["examples"]
    10
    """

    measures: dict[str, AttentionAgreement]
    """`erasure` and `gradient`; one is missing where no step of any example has an order."""
    where: str
    whole: int
    """Examples of the data that can be used."""
    examples: int
    """The examples that were checked."""
    skipped: int
    """The checked examples without an order: one input position, or no output."""
    outputs: str
    """Whose outputs were checked."""

    @property
    def title(self) -> str:
        """The examples and the outputs that were checked."""
        count = f"{self.examples:,}"
        if self.examples < self.whole:
            count += f" of {self.whole:,}"
        return f"{count} examples of {self.where}; {self.outputs}"

    @property
    def sentences(self) -> list[str]:
        """The meaning of the numbers, and its limits."""
        return [*(measured.sentence for measured in self.measures.values()), NOT_SAID]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "data": self.where,
            "of": self.whole,
            "examples": self.examples,
            "skipped": self.skipped,
            "outputs": self.outputs,
            "correlation": "Kendall's tau-b of each step, averaged over the steps of an example",
            "measures": {name: measured.to_json() for name, measured in self.measures.items()},
            "meaning": self.sentences,
        }

    def draw(self, path: str | os.PathLike[str], title: str = "") -> None:
        """Draw both distributions into one image, beside those of random weights."""
        measures = list(self.measures.values())
        draw_faithfulness(Path(path), measures, title=title or self.title, caption=NOT_SAID)


def check_attention(
    folder: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    examples: int = EXAMPLES,
    reference: bool = False,
    device: Device = "auto",
    reporter: Reporter | None = None,
    allow: Iterable[str] = (),
) -> AttentionCheck:
    """Compare the attention weights of a run with erasing each input position, and with gradients.

    The examples are those of its test set, or of another file with the same columns; of more than
    `examples` so many are drawn, always the same. The outputs are those that the run finds, or with
    `reference` those of the data.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sixjars.train("transliteration/sample_attention", few, out=f"{folder}/run")
    ...     check = sixjars.check_attention(run.folder, examples=3)
    >>> list(check.measures), check.examples
    (['erasure', 'gradient'], 3)
    """
    if examples < 1:
        raise DataError(f"check at least one example, not {examples}.")
    run = open_run(folder, AllowedCode(tuple(allow)))
    reporter = reporter or Reporter()
    blueprint, fields, network = run.loaded(device_named(device), reporter=reporter)
    if not network.decoder.has_attention:
        lack = "has no attention, so there are no weights to check"
        raise DataError(f"{folder} {lack}; its bridge is {blueprint.plan.kind('bridge')}.")
    search = None if reference else run.recipe.evaluation.search
    at_once = run.recipe.evaluation.batch_examples
    try:
        with listening(reporter):
            if data is None:
                dataset = scored_dataset(run, blueprint, fields)
            else:
                dataset = file_dataset(run.recipe, fields, Path(data))
            rows = _rows(dataset, examples)
        checked: list[CheckedExample] = []
        for example in checked_examples(network, dataset, rows, search=search, examples=at_once):
            checked.append(example)
            reporter.preparing("checking examples", done=len(checked), total=len(rows))
    finally:
        reporter.end()
    outputs = GIVEN if search is None else OWN
    if search is not None and network.decoder.searches:
        outputs = f"{OWN} ({search.kind} search)"
    return _check(checked, dataset, outputs=outputs)


def falls_without(predictor: Predictor, prediction: Prediction) -> list[float]:
    """The fall of an output's log probability without each position; below 0 it rises.

    Unlike attention weights, this holds all that the position did for the output, and for a bag of
    words that is evidence first of all.
    """
    request = with_output(predictor, dict(prediction.inputs), prediction.text)
    encoded, _ = predictor.encode([request])
    return [] if encoded is None else falls_of(predictor.network, encoded.dataset, 0)


def _rows(dataset: Dataset, examples: int) -> list[int]:
    """All rows, or so many of them drawn at random, always the same."""
    usable = np.flatnonzero(dataset.usable)
    if not len(usable):
        lack = "no row can be used; all are too long (see on_long), or have no known label."
        raise DataError(f"{dataset.where}: {lack}")
    if len(usable) > examples:
        usable = np.sort(np.random.default_rng(0).choice(usable, size=examples, replace=False))
    return [int(row) for row in usable]


def _check(checked: Sequence[CheckedExample], dataset: Dataset, *, outputs: str) -> AttentionCheck:
    measures = {}
    for key, name in MEASURES.items():
        values = [getattr(example, key) for example in checked]
        known = tuple(value for value in values if value is not None)
        if known:
            measures[key] = AttentionAgreement(name, known)
    if not measures:
        lack = "no example has two input positions and an output, so there is no order to compare."
        raise DataError(f"{dataset.where}: {lack}")
    skipped = sum(example.erasure is None and example.gradient is None for example in checked)
    usable = int(dataset.usable.sum())
    return AttentionCheck(measures, dataset.where, usable, len(checked), skipped, outputs)
