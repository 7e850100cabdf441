"""Whether the attention weights of a run can be trusted: their agreement with erasing the input and with gradients."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from sixjars.data.dataset import Dataset
from sixjars.drawing.faithfulness import draw_faithfulness
from sixjars.evaluation.agreement import Measured
from sixjars.evaluation.faithfulness import CheckedExample, checked_examples, falls_of
from sixjars.learning.engine import Device, device_named
from sixjars.progress import Reporter, listening
from sixjars.recipe.outside import Outside
from sixjars.runs.data import Blueprint
from sixjars.runs.evaluate import scored_dataset
from sixjars.runs.folder import open_run
from sixjars.runs.forced import with_output
from sixjars.runs.predict import Predictor
from sixjars.runs.prediction import Prediction
from sixjars.runs.scored_files import file_dataset
from sixjars_runtime.errors import DataError

EXAMPLES: Final = 200
"""Examples that are checked, where nobody says how many."""
MEASURES: Final = {"erasure": "erasing", "gradient": "gradients"}
"""What the weights are compared with."""
OWN, GIVEN = "the model's own outputs", "the reference outputs (teacher forcing)"
NOT_SAID = (
    "High agreement does not prove that the weights are the reason of an output, and low agreement does not prove that "
    "they are useless: other weights may explain it as well (Jain & Wallace 2019; Wiegreffe & Pinter 2019)."
)
"""What the numbers do not say."""


@final
@dataclass(frozen=True)
class AttentionCheck:
    """How far the attention weights of a run order the input as erasing it and as gradients do.

    >>> AttentionCheck({}, "the test set", 12, 10, 0, outputs=OWN).to_json()["examples"]
    10
    """

    measures: dict[str, Measured]
    """`erasure` and `gradient`; one is missing where no step of any example has an order."""
    where: str
    whole: int
    """Examples of the data that can be used."""
    examples: int
    """Those that were checked."""
    skipped: int
    """Those of them without an order: one input position, or no output."""
    outputs: str
    """Whose outputs were checked."""

    @property
    def title(self) -> str:
        """What was checked."""
        some = (
            f"{self.examples:,}"
            if self.examples == self.whole
            else f"{self.examples:,} of {self.whole:,}"
        )
        return f"{some} examples of {self.where}; {self.outputs}"

    @property
    def sentences(self) -> list[str]:
        """What the numbers mean, and what they do not."""
        return [*(one.sentence for one in self.measures.values()), NOT_SAID]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "data": self.where,
            "of": self.whole,
            "examples": self.examples,
            "skipped": self.skipped,
            "outputs": self.outputs,
            "correlation": "Kendall's tau-b of each step, averaged over the steps of an example",
            "measures": {name: one.to_json() for name, one in self.measures.items()},
            "meaning": self.sentences,
        }

    def draw(self, path: str | os.PathLike[str], title: str = "") -> None:
        """One picture: both distributions, beside that of random weights."""
        draw_faithfulness(
            Path(path), list(self.measures.values()), title=title or self.title, caption=NOT_SAID
        )


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

    On its test set, or on another file with the same columns; of more than `examples` so many are drawn, always the
    same. The outputs are those that the run finds, or with `reference` those of the data.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sixjars.train("transliteration/sample_attention", few, out=f"{folder}/run")
    ...     found = sixjars.check_attention(run.folder, examples=3)
    >>> list(found.measures), found.examples
    (['erasure', 'gradient'], 3)
    """
    if examples < 1:
        raise DataError(f"check at least one example, not {examples}.")
    run, used = open_run(folder, Outside(tuple(allow))), device_named(device)
    reporter = reporter or Reporter()
    blueprint = Blueprint.of(run.recipe, run.outside, device=used, reporter=reporter)
    run.check_backbones(blueprint.fingerprints)
    fields = run.restored(blueprint.fields)
    network = run.network(blueprint, fields).to(used)
    if not network.decoder.has_attention:
        kind = blueprint.plan.kind("bridge")
        raise DataError(
            f"{folder} has no attention, so there are no weights to check; its bridge is {kind}."
        )
    try:
        with listening(reporter):
            dataset = (
                scored_dataset(run, blueprint, fields)
                if data is None
                else file_dataset(run, fields, Path(data))
            )
            rows = _rows(dataset, examples)
        search = None if reference else run.recipe.evaluation.search
        at_once, found = run.recipe.evaluation.batch_examples, []
        for one in checked_examples(network, dataset, rows, search=search, examples=at_once):
            found.append(one)
            reporter.preparing("checking examples", done=len(found), total=len(rows))
    finally:
        reporter.end()
    how = (
        f"{OWN} ({search.kind} search)" if search is not None and network.decoder.searches else OWN
    )
    return _check(found, dataset, outputs=GIVEN if reference else how)


def falls_without(predictor: Predictor, prediction: Prediction) -> list[float]:
    """How far the log probability of an output falls without each position of its input; it rises where below 0.

    Unlike attention weights, this holds all that the position did for the output, and for a bag of words that is
    evidence first of all.
    """
    request = with_output(predictor, dict(prediction.inputs), prediction.text)
    encoded, _ = predictor.encode([request])
    return [] if encoded is None else falls_of(predictor.network, encoded.dataset, 0)


def _rows(dataset: Dataset, examples: int) -> list[int]:
    """All rows, or so many of them drawn at random, always the same."""
    usable = np.flatnonzero(dataset.usable)
    if not len(usable):
        raise DataError(
            f"{dataset.where}: no row can be used; all are too long (see on_long), or have no known label."
        )
    if len(usable) <= examples:
        return [int(row) for row in usable]
    return sorted(
        int(row) for row in np.random.default_rng(0).choice(usable, size=examples, replace=False)
    )


def _check(found: Sequence[CheckedExample], dataset: Dataset, *, outputs: str) -> AttentionCheck:
    """The agreement over all examples that have some."""
    measures = {}
    for key, name in MEASURES.items():
        known = tuple(one for example in found if (one := getattr(example, key)) is not None)
        if known:
            measures[key] = Measured(name, known)
    if not measures:
        raise DataError(
            f"{dataset.where}: no example has two input positions and an output, so there is no order to compare."
        )
    skipped = sum(one.erasure is None and one.gradient is None for one in found)
    return AttentionCheck(
        measures, dataset.where, int(dataset.usable.sum()), len(found), skipped, outputs
    )
