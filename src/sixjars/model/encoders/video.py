"""A film: a recurrent network over its frames, or over short clips around them.

Dims: B batch, F frames, C channels, H and W cells, K numbers of a frame's vector, G features of a clip,
      D source features.
"""

from typing import Literal, final

import torch
from torch import Tensor, nn

from sixjars.flow import Encoded, Encoder, Layout, Padded
from sixjars.model.cells import LETTERS, CellName
from sixjars.model.reading import Direction, Reading
from sixjars.model.sight import Sight
from sixjars.recipe.ranges import Positive, Share

CLIP = 5
"""Frames of a clip."""


@final
class VideoEncoder(Encoder):
    r"""h_t = RNN(h_{t-1}, x_t), x_t = CNN(frame_t), or the features of the clip around it, or both.

    Venugopalan et al. 2015 (https://arxiv.org/abs/1505.00487) read frames; Yao et al. 2015
    (https://arxiv.org/abs/1502.08029) add what short clips show ('local') and attention over time ('global', a
    bridge here). The features of a clip: g_t = mean over the cells of relu(W_3 * a)_t, a convolution over five frames
    and 3×3 cells of the maps a (theirs is a 3-D network over pixels, trained on activities beforehand).

    >>> encoder = VideoEncoder(backbone=Sight(pixels=16, widths=(4, 8)), reads="both", size=6)
    >>> film = Padded(torch.zeros(2, 7, 3 * 16 * 16, dtype=torch.uint8), torch.ones(2, 7, dtype=torch.bool))
    >>> encoder(film).memory.shape
    torch.Size([2, 7, 6])
    """

    letters = {
        "backbone": "CNN",
        "even.weight": "g_x",
        "even.bias": "b_x",
        "clips.weight": "W_3",
        "clips.bias": "b_3",
        **LETTERS,
    }

    def __init__(
        self,
        *,
        backbone: Sight,
        reads: Literal["frames", "clips", "both"] = "frames",
        cell: CellName = "gru",
        size: Positive = 128,
        layers: Positive = 1,
        direction: Direction = "forward",
        dropout: Share = 0.0,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.reads = reads
        self.dropout = nn.Dropout(dropout)
        self.clips: nn.Conv3d | None = None
        width = 0 if reads == "clips" else backbone.shape.vector
        if reads != "frames":
            self.clips = nn.Conv3d(backbone.shape.channels, size, (CLIP, 3, 3), padding=(CLIP // 2, 1, 1))  # W_3, b_3
            width += size
        self.even = nn.LayerNorm(width)  # g_x, b_x
        self.reading = Reading(
            input_size=width, cell=cell, size=size, layers=layers, direction=direction, dropout=dropout
        )
        self.output_size = self.summary_size = self.reading.output_size

    def forward(self, video: Padded) -> Encoded:
        """Frames to states (B, F, D) and a summary (B, D)."""
        maps_BFCHW, vector_BFK = self.backbone(video)
        told = [] if self.reads == "clips" else [vector_BFK]
        if self.clips is not None:
            told.append(self._clips(maps_BFCHW, self.clips))
        memory_BFD, summary_BD = self.reading(self.dropout(self.even(torch.cat(told, dim=-1))), video.mask)
        return Encoded(memory_BFD, video.mask, summary_BD, Layout("frames"))

    @staticmethod
    def _clips(maps: Tensor, convolution: nn.Conv3d) -> Tensor:
        """g_t for every frame, (B, F, G): what lies beyond the film is zero, as its padding is."""
        features_BGFHW: Tensor = convolution(maps.transpose(1, 2))
        return torch.relu(features_BGFHW).mean((-2, -1)).transpose(1, 2)

    def equations(self) -> list[str]:
        """The lines of the lecture."""
        clips = [f"g_t = mean_j relu(W_3 * a_{{t-{CLIP // 2}}}..a_{{t+{CLIP // 2}}} + b_3)_j"] if self.clips else []
        told = {"frames": "v_t", "clips": "g_t", "both": "[v_t, g_t]"}[self.reads]
        even = f"x_t = norm({told}) ⊙ g_x + b_x"
        return [*self.backbone.equations(), *clips, even, *self.reading.equations(told="x_t", unit="frame")]
