"""Metrics of novelty: the shares of outputs that are new, and copied from the inputs."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from sixjars.evaluation.metrics.ngrams import ngrams
from sixjars.evaluation.metrics.outcome import Outcome, Rows, Sums

NOVELTY: Final = ("corpus", "every occurrence", "tok:spaces", "case:lower")
"""How novelty is counted, for signatures."""


def novel_ngrams(outcomes: Sequence[Outcome], *, n: int) -> float:
    r"""Share of the outputs' n-grams that are not in the input; 0 to 1.

    .. math:: \frac{\sum_i |\{g \in n\text{-grams}(\hat y_i) : g \notin n\text{-grams}(x_i)\}|}
                   {\sum_i |n\text{-grams}(\hat y_i)|}

    Figure 6 of See, Liu & Manning 2017 (https://arxiv.org/abs/1704.04368). Every occurrence counts,
    over the whole corpus; 0 where no output has n words. N-grams of the input may cross from one
    segment into the next. Words are split at white space, in lower case.

    Higher is called better, since a model that only copies has 0; but a high share is good only
    where the outputs are right too: compare it with that of the references, and with the other
    metrics.

    >>> outcome = Outcome(("x",), ("a dog barks at night",), given="At night\na dog runs")
    >>> novel_ngrams([outcome], n=2)
    0.5
    """
    return novel_sums(n).over(outcomes)


def novel_sums(n: int) -> Sums:
    """N-grams of the output that are in the input, and all."""
    return Sums(partial(_copied, n=n), lambda sums: (sums[1] - sums[0]) / max(1, sums[1]))


def copied_words(outcomes: Sequence[Outcome]) -> float:
    r"""Share of the outputs' words that are in the input; 0 to 1.

    .. math:: \frac{\sum_i |\{w \in \hat y_i : w \in x_i\}|}{\sum_i |\hat y_i|}

    One less the novel 1-grams in figure 6 of See, Liu & Manning 2017
    (https://arxiv.org/abs/1704.04368), where there are words; 0 where no output has any. Higher is
    called better, for an output that keeps to its input makes up less; but copying everything has 1
    too. Words are split at white space, in lower case.

    >>> copied_words([Outcome(("x",), ("a cat barks",), given="A dog barks")])
    0.6666666666666666
    """
    return COPIED.over(outcomes)


def _copied(outcomes: Sequence[Outcome], *, n: int) -> Rows:
    """How many n-grams of each output are in its input, and how many there are."""
    rows = []
    for outcome in outcomes:
        known = set(ngrams((outcome.given or "").lower().split(), n))
        output = ngrams(outcome.candidates[0].lower().split(), n)
        rows.append((sum(ngram in known for ngram in output), len(output)))
    return rows


COPIED: Final = Sums(partial(_copied, n=1), lambda sums: sums[0] / max(1, sums[1]))
