"""One output as it is written: after each step of a search, what there is so far and what it attended to."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch

from sixjars.evaluation.score import answers, encoded_batches, spelled
from sixjars.evaluation.search.problem import Column
from sixjars.flow.special import STOP
from sixjars.flow.values import Encoded, Hypothesis
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.predict import Predictor
from sixjars.runs.prediction import Prediction
from sixjars.runs.requests import Check, EncodedRequests, Found, Input


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


Tell = Callable[[Written], None]


def stepwise(
    predictor: Predictor, one: Input, search: SearchSettings, tell: Tell, check: Check | None = None
) -> Prediction:
    """The prediction for one input; `tell` is called with each token as it is written, `<stop>` included.

    Search is greedy or draws one sample: the rows of a beam change places, so it has no beginning before its end. What
    `tell` raises ends the search, and what `check` raises the decoding of a file. A run that chooses a label has no
    steps.
    """
    request = predictor.prepare(one, search=search)
    encoded, wrong = (None, {0: request.error}) if request.error is not None else predictor.encode([request], check)
    if encoded is None:
        return Prediction("", inputs=request.texts, error=wrong[0])
    [(batch, source)] = encoded_batches(predictor.network, encoded.dataset.batches(), examples=1)
    steps = _Steps(predictor, encoded, source, search, tell)
    prefix = None if encoded.prefix is None else encoded.prefix.pick(batch.numbers.cpu())
    found = answers(predictor.network, source, search, seeds=[request.number], prefix=prefix, tell=steps.take)
    return predictor.finish(encoded, [Found(found[0], steps.length, source.layout)], search)[0][0]


@final
class _Steps:
    """What was written so far; each step costs as much as the text, and not as all that is known of it."""

    def __init__(
        self, predictor: Predictor, encoded: EncodedRequests, source: Encoded, search: SearchSettings, tell: Tell
    ) -> None:
        self.dataset, self.search, self.tell = encoded.dataset, search, tell
        self.positions_of = predictor.network.encoder.positions_of()
        self.length = int(source.mask[0].sum())
        self.ids: list[int] = []
        self.steps, self.total, self.ended = 0, 0.0, False

    def take(self, column: Column) -> None:
        """One more step; on a GPU a few follow the last."""
        assert column.gained is not None
        token, gained = int(column.token[0]), float(column.gained[0])
        if self.ended or gained == -torch.inf:
            self.ended = True
            return
        self.total, self.ended = self.total + gained, token == STOP
        weights = () if column.weights is None else tuple(column.weights[0].tolist()[: self.length])
        own = Hypothesis(() if self.ended else (token,), gained, gained, (weights,) if weights else (), self.ended)
        ids, words = spelled(self.dataset, 0, own, self.search)
        self.ids += ids
        output = self.dataset.fields.output
        [named] = output.tokens([*ids, *([STOP] if self.ended else [])], words)
        shown = () if self.steps else self.dataset.positions(0, self.length, self.positions_of).tokens
        self.tell(Written(self.steps, named, output.decode(self.ids, words), self.total, weights, shown))
        self.steps += 1
