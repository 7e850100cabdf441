"""A video: a recurrent network over its frames, or over short clips around them.

Dims: B batch, F frames, C channels, H and W cells, K numbers of a frame's vector, G features of
      a clip, D source features.
"""

from collections.abc import Mapping
from typing import Any, Literal, final

import torch
from torch import Tensor, nn

from sixjars.flow.backend import Backend
from sixjars.flow.contracts import Encoder
from sixjars.flow.limits import Layers, Share, Size
from sixjars.flow.values import Encoded, Layout, Padded
from sixjars.model.equations import NORM
from sixjars.model.recurrent import Direction, DirectionalRNN
from sixjars.model.reference import REFERENCE, CellName
from sixjars.model.visual import VisualInput
from sixjars_runtime.errors import ShapeError

CLIP = 5
"""Frames of a clip."""


@final
class VideoEncoder(Encoder):
    r"""h_j = RNN(h_{j-1}, x_j): x_j are features of frame j, of the clip around it, or both.

    The features of a frame are CNN(I_j). Venugopalan et al. 2015
    (https://arxiv.org/abs/1505.00487) encode frames; Yao et al. 2015
    (https://arxiv.org/abs/1502.08029) add features of short clips ('local') and attention over time
    ('global', a bridge here). The features of a clip: κ_j = mean over the cells of relu(W_3 * r)_j,
    a convolution over five frames and 3×3 cells of the maps r (theirs is a 3-D network over pixels,
    trained on activities beforehand).

    >>> encoder = VideoEncoder(backbone=VisualInput(pixels=16, widths=(4, 8)), reads="both", size=6)
    >>> values = torch.zeros(2, 7, 3 * 16 * 16, dtype=torch.uint8)
    >>> video = Padded(values, torch.ones(2, 7, dtype=torch.bool))
    >>> encoder(video).memory.shape
    torch.Size([2, 7, 6])
    """

    letters = {"norm.weight": "γ_x", "norm.bias": "δ_x", "clips.weight": "W_3", "clips.bias": "b_3"}

    def __init__(  # noqa: PLR0913 - keys of a recipe, and what the toolkit fills in
        self,
        *,
        backbone: VisualInput,
        reads: Literal["frames", "clips", "both"] = "frames",
        cell: CellName = "gru",
        size: Size = 128,
        layers: Layers = 1,
        direction: Direction = "forward",
        dropout: Share = 0.0,
        backend: Backend = REFERENCE,
    ) -> None:
        super().__init__()
        features = backbone.features
        if features is not None and features.positions != (None,):
            need = "a video needs (T, C), a vector for each frame."
            raise ShapeError(f"a file of features has {features}, but {need}")
        if features is not None and reads != "frames":
            need = f"{reads} needs the cells of each frame, but the features have none."
            raise ShapeError(f"model.encoder.reads: {need}")
        self.backbone = backbone
        self.reads = reads
        self.dropout = nn.Dropout(dropout)
        self.clips: nn.Conv3d | None = None
        width = 0 if reads == "clips" else backbone.shape.vector
        if reads != "frames":
            channels, window = backbone.shape.channels, (CLIP, 3, 3)
            self.clips = nn.Conv3d(channels, size, window, padding=(CLIP // 2, 1, 1))  # W_3, b_3
            width += size
        self.norm = nn.LayerNorm(width)  # γ_x, δ_x
        self.rnn = DirectionalRNN(width, cell, size, layers, direction, dropout, backend)
        self.output_size = self.summary_size = self.rnn.output_size

    @classmethod
    def needs_cells(cls, settings: Mapping[str, Any], *, attended: bool) -> bool:
        """Whether clips are used: only they are made of cells; attention is over frames."""
        return bool(settings["reads"] != "frames")

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """A pretrained network, frozen, and half the size in each direction."""
        reads = {"cell": "gru", "size": size // 2, "direction": "both", "dropout": dropout}
        return {"backbone": "efficientnet_lite0", **reads}

    def forward(self, video: Padded) -> Encoded:
        """The states (B, F, D) and the summary (B, D) of frames."""
        maps_BFCHW, vector_BFK = self.backbone(video)
        features = [] if self.reads == "clips" else [vector_BFK]
        if self.clips is not None:
            features.append(self._clips(maps_BFCHW, self.clips))
        inputs = self.dropout(self.norm(torch.cat(features, dim=-1)))
        memory_BFD, summary_BD = self.rnn(inputs, video.mask)
        return Encoded(memory_BFD, video.mask, summary_BD, Layout("frames"))

    @staticmethod
    def _clips(maps: Tensor, convolution: nn.Conv3d) -> Tensor:
        """κ_j for every frame, (B, F, G); frames beyond the video are zeros, as its padding is."""
        features_BGFHW: Tensor = convolution(maps.transpose(1, 2))
        return torch.relu(features_BGFHW).mean((-2, -1)).transpose(1, 2)

    def equations(self) -> list[str]:
        """The features of each frame, their normalisation, and the recurrence."""
        half = CLIP // 2
        lines = self.backbone.equations(at="_j")
        if self.clips:
            window = f"W_3 * r_{{j-{half}..j+{half}}} + b_3"
            over = "over the cells; * is a convolution over frames and cells"
            lines = [*lines, f"κ_j = mean(relu({window})): {over}"]
        features = {"frames": "v_j", "clips": "κ_j", "both": "[v_j, κ_j]"}[self.reads]
        lines = [*lines, NORM, f"x_j = γ_x ⊙ norm({features}) + δ_x"]
        return [*lines, *self.rnn.equations(reads="x_j")]
