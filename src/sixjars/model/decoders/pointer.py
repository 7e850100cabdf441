r"""Points at source positions, one after the other, each at most once.

Dims: B batch, S source positions, T target positions, D source features, C context features, H state features,
      A attention features, G gate features, V = 4 + S tokens, R rows open in search.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, final

import torch
from torch import Tensor, nn

from sixjars.data.text import GO, PAD, SPECIAL, STOP, UNK
from sixjars.flow import Bridge, Carried, Encoded, FirstShape, Marks, Padded, Rows, Scored, State, Taught, Writer
from sixjars.model.cells import EQUATIONS, LETTERS, CellName, Recurrent, first_shape
from sixjars.model.layers import told_before
from sixjars.recipe.ranges import Positive, Share


@final
@dataclass(frozen=True)
class Pointed(Rows):
    """What a pointer remembers between steps."""

    state: State
    """Of its recurrent network."""
    chosen: Tensor
    """True where a position was pointed at, (R, S)."""
    keys: Tensor
    """W_1 h_j, (R, S, A): the same at every step."""


@final
class PointerDecoder(Writer):
    r"""u_jt = vᵀ tanh(W_1 h_j + W_2 s_t), P(y_t = j | y_1..y_{t-1}, x) = softmax_j(u_jt): attention is the output.

    Vinyals, Fortunato & Jaitly 2015 (https://arxiv.org/abs/1506.03134), equation 3; token 4 + j points at position j.
    A step is told the memory h_j of the position before, and what the bridge says. A position that was chosen cannot
    be chosen again, neither in training nor in use (theirs may be, and search rules it out). With `visits: all`,
    `<stop>` comes when and only when nothing is left. With `visits: some` it has a learned key and competes with the
    positions from the second step on.

    `teach` scores all steps at once. Where the bridge does not follow the state, the recurrence too is one call.

    >>> from sixjars import InitialState
    >>> decoder = PointerDecoder(bridge=InitialState(summary_size=4, state_size=6), source_size=4, size=6)
    >>> source = Encoded(torch.randn(1, 3, 4), torch.ones(1, 3, dtype=torch.bool), torch.randn(1, 4))
    >>> decoder.teach(source, Padded.of([[6, 4, 5, 2]])).weights[0] > 0
    tensor([[ True,  True,  True],
            [ True,  True, False],
            [False,  True, False],
            [False, False, False]])
    """

    letters = {**LETTERS, "key.weight": "W_1", "query.weight": "W_2", "score.weight": "v", "go": "g", "stop": "k"}
    marks = Marks(go=GO, stop=STOP, banned=(PAD, UNK))

    def __init__(  # noqa: PLR0913 - bridge and source are given, the others are keys of a recipe
        self,
        *,
        bridge: Bridge,
        source_size: int,
        cell: CellName = "gru",
        size: Positive = 128,
        layers: Positive = 1,
        dropout: Share = 0.0,
        attention: Positive = 128,
        visits: Literal["all", "some"] = "all",
    ) -> None:
        super().__init__()
        self.cell: CellName = cell
        self.bridge = bridge
        self.source_size = source_size
        width = source_size + bridge.context_size
        self.recurrent = Recurrent(cell=cell, input_size=width, size=size, layers=layers, dropout=dropout)
        self.dropout = nn.Dropout(dropout)
        self.key = nn.Linear(source_size, attention, bias=False)  # W_1
        self.query = nn.Linear(size, attention, bias=False)  # W_2
        self.score = nn.Linear(attention, 1, bias=False)  # v
        self.go = nn.Parameter(torch.randn(source_size) * source_size**-0.5)  # g
        self.stop = nn.Parameter(torch.randn(attention) * attention**-0.5) if visits == "some" else None  # k

    @staticmethod
    def first_shape(settings: Mapping[str, Any]) -> FirstShape:
        """A vector for each layer and memory of the cell."""
        return first_shape(settings)

    def teach(self, encoded: Encoded, target: Padded) -> Taught:
        """Scores (B, T, V) for a whole target, each step told the true position before it."""
        first, carried = self.start(encoded)
        told_BT = told_before(target.values, GO)
        pointed_BTS = self._pointed(told_BT, encoded.mask.unsqueeze(1))
        told_BTD = self._told(told_BT, pointed_BTS, encoded.memory)
        if self.bridge.follows:
            states_BTH, _ = self.recurrent.followed(told_BTD, first.state, partial(self.bridge.step, carried=carried))
        else:
            heard = self.bridge.step(first.state.hidden[:, -1], carried)
            heard_BTC = heard.vector.unsqueeze(1).expand(-1, told_BT.shape[1], -1)
            states_BTH = self.recurrent(torch.cat([told_BTD, heard_BTC], dim=-1), first.state)
        chosen_BTS = pointed_BTS.int().cumsum(1) > 0
        scores_BTV, _ = self._scores(states_BTH, first.keys, chosen_BTS, encoded.mask)
        return Taught(scores_BTV, torch.softmax(scores_BTV.float(), dim=-1)[..., len(SPECIAL) :])

    def longest(self, encoded: Encoded, asked: int) -> int:
        """Every position once and `<stop>`, whatever is asked: half a tour is none."""
        return encoded.mask.shape[1] + 1

    def start(self, encoded: Encoded) -> tuple[Pointed, Carried]:
        """The first state, and what the bridge prepared for each source."""
        carried = self.bridge.start(encoded)
        state = self.recurrent.first(carried.first)
        return Pointed(state, torch.zeros_like(encoded.mask), self.key(encoded.memory)), carried

    def step(self, token: Tensor, state: Pointed, carried: Carried) -> tuple[Scored, Pointed]:
        """One token of each row (R,), and what may follow it (R, V); -inf is what may not."""
        pointed_RS = self._pointed(token, carried.mask)
        told_RD = self._told(token.unsqueeze(1), pointed_RS.unsqueeze(1), carried.memory).squeeze(1)
        context = self.bridge.step(state.state.hidden[:, -1], carried)
        given_RG = self.recurrent.project(torch.cat([told_RD, context.vector], dim=-1))
        memory = self.recurrent.advance(given_RG, self.recurrent.opened(state.state))
        chosen_RS = state.chosen | pointed_RS
        scores_R1V, may_R1V = self._scores(memory[-1][0].unsqueeze(1), state.keys, chosen_RS.unsqueeze(1), carried.mask)
        log_probabilities_RV = torch.log_softmax(scores_R1V.squeeze(1).float(), dim=-1)
        log_probabilities_RV = log_probabilities_RV.masked_fill(~may_R1V.squeeze(1), -torch.inf)
        weights_RS = log_probabilities_RV[:, len(SPECIAL) :].exp()
        return Scored(log_probabilities_RV, weights_RS), Pointed(self.recurrent.closed(memory), chosen_RS, state.keys)

    @staticmethod
    def _pointed(tokens: Tensor, mask: Tensor) -> Tensor:
        """Which real position each token points at: one more dimension, S, True once or (a special token) nowhere."""
        places_S = torch.arange(mask.shape[-1], device=mask.device) + len(SPECIAL)
        return (tokens.unsqueeze(-1) == places_S) & mask

    def _told(self, tokens_BT: Tensor, pointed_BTS: Tensor, memory_BSD: Tensor) -> Tensor:
        """The memory of the positions pointed at, (B, T, D); g for `<go>`."""
        found_BTD = torch.bmm(pointed_BTS.to(memory_BSD.dtype), memory_BSD)
        return torch.where((tokens_BT == GO).unsqueeze(-1), self.go.to(found_BTD.dtype), found_BTD)

    def _scores(
        self, states_BTH: Tensor, keys_BSA: Tensor, chosen_BTS: Tensor, mask_BS: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The score of every token, the lowest there is where it may not come; and whether it may. Both (B, T, V)."""
        asked_BTA = self.query(self.dropout(states_BTH))
        scores_BTS = self.score(torch.tanh(keys_BSA.unsqueeze(1) + asked_BTA.unsqueeze(2))).squeeze(-1)
        free_BTS = mask_BS.unsqueeze(1) & ~chosen_BTS
        ends_BT1 = ~free_BTS.any(-1, keepdim=True)
        stop_BT1 = scores_BTS.new_zeros(ends_BT1.shape)
        if self.stop is not None:
            ends_BT1 = ends_BT1 | chosen_BTS.any(-1, keepdim=True)
            stop_BT1 = self.score(torch.tanh(self.stop + asked_BTA))
        never_BT1 = torch.zeros_like(ends_BT1)
        columns = [stop_BT1 if token == STOP else torch.zeros_like(stop_BT1) for token in range(len(SPECIAL))]
        allowed = [ends_BT1 if token == STOP else never_BT1 for token in range(len(SPECIAL))]
        may_BTV = torch.cat([*allowed, free_BTS], dim=-1)
        scores_BTV = torch.cat([*columns, scores_BTS], dim=-1)
        return scores_BTV.masked_fill(~may_BTV, torch.finfo(scores_BTV.dtype).min), may_BTV

    def equations(self) -> list[str]:
        """The lines of the paper."""
        told = "[h_{y_{t-1}}, c_t]" if self.bridge.context_size else "h_{y_{t-1}}"
        state = "h_t" if self.cell == "lstm" else "s_t"
        depth = [f"{self.recurrent.layers} layers, each fed by the one below"] if self.recurrent.layers > 1 else []
        stop = "<stop> when no position is left" if self.stop is None else f"u_stop,t = vᵀ tanh(k + W_2 {state})"
        return [
            *[line.replace("x_t", told) for line in EQUATIONS[self.cell]],
            "h_{y_0} = g",
            *depth,
            f"u_jt = vᵀ tanh(W_1 h_j + W_2 {state})",
            stop,
            "P(y_t = j | y_1..y_{t-1}, x) = softmax_j(u_jt), over positions not chosen yet"
            + ("" if self.stop is None else " and <stop>"),
        ]
