"""A recurrent network that reads positions in one or both directions, in one or several layers.

Dims: B batch, S positions, I input features, D output features.
"""

from typing import Literal, final

import torch
from torch import Tensor, nn

from sixjars.model.cells import EQUATIONS, CellName, Recurrent
from sixjars.model.layers import last_real, reordered, reversal

Direction = Literal["forward", "backward", "both"]
READS: dict[Direction, tuple[str, ...]] = {
    "forward": ("onward",),
    "backward": ("backward",),
    "both": ("onward", "backward"),
}


@final
class Reading(nn.Module):
    r"""h_t = RNN(h_{t-1}, x_t), where x_t is a word's embedding, a frame's features, a sentence's vector.

    `direction="backward"` reads in reverse order; the states still stand at the places of what was read. With `both`,
    h_j = [h→_j, h←_j] and the summary joins the last state of each direction (Schuster & Paliwal 1997).

    Rows are padded, not packed: the backward reader sees each row reversed within its own length, so padding comes
    last for both and cannot be seen, and the whole can be exported.
    """

    def __init__(
        self,
        *,
        input_size: int,
        cell: CellName,
        size: int,
        layers: int = 1,
        direction: Direction = "forward",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.cell: CellName = cell
        self.direction: Direction = direction
        self.dropout = nn.Dropout(dropout)
        self.output_size = size * len(READS[direction])
        inputs = [input_size] + [self.output_size] * (layers - 1)
        self.readers = nn.ModuleList(
            nn.ModuleDict({read: Recurrent(cell=cell, input_size=width, size=size) for read in READS[direction]})
            for width in inputs
        )

    def forward(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """From (B, S, I) the states (B, S, D), zero where padded, and the summary (B, D)."""
        states_BSD = inputs
        real_BS1 = mask.unsqueeze(-1)
        order_BS = reversal(mask)
        for depth, layer in enumerate(self.readers):
            assert isinstance(layer, nn.ModuleDict)
            if depth > 0:
                states_BSD = self.dropout(states_BSD)
            read = [self._read(name, reader, states_BSD, order_BS) for name, reader in layer.items()]
            states_BSD = torch.cat(read, dim=-1) * real_BS1
        return self.dropout(states_BSD), self.dropout(self._summary(states_BSD, mask))

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

    def equations(self, *, told: str, unit: str, state: str = "h") -> list[str]:
        """The lines of the lecture: `told` is what is read at each step, `unit` its name, `state` the letter."""
        lines = EQUATIONS[self.cell]
        if self.cell != "lstm":
            lines = [line.replace("s_", f"{state}_").replace("s̃_", f"{state}̃_") for line in lines]
        elif state != "h":
            lines = [line.replace("h_", f"{state}_") for line in lines]
        reading = {
            "forward": f"{state}_T is the state after the last {unit}",
            "backward": f"read from the last {unit} to the first; {state}_T is the state after the first {unit}",
            "both": f"{state}_j = [{state}→_j, {state}←_j],  {state}_T = [{state}→_S, {state}←_1]",
        }
        depth = [f"{len(self.readers)} layers, each reads the states below it"] if len(self.readers) > 1 else []
        return [*[line.replace("x_t", told) for line in lines], *depth, reading[self.direction]]
