"""The ranking of hypotheses, the best tokens, and rules for tokens that may not be output next.

Dims: R rows open in search, V vocabulary, S source positions, t tokens output so far, G n-grams
      among them (or chunks of the vocabulary, of W tokens each), n their length, C tokens that are
      wanted, X those compared for it.

A rule sets the scores of forbidden tokens to -inf and leaves the others as they are: what is left
are the model's own log probabilities.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from sixjars.flow.values import Padded, Tensors
from sixjars.recipe.sections import SearchSettings
from sixjars_runtime.errors import RecipeError
from sixjars_runtime.special_tokens import SpecialTokens

Made = int | Tensor
"""A number of steps; a tensor in a CUDA graph, which is replayed for other steps too."""
Rule = Callable[[Tensor, Tensor, Made], Tensor]
"""`(scores (R, V), output (R, t), t) -> scores (R, V)`: -inf where a token is forbidden.

Only a rule that reads the output itself relies on its width; others may receive a wrong one."""
NEVER = -torch.inf
CHUNK = 32
"""Scores of a row that are compared together in the search for the best."""
SHORT = 128
"""The longest row that a GPU sorts, which is faster than `topk` there."""


@final
@dataclass(frozen=True)
class HypothesisScoring(Tensors):
    r"""The score that hypotheses are compared by.

    .. math:: \frac{\log P(y | x)}{|y|^{\alpha}}
              + \beta \sum_j \log \min\left(\sum_t \alpha_{tj}, 1\right)

    The length |y| counts `<stop>`. The second term is the coverage penalty of Wu et al. 2016,
    section 7 (https://arxiv.org/abs/1609.08144): it falls with every source position that was
    hardly attended to. Two differences from there. The length enters as it is, not as (5 + |y|) /
    6. A position that got no weight at all counts as the smallest positive number instead of 0, so
    that every score is finite.
    """

    length_penalty: float
    """α."""
    coverage_penalty: float
    """β."""
    mask: Tensor | None = None
    """True where a source position is real, (R, S); absent when all are."""

    def covered(self, before: Tensor | None, weights: Tensor | None) -> Tensor | None:
        """The sum of the weights of all steps, (R, S); None where no penalty needs it."""
        if self.coverage_penalty == 0.0:
            return None
        if weights is None:
            fault = (
                f"search.coverage_penalty is {self.coverage_penalty}, but this model gives no "
                "attention weights. Set it to 0, or use an attention bridge."
            )
            raise RecipeError([fault])
        new_RS = weights.to(torch.promote_types(weights.dtype, torch.float32))
        return new_RS if before is None else before + new_RS

    def penalty(self, covered: Tensor | None, rows: Tensor | None = None) -> Tensor | None:
        """The second term, (R,), or that of the given rows in their shape; None where β is 0."""
        if covered is None:
            return None
        terms_RS = covered.clamp(torch.finfo(covered.dtype).tiny, 1.0).log()
        if self.mask is not None:
            terms_RS = terms_RS.masked_fill(~self.mask, 0.0)
        penalty_R = self.coverage_penalty * terms_RS.sum(dim=1)
        return penalty_R if rows is None else penalty_R[rows]

    def score(
        self, log_probability: Tensor, length: int | Tensor, penalty: Tensor | None
    ) -> Tensor:
        """The score of hypotheses of one length, which is at least 1."""
        share = log_probability / length**self.length_penalty
        return share if penalty is None else share + penalty

    def scores(self, log_probability: Tensor, lengths: Tensor, penalty: Tensor | None) -> Tensor:
        """The score of hypotheses, each of its own length; an empty one scores 0."""
        length = lengths.clamp(min=1).to(log_probability.dtype)
        score = self.score(log_probability, length, penalty)
        return score.masked_fill(lengths == 0, 0.0)

    def bound(self, log_probability: Tensor, max_length: int | Tensor) -> Tensor:
        """An upper bound of the score of a running hypothesis.

        log P only falls from here, the greatest length divides it by most, the coverage term is at
        most 0.
        """
        return log_probability / max_length**self.length_penalty


def highest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The highest `count` of each row and their places, (R, C) each, the best first."""
    if count == 1:
        highest_R1 = values.max(dim=1, keepdim=True)
        return highest_R1.values, highest_R1.indices
    if values.device.type == "cuda" and values.shape[1] <= SHORT:
        ordered, places = values.sort(dim=1, descending=True)
        return ordered[:, :count], places[:, :count]
    best = values.topk(count, dim=1)
    return best.values, best.indices


def best_tokens(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The highest `count` scores of each row and their tokens, (R, C) each, the best first.

    A long row is compared in chunks: the best tokens are in the chunks with the highest maxima, and
    maxima take a fraction of the time of `topk` or `argmax`.
    """
    size = scores.shape[1]
    scores = scores.contiguous()
    if torch.compiler.is_exporting():  # the graph is for any size
        return highest(scores, count)
    chunks = size // CHUNK
    if chunks < 2 * count or (count == 1 and scores.device.type == "cuda"):
        return highest(scores, count)
    whole = scores[:, : CHUNK * chunks]
    if scores.device.type == "cuda":  # a chunk has every n-th score: threads read neighbours
        chunked_RGW = torch.unflatten(whole, 1, (CHUNK, chunks)).transpose(1, 2)
    else:
        chunked_RGW = torch.unflatten(whole, 1, (chunks, CHUNK))
    chunk_RC1 = highest(chunked_RGW.amax(2), count)[1].unsqueeze(2)
    few_RX = chunked_RGW.gather(1, chunk_RC1.expand(-1, -1, CHUNK)).flatten(1)
    _, apart, within = chunked_RGW.stride()
    within_W = torch.arange(0, CHUNK * within, within, device=scores.device)
    token_RX = (chunk_RC1 * apart + within_W).flatten(1)
    if size > CHUNK * chunks:
        rest_X = torch.arange(CHUNK * chunks, size, device=scores.device)
        few_RX = torch.cat([few_RX, scores[:, CHUNK * chunks :]], dim=1)
        token_RX = torch.cat([token_RX, rest_X.expand(len(scores), -1)], dim=1)
    values, places = highest(few_RX, count)
    return values, token_RX.gather(1, places)


def rule_of(
    settings: SearchSettings,
    special: SpecialTokens,
    *,
    prefix: Padded | None,
    device: torch.device,
    overwrite: bool = False,
) -> Rule:
    """All rules of the settings and the caller as one, which may `overwrite` its scores."""
    rules: list[Rule] = []
    never = special.never(settings.unknown)
    if never:
        rules.append(banned(torch.tensor(never, device=device), overwrite=overwrite))
    if settings.no_repeat_ngram:
        rules.append(no_repeated_ngram(settings.no_repeat_ngram))
    if settings.min_length:  # last, because it must know what the others leave
        rules.append(min_length(settings.min_length, stop=special.stop, overwrite=overwrite))

    def rule(scores: Tensor, output: Tensor, steps: Made) -> Tensor:
        for each in rules:
            scores = each(scores, output, steps)
        return scores

    return rule if prefix is None else forced_prefix(prefix.to(device), otherwise=rule)


def banned(tokens: Tensor, *, overwrite: bool = False) -> Rule:
    """A rule: these tokens, `(n,)`, are never output.

    >>> banned(torch.tensor([0, 2]))(torch.zeros(1, 4), torch.zeros(1, 0), 0)
    tensor([[-inf, 0., -inf, 0.]])
    """

    def rule(scores: Tensor, output: Tensor, steps: Made) -> Tensor:
        fill = scores.index_fill_ if overwrite else scores.index_fill
        return fill(1, tokens, NEVER)

    return rule


def min_length(fewest: int, *, stop: int, overwrite: bool = False) -> Rule:
    """A rule: no `<stop>` before `fewest` tokens, unless no other token may follow.

    >>> scores = torch.tensor([[-torch.inf, 0.0], [0.0, 0.0]])  # only <stop> may follow, or both
    >>> min_length(3, stop=1)(scores, torch.zeros(2, 1), 1)
    tensor([[-inf, 0.],
            [0., -inf]])
    """

    def rule(scores: Tensor, output: Tensor, steps: Made) -> Tensor:
        if isinstance(steps, int) and steps >= fewest:
            return scores
        without = scores if overwrite else scores.clone()
        stop_R = without[:, stop].clone()
        without[:, stop] = NEVER
        withheld_R = without.amax(1) > NEVER
        withheld_R &= steps < fewest
        without[:, stop] = stop_R.masked_fill(withheld_R, NEVER)
        return without

    return rule


def no_repeated_ngram(length: int) -> Rule:
    """A rule: no n-gram of this length twice in one row.

    Token v is forbidden where the row already has its last n - 1 tokens followed by v.

    >>> output = torch.tensor([[1, 2, 1]])  # after 1 came 2
    >>> no_repeated_ngram(2)(torch.zeros(1, 4), output, 3)
    tensor([[0., 0., -inf, 0.]])
    """

    def rule(scores: Tensor, output: Tensor, steps: Made) -> Tensor:
        if output.shape[1] < length:
            return scores
        ngrams_RGn = output.unfold(1, length, 1)
        last_RG = ngrams_RGn[..., -1]
        seen_RG = torch.ones_like(last_RG, dtype=torch.bool)
        if length > 1:
            latest_R1n = output[:, output.shape[1] - length + 1 :].unsqueeze(1)
            seen_RG = (ngrams_RGn[..., :-1] == latest_R1n).all(dim=-1)
        most_RG = torch.where(seen_RG, NEVER, torch.inf).to(scores.dtype)
        return scores.scatter_reduce(1, last_RG, most_RG, "amin")

    return rule


def forced_prefix(prefix: Padded, *, otherwise: Rule) -> Rule:
    """A rule: each row first outputs its prefix, (R, longest); then the other rules hold.

    A row with a shorter prefix is free sooner. Where the number of steps is a tensor, all are free
    at the last place.
    """
    longest = prefix.values.shape[1]

    def rule(scores: Tensor, output: Tensor, steps: Made) -> Tensor:
        if isinstance(steps, int) and steps >= longest:
            return otherwise(scores, output, steps)
        now_1 = torch.as_tensor(steps, device=scores.device).clamp(max=longest - 1).reshape(1)
        forced_R1 = prefix.values.index_select(1, now_1)
        only_RV = torch.full_like(scores, NEVER).scatter(1, forced_R1, scores.gather(1, forced_R1))
        begins_R1 = prefix.mask.index_select(1, now_1)
        return torch.where(begins_R1, only_RV, otherwise(scores, output, steps))

    return rule


def order_in_words(settings: SearchSettings) -> str:
    """The order of hypotheses and their score, which is that of `HypothesisScoring`, for a person.

    >>> order_in_words(SearchSettings(kind="beam", length_penalty=0.6))
    'Ordered by score: log probability / tokens^0.6.'
    """
    power = "" if settings.length_penalty == 1 else f"^{settings.length_penalty:g}"
    length = f" / tokens{power}" if settings.length_penalty else ""
    coverage = ", and the coverage penalty" if settings.coverage_penalty else ""
    score = f"score: log probability{length}{coverage}."
    if settings.kind == "sample":
        return f"In the order in which they were drawn; {score}"
    return f"Ordered by {score}"
