"""What one hypothesis is worth beside another.

Dims: R rows open in search, S source positions.
"""

import math
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from sixjars.errors import RecipeError


@final
@dataclass(frozen=True)
class Ranking:
    r"""The score that hypotheses are compared by.

    .. math:: \frac{\log P(y | x)}{|y|^{\alpha}} + \beta \sum_j \log \min\left(\sum_t \alpha_{tj}, 1\right)

    The length |y| counts `<stop>`. The second term is the coverage penalty of Wu et al. 2016, section 7
    (https://arxiv.org/abs/1609.08144): it falls with every source position that was hardly looked at.
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
        """The weights of all steps so far added up, (R, S); nothing where no penalty asks for them.

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
