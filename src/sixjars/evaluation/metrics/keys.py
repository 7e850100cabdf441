"""Whether attention lies on the one place that decides a document."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Literal

from sixjars.errors import ShapeError
from sixjars.evaluation.metrics.outcome import KeyWeight, Metric, Outcome, signature_of


def key_weight(weights: Sequence[float], of: Sequence[int], sentence: int, word: int) -> KeyWeight:
    r"""How much attention lies on the key, from the weights of a whole document.

    .. math:: A_k = \sum_{j \in k} \alpha_j, \qquad \frac{\alpha_{k,w}}{A_k}, \qquad
              \frac{\alpha_{k,w-1} + \alpha_{k,w} + \alpha_{k,w+1}}{A_k}

    `weights` has a weight for each real position of the document and `of` the number of its sentence; `word`
    is a place in the sentence, and both are counted from 0. Neighbours are words of the same sentence. The
    shares are 0 where the sentence has no weight.

    >>> key_weight([0.25, 0.25, 0.375, 0.125], of=[0, 1, 1, 1], sentence=1, word=1)
    KeyWeight(sentence=0.75, word=0.5, near=1.0)
    """
    if len(weights) != len(of):
        raise ShapeError(f"a document has {len(weights)} weights, but {len(of)} positions have a sentence.")
    inside = [weight for weight, part in zip(weights, of, strict=True) if part == sentence]
    if not 0 <= word < len(inside):
        raise ShapeError(f"the key is word {word} of sentence {sentence}, but that sentence has {len(inside)} words.")
    whole = math.fsum(inside)
    if whole == 0:
        return KeyWeight(whole, 0.0, 0.0)
    around = math.fsum(inside[max(0, word - 1) : word + 2])
    return KeyWeight(sentence=whole, word=inside[word] / whole, near=around / whole)


def key_mean(outcomes: Sequence[Outcome], *, part: Literal["sentence", "word", "near"]) -> float:
    r"""Attention on the key, averaged over the documents whose key is known; 0 to 1.

    .. math:: \frac{1}{|K|} \sum_{i \in K} a_i

    `a` is the weight on the key sentence of 1 for the whole document, or of that weight the share on the key
    word, or on it and the words beside it. The weights are the products of both levels in Yang et al. 2016
    (https://aclanthology.org/N16-1174/), who show by examples that they pick what decides; `key_weight` has
    the equations. Even weights would give one over the number of sentences, and of words.

    >>> from sixjars.evaluation.metrics.outcome import KeyWeight
    >>> found = [Outcome(("sport",), key=KeyWeight(0.5, 0.25, 0.5)), Outcome(("music",))]
    >>> key_mean(found, part="word")
    0.25
    """
    found: list[float] = [getattr(key, part) for key in _keys(outcomes)]
    return math.fsum(found) / len(found)


def key_signature(outcomes: Sequence[Outcome], *, name: str, how: str) -> str:
    """The mean depends on which examples have a key, so their number is told."""
    return signature_of(name, how, f"with keys:{len(_keys(outcomes))}")


def key_metric(name: str, part: Literal["sentence", "word", "near"], how: str) -> Metric:
    """The mean of one part of a key's weight as a row of the table of metrics."""
    sign = partial(key_signature, name=name, how=how)
    return Metric(name, partial(key_mean, part=part), "higher", frozenset({"key"}), sign)


def _keys(outcomes: Sequence[Outcome]) -> list[KeyWeight]:
    return [outcome.key for outcome in outcomes if outcome.key is not None]
