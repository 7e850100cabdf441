"""How much of an output is new, and how much stands in what was read."""

from collections.abc import Sequence
from typing import Final

from sixjars.evaluation.metrics.outcome import Outcome

NOVELTY_SIGNATURE: Final = "corpus|every occurrence|tok:spaces|case:lower"
"""What a signature says about these metrics."""


def novel_ngrams(outcomes: Sequence[Outcome], *, n: int) -> float:
    r"""Share of the outputs' n-grams that do not stand in what was read; 0 to 1.

    .. math:: \frac{\sum_i |\{g \in n\text{-grams}(\hat y_i) : g \notin n\text{-grams}(x_i)\}|}
                   {\sum_i |n\text{-grams}(\hat y_i)|}

    Figure 6 of See, Liu & Manning 2017 (https://arxiv.org/abs/1704.04368). Every occurrence counts, over the
    whole corpus; 0 where no output has n words. What was read is read through, from one part into the next.
    Words are split at white space, in small letters.

    Higher is called better, since a model that only copies has 0; but a high share is good only where the
    outputs are right too: look at those of the references, and at the other metrics.

    >>> novel_ngrams([Outcome(("x",), ("a dog barks at night",), given="At night\na dog runs")], n=2)
    0.5
    """
    new = written = 0
    for outcome in outcomes:
        known = set(_ngrams(_given(outcome), n))
        said = _ngrams(outcome.best, n)
        new += sum(ngram not in known for ngram in said)
        written += len(said)
    return new / max(1, written)


def copied_words(outcomes: Sequence[Outcome]) -> float:
    r"""Share of the outputs' words that stand in what was read; 0 to 1.

    .. math:: \frac{\sum_i |\{w \in \hat y_i : w \in x_i\}|}{\sum_i |\hat y_i|}

    One less the novel 1-grams in figure 6 of See, Liu & Manning 2017 (https://arxiv.org/abs/1704.04368), where
    there are words; 0 where no output has any. Higher is called better, for an output that keeps to its input
    makes up less; but copying everything has 1 too. Words are split at white space, in small letters.

    >>> copied_words([Outcome(("x",), ("a cat barks",), given="A dog barks")])
    0.6666666666666666
    """
    known = written = 0
    for outcome in outcomes:
        read = set(_ngrams(_given(outcome), 1))
        said = _ngrams(outcome.best, 1)
        known += sum(word in read for word in said)
        written += len(said)
    return known / max(1, written)


def _given(outcome: Outcome) -> str:
    assert outcome.given is not None
    return outcome.given


def _ngrams(text: str, n: int) -> list[tuple[str, ...]]:
    words = text.lower().split()
    return list(zip(*(words[start:] for start in range(n)), strict=False))
