"""Rules: what may be written next. Each is a function of the scores and of what is written so far.

Dims: R rows open in search, V vocabulary, t tokens written so far, G n-grams among them, n their length.

A rule sets the scores of forbidden tokens to -inf and leaves the others as they are: what is left are the
model's own log probabilities.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from sixjars.flow import Padded

Rule = Callable[[Tensor, Tensor], Tensor]
"""`(scores (R, V), written (R, t)) -> scores (R, V)`."""

NEVER = -torch.inf


def together(rules: Sequence[Rule]) -> Rule:
    """All the rules, one after the other; no rule at all changes nothing."""

    def rule(scores: Tensor, written: Tensor) -> Tensor:
        for each in rules:
            scores = each(scores, written)
        return scores

    return rule


def banned(tokens: Tensor) -> Rule:
    """These tokens, `(n,)`, are never written.

    >>> banned(torch.tensor([0, 2]))(torch.zeros(1, 4), torch.zeros(1, 0))
    tensor([[-inf, 0., -inf, 0.]])
    """

    def rule(scores: Tensor, written: Tensor) -> Tensor:
        return scores.index_fill(1, tokens, NEVER)

    return rule


def min_length(fewest: int, *, stop: int) -> Rule:
    """No `<stop>` before `fewest` tokens are written."""

    def rule(scores: Tensor, written: Tensor) -> Tensor:
        if written.shape[1] >= fewest:
            return scores
        scores = scores.clone()
        scores[:, stop] = NEVER
        return scores

    return rule


def no_repeated_ngram(length: int) -> Rule:
    """No n-gram of this length twice in one row.

    Token v is ruled out where the last n - 1 tokens, followed by v, are already somewhere in the row.

    >>> written = torch.tensor([[1, 2, 1]])  # after 1 came 2
    >>> no_repeated_ngram(2)(torch.zeros(1, 4), written)
    tensor([[0., 0., -inf, 0.]])
    """

    def rule(scores: Tensor, written: Tensor) -> Tensor:
        if written.shape[1] < length:
            return scores
        ngrams_RGn = written.unfold(1, length, 1)
        latest_R1n = written[:, written.shape[1] - length + 1 :].unsqueeze(1)
        seen_RG = (ngrams_RGn[..., :-1] == latest_R1n).all(dim=-1)
        most_RG = torch.where(seen_RG, NEVER, torch.inf).to(scores.dtype)
        return scores.scatter_reduce(1, ngrams_RGn[..., -1], most_RG, "amin")

    return rule


def forced_prefix(prefix: Padded, *, otherwise: Rule) -> Rule:
    """Each row first writes its prefix, `(R, longest)`, whatever the other rules say; then those hold.

    Rows with a shorter prefix are free sooner.
    """
    longest = prefix.values.shape[1]

    def rule(scores: Tensor, written: Tensor) -> Tensor:
        now = written.shape[1]
        if now >= longest:
            return otherwise(scores, written)
        forced_R1 = prefix.values[:, now : now + 1]
        only_RV = torch.full_like(scores, NEVER).scatter(1, forced_R1, scores.gather(1, forced_R1))
        return torch.where(prefix.mask[:, now : now + 1], only_RV, otherwise(scores, written))

    return rule
