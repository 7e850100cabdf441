r"""A conditional recurrence: attention receives a state that has read the previous token.

Dims: B batch, T positions, I input features, H state features, C context features, G gate features.
"""

from typing import Any, final

from torch import Tensor, nn

from sixjars.flow.backend import Backend, LayerState
from sixjars.flow.contracts import Bridge
from sixjars.flow.values import Context, Prepared, State
from sixjars.model.equations import raised, recurrence
from sixjars.model.recurrent import Recurrent, joined
from sixjars.model.reference import REFERENCE, CellName

QUERY = "s′_t"
"""The letter of the state that attention receives."""


@final
class ConditionalRecurrent(nn.Module):
    r"""s′_t = RNN_mid(s_{t-1}, x_t), c_t = attention(s′_t), s_t = RNN_dec(s′_t, c_t).

    The conditional GRU with attention of Sennrich et al. 2017 (Nematus,
    https://arxiv.org/abs/1703.04357), first in the dl4mt tutorial. The query of attention knows the
    last token, which s_{t-1} does not. Where we differ: both cells may be of any kind (an LSTM's
    memory cell goes from one to the other), and the output layer reads s_t alone, where theirs also
    reads c_t and the embedding. Layers above the first read the layer below, as in any stack.
    """

    def __init__(
        self,
        *,
        cell: CellName,
        input_size: int,
        context_size: int,
        size: int,
        layers: int = 1,
        dropout: float = 0.0,
        backend: Backend = REFERENCE,
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"cell": cell, "size": size, "backend": backend}
        self.middle = Recurrent(input_size=input_size, **options)
        self.middle.tag = "mid"
        self.last = Recurrent(input_size=context_size, layers=layers, dropout=dropout, **options)
        self.layers = layers

    def first(self, vectors: Tensor, attended: Tensor | None = None) -> State:
        """The initial state made of (B, L * H * states), as of a plain stack."""
        return self.last.first(vectors, attended)

    def unroll(
        self, inputs: Tensor, state: State, bridge: Bridge, prepared: Prepared
    ) -> tuple[Tensor, Context]:
        """All states (B, T, H) and contexts (B, T, C) from inputs (B, T, I)."""
        unrolled = self.last.unrolled(inputs, state, bridge, prepared, self.middle)
        if unrolled is not None:
            return unrolled
        layers, attended = self.last.opened(state), state.attended
        states: list[Tensor] = []
        contexts: list[Context] = []
        for given_BG in self.middle.project(inputs).unbind(1):
            layers, context = self._advance(given_BG, layers, bridge, prepared, attended)
            attended = context.attended
            states.append(layers[-1][0])
            contexts.append(context)
        return joined(states, contexts)

    def step(
        self, inputs: Tensor, state: State, bridge: Bridge, prepared: Prepared
    ) -> tuple[State, Context]:
        """One step: inputs (B, I) to the state after them, and the context between both cells."""
        given_BG, layers = self.middle.project(inputs), self.last.opened(state)
        layers, context = self._advance(given_BG, layers, bridge, prepared, state.attended)
        return self.last.closed(layers, context.attended), context

    def _advance(
        self,
        given_BG: Tensor,
        layers: list[LayerState],
        bridge: Bridge,
        prepared: Prepared,
        attended: Tensor | None,
    ) -> tuple[list[LayerState], Context]:
        [middle] = self.middle.advance(given_BG, layers[:1])
        context = bridge.step_from(middle[0], prepared, attended)
        return self.last.advance(self.last.project(context.vector), [middle, *layers[1:]]), context

    def equations(self, *, reads: str) -> list[str]:
        """Both cells, and each layer above them in full."""
        cell, count = self.last.cell, self.layers
        marks = [""] if count == 1 else [raised(layer + 1) for layer in range(count)]
        tags = [self.last.tag + ("" if count == 1 else str(layer + 1)) for layer in range(count)]
        middle = recurrence(cell, state="s", mark="′", tag="mid", reads=reads)
        bottom = recurrence(cell, state="s", mark=marks[0], tag=tags[0], reads="c_t")
        before = {"s′_{t-1}": f"s{marks[0]}_{{t-1}}", "m_{mid,t-1}": f"m_{{{tags[0]},t-1}}"}
        between = {f"s{marks[0]}_{{t-1}}": QUERY, f"m_{{{tags[0]},t-1}}": "m_mid,t"}
        lines = [line for line in self.last.equations(reads="c_t") if line.endswith(" = d_0")]
        lines += _replaced(middle, before) + _replaced(bottom, between)
        for below, mark, tag in zip(marks, marks[1:], tags[1:], strict=False):
            lines += recurrence(cell, state="s", mark=mark, tag=tag, reads=f"s{below}_t")
        return lines if count == 1 else [*lines, f"s_t = s{marks[-1]}_t"]


def _replaced(lines: list[str], names: dict[str, str]) -> list[str]:
    """The lines of a cell with other names for the state before it."""
    for name, instead in names.items():
        lines = [line.replace(name, instead) for line in lines]
    return lines
