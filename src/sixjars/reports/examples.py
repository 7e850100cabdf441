"""The examples of a report: how good each is, how long, and what the model attends to."""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
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
from sixjars.evaluation.score import encoded_batches, hypotheses_of, nbest_of
from sixjars.reports.values import Example, Group
from sixjars.runs.evaluate import JudgedRun
from sixjars.runs.prediction.prediction import PredictionBuilder
from sixjars.runs.prediction.requests import SearchResult
from sixjars_runtime.errors import DataError
from sixjars_runtime.special_tokens import STOP, UNK

EACH = 3
"""Examples of each group."""
MOST_OUTPUTS = 3
"""Outputs of a beam that are shown for each example."""
MOST_FRAMES = 4
"""Frames of a video that are shown, where there is no attention."""


@final
@dataclass(frozen=True)
class ExampleRanking:
    """The order of examples from good to bad."""

    outcomes: Sequence[Outcome]
    metric: Metric | None
    """None where no metric has a value for one example: then the truth's probability counts."""

    @property
    def name(self) -> str:
        """The name of the value that examples are ranked by."""
        return "log probability of a token" if self.metric is None else self.metric.name

    @property
    def lower(self) -> bool:
        """Whether lower values are better."""
        return self.metric is not None and self.metric.better == "lower"

    def value(self, at: int) -> float | None:
        """The value of one example; None where it has none."""
        outcome = self.outcomes[at]
        if self.metric is None:
            return _likelihood(outcome) if outcome.tokens else None
        return value_alone(self.metric, outcome)

    def key(self, at: int) -> tuple[float, float]:
        """Higher is better; of equal ones, that whose truth is more probable."""
        value = self.value(at)
        if value is None:
            value = math.inf if self.lower else -math.inf
        return -value if self.lower else value, _likelihood(self.outcomes[at])


def _likelihood(outcome: Outcome) -> float:
    """The mean log probability of the tokens of the truth."""
    return (outcome.log_probability or 0.0) / max(outcome.tokens, 1)


def ranking_of(run: JudgedRun, metrics: Sequence[Metric]) -> ExampleRanking:
    """A ranking by the first metric of outputs that has a value for one example."""
    single = (metric for metric in metrics if metric.per_example and "candidates" in metric.needs)
    metric = next(single, None)
    outcomes = run.judged.outcomes
    count = min(outcomes) if metric is None else nbest_of(metric, run.judged.settings)
    return ExampleRanking(outcomes[count], metric)


