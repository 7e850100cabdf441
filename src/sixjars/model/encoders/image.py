"""A picture: the cells of a convolution layer to look at, and one vector of the whole.

Dims: B batch, F frames (one), C and D channels, H and W cells, S all cells, K numbers of the vector.
"""

from typing import final

import torch
from torch import nn

from sixjars.flow import Encoded, Encoder, Layout, Padded
from sixjars.model.sight import Sight
from sixjars.recipe.ranges import Share


@final
class ImageEncoder(Encoder):
    r"""h_j = norm(a_j) for each cell of the picture, h_T = norm(v) for the whole, with a_1..a_S, v = CNN(I).

    Vinyals et al. 2015 (https://arxiv.org/abs/1411.4555) tell the decoder v; Xu et al. 2015
    (https://arxiv.org/abs/1502.03044) let it look at the cells a_j. Backbones speak at very different volumes, so both
    are normalised (Ba, Kiros & Hinton 2016, https://arxiv.org/abs/1607.06450).

    >>> encoder = ImageEncoder(backbone=Sight(pixels=16, widths=(4, 8)))
    >>> picture = Padded(torch.zeros(2, 1, 3 * 16 * 16, dtype=torch.uint8), torch.ones(2, 1, dtype=torch.bool))
    >>> encoder(picture).memory.shape, encoder(picture).layout.shape
    (torch.Size([2, 16, 8]), (4, 4))
    """

    letters = {
        "backbone": "CNN",
        "cells.weight": "g_a",
        "cells.bias": "b_a",
        "whole.weight": "g_v",
        "whole.bias": "b_v",
    }

    def __init__(self, *, backbone: Sight, dropout: Share = 0.0) -> None:
        super().__init__()
        self.backbone = backbone
        self.dropout = nn.Dropout(dropout)
        self.output_size, self.summary_size = backbone.shape.channels, backbone.shape.vector
        self.attendable = backbone.shape.height > 0
        self.cells = nn.LayerNorm(self.output_size)  # g_a, b_a
        self.whole = nn.LayerNorm(self.summary_size)  # g_v, b_v

    def forward(self, image: Padded) -> Encoded:
        """The one frame of each picture to its cells (B, S, D), row by row, and a summary (B, K)."""
        maps_BFCHW, vector_BFK = self.backbone(image)
        cells_BSD = maps_BFCHW[:, 0].flatten(2).transpose(1, 2)
        memory_BSD = self.dropout(self.cells(cells_BSD))
        mask_BS = torch.ones(memory_BSD.shape[:2], dtype=torch.bool, device=memory_BSD.device)
        shape = self.backbone.shape
        summary_BK = self.dropout(self.whole(vector_BFK[:, 0]))
        return Encoded(memory_BSD, mask_BS, summary_BK, Layout("grid", (shape.height, shape.width)))

    def equations(self) -> list[str]:
        """The lines of the lecture."""
        return [*self.backbone.equations(), "h_j = norm(a_j) ⊙ g_a + b_a,  h_T = norm(v) ⊙ g_v + b_v"]
