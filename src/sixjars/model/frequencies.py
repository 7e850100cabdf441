"""How many texts have a word, and its weight by that: rare words weigh more.

Dims: B batch, S source positions.
"""

import torch
from torch import Tensor


def weighing_column(weights: Tensor, without: int) -> Tensor:
    """The weights as a column, in which the first few are 0."""
    weights[:without] = 0.0
    return weights.unsqueeze(1)


def texts_with(features: Tensor, count: int) -> Tensor:
    """The number of rows of (B, S) that have each of `count` features."""
    ordered = features.sort(dim=1).values
    is_first = torch.ones_like(ordered, dtype=torch.bool)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return torch.bincount(ordered[is_first], minlength=count)


def inverse_frequency(counts: Tensor, total: int) -> Tensor:
    """log((1 + n) / (1 + n_g)) + 1 of a feature that n_g of n texts have; 0 if none has it."""
    return torch.where(counts > 0, ((1 + total) / (1 + counts)).log() + 1, 0.0)


def occurrences(features: Tensor) -> Tensor:
    """The number of positions in its row that have each feature of (B, S), (B, S)."""
    if torch.compiler.is_exporting():  # ONNX has no search in sorted numbers
        return (features.unsqueeze(2) == features.unsqueeze(1)).sum(2)
    ordered = features.sort(dim=1).values
    first, behind = (torch.searchsorted(ordered, features, right=right) for right in (False, True))
    return behind - first
