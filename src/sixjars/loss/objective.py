"""The loss of a whole batch: token loss and, where asked for, guided attention.

Dims: B batch, T target positions.
"""

from typing import final

import torch
from torch import Tensor, nn

from sixjars.errors import RecipeError
from sixjars.flow import Batch, Taught
from sixjars.loss.guided import guided_loss
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
        scores = taught.scores.float()
        total = token_loss(scores, batch.target, smoothing=self.settings.smoothing).sum()
        plain = total.detach()
        if self.settings.smoothing:
            plain = token_loss(scores.detach(), batch.target).sum()
        if self.settings.guide and batch.alignment is not None:
            if taught.weights is None:
                raise RecipeError(["loss.guide needs a bridge with attention."])
            total = total + self.settings.guide * guided_loss(taught.weights.float(), batch.alignment).sum()
        return torch.stack([total, plain])
