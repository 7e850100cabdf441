"""How surprised the decoder is by the truth, token by token.

Dims: B batch, T target positions, V vocabulary, N batch times target positions.
"""

from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.flow import Padded


def token_loss(scores: Tensor, target: Padded, *, smoothing: float = 0.0) -> Tensor:
    """-log P(y_t = ℓ_t | ...) for each token of each row, zero where padded, (B, T).

    With `smoothing` ε the truth is (1 - ε) at the right token and ε / V everywhere (Szegedy et al. 2016,
    https://arxiv.org/abs/1512.00567, section 7).
    """
    flat_NV, truth_N = scores.flatten(0, 1), target.values.flatten()
    loss_N = F.cross_entropy(flat_NV, truth_N, reduction="none", label_smoothing=smoothing)
    return loss_N.view_as(target.values) * target.mask
