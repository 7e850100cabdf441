"""Sampling: at every step a token drawn from the distribution.

Dims: R rows, V vocabulary, K tokens that may be drawn.
"""

import torch
from torch import Tensor

from sixjars.evaluation.search.problem import Problem
from sixjars.evaluation.search.writing import write
from sixjars.flow import Hypothesis


def sample(problem: Problem) -> list[list[Hypothesis]]:
    """As many draws for each source as `nbest` says, the most probable first; two may be the same.

    For a given batch on a given device the seed alone decides; torch's own random state is left as it is.
    """
    settings = problem.settings
    source = torch.Generator(device=problem.device)
    source.manual_seed(settings.seed)

    def choose(allowed_RV: Tensor) -> Tensor:
        scores_RV = allowed_RV / settings.temperature
        if settings.top_k == 0 and settings.top_p == 1.0:
            return draw(scores_RV, source)
        scores_RK, tokens_RK = likely(scores_RV, top_k=settings.top_k, top_p=settings.top_p)
        return tokens_RK.gather(1, draw(scores_RK, source).unsqueeze(1)).squeeze(1)

    found = write(problem, choose, copies=settings.nbest)
    return [sorted(drawn, key=lambda each: each.log_probability, reverse=True) for drawn in found]


def likely(scores: Tensor, *, top_k: int, top_p: float) -> tuple[Tensor, Tensor]:
    """The tokens that may be drawn: their scores and their ids, (R, K) each, the best first.

    First the `top_k` best (0: all). Of these, with their probabilities made to add up to 1, the fewest whose
    sum is at least `top_p` (Holtzman et al. 2020, https://arxiv.org/abs/1904.09751); the others get -inf.

    >>> likely(torch.tensor([[0.2, 0.5, 0.3]]).log(), top_k=0, top_p=0.6)[0].exp()
    tensor([[0.5000, 0.3000, 0.0000]])
    """
    kept = min(top_k or scores.shape[1], scores.shape[1])
    scores_RK, tokens_RK = scores.topk(kept, dim=1)
    if top_p < 1.0:
        shares_RK = scores_RK.softmax(dim=1)
        before_RK = shares_RK.cumsum(dim=1) - shares_RK
        scores_RK = scores_RK.masked_fill(before_RK >= top_p, -torch.inf)
    return scores_RK, tokens_RK


def draw(scores: Tensor, source: torch.Generator) -> Tensor:
    r"""A place in each row, drawn with the probabilities softmax(scores), (R,).

    .. math:: \arg\max_v (s_v - \log E_v), \quad E_v \sim \mathrm{Exponential}(1)

    is such a draw (the Gumbel-max trick: Maddison, Tarlow & Minka 2014, https://arxiv.org/abs/1411.0030).
    It needs no sum, so a row in which everything is forbidden does no harm.
    """
    waits = torch.empty_like(scores).exponential_(generator=source)
    return (scores - waits.clamp(min=torch.finfo(scores.dtype).tiny).log()).argmax(dim=1)
