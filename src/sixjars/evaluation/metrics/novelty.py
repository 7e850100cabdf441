"""How much of the outputs is new, and how much is copied from the inputs."""

import math
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

    >>> novel_ngrams([Outcome(("x",), ("a dog barks at night",), given="At night\na dog runs")], n=2)
    0.5
    """
    sums = novel_sums(n)
    return sums.value([*map(math.fsum, zip(*sums.rows(outcomes), strict=True))])


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
    return COPIED.value([*map(math.fsum, zip(*COPIED.rows(outcomes), strict=True))])


def _copied(outcomes: Sequence[Outcome], *, n: int) -> Rows:
    """How many n-grams of each output are in its input, and how many there are."""
    texts = ((outcome.given or "", outcome.candidates[0]) for outcome in outcomes)
    pairs = [[ngrams(text.lower().split(), n) for text in both] for both in texts]
    known = [set(given) for given, _ in pairs]
    return [
        (sum(one in inside for one in out), len(out))
        for inside, (_, out) in zip(known, pairs, strict=True)
    ]


COPIED: Final = Sums(partial(_copied, n=1), lambda sums: sums[0] / max(1, sums[1]))
