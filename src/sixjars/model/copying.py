r"""The copy switch: what is written next is a word of the vocabulary, or a word of the source that is looked at.

Dims: B batch, T target positions, S source positions, V vocabulary, W = V + S all that can be
      written, I features that the switch hears.
"""

from typing import final

import torch
from torch import Tensor, nn

from sixjars.errors import ShapeError


@final
class CopySwitch(nn.Module):
    r"""P(y_t) = g_t P_V(y_t) + (1 - g_t) Σ_{j: x_j = y_t} α_jt,  g_t = σ(w_g [s_t, c_t, e(ŷ_{t-1})] + b_g).

    See, Liu & Manning 2017 (https://arxiv.org/abs/1704.04368), equations 8 and 9. A word of the source that is not in
    the vocabulary can be written too: its number is V plus the first position at which it stands, so there are
    V + S numbers to write.

    >>> switch = CopySwitch(inputs=2)
    >>> scores, weights, said = torch.zeros(1, 1, 5), torch.tensor([[[0.25, 0.75]]]), torch.tensor([[4, 6]])
    >>> log = switch(scores, torch.randn(1, 1, 2), weights, said)
    >>> torch.allclose(log.exp().sum(-1), torch.ones(1, 1))
    True
    """

    def __init__(self, *, inputs: int) -> None:
        super().__init__()
        self.gate = nn.Linear(inputs, 1)  # w_g, b_g

    def forward(self, scores: Tensor, heard: Tensor, weights: Tensor | None, said: Tensor | None) -> Tensor:
        """Log P of all numbers, (B, T, V + S).

        From the scores of the vocabulary (B, T, V), what the switch hears (B, T, I), where the decoder looks
        (B, T, S), and the numbers of what stands there (B, S).
        """
        if weights is None or said is None:
            raise ShapeError("copying: true needs attention and a source whose words the decoder could write.")
        gate_BT1 = self.gate(heard).float()
        written_BTV = torch.sigmoid(gate_BT1) * torch.softmax(scores.float(), dim=-1)
        all_BTW = nn.functional.pad(written_BTV, (0, said.shape[1]))
        copied_BTS = torch.sigmoid(-gate_BT1) * weights.float()  # 1 - σ would be 0 long before σ(-x) is
        whole_BTW = all_BTW.scatter_add(2, said.unsqueeze(1).expand_as(copied_BTS), copied_BTS)
        return whole_BTW.clamp(min=torch.finfo(torch.float32).tiny).log()

    def equations(self) -> list[str]:
        """The lines of the paper."""
        gate = "g_t = σ(w_g [s_t, c_t, e(ŷ_{t-1})] + b_g)"
        return [gate, "P(y_t | y_1..y_{t-1}, x) = g_t P_V(y_t) + (1 - g_t) Σ_{j: x_j = y_t} α_jt"]
