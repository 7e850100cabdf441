"""Whether a model says something of its own for each input, or one thing for all."""

from collections.abc import Sequence

from sixjars.evaluation.metrics.captions import caption_words
from sixjars.evaluation.metrics.outcome import Outcome


def distinct_captions(outcomes: Sequence[Outcome]) -> float:
    r"""Number of different outputs for each output; 0 to 1.

    .. math:: \frac{|\{\hat y_1, \dots, \hat y_N\}|}{N}

    The share of unique captions in Devlin et al. 2015 (https://aclanthology.org/P15-2017/). Outputs are the same
    when their `caption_words` are. It falls as the corpus grows: compare equal numbers of examples.

    >>> distinct_captions([Outcome(("x",), (text,)) for text in ("a dog", "A dog.", "a man", "a dog")])
    0.5
    """
    return len({tuple(caption_words(outcome.best)) for outcome in outcomes}) / len(outcomes)


def vocabulary_used(outcomes: Sequence[Outcome]) -> float:
    r"""Number of different words in all outputs together.

    .. math:: \Bigl|\bigcup_i \{w : w \in \hat y_i\}\Bigr|

    The types of van Miltenburg, Elliott & Vossen 2018 (https://aclanthology.org/C18-1147/); words are those of
    `caption_words`. It grows with the corpus: compare equal numbers of examples.

    >>> vocabulary_used([Outcome(("x",), (text,)) for text in ("a dog", "A dog.", "a man")])
    3.0
    """
    return float(len({word for outcome in outcomes for word in caption_words(outcome.best)}))


def seen_in_training(outcomes: Sequence[Outcome]) -> float:
    r"""Share of outputs that stand word for word in the training data; 0 to 1.

    .. math:: \frac{1}{N} \sum_i [\hat y_i \in \mathrm{train}]

    Devlin et al. 2015 (https://aclanthology.org/P15-2017/). A model that looks up whole captions has 1; that of
    people is small but not 0.

    >>> seen_in_training([Outcome(("x",), ("a dog",), familiar=True), Outcome(("x",), ("a cow",), familiar=False)])
    0.5
    """
    return sum(outcome.familiar is True for outcome in outcomes) / len(outcomes)
