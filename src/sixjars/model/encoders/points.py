"""Points of the plane, or of any number of dimensions, read by a recurrent network in the order they are given.

Dims: B batch, S points, N numbers of a point, E embedding features, D source features.
"""

from typing import final

from torch import nn

from sixjars.flow import Encoded, Encoder, Padded
from sixjars.model.cells import LETTERS, CellName
from sixjars.model.reading import Direction, Reading
from sixjars.recipe.ranges import Positive, Share


@final
class PointsEncoder(Encoder):
    r"""x_j = W_e p_j + b_e, h_j = RNN(h_{j-1}, x_j), in one or both directions, in one or several layers.

    Vinyals, Fortunato & Jaitly 2015 (https://arxiv.org/abs/1506.03134), section 2.3. A number to be sorted is a point
    of one dimension.

    >>> import torch
    >>> points = Padded(torch.rand(2, 5, 2), torch.ones(2, 5, dtype=torch.bool))
    >>> PointsEncoder(numbers=2, size=4, direction="both")(points).memory.shape
    torch.Size([2, 5, 8])
    """

    letters = {**LETTERS, "embedding.weight": "W_e", "embedding.bias": "b_e"}

    def __init__(
        self,
        *,
        numbers: int,
        embedding: Positive = 64,
        cell: CellName = "gru",
        size: Positive = 128,
        layers: Positive = 1,
        direction: Direction = "forward",
        dropout: Share = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = nn.Linear(numbers, embedding)  # W_e, b_e
        self.reading = Reading(
            input_size=embedding, cell=cell, size=size, layers=layers, direction=direction, dropout=dropout
        )
        self.output_size = self.summary_size = self.reading.output_size

    def forward(self, points: Padded) -> Encoded:
        """Numbers (B, S, N) to annotations (B, S, D) and a summary (B, D)."""
        embedded_BSE = self.embedding(points.values.to(self.embedding.weight.dtype))
        memory_BSD, summary_BD = self.reading(embedded_BSE, points.mask)
        return Encoded(memory_BSD, points.mask, summary_BD)

    def equations(self) -> list[str]:
        """The lines of the paper, for the encoder's states h."""
        return ["x_t = W_e p_t + b_e", *self.reading.equations(told="x_t", unit="point")]
