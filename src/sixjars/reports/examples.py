"""The examples of a report: how good each is, how long, and what the model attends to."""

import math
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import final

import numpy as np
from numpy.typing import NDArray

from sixjars.data.dataset import Dataset
from sixjars.decoding.scores import order_in_words
from sixjars.drawing.view import View, view_of
from sixjars.evaluation.metrics import Metric, Outcome, value_alone
from sixjars.evaluation.score import answers, encoded_batches, nbest_of
from sixjars.reports.values import Example
from sixjars.runs.evaluate import JudgedRun
from sixjars.runs.prediction import Finishing
from sixjars.runs.requests import Found
from sixjars_runtime.errors import DataError
from sixjars_runtime.special_tokens import STOP, UNK

MOST_OUTPUTS = 3
"""Of a beam, for each example."""
MOST_FRAMES = 4
"""Of a video, where there is no attention to show."""


@final
@dataclass(frozen=True)
class Ranking:
    """What makes one example better than another."""

    outcomes: Sequence[Outcome]
    metric: Metric | None
    """Nothing where no metric has a value for one example: then it is how probable the truth is."""

    @property
    def name(self) -> str:
        """For a person."""
        return "log probability of a token" if self.metric is None else self.metric.name

    @property
    def lower(self) -> bool:
        """Whether lower values are better."""
        return self.metric is not None and self.metric.better == "lower"

    def value(self, at: int) -> float | None:
        """Of one example; nothing where it has none."""
        outcome = self.outcomes[at]
        if self.metric is None:
            return _likelihood(outcome) if outcome.tokens else None
        return value_alone(self.metric, outcome)

    def key(self, at: int) -> tuple[float, float]:
        """Higher is better; of equal ones, that whose truth is more probable."""
        value = self.value(at)
        return (-math.inf if value is None else -value if self.lower else value), _likelihood(
            self.outcomes[at]
        )


def _likelihood(outcome: Outcome) -> float:
    """Of a token of the truth; its logarithm."""
    return (outcome.log_probability or 0.0) / max(outcome.tokens, 1)


def ranking_of(one: JudgedRun, metrics: Sequence[Metric]) -> Ranking:
    """By the first metric of outputs that has a value for one example."""
    single = (metric for metric in metrics if metric.per_example and "candidates" in metric.needs)
    metric = next(single, None)
    count = min(one.judged.outcomes) if metric is None else nbest_of(metric, one.judged.settings)
    return Ranking(one.judged.outcomes[count], metric)


def lengths_of(one: JudgedRun) -> tuple[list[int], str]:
    """How long each example is, and what was counted: words of the first input that differs, or else positions."""
    dataset, rows = one.dataset, one.judged.rows
    for name, field in dataset.fields.inputs.items():
        words = field.words([dataset.inputs[row][name] for row in rows])
        found = [row[-1] + 1 if row else 0 for row in words]
        if len(set(found)) > 1:
            return (
                found,
                f"words of the {name}" if "vocabulary" in field.fact_names else f"number of {name}",
            )
    for name in dataset.fields.inputs:
        lengths = dataset.lengths(name)
        found = [lengths[row] for row in rows]
        if len(set(found)) > 1:
            return found, f"positions of the {name}"
    return [0] * len(rows), ""


def example_of(one: JudgedRun, at: int, score: float | None, length: int) -> Example:
    """The texts of one example; names of files without their folders."""
    dataset, outcome = one.dataset, one.judged.outcomes[min(one.judged.outcomes)][at]
    given = [
        Path(text).name if dataset.fields.inputs[name].is_media else text
        for name, text in dataset.inputs[one.judged.rows[at]].items()
    ]
    output = outcome.candidates[0] if outcome.candidates else None
    return Example(" · ".join(given), output, outcome.references, score, length)


def views_of(one: JudgedRun, rows: Sequence[int]) -> dict[int, View]:
    """What the model attended to, by row; of a beam the best outputs. Nothing without attention."""
    network, dataset, settings = one.network, one.dataset, one.judged.settings
    if not network.decoder.has_attention or not rows:
        return {}
    search, searches = settings.search, network.decoder.searches
    if search.kind == "beam" and searches:
        search = search.model_copy(
            update={"nbest": max(search.nbest, min(search.width, MOST_OUTPUTS))}
        )
    finishing = Finishing(dataset, network.encoder.positions_of(), search, details=True)
    order = order_in_words(search) if searches else ""
    found: dict[int, View] = {}
    batches = encoded_batches(
        network, dataset.batches(), examples=settings.batch_examples, rows=rows
    )
    for batch, encoded in batches:
        numbers = batch.numbers.tolist()
        outputs = answers(network, encoded, search, seeds=numbers)
        for row, some, length in zip(numbers, outputs, encoded.mask.sum(1).tolist(), strict=True):
            made = finishing.predictions(
                row, Found(some, length, encoded.layout), dataset.raw(row), ends=searches
            )
            with suppress(DataError):  # an output without a token has no weights
                found[row] = view_of(
                    SimpleNamespace(inputs=dataset.fields.inputs), made, order=order
                )
    return found


def images_of(dataset: Dataset, row: int) -> tuple[NDArray[np.uint8], ...]:
    """The image, or some frames of the video, that was the first input of a row; nothing where it is none."""
    name, text = next(iter(dataset.raw(row).items()), ("", ""))
    if not name or not dataset.fields.inputs[name].is_media:
        return ()
    found = dataset.fields.inputs[name].backdrop(text)
    if isinstance(found, tuple):
        return (found[0],)
    if not isinstance(found, np.ndarray):
        return ()
    return tuple(found[:: max(len(found) // MOST_FRAMES, 1)][:MOST_FRAMES])


def unknown_words(dataset: Dataset) -> Counter[str]:
    """How often each word of the inputs is not known, or a piece of it; texts that were cut are left out."""
    found: Counter[str] = Counter()
    for name, field in dataset.fields.inputs.items():
        if "vocabulary" not in field.fact_names or name not in field.encoders():
            continue
        ids, offsets = dataset.table.ids(name)
        for row in sorted(
            set((np.searchsorted(offsets, np.flatnonzero(ids == UNK), "right") - 1).tolist())
        ):
            own, text = ids[offsets[row] : offsets[row + 1]], dataset.inputs[row][name]
            own, [index] = own[own != STOP], field.words([text])
            if len(index) == len(own):
                words = text.split()
                words = (
                    words if index[-1] < len(words) else list(text)
                )  # where each character is a word
                found.update(
                    words[at] for at in {index[place] for place in np.flatnonzero(own == UNK)}
                )
    return found
