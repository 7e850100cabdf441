"""Points of any number of dimensions, encoded by a recurrent network in their order.

Dims: B batch, S points, N dimensions of a point, E embedding features, D source features.
"""

from typing import Any, final

from torch import nn

from sixjars.flow.backend import Backend
from sixjars.flow.contracts import Encoder
from sixjars.flow.limits import Layers, Share, Size
from sixjars.flow.values import Encoded, Layout, Padded
from sixjars.model.recurrent import Direction, DirectionalRNN
from sixjars.model.reference import REFERENCE, CellName


@final
class PointsEncoder(Encoder):
    r"""x_j = W_e p_j + b_e, h_j = RNN(h_{j-1}, x_j), in one or both directions.

    Vinyals, Fortunato & Jaitly 2015 (https://arxiv.org/abs/1506.03134), section 2.3. A number to be
    sorted is a point of one dimension.

    >>> import torch
    >>> points = Padded(torch.rand(2, 5, 2), torch.ones(2, 5, dtype=torch.bool))
    >>> PointsEncoder(dimensions=2, size=4, direction="both")(points).memory.shape
    torch.Size([2, 5, 8])
    """

    letters = {"embedding.weight": "W_e", "embedding.bias": "b_e"}

    def __init__(  # noqa: PLR0913 - keys of a recipe, and what the toolkit fills in
        self,
        *,
        dimensions: int,
        embedding: Size = 64,
        cell: CellName = "gru",
        size: Size = 128,
        layers: Layers = 1,
        direction: Direction = "forward",
        dropout: Share = 0.0,
        backend: Backend = REFERENCE,
    ) -> None:
        super().__init__()
        self.embedding = nn.Linear(dimensions, embedding)  # W_e, b_e
        self.rnn = DirectionalRNN(embedding, cell, size, layers, direction, dropout, backend)
        self.output_size = self.summary_size = self.rnn.output_size

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """Half the size in each direction."""
        half = size // 2
        rnn = {"cell": "gru", "size": half, "direction": "both", "dropout": dropout}
        return {"embedding": half, **rnn}

    def forward(self, points: Padded) -> Encoded:
        """The annotations (B, S, D) and the summary (B, D) of coordinates (B, S, N)."""
        embedded_BSE = self.embedding(points.values.to(self.embedding.weight.dtype))
        memory_BSD, summary_BD = self.rnn(embedded_BSE, points.mask)
        return Encoded(memory_BSD, points.mask, summary_BD, Layout("points"))

    def equations(self) -> list[str]:
        """The embedding of a point, and the recurrence."""
        return ["x_j = W_e p_j + b_e", *self.rnn.equations(reads="x_j")]
