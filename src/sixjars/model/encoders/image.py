"""A picture: the cells of a convolution layer to look at, and one vector of the whole.

Dims: B batch, S cells, C channels, D source features, h and w cells.
"""

from typing import final

import torch
from torch import nn

from sixjars.flow import Encoded, Encoder, Layout, Padded
from sixjars.model.sight import Sight
from sixjars.recipe.ranges import Positive, Share


@final
class ImageEncoder(Encoder):
    r"""h_j = W_I a_j + b_I for each cell of the picture, h_T = W_v v + b_v for the whole.

    Vinyals et al. 2015 (https://arxiv.org/abs/1411.4555) tell the decoder v; Xu et al. 2015
    (https://arxiv.org/abs/1502.03044) let it look at the cells a_j. The two maps make both as large as asked for.

    >>> encoder = ImageEncoder(backbone=Sight(pixels=16, widths=(4, 8)), size=6)
    >>> picture = Padded(torch.zeros(2, 1, 3 * 16 * 16, dtype=torch.uint8), torch.ones(2, 1, dtype=torch.bool))
    >>> encoder(picture).memory.shape, encoder(picture).layout.shape
    (torch.Size([2, 16, 6]), (4, 4))
    """

    letters = {
        "backbone": "CNN",
        "cells.weight": "W_I",
        "cells.bias": "b_I",
        "whole.weight": "W_v",
        "whole.bias": "b_v",
    }

    def __init__(self, *, backbone: Sight, size: Positive = 128, dropout: Share = 0.0) -> None:
        super().__init__()
        self.backbone = backbone
        self.dropout = nn.Dropout(dropout)
        self.cells = nn.Linear(backbone.shape.channels, size)  # W_I, b_I
        self.whole = nn.Linear(backbone.shape.vector, size)  # W_v, b_v
        self.output_size = self.summary_size = size

    def forward(self, image: Padded) -> Encoded:
        """The one frame of each picture to its cells (B, S, D), row by row, and a summary (B, D)."""
        maps_BFCHW, vector_BFK = self.backbone(image)
        cells_BSC = maps_BFCHW[:, 0].flatten(2).transpose(1, 2)
        memory_BSD = self.dropout(self.cells(cells_BSC))
        mask_BS = torch.ones(memory_BSD.shape[:2], dtype=torch.bool, device=memory_BSD.device)
        shape = self.backbone.shape
        summary_BD = self.dropout(self.whole(vector_BFK[:, 0]))
        return Encoded(memory_BSD, mask_BS, summary_BD, Layout("grid", (shape.height, shape.width)))

    def equations(self) -> list[str]:
        """The lines of the lecture."""
        return [*self.backbone.equations(), "h_j = W_I a_j + b_I,  h_T = W_v v + b_v"]
