"""Outputs as they are written: after each step of a search, what there is so far and what it attended to.

Dims: R rows of a search, S source positions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from torch import Tensor

from sixjars.evaluation.score import answers, encoded_batches, spelled
from sixjars.evaluation.search.problem import Column
from sixjars.evaluation.search.scores import NEVER, Ranking
from sixjars.flow.special import STOP
from sixjars.flow.values import Hypothesis
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.predict import Predictor
from sixjars.runs.prediction import Finishing, Prediction
from sixjars.runs.requests import Check, EncodedRequests, Found, Input, Request


@final
@dataclass(frozen=True)
class Written:
    """One token as it is written."""

    at: int
    """Its place in the output, from 0."""
    token: str
    text: str
    """The output so far."""
    log_probability: float
    """Of the output so far."""
    weights: tuple[float, ...]
    """What it attended to; empty without attention."""
    source: tuple[str, ...]
    """With the first token, what stands at each position of the source; then nothing."""


Tell = Callable[[Written | Prediction], None]
"""Called with each token of an output as it is written, `<stop>` included, and with the prediction at its end."""


def stepwise(
    predictor: Predictor,
    inputs: Sequence[Input],
    search: SearchSettings,
    tells: Sequence[Tell],
    *,
    check: Check | None = None,
    after: Check | None = None,
) -> list[Prediction]:
    """The predictions for some inputs, whose outputs are written side by side, a token of each at every step.

    Search is greedy or draws one sample: the rows of a beam change places, so it has no beginning before its end. Each
    of `tells` is for one input; where an output reaches the limit of its length, its prediction is only returned.
    `check` is called while files are decoded and `after` after each step; what they raise ends all of it. A run that
    chooses a label has no steps.
    """
    requests = [predictor.prepare(one, search=search) for one in inputs]
    wrong = {at: request.error for at, request in enumerate(requests) if request.error is not None}
    good = [at for at in range(len(requests)) if at not in wrong]
    encoded, bad = predictor.encode([requests[at] for at in good], check) if good else (None, {})
    wrong |= {good[at]: sentence for at, sentence in bad.items()}
    found = {at: Prediction("", inputs=requests[at].texts, error=sentence) for at, sentence in wrong.items()}
    for at, prediction in found.items():
        tells[at](prediction)
    if encoded is not None:
        good = [at for at in good if at not in wrong]
        written = _written(predictor, encoded, search, [tells[at] for at in good], after)
        found.update(zip(good, written, strict=True))
    return [found[at] for at in range(len(requests))]


def _written(
    predictor: Predictor, encoded: EncodedRequests, search: SearchSettings, tells: Sequence[Tell], after: Check | None
) -> list[Prediction]:
    """The predictions for one encoded batch."""
    network = predictor.network
    [(batch, source)] = encoded_batches(network, encoded.dataset.batches(), examples=len(tells))
    finishing = Finishing(encoded.dataset, network.encoder.positions_of(), search, details=True)
    rows, lengths = batch.numbers.tolist(), source.mask.sum(1).tolist()
    outputs = [
        _Output(finishing, encoded.requests[row], row, Found([], length, source.layout), tells[row])
        for row, length in zip(rows, lengths, strict=True)
    ]

    def take(column: Column, places: Tensor) -> None:
        assert column.gained is not None
        weights = None if column.weights is None else column.weights.tolist()
        made = zip(places.tolist(), column.token.tolist(), column.gained.tolist(), strict=True)
        for at, (place, token, gained) in enumerate(made):
            if place < len(outputs):  # behind them a batch is padded
                outputs[place].take(token, gained, () if weights is None else weights[at])
        if after is not None:
            after()

    seeds = [encoded.requests[row].number for row in rows]
    prefix = None if encoded.prefix is None else encoded.prefix.pick(batch.numbers.cpu())
    found = answers(network, source, search, seeds=seeds, prefix=prefix, tell=take)
    ends = network.decoder.searches
    made = {one.row: one.finished(few, ends=ends) for one, few in zip(outputs, found, strict=True)}
    return [made[row] for row in range(len(rows))]


@final
class _Output:
    """What was written so far; each step costs as much as the text, and not as all that is known of it."""

    def __init__(self, finishing: Finishing, request: Request, row: int, found: Found, tell: Tell) -> None:
        self.finishing, self.request, self.row, self.found, self.tell = finishing, request, row, found, tell
        self.tokens: list[int] = []
        self.ids: list[int] = []
        self.weights: list[tuple[float, ...]] = []
        self.steps, self.total = 0, np.float32(0.0)
        self.prediction: Prediction | None = None

    def take(self, token: int, gained: float, weights: Sequence[float]) -> None:
        """One more step; some may follow the last."""
        if self.prediction is not None:
            return
        if gained > NEVER:
            self._write(token, gained, tuple(weights[: self.found.length]))
        if gained == NEVER or token == STOP:
            own = self._hypothesis(finished=gained > NEVER)
            self.tell(self.finished([own], ends=True))

    def _write(self, token: int, gained: float, weights: tuple[float, ...]) -> None:
        dataset, stops = self.finishing.dataset, token == STOP
        self.total += np.float32(gained)  # as search adds them up
        self.weights += [weights] if weights else []
        own = Hypothesis(() if stops else (token,), gained, gained, (weights,) if weights else (), stops)
        ids, words = spelled(dataset, self.row, own, self.finishing.search)
        self.tokens += own.tokens
        self.ids += ids
        output = dataset.fields.output
        [named] = output.tokens([*ids, *([STOP] if stops else [])], words)
        shown = () if self.steps else dataset.positions(self.row, self.found.length, self.finishing.positions_of).tokens
        text = output.decode(self.ids, words)
        self.tell(Written(self.steps, named, text, float(self.total), weights, shown))
        self.steps += 1

    def _hypothesis(self, *, finished: bool) -> Hypothesis:
        """What search will find, when the other rows have ended too."""
        ranking = Ranking(self.finishing.search.length_penalty, self.finishing.search.coverage_penalty)
        attended_RS = torch.tensor(self.weights).sum(0, keepdim=True) if ranking.coverage_penalty else None
        penalty = ranking.penalty(ranking.covered(None, attended_RS)) if self.steps else None
        score = ranking.scores(torch.tensor([self.total]), torch.tensor([self.steps]), penalty)
        return Hypothesis(tuple(self.tokens), float(score), float(self.total), tuple(self.weights), finished)

    def finished(self, found: list[Hypothesis], *, ends: bool) -> Prediction:
        """The prediction, made once."""
        if self.prediction is None:
            whole = replace(self.found, hypotheses=found)
            [self.prediction] = self.finishing.predictions(self.row, whole, self.request.texts, ends=ends)[:1]
        return self.prediction
