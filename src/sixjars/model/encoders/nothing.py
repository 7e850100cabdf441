"""No encoder: a language model starts from a vector that it learns.

Dims: B batch, S source positions (none), D source features.
"""

from typing import final

import torch
from torch import nn

from sixjars.flow import Encoded, Encoder, Padded
from sixjars.recipe.ranges import Positive


@final
class NothingEncoder(Encoder):
    """Where no source is, the first state is learned: s_0 is a parameter.

    >>> NothingEncoder(size=4)(Padded.of([[], []])).summary.shape
    torch.Size([2, 4])
    """

    letters = {"start": "s_0"}
    attendable = False

    def __init__(self, *, size: Positive = 128) -> None:
        super().__init__()
        self.output_size = self.summary_size = size
        self.start = nn.Parameter(torch.randn(size) * 0.1)  # s_0

    def forward(self, source: Padded) -> Encoded:
        """The same summary for every row, and no positions; of the source only the number of rows counts."""
        rows = source.values.shape[0]  # not len(): it must stay symbolic in an exported encoder
        memory_BSD = self.start.new_zeros(rows, 0, self.output_size)
        nowhere_BS = torch.zeros(rows, 0, dtype=torch.bool, device=self.start.device)
        return Encoded(memory_BSD, nowhere_BS, self.start.expand(rows, -1))

    def equations(self) -> list[str]:
        """The line of the lecture."""
        return ["h_T = s_0, learned"]
