r"""An encoder's recurrence: over a sequence forwards, backwards, or both.

Dims: B batch, S positions, I input features, D output features.
"""

from typing import Literal, cast, final

import torch
from torch import Tensor, nn

from sixjars.model.equations import LAST, ZERO, layers_above, raised, recurrence
from sixjars.model.layers import last_real, reordered, reversal
from sixjars.model.recurrent import CellName, Recurrent, side_by_side

Direction = Literal["forward", "backward", "both"]
READS: dict[Direction, tuple[str, ...]] = {
    "forward": ("left_to_right",),
    "backward": ("right_to_left",),
    "both": ("left_to_right", "right_to_left"),
}
ARROWS = {"left_to_right": "→", "right_to_left": "←"}


@final
class DirectionalRNN(nn.Module):
    r"""h_j = RNN(h_{j-1}, x_j), where x_j is a word's embedding, a frame's features, a segment's vector.

    `direction="backward"` reads in reverse order; the states still stand at the places of what was read. With `both`,
    h_j = [h→_j, h←_j] and the summary joins the last state of each direction (Schuster & Paliwal 1997).

    Rows are padded, not packed: the backward direction reads each row reversed within its own length, so padding comes
    last for both and has no influence, and the whole can be exported.
    """

    def __init__(
        self, input_size: int, cell: CellName, size: int, layers: int, direction: Direction, dropout: float
    ) -> None:
        super().__init__()
        self.cell: CellName = cell
        self.direction: Direction = direction
        self.dropout = nn.Dropout(dropout)
        self.output_size = size * len(READS[direction])
        self.layers = nn.ModuleList(
            nn.ModuleDict({read: Recurrent(cell=cell, input_size=width, size=size) for read in READS[direction]})
            for width in [input_size, *[self.output_size] * (layers - 1)]
        )
        self.tag_as("enc")

    def tag_as(self, tag: str) -> None:
        """Name its weights, to distinguish them from those of other networks: U_enc, or U_enc2→."""
        self.tag = tag
        for depth, layer in enumerate(self.layers, start=1):
            for read, cells in layer.named_children():
                assert isinstance(cells, Recurrent)
                arrow = ARROWS[read] if self.direction == "both" else ""
                cells.tag = f"{tag}{depth if len(self.layers) > 1 else ''}{arrow}"

    def forward(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """From (B, S, I) the states (B, S, D), zero where padded, and the summary (B, D)."""
        states_BSD = inputs
        real_BS1 = mask.unsqueeze(-1)
        order_BS = reversal(mask)
        for depth, layer in enumerate(self.layers):
            assert isinstance(layer, nn.ModuleDict)
            if depth > 0:
                states_BSD = self.dropout(states_BSD)
            read = [name == "left_to_right" for name in layer]
            given = [states_BSD if onward else reordered(states_BSD, order_BS) for onward in read]
            made = side_by_side(cast("list[Recurrent]", list(layer.values())), given)
            back = [
                states if onward else reordered(states, order_BS) for states, onward in zip(made, read, strict=True)
            ]
            states_BSD = torch.cat(back, dim=-1) * real_BS1  # a cell goes on over the padding behind a row
        return self.dropout(states_BSD), self.dropout(self._summary(states_BSD, mask))

    def _summary(self, states: Tensor, mask: Tensor) -> Tensor:
        """The last state that each direction reached: at the last real position forwards, at the first backwards."""
        reads = READS[self.direction]
        halves = zip(reads, states.chunk(len(reads), dim=-1), strict=True)
        return torch.cat(
            [last_real(half, mask) if read == "left_to_right" else half[:, 0] for read, half in halves], dim=-1
        )

    def equations(self, *, reads: str, state: str = "h", at: str = "j", summary: str = "h_T") -> list[str]:
        """The equations: `reads` is the input at the index `at`; `summary` is the letter of the last state, or ''."""
        count, both = len(self.layers), self.direction == "both"
        low, high = ("", "") if count == 1 else ("¹", raised(count))
        tag, arrow = f"{self.tag}{1 if count > 1 else ''}", "→" if both else ""
        onward = 1 if self.direction == "backward" else -1
        lines = recurrence(self.cell, state=state, mark=low + arrow, tag=tag + arrow, reads=reads, at=at, step=onward)
        if both:
            word = at[-1]
            lines += [
                f"{state}{low}←_{at}: the same with ← for → and {word}+1 for {word}-1",
                f"{state}{low}_{at} = [{state}{low}→_{at}, {state}{low}←_{at}]",
            ]
        lines += layers_above(count, state=state, tag=self.tag, reads=reads, at=at)
        first, last = f"{at[:-1]}1", f"{at[:-1]}{LAST[at[-1]]}"
        ends = {
            "forward": f"{state}_{last}",
            "backward": f"{state}_{first}",
            "both": f"[{state}{high}→_{last}, {state}{high}←_{first}]",
        }
        return [*lines, ZERO, *([f"{summary} = {ends[self.direction]}"] if summary else [])]
