"""What every kind of search is given: the step, how hypotheses are ranked, and rules for what may not be output next.

Dims: R rows open in search, V vocabulary, S source positions, t tokens output so far, G n-grams among them, n their
      length.

A rule sets the scores of forbidden tokens to -inf and leaves the others as they are: what is left are the model's own
log probabilities.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from sixjars.errors import RecipeError
from sixjars.flow.contracts import SpecialTokens, Step
from sixjars.flow.values import Hypothesis, Padded, Rows
from sixjars.recipe.sections import SearchSettings

Rule = Callable[[Tensor, Tensor], Tensor]
"""`(scores (R, V), output (R, t)) -> scores (R, V)`: -inf where a token is forbidden."""
NEVER = -torch.inf


@final
@dataclass(frozen=True)
class Ranking:
    r"""The score that hypotheses are compared by.

    .. math:: \frac{\log P(y | x)}{|y|^{\alpha}} + \beta \sum_j \log \min\left(\sum_t \alpha_{tj}, 1\right)

    The length |y| counts `<stop>`. The second term is the coverage penalty of Wu et al. 2016, section 7
    (https://arxiv.org/abs/1609.08144): it falls with every source position that was hardly attended to.
    Two differences from there. The length enters as it is, not as (5 + |y|) / 6. A position that got no
    weight at all counts as the smallest positive number instead of 0, so that every score is finite.
    """

    length_penalty: float
    """α."""
    coverage_penalty: float
    """β."""
    mask: Tensor | None = None
    """True where a source position is real, (R, S); absent when all are."""

    def covered(self, before: Tensor | None, weights: Tensor | None, live: Tensor | None = None) -> Tensor | None:
        """The weights of all steps so far summed, (R, S); nothing where no penalty asks for them.

        `live`, (R,), leaves out the rows that have ended.
        """
        if self.coverage_penalty == 0.0:
            return None
        if weights is None:
            raise RecipeError(
                [
                    f"search.coverage_penalty is {self.coverage_penalty}, but this model gives no attention "
                    "weights. Set it to 0, or use an attention bridge."
                ]
            )
        new_RS = weights.to(torch.promote_types(weights.dtype, torch.float32))
        if live is not None:
            new_RS = new_RS * live.unsqueeze(1)
        return new_RS if before is None else before + new_RS

    def penalty(self, covered: Tensor | None, rows: Tensor | None = None) -> Tensor | None:
        """The second term, (R,), or that of the given rows in their shape; nothing where β is 0."""
        if covered is None:
            return None
        terms_RS = covered.clamp(torch.finfo(covered.dtype).tiny, 1.0).log()
        if self.mask is not None:
            terms_RS = terms_RS.masked_fill(~self.mask, 0.0)
        penalty_R = self.coverage_penalty * terms_RS.sum(dim=1)
        return penalty_R if rows is None else penalty_R[rows]

    def score(self, log_probability: Tensor, length: int, penalty: Tensor | None) -> Tensor:
        """The score of hypotheses that are all of the same length, which is at least 1."""
        share = log_probability / math.pow(length, self.length_penalty)
        return share if penalty is None else share + penalty

    def scores(self, log_probability: Tensor, lengths: Tensor, penalty: Tensor | None) -> Tensor:
        """The same where each has its own length; an empty one scores 0."""
        share = log_probability / lengths.clamp(min=1).to(log_probability.dtype) ** self.length_penalty
        score = share if penalty is None else share + penalty
        return score.masked_fill(lengths == 0, 0.0)

    def bound(self, log_probability: Tensor, max_length: int) -> Tensor:
        """The most that a running hypothesis may still score.

        log P only falls from here, the greatest length divides it by most, the coverage term is at most 0.
        """
        return log_probability / math.pow(max_length, self.length_penalty)


@final
@dataclass(frozen=True)
class Problem:
    """One batch to search."""

    step: Step
    state: Rows
    longest: int
    """Most tokens of an output, `<stop>` included."""
    seeds: Tensor
    """Of sampling, one for each row, (R,)."""
    settings: SearchSettings
    special: SpecialTokens
    rule: Rule
    ranking: Ranking

    def first(self) -> tuple[Tensor, Tensor]:
        """Before the first step: `<go>` in every row, (R,), and nothing output, (R, 0)."""
        rows, device = self.state.rows, self.state.device
        tokens_R = torch.full((rows,), self.special.go, dtype=torch.long, device=device)
        return tokens_R, tokens_R.new_empty(rows, 0)

    def step_on(self, token: Tensor, state: Rows, output: Tensor) -> tuple[Tensor, Tensor | None, Rows]:
        """One step: the log probability of what may come next (R, V), the weights (R, S), the state."""
        scored, state = self.step(token, state)
        model_RV = scored.log_probabilities
        model_RV = model_RV.to(torch.promote_types(model_RV.dtype, torch.float32))
        return self.rule(model_RV, output), scored.weights, state


def hypotheses_of(
    tokens: Tensor,
    score: Tensor,
    log_probability: Tensor,
    count: Tensor,
    finished: Tensor,
    weights: Tensor | None,
    places: int,
) -> list[list[Hypothesis]]:
    """Plain values of tensors with a hypothesis in each row, `places` for each source; -inf scores are left out."""
    columns = [tensor.tolist() for tensor in (tokens, score, log_probability, count, finished)]
    attention = [[]] * len(tokens) if weights is None else weights.tolist()
    found = [
        Hypothesis(tuple(output[:length]), worth, total, tuple(map(tuple, rows[: length + ends])), ends)
        for output, worth, total, length, ends, rows in zip(*columns, attention, strict=True)
    ]
    return [[one for one in found[at : at + places] if one.score > NEVER] for at in range(0, len(found), places)]


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
