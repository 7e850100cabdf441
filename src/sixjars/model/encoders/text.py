"""Words (or characters, or pieces of words) read by a recurrent network.

Dims: B batch, S source positions, E embedding features, D source features.
"""

from typing import Literal, final

import torch
from torch import Tensor, nn

from sixjars.flow import Encoded, Encoder, Padded
from sixjars.model.cells import EQUATIONS, LETTERS, CellName, Recurrent
from sixjars.model.layers import WordEmbedding, last_real, reordered, reversal
from sixjars.recipe.ranges import Positive, Share

Direction = Literal["forward", "backward", "both"]
READS: dict[Direction, tuple[str, ...]] = {
    "forward": ("onward",),
    "backward": ("backward",),
    "both": ("onward", "backward"),
}


@final
class TextEncoder(Encoder):
    r"""h_t = RNN(h_{t-1}, e(x_t)), in one or both directions, in one or several layers.

    `direction="backward"` reads the source in reverse order (A B C → X Y is trained as C B A → X Y), as Sutskever,
    Vinyals & Le 2014 (https://arxiv.org/abs/1409.3215, section 3.3) do; the annotations still stand at the places of
    their words. With `both`, h_j = [h→_j, h←_j] and the summary joins the last state of each direction
    (Schuster & Paliwal 1997).

    Rows are padded, not packed: the backward reader sees each row reversed within its own length, so padding comes
    last for both and cannot be seen, and the whole can be exported.

    >>> words = WordEmbedding(vocabulary=10, size=3)
    >>> TextEncoder(embedding=words, size=4, direction="both")(Padded.of([[5, 6, 7], [8]])).memory.shape
    torch.Size([2, 3, 8])
    """

    letters = {**LETTERS, "table.weight": "e"}

    def __init__(
        self,
        *,
        embedding: WordEmbedding,
        cell: CellName = "gru",
        size: Positive = 128,
        layers: Positive = 1,
        direction: Direction = "forward",
        dropout: Share = 0.0,
    ) -> None:
        super().__init__()
        self.cell: CellName = cell
        self.embedding = embedding
        self.direction: Direction = direction
        self.dropout = nn.Dropout(dropout)
        self.output_size = size * len(READS[direction])
        inputs = [embedding.size] + [self.output_size] * (layers - 1)
        self.readers = nn.ModuleList(
            nn.ModuleDict({read: Recurrent(cell=cell, input_size=width, size=size) for read in READS[direction]})
            for width in inputs
        )

    def forward(self, source: Padded) -> Encoded:
        """Token ids (B, S) to annotations (B, S, D) and a summary (B, D)."""
        states_BSD: Tensor = self.embedding(source.values)
        real_BS1 = source.mask.unsqueeze(-1)
        order_BS = reversal(source.mask)
        for depth, layer in enumerate(self.readers):
            assert isinstance(layer, nn.ModuleDict)
            if depth > 0:
                states_BSD = self.dropout(states_BSD)
            read = [self._read(name, reader, states_BSD, order_BS) for name, reader in layer.items()]
            states_BSD = torch.cat(read, dim=-1) * real_BS1
        return Encoded(self.dropout(states_BSD), source.mask, self.dropout(self._summary(states_BSD, source.mask)))

    @staticmethod
    def _read(name: str, reader: nn.Module, states: Tensor, order: Tensor) -> Tensor:
        if name == "onward":
            onward: Tensor = reader(states)
            return onward
        return reordered(reader(reordered(states, order)), order)

    def _summary(self, states: Tensor, mask: Tensor) -> Tensor:
        """The last state that each direction reached: at the last real position forwards, at the first backwards."""
        size = self.output_size // len(READS[self.direction])
        if self.direction == "forward":
            return last_real(states, mask)
        first_BD = states[:, 0]
        if self.direction == "backward":
            return first_BD
        return torch.cat([last_real(states[..., :size], mask), first_BD[..., size:]], dim=-1)

    def equations(self) -> list[str]:
        """The lines of the lecture, for the encoder's states h."""
        state = "h" if self.cell != "lstm" else ""
        lines = [line.replace("s_", "h_").replace("s̃_", "h̃_") if state else line for line in EQUATIONS[self.cell]]
        reading = {
            "forward": "h_T is the state after the last word",
            "backward": "read from the last word to the first; h_T is the state after the first word",
            "both": "h_j = [h→_j, h←_j],  h_T = [h→_S, h←_1]",
        }
        depth = [f"{len(self.readers)} layers, each reads the states below it"] if len(self.readers) > 1 else []
        return [*[line.replace("x_t", "e(x_t)") for line in lines], *depth, reading[self.direction]]
