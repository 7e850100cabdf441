r"""Outputs source positions, one after the other, each at most once.

Dims: B batch, S source positions, T target positions, D source features, C context features,
      H state features, A attention features, G gate features, V = 4 + S tokens, N rows of each
      source, R = B * N rows open in search.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.flow.backend import Backend
from sixjars.flow.contracts import Bridge, Generator, ModelPlan
from sixjars.flow.limits import Layers, Share, Size
from sixjars.flow.values import DecoderOutput, Encoded, Padded, Prepared, Rows, State, StepOutput
from sixjars.model.layers import Linear, by_source, shift_right, wide
from sixjars.model.recurrent import Recurrent
from sixjars.model.reference import REFERENCE, CellName, state_shape
from sixjars_runtime.special_tokens import GO, PAD, SPECIAL, STOP, UNK, SpecialTokens


@final
@dataclass(frozen=True)
class PointerState(Rows):
    """The state of a pointer between steps."""

    state: State
    """The state of its recurrent network."""
    chosen: Tensor
    """True where a position has been pointed at, (R, S)."""


@final
class PointerDecoder(Generator):
    r"""u_jt = v_ptrᵀ tanh(W_1 h_j + W_2 s_t), P(y_t = j | y_1..y_{t-1}, x) = softmax_j(u_jt).

    Attention is the output: Vinyals, Fortunato & Jaitly 2015 (https://arxiv.org/abs/1506.03134),
    equation 3; token 4 + j points at position j. The input of a step is the memory h_j of the
    position before, and the context of the bridge. No position can be chosen twice, neither in
    training nor in prediction (theirs may be, and search rules it out). With `visits: all`,
    `<stop>` comes when and only when nothing is left. With `visits: some` it has a learned key and
    competes with the positions from the second step on.

    `teach` scores all steps at once. Where the bridge does not follow the state, the recurrence too
    is one call.

    >>> from sixjars import InitialState
    >>> bridge = InitialState(summary_size=4, state_size=6)
    >>> decoder = PointerDecoder(bridge=bridge, source_size=4, size=6)
    >>> source = Encoded(torch.randn(1, 3, 4), torch.ones(1, 3) > 0, torch.randn(1, 4))
    >>> decoder.teach(source, Padded.of([[6, 4, 5, 2]])).weights[0] > 0
    tensor([[ True,  True,  True],
            [ True,  True, False],
            [False,  True, False],
            [False, False, False]])
    """

    produces = "positions"
    letters = {
        "key.weight": "W_1",
        "query.weight": "W_2",
        "score.weight": "v_ptr",
        "go": "h_go",
        "stop": "k_stop",
    }
    state_shape = staticmethod(state_shape)
    special = SpecialTokens(go=GO, stop=STOP, banned=(PAD, UNK))

    def __init__(  # noqa: PLR0913 - bridge and source are given, the others are keys of a recipe
        self,
        *,
        bridge: Bridge,
        source_size: int,
        cell: CellName = "gru",
        size: Size = 128,
        layers: Layers = 1,
        dropout: Share = 0.0,
        attention: Size = 128,
        visits: Literal["all", "some"] = "all",
        backend: Backend = REFERENCE,
    ) -> None:
        super().__init__()
        self.bridge = bridge
        width = source_size + bridge.context_size
        stack: dict[str, Any] = {"cell": cell, "size": size, "layers": layers, "dropout": dropout}
        self.rnn = Recurrent(input_size=width, backend=backend, **stack)
        self.dropout = nn.Dropout(dropout)
        self.key = Linear(source_size, attention, bias=False, backend=backend)  # W_1
        self.query = Linear(size, attention, bias=False, backend=backend)  # W_2
        self.score = Linear(attention, 1, bias=False, backend=backend)  # v_ptr
        self.go = nn.Parameter(torch.randn(source_size) * source_size**-0.5)  # h_go
        stop = torch.randn(attention) * attention**-0.5 if visits == "some" else None
        self.stop = None if stop is None else nn.Parameter(stop)  # k_stop

    @classmethod
    def target_options(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Whether every target must have all positions."""
        return {"complete": settings["visits"] == "all"}

    @classmethod
    def misfits(cls, plan: ModelPlan) -> list[str]:
        """Report smoothing, which needs a vocabulary."""
        if not plan.smoothing:
            return []
        why = "a pointer has no vocabulary to spread the probability over; remove it."
        return [f"loss.smoothing: {why}"]

    @property
    def has_attention(self) -> bool:
        """True: attention is its output."""
        return True

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """A GRU of that size."""
        return {"cell": "gru", "size": size, "attention": size, "dropout": dropout}

    def teach(self, encoded: Encoded, target: Padded) -> DecoderOutput:
        """Teacher forcing: logits (B, T, V), each step given the true position before it."""
        first, prepared = self.start(encoded)
        previous_BT = shift_right(target.values, GO)
        pointed_BTS = self._pointed(previous_BT, encoded.mask.unsqueeze(1))
        inputs_BTD = self._inputs(previous_BT, pointed_BTS, encoded.memory)
        states_BTH, _ = self.rnn.unroll(inputs_BTD, first.state, self.bridge, prepared)
        chosen_BTS = pointed_BTS.int().cumsum(1) > 0
        logits_BTV, _ = self._logits(states_BTH, chosen_BTS, prepared)
        weights_BTS = torch.softmax(wide(logits_BTV), dim=-1)[..., len(SPECIAL) :]
        return DecoderOutput(logits_BTV, weights_BTS)

    def longest(self, encoded: Encoded) -> int:
        """Every position once and `<stop>`, whatever the settings say."""
        return encoded.mask.shape[1] + 1

    def start(self, encoded: Encoded) -> tuple[PointerState, Prepared]:
        """The initial state, and what the bridge prepared for each source."""
        prepared = replace(self.bridge.start(encoded), pointer_keys=self.key(encoded.memory))
        state = self.rnn.first(prepared.first_state, self.bridge.first_attended(prepared))
        return PointerState(state, torch.zeros_like(encoded.mask)), prepared

    @property
    def grouped(self) -> bool:
        """Whether its bridge is."""
        return self.bridge.grouped

    def step(
        self, token: Tensor, state: PointerState, prepared: Prepared
    ) -> tuple[StepOutput, PointerState]:
        """The next tokens (R, V) after one of each row (R,); -inf where one may not follow."""
        sources = prepared.rows  # N rows of a source take the place of the steps of a target
        token_BN = by_source(token, sources)
        pointed_BNS = self._pointed(token_BN, prepared.mask.unsqueeze(1))
        inputs_BND = self._inputs(token_BN, pointed_BNS, prepared.memory)
        after, _ = self.rnn.step(inputs_BND.flatten(0, 1), state.state, self.bridge, prepared)
        chosen_BNS = by_source(state.chosen, sources) | pointed_BNS
        states_BNH = by_source(after.hidden[:, -1], sources)
        logits_BNV, may_BNV = self._logits(states_BNH, chosen_BNS, prepared)
        log_BNV = torch.log_softmax(wide(logits_BNV), dim=-1).masked_fill(~may_BNV, -torch.inf)
        log_RV = log_BNV.flatten(0, 1)
        output = StepOutput(log_RV, log_RV[:, len(SPECIAL) :].exp())
        return output, PointerState(after, chosen_BNS.flatten(0, 1))

    @staticmethod
    def _pointed(tokens: Tensor, mask: Tensor) -> Tensor:
        """Where each token points, (…, S): once True, or nowhere for a special token."""
        places_S = torch.arange(mask.shape[-1], device=mask.device) + len(SPECIAL)
        return (tokens.unsqueeze(-1) == places_S) & mask

    def _inputs(self, tokens_BT: Tensor, pointed_BTS: Tensor, memory_BSD: Tensor) -> Tensor:
        """The memory of the positions pointed at, (B, T, D); h_go for `<go>`."""
        memory_BTD = torch.bmm(pointed_BTS.to(memory_BSD.dtype), memory_BSD)
        is_first_BT1 = (tokens_BT == GO).unsqueeze(-1)
        return torch.where(is_first_BT1, self.go.to(memory_BTD.dtype), memory_BTD)

    def _logits(
        self, states_BTH: Tensor, chosen_BTS: Tensor, prepared: Prepared
    ) -> tuple[Tensor, Tensor]:
        """The logits, and which tokens may come, (B, T, V) each; the lowest number elsewhere."""
        assert prepared.pointer_keys is not None
        query_BTA = self.query(self.dropout(states_BTH))
        mixed_BTSA = prepared.pointer_keys.unsqueeze(1) + query_BTA.unsqueeze(2)
        scores_BTS = self.score(torch.tanh(mixed_BTSA)).squeeze(-1)
        free_BTS = prepared.mask.unsqueeze(1) & ~chosen_BTS
        ends_BT1 = ~free_BTS.any(-1, keepdim=True)
        stop_BT1 = scores_BTS.new_zeros(ends_BT1.shape)
        if self.stop is not None:
            ends_BT1 = ends_BT1 | chosen_BTS.any(-1, keepdim=True)
            stop_BT1 = self.score(torch.tanh(self.stop + query_BTA))
        around = (STOP, len(SPECIAL) - STOP - 1)  # of the special tokens only <stop> may come
        may_BTV = torch.cat([F.pad(ends_BT1, around), free_BTS], dim=-1)
        # Not -inf, which times the 0 of a padded target would be NaN in the loss.
        logits_BTV = torch.cat([F.pad(stop_BT1, around), scores_BTS], dim=-1)
        return logits_BTV.masked_fill(~may_BTV, torch.finfo(logits_BTV.dtype).min), may_BTV

    def equations(self) -> list[str]:
        """The recurrence, the scores, and the distribution over positions."""
        reads = "[h_{y_{t-1}}, c_t]" if self.bridge.context_size else "h_{y_{t-1}}"
        lines = [
            "h_{y_0} = h_go",
            *self.rnn.equations(reads=reads),
            "u_jt = v_ptrᵀ tanh(W_1 h_j + W_2 s_t)",
        ]
        over = "over positions not chosen yet; <stop> when none is left"
        if self.stop is not None:
            lines.append("u_stop,t = v_ptrᵀ tanh(k_stop + W_2 s_t)")
            over = "over positions not chosen yet and, from t = 2 on, <stop>"
        return [*lines, f"P(y_t = j | y_1..y_{{t-1}}, x) = softmax_j(u_jt), {over}"]
