r"""Generates a sequence, one token after the other.

Dims: B batch, S source positions, T target positions, E embedding features, C context features,
      H state features, G gate features, I input features of the copy gate, V vocabulary, W = V +
      S all that can be output when copying, N rows of each source, R = B * N rows open in search.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from sixjars.flow.backend import Backend
from sixjars.flow.contracts import Bridge, Generator, ModelPlan
from sixjars.flow.limits import Layers, Share, Size
from sixjars.flow.values import (
    Context,
    DecoderOutput,
    Encoded,
    LinearLogits,
    Padded,
    Prepared,
    State,
    StepOutput,
)
from sixjars.model.conditional import QUERY, ConditionalRecurrent
from sixjars.model.layers import Linear, WordEmbedding, by_source, shift_right, wide
from sixjars.model.recurrent import Recurrent
from sixjars.model.reference import REFERENCE, CellName, state_shape
from sixjars_runtime.errors import ShapeError
from sixjars_runtime.special_tokens import GO, PAD, STOP, UNK, SpecialTokens

LOWEST = -80.0
"""The lowest logit of a gate that is used: e^80 is still a 32-bit float."""


@final
class CopyGate(nn.Module):
    r"""P(y_t) = p_gen,t P_V(y_t) + (1 - p_gen,t) Σ_{j: x_j = y_t} α_jt.

    p_gen,t = σ(w_genᵀ [s_t, c_t, E_dec[y_{t-1}]] + b_gen): See, Liu & Manning 2017
    (https://arxiv.org/abs/1704.04368), equations 8 and 9. A word of the source outside the
    vocabulary can be output too: its number is V plus its first position, so there are V + S
    numbers to output.
    """

    letters: ClassVar[Mapping[str, str]] = {"gate.weight": "w_gen", "gate.bias": "b_gen"}

    def __init__(self, *, inputs: int, backend: Backend = REFERENCE) -> None:
        super().__init__()
        self.gate = Linear(inputs, 1, backend=backend)  # w_gen, b_gen

    def forward(
        self, logits: Tensor, inputs: Tensor, weights: Tensor | None, copy_ids: Tensor | None
    ) -> Tensor:
        """Log P of all numbers, (B, T, V + S).

        `logits` are of the vocabulary (B, T, V), `inputs` of the gate (B, T, I), `weights` of
        attention (B, T, S), and `copy_ids` the numbers of the source positions (B, S).
        """
        if weights is None or copy_ids is None:
            raise ShapeError(
                "copying: true needs attention and a source whose words the decoder could output."
            )
        gate_BT1 = wide(self.gate(inputs))
        generated_BTV = self._share(gate_BT1) * torch.softmax(wide(logits), dim=-1)
        all_BTW = nn.functional.pad(generated_BTV, (0, copy_ids.shape[1]))
        copied_BTS = self._share(-gate_BT1) * wide(weights)  # 1 - σ would be 0 long before σ(-x) is
        # Added, for a word that stands at several positions has the weight of all of them.
        ids_BTS = copy_ids.unsqueeze(1).expand_as(copied_BTS)
        whole_BTW = all_BTW.scatter_add(2, ids_BTS, copied_BTS)
        return whole_BTW.clamp(min=torch.finfo(whole_BTW.dtype).tiny).log()

    def _share(self, gate: Tensor) -> Tensor:
        """σ of a gate, in use written out: runtimes of exported graphs have few digits near 0."""
        if self.training:
            return torch.sigmoid(gate)
        return 1.0 / (1.0 + torch.exp(-gate.clamp(min=LOWEST)))

    def equations(self) -> list[str]:
        """The gate, and the mixture of both distributions."""
        gate = "p_gen,t = σ(w_genᵀ [s_t, c_t, E_dec[y_{t-1}]] + b_gen)"
        mixed = "P(y_t | y_1..y_{t-1}, x) = p_gen,t P_V(y_t) + (1 - p_gen,t) Σ_{j: x_j = y_t} α_jt"
        return [gate, mixed, "a word outside the vocabulary is <unk> in E_dec, and 0 in P_V"]


@final
class SequenceDecoder(Generator):
    r"""s_t = RNN(s_{t-1}, [E_dec[y_{t-1}], c_t]): generates one token after the other.

    P(y_t | y_1..y_{t-1}, x) = softmax(V_out s_t + b_out). c_t depends on the bridge: nothing, the
    summary, or the context vector of attention. With `tied`, V_out is the matrix of the embeddings
    (Press & Wolf 2017, https://arxiv.org/abs/1608.05859), so the hidden size must be theirs. With
    `copying`, words of the source that are attended to can be output too (see `CopyGate`). With
    `conditional`, attention receives a state that has read E_dec[y_{t-1}] (see
    `ConditionalRecurrent`).

    `teach` computes what does not depend on the last state for all steps at once: the embeddings'
    share of the gates, and the output layer. Where the bridge does not follow the state, the
    recurrence too is one call.

    >>> from sixjars import InitialState
    >>> words = WordEmbedding(vocabulary=9, size=5)
    >>> bridge = InitialState(summary_size=4, state_size=6)
    >>> decoder = SequenceDecoder(bridge=bridge, embedding=words, size=6)
    >>> source = Encoded(torch.zeros(2, 3, 4), torch.ones(2, 3) > 0, torch.randn(2, 4))
    >>> decoder.teach(source, Padded.of([[5, 6, 2], [7, 2]])).logits.shape
    torch.Size([2, 3, 9])
    """

    produces = "tokens"
    letters = {"output.weight": "V_out", "output.bias": "b_out"}
    state_shape = staticmethod(state_shape)
    special = SpecialTokens(go=GO, stop=STOP, banned=(PAD,), unknown=UNK)

    def __init__(  # noqa: PLR0913 - the bridge is given, the others are keys of a recipe
        self,
        *,
        bridge: Bridge,
        embedding: WordEmbedding,
        cell: CellName = "gru",
        size: Size = 128,
        layers: Layers = 1,
        dropout: Share = 0.0,
        tied: bool = False,
        copying: bool = False,
        conditional: bool = False,
        backend: Backend = REFERENCE,
    ) -> None:
        super().__init__()
        self.bridge = bridge
        self.backend = backend
        self.embedding = embedding
        self.embedding.tag = "dec"
        self.tied = tied
        self.conditional = conditional
        width = embedding.size + bridge.context_size
        stack: dict[str, Any] = {"cell": cell, "size": size, "layers": layers, "dropout": dropout}
        stack["backend"] = backend
        self.rnn: Recurrent | ConditionalRecurrent
        if conditional:
            if not bridge.follows_state:
                needs = "conditional: true needs a bridge of kind attention, location or two_level"
                raise ShapeError(f"{needs}, but it is {type(bridge).__name__}.")
            bridge.query_letter = QUERY
            self.rnn = ConditionalRecurrent(
                input_size=embedding.size, context_size=bridge.context_size, **stack
            )
        else:
            self.rnn = Recurrent(input_size=width, **stack)
        self.dropout = nn.Dropout(dropout)
        self.output = Linear(size, embedding.table.num_embeddings, backend=backend)  # V_out, b_out
        if tied:
            if size != embedding.size:
                raise ShapeError(
                    f"tied: true needs embeddings of the hidden size, but decoder.size is {size} "
                    f"and decoder.embedding.size is {embedding.size}. "
                    "Make them equal, or use tied: false."
                )
            del self.output.weight
        self.copy_gate = CopyGate(inputs=size + width, backend=backend) if copying else None

    @classmethod
    def target_options(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Whether words of the source are copied."""
        return {"copies": bool(settings["copying"])}

    @classmethod
    def misfits(cls, plan: ModelPlan) -> list[str]:
        """Report copying and `conditional` without attention, and copying without a text."""
        settings, faults = plan.settings["decoder"], []
        if not plan.bridge.follows_state:
            needs = "needs a bridge of kind attention, location or two_level"
            keys = [key for key in ("copying", "conditional") if settings[key]]
            bridge = plan.kind("bridge")
            faults = [f"model.decoder.{key}: {needs}, but it is {bridge}." for key in keys]
        if not settings["copying"]:
            return faults
        source = next(iter(plan.inputs.values()), None)
        faults += [f"model.decoder.copying: {fault}" for fault in plan.output.copy_misfits(source)]
        if plan.smoothing:
            why = "a decoder that copies cannot output every word of every source; remove it."
            faults.append(f"loss.smoothing: {why}")
        return faults

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """A GRU of that size."""
        return {"cell": "gru", "size": size, "dropout": dropout, "embedding": {"size": size // 2}}

    def teach(self, encoded: Encoded, target: Padded) -> DecoderOutput:
        """Teacher forcing: logits (B, T, V), each step given the true token before it."""
        state, prepared = self.start(encoded)
        embedded_BTE = self._embedded(shift_right(target.values, GO))
        states_BTH, context = self.rnn.unroll(embedded_BTE, state, self.bridge, prepared)
        scores = self._scores(states_BTH, embedded_BTE, context, prepared)
        return DecoderOutput(scores, context.weights)

    def start(self, encoded: Encoded) -> tuple[State, Prepared]:
        """The initial state, and what the bridge prepared for each source."""
        prepared = self.bridge.start(encoded)
        state = self.rnn.first(prepared.first_state, self.bridge.first_attended(prepared))
        return state, replace(prepared, copy_ids=encoded.copy_ids)

    @property
    def grouped(self) -> bool:
        """Whether its bridge is."""
        return self.bridge.grouped

    def step(self, token: Tensor, state: State, prepared: Prepared) -> tuple[StepOutput, State]:
        """The next tokens (R, V) after one of each row (R,)."""
        embedded_RE = self._embedded(token)
        after, context = self.rnn.step(embedded_RE, state, self.bridge, prepared)
        # The rows of a source take the place of the steps of a target: they share its keys.
        by = partial(by_source, sources=prepared.rows)
        states_BNH, embedded_BNE = by(after.hidden[:, -1]), by(embedded_RE)
        scores = self._scores(states_BNH, embedded_BNE, context.mapped(by), prepared)
        output = DecoderOutput(scores)
        logits_RV = output.logits.flatten(0, 1)
        if logits_RV.is_cuda:  # elsewhere a kernel replaces them by their log softmax
            return StepOutput(logits_RV, context.weights, are_logits=True), after
        return StepOutput(self.backend.log_probabilities(logits_RV), context.weights), after

    def _embedded(self, tokens: Tensor) -> Tensor:
        """The embeddings of the last tokens; copied ones outside the vocabulary are `<unk>`."""
        if self.copy_gate is not None:
            tokens = tokens.masked_fill(tokens >= self.output.out_features, UNK)
        embedded: Tensor = self.embedding(tokens)
        return embedded

    def _scores(
        self, states: Tensor, embedded: Tensor, context: Context, prepared: Prepared
    ) -> Tensor | LinearLogits:
        weight = self.embedding.matrix() if self.tied else self.output.weight
        multiply = self.backend.linear
        linear = LinearLogits(self.dropout(states), weight, self.output.bias, multiply)
        if self.copy_gate is None:
            return linear
        inputs_BTI = torch.cat([states, context.vector, embedded], dim=-1)
        gate, copy_ids = self.copy_gate, prepared.copy_ids
        mixed: Tensor = gate(linear.logits(), inputs_BTI, context.weights, copy_ids)
        return mixed

    def equations(self) -> list[str]:
        """The recurrence, the output layer, and the copy gate."""
        reads = "E_dec[y_{t-1}]"
        if self.bridge.context_size and not self.conditional:
            reads = f"[{reads}, c_t]"
        matrix = "E_dec" if self.tied else "V_out"
        output = "P(y_t | y_1..y_{t-1}, x)" if self.copy_gate is None else "P_V(y_t)"
        return [
            *self.embedding.equations(),
            "y_0 = <go>",
            *self.rnn.equations(reads=reads),
            f"{output} = softmax({matrix} s_t + b_out)",
            *([] if self.copy_gate is None else self.copy_gate.equations()),
        ]
