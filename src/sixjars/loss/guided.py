"""Guided attention: where the true alignment is known, the weights learn from it too.

Dims: B batch, T target positions, S source positions.
"""

from torch import Tensor


def guided_loss(weights: Tensor, truth: Tensor) -> Tensor:
    """L(α_true, α_pred) = -Σ_j α_true_jt log α_pred_jt for each target token, (B, T); zero where no truth is known.

    Chen et al. 2016 (https://arxiv.org/abs/1607.01628), equation 6, with the alignment of each target word spread
    evenly over its source words.
    """
    tiny = 1e-9
    return -(truth * (weights + tiny).log()).sum(-1)
