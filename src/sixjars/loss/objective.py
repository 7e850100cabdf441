"""The loss of a whole batch: that of its tokens or labels and, where asked for, guided attention and coverage.

Dims: B batch, T target positions.
"""

from typing import final

import torch
from torch import Tensor, nn

from sixjars.errors import RecipeError
from sixjars.flow import Batch, Padded, Taught
from sixjars.loss.coverage import coverage_loss
from sixjars.loss.guided import guided_loss
from sixjars.loss.labels import labels_loss
from sixjars.loss.tokens import token_loss
from sixjars.model.network import Network
from sixjars.recipe.jars import LossSettings


@final
class Objective(nn.Module):
    """A network and its loss in one, so that a whole training step is one call of one module.

    Its input is flat (`Batch.tensors`), because precision and distribution plugins map over plain containers.
    """

    def __init__(self, network: Network, settings: LossSettings) -> None:
        super().__init__()
        self.network = network
        self.settings = settings

    def forward(self, tensors: dict[str, Tensor]) -> Tensor:
        """(2,): the loss summed over the tokens of the batch, and the plain -Σ log P within it."""
        batch = Batch.from_tensors(tensors)
        taught: Taught = self.network(batch.inputs, batch.target)
        total = truth_loss(taught, batch.target, smoothing=self.settings.smoothing).sum()
        plain = total.detach()
        if self.settings.smoothing:
            plain = truth_loss(taught.mapped(Tensor.detach), batch.target).sum()
        return torch.stack([total + self._of_attention(taught, batch), plain])

    def _of_attention(self, taught: Taught, batch: Batch) -> Tensor | float:
        """What the weights cost: where they should be known, and looking twice."""
        guide = self.settings.guide if batch.alignment is not None else 0.0
        if not guide and not self.settings.coverage:
            return 0.0
        if taught.weights is None:
            raise RecipeError([f"loss.{'guide' if guide else 'coverage'} needs a bridge with attention."])
        cost, weights = torch.zeros((), device=taught.device), taught.weights.float()
        if guide and batch.alignment is not None:
            cost = cost + guide * guided_loss(weights, batch.alignment).sum()
        if self.settings.coverage:
            cost = cost + self.settings.coverage * coverage_loss(weights, batch.target.mask).sum()
        return cost


def truth_loss(taught: Taught, target: Padded, *, smoothing: float = 0.0) -> Tensor:
    """-log P of the truth: for each token of each row (B, T), or for the labels of each row (B, 1)."""
    scores = taught.scores.float()
    if taught.several:
        return labels_loss(scores.squeeze(1), target).unsqueeze(1)
    return token_loss(scores, target, smoothing=smoothing)
