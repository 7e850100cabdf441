"""Outputs as they are written: after each step of a search, what there is so far and what it attended to.

Dims: R rows of a search, S source positions.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from torch import Tensor

from sixjars.decoding.problem import Column
from sixjars.decoding.scores import NEVER, Ranking
from sixjars.evaluation.score import answers, encoded_batches, spelled
from sixjars.flow.searching import Hypothesis
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.predict import Predictor
from sixjars.runs.prediction import Finishing, Prediction
from sixjars.runs.requests import Check, EncodedRequests, Found, Input, Request
from sixjars_runtime.errors import memory_is_short
from sixjars_runtime.special_tokens import STOP


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


Tell = Callable[[Written | Prediction | Exception], None]
"""Called with each token of an output as it is written, `<stop>` included, and at its end with the prediction, or with
what was raised in its place."""


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

    Search is greedy or draws one sample: the rows of a beam change places, so it has no beginning before its end. Each
    of `tells` is for one input. What it raises, or what its output raises, ends that output alone, and its row leaves
    the search. `check` is called while files are decoded and `after` after each step; what they raise ends all of it.
    A run that chooses a label has no steps.
    """
    requests = [predictor.prepare(one, search=search) for one in inputs]
    wrong = {at: request.error for at, request in enumerate(requests) if request.error is not None}
    good = [at for at in range(len(requests)) if at not in wrong]
    encoded, bad = predictor.encode([requests[at] for at in good], check) if good else (None, {})
    wrong |= {good[at]: sentence for at, sentence in bad.items()}
    for at, sentence in wrong.items():
        with _alone(tells[at]):
            tells[at](Prediction("", inputs=requests[at].texts, error=sentence))
    if encoded is not None:
        _write(predictor, encoded, search, [tells[at] for at in good if at not in wrong], after)


@contextmanager
def _alone(tell: Tell) -> Iterator[None]:
    """What fails here fails for one output; but where memory is short, the others may be to blame."""
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
    """The outputs for one encoded batch."""
    network = predictor.network
    [(batch, source)] = encoded_batches(network, encoded.dataset.batches(), examples=len(tells))
    finishing = Finishing(encoded.dataset, network.encoder.positions_of(), search, details=True)
    rows, lengths = batch.numbers.tolist(), source.mask.sum(1).tolist()
    outputs = [
        _Output(finishing, encoded.requests[row], row, Found([], length, source.layout), tells[row])
        for row, length in zip(rows, lengths, strict=True)
    ]

    def take(column: Column, places: Tensor) -> Tensor:
        assert column.gained is not None
        weights = None if column.weights is None else column.weights.tolist()
        own = places.tolist()
        made = zip(own, column.token.tolist(), column.gained.tolist(), strict=True)
        for at, (place, token, gained) in enumerate(made):
            if place < len(outputs):  # behind them a batch is padded
                outputs[place].take(token, gained, () if weights is None else weights[at])
        if after is not None:
            after()
        return torch.tensor([place >= len(outputs) or outputs[place].ended for place in own])

    seeds = [encoded.requests[row].number for row in rows]
    prefix = None if encoded.prefix is None else encoded.prefix.pick(batch.numbers.cpu())
    found = answers(network, source, search, seeds=seeds, prefix=prefix, tell=take)
    for one, few in zip(outputs, found, strict=True):
        one.end(few, ends=network.decoder.searches)


@final
class _Output:
    """What was written so far; each step costs as much as the text, and not as all that is known of it."""

    def __init__(
        self, finishing: Finishing, request: Request, row: int, found: Found, tell: Tell
    ) -> None:
        self.finishing, self.request, self.row, self.found, self.tell = (
            finishing,
            request,
            row,
            found,
            tell,
        )
        self.tokens: list[int] = []
        self.ids: list[int] = []
        self.weights: list[tuple[float, ...]] = []
        self.steps, self.total = 0, np.float32(0.0)
        self.ended = False

    def take(self, token: int, gained: float, weights: Sequence[float]) -> None:
        """One more step; some may follow the last."""
        if self.ended:
            return
        with _alone(self._fail):
            if gained > NEVER:
                self._write(token, gained, tuple(weights[: self.found.length]))
            if gained == NEVER or token == STOP:
                self._end([self._hypothesis(finished=gained > NEVER)], ends=True)

    def end(self, found: list[Hypothesis], *, ends: bool) -> None:
        """The end of the search: where the output has not ended by itself, it is what was found."""
        if not self.ended:
            with _alone(self._fail):
                self._end(found, ends=ends)

    def _write(self, token: int, gained: float, weights: tuple[float, ...]) -> None:
        dataset, stops = self.finishing.dataset, token == STOP
        self.total += np.float32(gained)  # as search adds them up
        self.weights += [weights] if weights else []
        own = Hypothesis(
            () if stops else (token,), gained, gained, (weights,) if weights else (), stops
        )
        ids, words = spelled(dataset, self.row, own, self.finishing.search)
        self.tokens += own.tokens
        self.ids += ids
        output = dataset.fields.output
        [named] = output.tokens([*ids, *([STOP] if stops else [])], words)
        shown = (
            ()
            if self.steps
            else dataset.positions(self.row, self.found.length, self.finishing.positions_of).tokens
        )
        text = output.decode(self.ids, words)
        self.tell(Written(self.steps, named, text, float(self.total), weights, shown))
        self.steps += 1

    def _hypothesis(self, *, finished: bool) -> Hypothesis:
        """What search will find, when the other rows have ended too."""
        ranking = Ranking(
            self.finishing.search.length_penalty, self.finishing.search.coverage_penalty
        )
        attended_RS = (
            torch.tensor(self.weights).sum(0, keepdim=True) if ranking.coverage_penalty else None
        )
        penalty = ranking.penalty(ranking.covered(None, attended_RS)) if self.steps else None
        score = ranking.scores(torch.tensor([self.total]), torch.tensor([self.steps]), penalty)
        return Hypothesis(
            tuple(self.tokens), float(score), float(self.total), tuple(self.weights), finished
        )

    def _end(self, found: list[Hypothesis], *, ends: bool) -> None:
        whole = replace(self.found, hypotheses=found)
        [prediction] = self.finishing.predictions(self.row, whole, self.request.texts, ends=ends)[
            :1
        ]
        self.ended = True
        self.tell(prediction)

    def _fail(self, error: Written | Prediction | Exception) -> None:
        self.ended = True
        self.tell(error)
