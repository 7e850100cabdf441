"""How many texts have a word, and what it weighs for that: rare words say more.

Dims: B batch, S source positions.
"""

import torch
from torch import Tensor


def weighing_column(weights: Tensor, without: int) -> Tensor:
    """As a column, in which the first few weigh nothing."""
    weights[:without] = 0.0
    return weights.unsqueeze(1)


def texts_with(features: Tensor, count: int) -> Tensor:
    """How many rows of (B, S) have each of `count` features; a row counts once for each."""
    ordered = features.sort(dim=1).values
    is_first = torch.ones_like(ordered, dtype=torch.bool)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return torch.bincount(ordered[is_first], minlength=count)


def inverse_frequency(counts: Tensor, total: int) -> Tensor:
    """log((1 + n) / (1 + n_g)) + 1 of what n_g of n texts have, and 0 of what none has."""
    return torch.where(counts > 0, ((1 + total) / (1 + counts)).log() + 1, 0.0)


def occurrences(features: Tensor) -> Tensor:
    """At how many positions of its row each feature of (B, S) stands, (B, S)."""
    if torch.compiler.is_exporting():  # ONNX has no search in sorted numbers
        return (features.unsqueeze(2) == features.unsqueeze(1)).sum(2)
    ordered = features.sort(dim=1).values
    first, behind = (torch.searchsorted(ordered, features, right=right) for right in (False, True))
    return behind - first