def chosen_rows(
    scores: Sequence[tuple[float, ...]], inputs: Sequence[Hashable]
) -> dict[Group, list[int]]:
    """The best, median and worst examples by scores of which higher is better; each input once.

    >>> scores = [(score,) for score in (0.1, 0.9, 0.5, 0.2, 0.8, 0.3, 0.7, 0.6, 0.4, 0.0)]
    >>> chosen_rows(scores, range(10))
    {'best': [1, 4, 6], 'median': [7, 2, 8], 'worst': [9, 0, 3]}
    >>> chosen_rows(scores, "abcdbfghij")
    {'best': [1, 6, 7], 'median': [2, 8, 5], 'worst': [9, 0, 3]}
    >>> chosen_rows([(0.5,), (0.9,)], "ab")
    {'best': [1], 'median': [], 'worst': [0]}
    """
    order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
    each = min(EACH, len(set(inputs)) // 2)
    best = _first(order, inputs)[:each]
    taken = {inputs[at] for at in best}
    worst = _first([at for at in reversed(order) if inputs[at] not in taken], inputs)[:each]
    taken |= {inputs[at] for at in worst}
    rest = _first([at for at in order if inputs[at] not in taken], inputs)
    begin = max((len(rest) - EACH) // 2, 0)
    return {"best": best, "median": rest[begin : begin + EACH], "worst": worst}


def _first(order: Sequence[int], inputs: Sequence[Hashable]) -> list[int]:
    places: dict[Hashable, int] = {}
    for at in order:
        places.setdefault(inputs[at], at)
    return list(places.values())


def lengths_of(run: JudgedRun) -> tuple[list[int], str]:
    """The length of each example, in words of the first input that varies, or else positions."""
    dataset, rows = run.dataset, run.judged.rows
    for name, field in dataset.fields.inputs.items():
        words = field.words([dataset.inputs[row][name] for row in rows])
        lengths = [row[-1] + 1 if row else 0 for row in words]
        if len(set(lengths)) > 1:
            has_words = "vocabulary" in field.fact_names
            return lengths, f"words of the {name}" if has_words else f"number of {name}"
    for name in dataset.fields.inputs:
        positions = dataset.lengths(name)
        lengths = [positions[row] for row in rows]
        if len(set(lengths)) > 1:
            return lengths, f"positions of the {name}"
    return [0] * len(rows), ""


def example_of(run: JudgedRun, at: int, score: float | None, length: int) -> Example:
    """The texts of one example; names of files without their folders."""
    dataset = run.dataset
    outcome = run.judged.outcomes[min(run.judged.outcomes)][at]
    texts = []
    for name, text in dataset.inputs[run.judged.rows[at]].items():
        texts.append(Path(text).name if dataset.fields.inputs[name].is_media else text)
    output = outcome.candidates[0] if outcome.candidates else None
    return Example(" · ".join(texts), output, outcome.references, score, length)


def attention_of(run: JudgedRun, rows: Sequence[int]) -> dict[int, View]:
    """The attention of the model by row, for the best outputs of a beam; empty without any."""
    network, dataset, settings = run.network, run.dataset, run.judged.settings
    if not network.decoder.has_attention or not rows:
        return {}
    search = settings.search
    searches = network.decoder.searches
    if search.kind == "beam" and searches:
        nbest = max(search.nbest, min(search.width, MOST_OUTPUTS))
        search = search.model_copy(update={"nbest": nbest})
    builder = PredictionBuilder(dataset, network.encoder.positions_of(), search, details=True)
    order = order_in_words(search) if searches else ""
    fields = SimpleNamespace(inputs=dataset.fields.inputs)
    views: dict[int, View] = {}
    examples = settings.batch_examples
    for batch, encoded in encoded_batches(network, dataset.batches(), examples=examples, rows=rows):
        numbers, lengths = batch.numbers.tolist(), encoded.mask.sum(1).tolist()
        outputs = hypotheses_of(network, encoded, search, seeds=numbers)
        for row, hypotheses, length in zip(numbers, outputs, lengths, strict=True):
            result = SearchResult(hypotheses, length, encoded.layout)
            predictions = builder.predictions(row, result, dataset.raw(row), ends=searches)
            with suppress(DataError):  # an output without a token has no weights
                views[row] = view_of(fields, predictions, order=order)
    return views


def images_of(dataset: Dataset, row: int) -> tuple[NDArray[np.uint8], ...]:
    """The image, or frames of the video, that is the first input of a row; empty for others."""
    name, text = next(iter(dataset.raw(row).items()), ("", ""))
    if not name or not dataset.fields.inputs[name].is_media:
        return ()
    pixels = dataset.fields.inputs[name].backdrop(text)
    if isinstance(pixels, tuple):
        return (pixels[0],)
    if not isinstance(pixels, np.ndarray):
        return ()
    return tuple(pixels[:: max(len(pixels) // MOST_FRAMES, 1)][:MOST_FRAMES])


def unknown_words(dataset: Dataset) -> Counter[str]:
    """How often each word of the inputs is unknown, or a piece of it; cut texts are left out."""
    counts: Counter[str] = Counter()
    for name, field in dataset.fields.inputs.items():
        if "vocabulary" not in field.fact_names or name not in field.encoders():
            continue
        ids, offsets = dataset.table.ids(name)
        rows = np.searchsorted(offsets, np.flatnonzero(ids == UNK), "right") - 1
        for row in np.unique(rows).tolist():
            text, row_ids = dataset.inputs[row][name], ids[offsets[row] : offsets[row + 1]]
            row_ids, [index] = row_ids[row_ids != STOP], field.words([text])
            if len(index) == len(row_ids):
                words = text.split()
                if index[-1] >= len(words):  # each character is a word
                    words = list(text)
                counts.update(
                    words[at] for at in {index[i] for i in np.flatnonzero(row_ids == UNK)}
                )
    return counts
