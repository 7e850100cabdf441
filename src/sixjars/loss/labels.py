"""How surprised a decoder is by a set of labels.

Dims: B batch, T labels of a row, V labels of the list.
"""

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.flow import Padded


def labels_loss(scores: Tensor, target: Padded) -> Tensor:
    """-Σ_c [y_c log σ(z_c) + (1 - y_c) log(1 - σ(z_c))] of each row, from scores (B, V) and its labels (B, T): (B,).

    Each label is a yes or no of its own (Nam et al. 2014, https://arxiv.org/abs/1312.5419, section 3.2).

    >>> labels_loss(torch.zeros(1, 3), Padded.of([[0, 2]])) / torch.log(torch.tensor(2.0))
    tensor([3.])
    """
    is_so_BV = torch.zeros_like(scores).scatter_reduce(1, target.values, target.mask.to(scores.dtype), "amax")
    return F.binary_cross_entropy_with_logits(scores, is_so_BV, reduction="none").sum(-1)
