"""Rules for what may not be output next.

Dims: R rows open in search, V vocabulary, t tokens output so far, G n-grams among them, n their length.

A rule sets the scores of forbidden tokens to -inf and leaves the others as they are: what is left are the model's own
log probabilities.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from sixjars.flow.contracts import SpecialTokens
from sixjars.flow.values import Padded
from sixjars.recipe.sections import SearchSettings

Rule = Callable[[Tensor, Tensor], Tensor]
"""`(scores (R, V), output (R, t)) -> scores (R, V)`: -inf where a token is forbidden."""
NEVER = -torch.inf


def rule_of(settings: SearchSettings, special: SpecialTokens, *, prefix: Padded | None, device: torch.device) -> Rule:
    """All that the settings and the caller forbid, as one rule."""
    rules: list[Rule] = []
    never = {*special.banned, special.go} - {special.stop}
    if special.unknown is not None and settings.unknown == "ban":
        never.add(special.unknown)
    if never:
        rules.append(banned(torch.tensor(sorted(never), device=device)))
    if settings.no_repeat_ngram:
        rules.append(no_repeated_ngram(settings.no_repeat_ngram))
    if settings.min_length:  # last, because it must know what the others leave
        rules.append(min_length(settings.min_length, stop=special.stop))

    def rule(scores: Tensor, output: Tensor) -> Tensor:
        for each in rules:
            scores = each(scores, output)
        return scores

    return rule if prefix is None else forced_prefix(prefix.to(device), otherwise=rule)


def banned(tokens: Tensor) -> Rule:
    """These tokens, `(n,)`, are never output.

    >>> banned(torch.tensor([0, 2]))(torch.zeros(1, 4), torch.zeros(1, 0))
    tensor([[-inf, 0., -inf, 0.]])
    """

    def rule(scores: Tensor, output: Tensor) -> Tensor:
        return scores.index_fill(1, tokens, NEVER)

    return rule


def min_length(fewest: int, *, stop: int) -> Rule:
    """No `<stop>` before `fewest` tokens are output, unless nothing else may follow (an order that is complete).

    >>> scores = torch.tensor([[-torch.inf, 0.0], [0.0, 0.0]])  # in the first row only <stop> may follow
    >>> min_length(3, stop=1)(scores, torch.zeros(2, 1))
    tensor([[-inf, 0.],
            [0., -inf]])
    """

    def rule(scores: Tensor, output: Tensor) -> Tensor:
        if output.shape[1] >= fewest:
            return scores
        without = scores.clone()
        without[:, stop] = NEVER
        return torch.where((without > NEVER).any(1, keepdim=True), without, scores)

    return rule


def no_repeated_ngram(length: int) -> Rule:
    """No n-gram of this length twice in one row.

    Token v is ruled out where the last n - 1 tokens, followed by v, are already somewhere in the row.

    >>> output = torch.tensor([[1, 2, 1]])  # after 1 came 2
    >>> no_repeated_ngram(2)(torch.zeros(1, 4), output)
    tensor([[0., 0., -inf, 0.]])
    """

    def rule(scores: Tensor, output: Tensor) -> Tensor:
        if output.shape[1] < length:
            return scores
        ngrams_RGn = output.unfold(1, length, 1)
        latest_R1n = output[:, output.shape[1] - length + 1 :].unsqueeze(1)
        seen_RG = (ngrams_RGn[..., :-1] == latest_R1n).all(dim=-1)
        most_RG = torch.where(seen_RG, NEVER, torch.inf).to(scores.dtype)
        return scores.scatter_reduce(1, ngrams_RGn[..., -1], most_RG, "amin")

    return rule


def forced_prefix(prefix: Padded, *, otherwise: Rule) -> Rule:
    """Each row first outputs its prefix, `(R, longest)`, whatever the other rules say; then those hold.

    Rows with a shorter prefix are free sooner.
    """
    longest = prefix.values.shape[1]

    def rule(scores: Tensor, output: Tensor) -> Tensor:
        now = output.shape[1]
        if now >= longest:
            return otherwise(scores, output)
        forced_R1 = prefix.values[:, now : now + 1]
        only_RV = torch.full_like(scores, NEVER).scatter(1, forced_R1, scores.gather(1, forced_R1))
        return torch.where(prefix.mask[:, now : now + 1], only_RV, otherwise(scores, output))

    return rule
