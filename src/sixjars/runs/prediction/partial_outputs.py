"""Outputs as they are written: after each step of a search, the tokens so far and their attention.

Dims: R rows of a search, S source positions.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np
import torch
from torch import Tensor

from sixjars.decoding.problem import SearchStep
from sixjars.decoding.scores import NEVER, HypothesisScoring
from sixjars.evaluation.score import encoded_batches, hypotheses_of, spelled
from sixjars.flow.searching import Hypothesis
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.prediction.prediction import Prediction, PredictionBuilder
from sixjars.runs.prediction.predictor import Predictor
from sixjars.runs.prediction.requests import (
    Check,
    EncodedRequests,
    Input,
    Request,
    SearchResult,
    encoded_usable,
)
from sixjars_runtime.errors import memory_is_short
from sixjars_runtime.special_tokens import STOP


@final
@dataclass(frozen=True)
class WrittenToken:
    """One token as it is written."""

    at: int
    """Its place in the output, from 0."""
    token: str
    text: str
    """The output so far."""
    log_probability: float
    """The log probability of the output so far."""
    weights: tuple[float, ...]
    """The attention of this step; empty without attention."""
    source: tuple[str, ...]
    """The names of the source positions, with the first token alone."""


Tell = Callable[[WrittenToken | Prediction | Exception], None]
"""Called with each token of an output as it is written, `<stop>` included, and at its end with the
prediction, or with the error that was raised in its place."""


def stepwise(
    predictor: Predictor,
    inputs: Sequence[Input],
    search: SearchSettings,
    tells: Sequence[Tell],
    *,
    check: Check | None = None,
    after: Check | None = None,
) -> None:
    """Write the outputs for some inputs side by side, a token of each at every step.

    Search is greedy or draws one sample: the rows of a beam change places, so it has no beginning
    before its end. Each of `tells` is for one input. What it raises, or what its output raises,
    ends that output alone, and its row leaves the search. `check` is called while files are decoded
    and `after` after each step; what they raise ends all of it. A run that chooses a label has no
    steps.
    """
    requests = [predictor.prepare(value, search=search) for value in inputs]
    encoded, good, wrong = encoded_usable(predictor.encode, requests, check)
    for at, sentence in wrong.items():
        with _alone(tells[at]):
            tells[at](Prediction("", inputs=requests[at].texts, error=sentence))
    if encoded is not None:
        _write(predictor, encoded, search, [tells[at] for at in good], after)


@contextmanager
def _alone(tell: Tell) -> Iterator[None]:
    """An error here ends one output; where memory is short, the others may be to blame."""
    try:
        yield
    except Exception as error:
        if memory_is_short(error):
            raise
        tell(error)


def _write(
    predictor: Predictor,
    encoded: EncodedRequests,
    search: SearchSettings,
    tells: Sequence[Tell],
    after: Check | None,
) -> None:
    network = predictor.network
    [(batch, source)] = encoded_batches(network, encoded.dataset.batches(), examples=len(tells))
    builder = PredictionBuilder(
        encoded.dataset, network.encoder.positions_of(), search, details=True
    )
    rows, lengths = batch.numbers.tolist(), source.mask.sum(1).tolist()
    outputs = []
    for row, length in zip(rows, lengths, strict=True):
        result = SearchResult([], length, source.layout)
        outputs.append(_Output(builder, encoded.requests[row], row, result, tells[row]))

    def take(column: SearchStep, places: Tensor) -> Tensor:
        assert column.gained is not None
        weights = None if column.weights is None else column.weights.tolist()
        numbers = places.tolist()
        steps = zip(numbers, column.token.tolist(), column.gained.tolist(), strict=True)
        for at, (place, token, gained) in enumerate(steps):
            if place < len(outputs):  # behind them a batch is padded
                outputs[place].take(token, gained, () if weights is None else weights[at])
        if after is not None:
            after()
        return torch.tensor([place >= len(outputs) or outputs[place].ended for place in numbers])

    seeds = [encoded.requests[row].number for row in rows]
    prefix = None if encoded.prefix is None else encoded.prefix.pick(batch.numbers.cpu())
    results = hypotheses_of(network, source, search, seeds=seeds, prefix=prefix, tell=take)
    for output, hypotheses in zip(outputs, results, strict=True):
        output.end(hypotheses, ends=network.decoder.searches)


@final
@dataclass
class _Output:
    """The output so far; a step costs as much as its text, not as all that is known of it."""

    builder: PredictionBuilder
    request: Request
    row: int
    result: SearchResult
    tell: Tell
    tokens: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    weights: list[tuple[float, ...]] = field(default_factory=list)
    steps: int = 0
    total: np.float32 = field(default_factory=np.float32)
    ended: bool = False

    def take(self, token: int, gained: float, weights: Sequence[float]) -> None:
        """Add one step; some may follow the last, and are ignored."""
        if self.ended:
            return
        with _alone(self._fail):
            if gained > NEVER:
                self._write(token, gained, tuple(weights[: self.result.length]))
            if gained == NEVER or token == STOP:
                self._end([self._hypothesis(finished=gained > NEVER)], ends=True)

    def end(self, hypotheses: list[Hypothesis], *, ends: bool) -> None:
        """End with the result of the search, unless the output has ended by itself."""
        if not self.ended:
            with _alone(self._fail):
                self._end(hypotheses, ends=ends)

    def _write(self, token: int, gained: float, weights: tuple[float, ...]) -> None:
        dataset = self.builder.dataset
        stops = token == STOP
        self.total += np.float32(gained)  # as search adds them up
        rows = (weights,) if weights else ()
        self.weights += rows
        step = Hypothesis(() if stops else (token,), gained, gained, rows, stops)
        ids, words = spelled(dataset, self.row, step, self.builder.search)
        self.tokens += step.tokens
        self.ids += ids
        output = dataset.fields.output
        [named] = output.tokens([*ids, *([STOP] if stops else [])], words)
        source: tuple[str, ...] = ()
        if not self.steps:
            positions_of = self.builder.positions_of
            source = dataset.positions(self.row, self.result.length, positions_of).tokens
        text = output.decode(self.ids, words)
        self.tell(WrittenToken(self.steps, named, text, float(self.total), weights, source))
        self.steps += 1

    def _hypothesis(self, *, finished: bool) -> Hypothesis:
        """The hypothesis that search will find, when the other rows have ended too."""
        search = self.builder.search
        ranking = HypothesisScoring(search.length_penalty, search.coverage_penalty)
        attended_RS = None
        if ranking.coverage_penalty:
            attended_RS = torch.tensor(self.weights).sum(0, keepdim=True)
        penalty = ranking.penalty(ranking.covered(None, attended_RS)) if self.steps else None
        score = ranking.scores(torch.tensor([self.total]), torch.tensor([self.steps]), penalty)
        weights, total = tuple(self.weights), float(self.total)
        return Hypothesis(tuple(self.tokens), float(score), total, weights, finished)

    def _end(self, hypotheses: list[Hypothesis], *, ends: bool) -> None:
        result = replace(self.result, hypotheses=hypotheses)
        predictions = self.builder.predictions(self.row, result, self.request.texts, ends=ends)
        self.ended = True
        self.tell(predictions[0])

    def _fail(self, error: WrittenToken | Prediction | Exception) -> None:
        self.ended = True
        self.tell(error)
