"""One output as it is written: after each step of a search, what there is so far and what it attended to."""

from collections.abc import Callable
from typing import final

import torch

from sixjars.evaluation.score import answers, encoded_batches
from sixjars.evaluation.search.problem import Column
from sixjars.flow.special import STOP
from sixjars.flow.values import Encoded, Hypothesis
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.predict import Predictor
from sixjars.runs.prediction import Prediction
from sixjars.runs.requests import EncodedRequests, Found, Input


def stepwise(
    predictor: Predictor, one: Input, search: SearchSettings, tell: Callable[[Prediction], None]
) -> Prediction:
    """The prediction for one input; `tell` is called with what there is of it after each step, `<stop>` included.

    Search is greedy or draws one sample: the rows of a beam change places, so it has no beginning before its end. What
    `tell` raises ends the search. A run that chooses a label has no steps.
    """
    request = predictor.prepare(one, search=search)
    encoded, wrong = (None, {0: request.error}) if request.error is not None else predictor.encode([request])
    if encoded is None:
        return Prediction("", inputs=request.texts, error=wrong[0])
    [(batch, source)] = encoded_batches(predictor.network, encoded.dataset.batches(), examples=1)
    steps = _Steps(predictor, encoded, source, search, tell)
    prefix = None if encoded.prefix is None else encoded.prefix.pick(batch.numbers.cpu())
    found = answers(predictor.network, source, search, seeds=[request.number], prefix=prefix, tell=steps.take)
    return steps.prediction(found[0])


@final
class _Steps:
    """What was written so far."""

    def __init__(
        self,
        predictor: Predictor,
        encoded: EncodedRequests,
        source: Encoded,
        search: SearchSettings,
        tell: Callable[[Prediction], None],
    ) -> None:
        self.predictor, self.encoded, self.search, self.tell = predictor, encoded, search, tell
        self.length, self.layout = int(source.mask[0].sum()), source.layout
        self.ids: list[int] = []
        self.weights: list[tuple[float, ...]] = []
        self.total, self.ended = 0.0, False

    def take(self, column: Column) -> None:
        """One more step; on a GPU a few follow the last."""
        assert column.gained is not None
        token, gained = int(column.token[0]), float(column.gained[0])
        if self.ended or gained == -torch.inf:
            self.ended = True
            return
        self.total, self.ended = self.total + gained, token == STOP
        self.weights += [] if column.weights is None else [tuple(column.weights[0].tolist())]
        self.ids += [] if self.ended else [token]
        so_far = Hypothesis(tuple(self.ids), self.total, self.total, tuple(self.weights), self.ended)
        self.tell(self.prediction([so_far]))

    def prediction(self, found: list[Hypothesis]) -> Prediction:
        """The best of them as text."""
        rows = [Found(found, self.length, self.layout)]
        return self.predictor.finish(self.encoded, rows, self.search)[0][0]
