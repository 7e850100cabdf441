"""How much of an output is new, and whether a model has an output of its own for each input, or one for all."""

from collections.abc import Sequence
from typing import Final

from sixjars.evaluation.metrics.captions import caption_words
from sixjars.evaluation.metrics.outcome import Outcome

NOVELTY: Final = ("corpus", "every occurrence", "tok:spaces", "case:lower")
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
        said = _ngrams(outcome.candidates[0], n)
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
        said = _ngrams(outcome.candidates[0], 1)
        known += sum(word in read for word in said)
        written += len(said)
    return known / max(1, written)


def distinct_captions(outcomes: Sequence[Outcome]) -> float:
    r"""Number of different outputs for each output; 0 to 1.

    .. math:: \frac{|\{\hat y_1, \dots, \hat y_N\}|}{N}

    The share of unique captions in Devlin et al. 2015 (https://aclanthology.org/P15-2017/). Outputs are the same
    when their `caption_words` are. It falls as the corpus grows: compare equal numbers of examples.

    >>> distinct_captions([Outcome(("x",), (text,)) for text in ("a dog", "A dog.", "a man", "a dog")])
    0.5
    """
    return len({tuple(caption_words(outcome.candidates[0])) for outcome in outcomes}) / len(outcomes)


def vocabulary_used(outcomes: Sequence[Outcome]) -> float:
    r"""Number of different words in all outputs together.

    .. math:: \Bigl|\bigcup_i \{w : w \in \hat y_i\}\Bigr|

    The types of van Miltenburg, Elliott & Vossen 2018 (https://aclanthology.org/C18-1147/); words are those of
    `caption_words`. It grows with the corpus: compare equal numbers of examples.

    >>> vocabulary_used([Outcome(("x",), (text,)) for text in ("a dog", "A dog.", "a man")])
    3.0
    """
    return float(len({word for outcome in outcomes for word in caption_words(outcome.candidates[0])}))


def seen_in_training(outcomes: Sequence[Outcome]) -> float:
    r"""Share of outputs that stand word for word in the training data; 0 to 1.

    .. math:: \frac{1}{N} \sum_i [\hat y_i \in \mathrm{train}]

    Devlin et al. 2015 (https://aclanthology.org/P15-2017/). A model that looks up whole captions has 1; that of
    people is small but not 0.

    >>> seen_in_training([Outcome(("x",), ("a dog",), familiar=True), Outcome(("x",), ("a cow",), familiar=False)])
    0.5
    """
    return sum(outcome.familiar is True for outcome in outcomes) / len(outcomes)


def _given(outcome: Outcome) -> str:
    assert outcome.given is not None
    return outcome.given


def _ngrams(text: str, n: int) -> list[tuple[str, ...]]:
    words = text.lower().split()
    return list(zip(*(words[start:] for start in range(n)), strict=False))
