"""No source: a language model starts from a vector that it learns.

Dims: B batch, S source positions (none), D source features.
"""

from typing import Any, final

import torch
from torch import nn

from sixjars.flow.contracts import Encoder
from sixjars.flow.limits import Size
from sixjars.flow.values import Encoded, Padded


@final
class NothingEncoder(Encoder):
    """Where no source is, the summary is a learned vector, h_T = z.

    >>> NothingEncoder(size=4)(Padded.of([[], []])).summary.shape
    torch.Size([2, 4])
    """

    letters = {"start": "z"}
    attendable = False

    def __init__(self, *, size: Size = 128) -> None:
        super().__init__()
        self.output_size = self.summary_size = size
        self.start = nn.Parameter(torch.randn(size) * 0.1)  # z

    @classmethod
    def inputs(cls) -> tuple[str, ...]:
        """No field: rows without positions only give their number."""
        return ()

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """A vector of that size."""
        return {"size": size}

    def forward(self, nothing: Padded) -> Encoded:
        """The same summary for every row, and no positions."""
        rows = nothing.values.shape[0]  # not len(): it must stay symbolic in an exported encoder
        memory_BSD = self.start.new_zeros(rows, 0, self.output_size)
        nowhere_BS = torch.zeros(rows, 0, dtype=torch.bool, device=self.start.device)
        return Encoded(memory_BSD, nowhere_BS, self.start.expand(rows, -1))

    def equations(self) -> list[str]:
        """The learned summary."""
        return ["h_T = z: no encoder, for there is no input; z is a learned vector"]
