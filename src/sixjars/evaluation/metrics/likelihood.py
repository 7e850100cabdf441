"""How surprised the model is by the right answer. No search is needed."""

import math
from collections.abc import Sequence

from sixjars.evaluation.metrics.outcome import Outcome


def perplexity(outcomes: Sequence[Outcome]) -> float:
    r"""As many equally likely tokens as the model wavers between, on average.

    .. math:: \exp\Bigl(-\frac{\sum_i \log P(y_i \mid x_i)}{\sum_i |y_i|}\Bigr)

    Jelinek, Mercer, Bahl & Baker 1977, "Perplexity: a measure of the difficulty of speech recognition tasks".
    `|y_i|` counts tokens with `<stop>`, so values compare only where a token is the same thing.
    1 is the best; a model that gives a reference no chance at all has infinity.

    >>> round(perplexity([Outcome(("a b",), log_probability=3 * math.log(1 / 50), tokens=3)]), 6)
    50.0
    """
    total = math.fsum(_log_probability(outcome) for outcome in outcomes)
    tokens = sum(outcome.tokens for outcome in outcomes)
    try:
        return math.exp(-total / tokens)
    except OverflowError:
        return math.inf


def _log_probability(outcome: Outcome) -> float:
    assert outcome.log_probability is not None
    return outcome.log_probability
