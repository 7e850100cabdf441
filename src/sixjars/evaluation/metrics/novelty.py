"""How much of the output is new, and how much the outputs differ from each other."""

from collections.abc import Sequence
from typing import Final

from sixjars.evaluation.metrics.captions import Ngram, caption_words, ngrams
from sixjars.evaluation.metrics.outcome import Outcome

NOVELTY: Final = ("corpus", "every occurrence", "tok:spaces", "case:lower")
"""How novelty is counted, for signatures."""


def novel_ngrams(outcomes: Sequence[Outcome], *, n: int) -> float:
    r"""Share of the outputs' n-grams that are not in the input; 0 to 1.

    .. math:: \frac{\sum_i |\{g \in n\text{-grams}(\hat y_i) : g \notin n\text{-grams}(x_i)\}|}
                   {\sum_i |n\text{-grams}(\hat y_i)|}

    Figure 6 of See, Liu & Manning 2017 (https://arxiv.org/abs/1704.04368). Every occurrence counts, over the
    whole corpus; 0 where no output has n words. N-grams of the input may cross from one segment into the next.
    Words are split at white space, in lower case.

    Higher is called better, since a model that only copies has 0; but a high share is good only where the
    outputs are right too: compare it with that of the references, and with the other metrics.

    >>> novel_ngrams([Outcome(("x",), ("a dog barks at night",), given="At night\na dog runs")], n=2)
    0.5
    """
    copied, written = _copied(outcomes, n)
    return (written - copied) / max(1, written)


def copied_words(outcomes: Sequence[Outcome]) -> float:
    r"""Share of the outputs' words that are in the input; 0 to 1.

    .. math:: \frac{\sum_i |\{w \in \hat y_i : w \in x_i\}|}{\sum_i |\hat y_i|}

    One less the novel 1-grams in figure 6 of See, Liu & Manning 2017 (https://arxiv.org/abs/1704.04368), where
    there are words; 0 where no output has any. Higher is called better, for an output that keeps to its input
    makes up less; but copying everything has 1 too. Words are split at white space, in lower case.

    >>> copied_words([Outcome(("x",), ("a cat barks",), given="A dog barks")])
    0.6666666666666666
    """
    copied, written = _copied(outcomes, 1)
    return copied / max(1, written)


def _copied(outcomes: Sequence[Outcome], n: int) -> tuple[int, int]:
    """How many n-grams of the outputs are in their inputs, and how many there are."""
    found = []
    for outcome in outcomes:
        assert outcome.given is not None
        known: set[Ngram] = set(ngrams(outcome.given.lower().split(), n))
        found += [ngram in known for ngram in ngrams(outcome.candidates[0].lower().split(), n)]
    return sum(found), len(found)


def distinct(outcomes: Sequence[Outcome], *, n: int) -> float:
    r"""Distinct-n: share of different n-grams among all n-grams of the outputs; 0 to 1.

    .. math:: \frac{|\{\text{n-grams}\}|}{\#\,\text{n-grams}}

    Li et al. 2016, section 5 (https://aclanthology.org/N16-1014/), who divide by the number of words for n = 2 too,
    so that even texts without a repeat stay below 1. Low values show that a model has one output for all inputs. It
    falls as the corpus grows: compare equal numbers of examples. 0 where no output has n words.

    >>> outcomes = [Outcome(("yes",), ("I do not know",)), Outcome(("no",), ("I do",))]
    >>> distinct(outcomes, n=1), distinct(outcomes, n=2)
    (0.6666666666666666, 0.75)
    """
    found = [ngram for outcome in outcomes for ngram in ngrams(outcome.candidates[0].split(), n)]
    return len(set(found)) / max(1, len(found))


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
    r"""Share of outputs that are in the training data word for word; 0 to 1.

    .. math:: \frac{1}{N} \sum_i [\hat y_i \in \mathrm{train}]

    Devlin et al. 2015 (https://aclanthology.org/P15-2017/). A model that retrieves whole captions has 1; that of
    people is small but not 0.

    >>> seen_in_training([Outcome(("x",), ("a dog",), familiar=True), Outcome(("x",), ("a cow",), familiar=False)])
    0.5
    """
    return sum(outcome.familiar is True for outcome in outcomes) / len(outcomes)
