"""Looking twice at the same place costs.

Dims: B batch, T target positions, S source positions.
"""

import torch
from torch import Tensor


def coverage_loss(weights: Tensor, mask: Tensor) -> Tensor:
    """Σ_j min(α_jt, Σ_{τ<t} α_jτ) for each step, zero where padded: (B, T, S), (B, T) -> (B, T).

    See, Liu & Manning 2017 (https://arxiv.org/abs/1704.04368), equation 12. There the sum of earlier weights is also
    told to the attention; here it is only in the loss.

    >>> twice = torch.tensor([[[1.0, 0.0], [0.75, 0.25]]])
    >>> coverage_loss(twice, torch.ones(1, 2, dtype=torch.bool))
    tensor([[0.0000, 0.7500]])
    """
    earlier_BTS = weights.cumsum(dim=1) - weights
    return torch.minimum(weights, earlier_BTS).sum(-1) * mask
