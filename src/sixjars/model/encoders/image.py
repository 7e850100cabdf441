"""An image, or an image and a question about it.

Dims: B batch, F frames (one), C and D channels, H and W cells, S all cells, K summary features.
"""

from typing import Any, Literal, final

import torch
from torch import nn

from sixjars.flow.contracts import Encoder, ModelPlan
from sixjars.flow.limits import Share
from sixjars.flow.values import Encoded, Padded
from sixjars.model.encoders.text import TextEncoder
from sixjars.model.equations import NORM
from sixjars.model.visual import VisualInput


@final
class ImageEncoder(Encoder):
    r"""h_j = norm(r_j), h_T = norm(v), r_1..r_S, v = CNN(I): the cells of an image and the whole.

    Vinyals et al. 2015 (https://arxiv.org/abs/1411.4555) condition the decoder on v; Xu et al. 2015
    (https://arxiv.org/abs/1502.03044) let it attend to the cells r_j. Features of different
    backbones differ in scale, so both are normalised (Ba, Kiros & Hinton 2016,
    https://arxiv.org/abs/1607.06450).

    >>> encoder = ImageEncoder(backbone=VisualInput(pixels=16, widths=(4, 8)))
    >>> pixels = torch.zeros(2, 1, 3 * 16 * 16, dtype=torch.uint8)
    >>> image = Padded(pixels, torch.ones(2, 1, dtype=torch.bool))
    >>> encoder(image).memory.shape, encoder(image).layout.shape
    (torch.Size([2, 16, 8]), (4, 4))
    """

    letters = {
        "cells.weight": "γ_r",
        "cells.bias": "δ_r",
        "whole.weight": "γ_v",
        "whole.bias": "δ_v",
    }

    def __init__(self, *, backbone: VisualInput, dropout: Share = 0.0) -> None:
        super().__init__()
        self.backbone = backbone
        self.dropout = nn.Dropout(dropout)
        self.output_size = backbone.shape.channels
        self.summary_size = backbone.shape.vector
        self.attendable = backbone.attendable
        self.cells = nn.LayerNorm(self.output_size)  # γ_r, δ_r
        self.whole = nn.LayerNorm(self.summary_size)  # γ_v, δ_v

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """A pretrained network, frozen."""
        return {"backbone": {"name": "efficientnet_lite0", "layer": "head"}, "dropout": dropout}

    def forward(self, image: Padded) -> Encoded:
        """The cells (B, S, D), row by row, and the summary (B, K) of an image, its one frame."""
        cells_BSD, mask_BS, vector_BK = self.backbone.regions(image)
        memory_BSD = self.dropout(self.cells(cells_BSD)) * mask_BS.unsqueeze(-1)
        summary_BK = self.dropout(self.whole(vector_BK))
        return Encoded(memory_BSD, mask_BS, summary_BK, self.backbone.layout)

    def equations(self) -> list[str]:
        """The features and their normalisation."""
        cells = ["h_j = γ_r ⊙ norm(r_j) + δ_r"] if self.attendable else []
        return [*self.backbone.equations(), NORM, *cells, "h_T = γ_v ⊙ norm(v) + δ_v"]


@final
class ImageQuestionEncoder(Encoder):
    r"""v̂ = CNN(I), q_k = RNN(q_{k-1}, E_q[x_k]), h_T = [q_T, v̂]: the memory is the image's cells.

    Ren, Kiros & Zemel 2015 (https://arxiv.org/abs/1505.02074) and Antol et al. 2015
    (https://arxiv.org/abs/1505.00468). With `summary="question"` the summary is q_T alone, so that
    the question is the query of attention, as Yang et al. 2016 (https://arxiv.org/abs/1511.02274)
    do with one layer.

    >>> from sixjars import VisualInput, WordEmbedding
    >>> image = ImageEncoder(backbone=VisualInput(pixels=16, widths=(4, 8)))
    >>> question = TextEncoder(embedding=WordEmbedding(vocabulary=10, size=3), size=5)
    >>> values = torch.zeros(2, 1, 3 * 16 * 16, dtype=torch.uint8)
    >>> pixels = Padded(values, torch.ones(2, 1, dtype=torch.bool))
    >>> encoder = ImageQuestionEncoder(image=image, question=question)
    >>> encoded = encoder(pixels, Padded.of([[5, 6], [7]]))
    >>> encoded.memory.shape, encoded.summary.shape
    (torch.Size([2, 16, 8]), torch.Size([2, 133]))
    """

    def __init__(
        self,
        *,
        image: ImageEncoder,
        question: TextEncoder,
        summary: Literal["both", "question"] = "both",
    ) -> None:
        super().__init__()
        self.image = image
        self.question = question
        question.embedding.tag = "q"
        question.rnn.tag_as("q")
        self.summary = summary
        self.output_size = image.output_size
        self.attendable = image.attendable
        self.summary_size = question.summary_size + (image.summary_size if summary == "both" else 0)

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """The settings of each encoder alone."""
        return {
            "image": ImageEncoder.suggest(size, dropout, labels=labels),
            "question": TextEncoder.suggest(size, dropout, labels=labels),
        }

    def forward(self, image: Padded, question: Padded) -> Encoded:
        """The image's cells (B, S, D), and a summary (B, K) of both or of the question."""
        encoded, words = self.image(image), self.question(question)
        summary_BK = words.summary
        if self.summary == "both":
            summary_BK = torch.cat([words.summary, encoded.summary], dim=-1)
        return Encoded(encoded.memory, encoded.mask, summary_BK, encoded.layout)

    @classmethod
    def misfits(cls, plan: ModelPlan) -> list[str]:
        """Report bridges that would leave out the question, which is in the summary alone."""
        faults, bridge = [], plan.kind("bridge")
        if not plan.bridge.reads_summary:
            reason = f"{bridge} ignores the summary, which alone holds the question"
            faults.append(f"model.bridge: {reason}; use attention, with summary: question.")
        if plan.settings["encoder"].get("summary") == "question" and not plan.bridge.follows_state:
            need = "question needs a bridge of kind attention"
            faults.append(f"model.encoder.summary: {need}, but it is {bridge}.")
        return faults

    def equations(self) -> list[str]:
        """The image, the question, and the summary made of them."""
        is_joint = self.summary == "both"
        image = [line for line in self.image.equations() if is_joint or "h_T" not in line]
        image = [line.replace("h_T", "v̂") for line in image]
        question = self.question.equations(state="q", at="k", summary="q_T")
        return [*image, *question, "h_T = [q_T, v̂]" if is_joint else "h_T = q_T"]
