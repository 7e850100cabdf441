r"""Writes a sequence, one token after the other.

Dims: B batch, S source positions, T target positions, E embedding features, C context features, H state features,
      G gate features, I features that the copy switch hears, V vocabulary, R rows open in search.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.data.text import GO, PAD, STOP, UNK
from sixjars.errors import ShapeError
from sixjars.flow import Bridge, Carried, Context, Encoded, FirstShape, Marks, Padded, Scored, State, Taught, Writer
from sixjars.model.cells import EQUATIONS, LETTERS, CellName, Recurrent, first_shape
from sixjars.model.copying import CopySwitch
from sixjars.model.layers import WordEmbedding, told_before
from sixjars.recipe.ranges import Positive, Share


@final
class SequenceDecoder(Writer):
    r"""s_t = RNN(s_{t-1}, [e(ŷ_{t-1}), c_t]), P(y_t | y_1..y_{t-1}, x) = softmax(V s_t + b).

    What c_t is (nothing, the summary, or an attended mixture) is the bridge's affair. With `tied`, V is the matrix of
    the embeddings (Press & Wolf 2017, https://arxiv.org/abs/1608.05859), so the state must be as large as they are.
    With `copying`, words of the source that is looked at can be written too (see `CopySwitch`).

    `teach` does everything that does not depend on the previous state for all steps at once: the embeddings' share
    of the gates, and the output layer. Where the bridge does not follow the state, the recurrence too is one call.

    >>> from sixjars import InitialState
    >>> words = WordEmbedding(vocabulary=9, size=5)
    >>> decoder = SequenceDecoder(bridge=InitialState(summary_size=4, state_size=6), embedding=words, size=6)
    >>> source = Encoded(torch.zeros(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), torch.randn(2, 4))
    >>> decoder.teach(source, Padded.of([[5, 6, 2], [7, 2]])).scores.shape
    torch.Size([2, 3, 9])
    """

    letters = {
        **LETTERS,
        "table.weight": "e",
        "output.weight": "V",
        "output.bias": "b",
        "gate.weight": "w_g",
        "gate.bias": "b_g",
    }
    marks = Marks(go=GO, stop=STOP, banned=(PAD,))

    def __init__(  # noqa: PLR0913 - the bridge is given, the others are keys of a recipe
        self,
        *,
        bridge: Bridge,
        embedding: WordEmbedding,
        cell: CellName = "gru",
        size: Positive = 128,
        layers: Positive = 1,
        dropout: Share = 0.0,
        tied: bool = False,
        copying: bool = False,
    ) -> None:
        super().__init__()
        self.cell: CellName = cell
        self.bridge = bridge
        self.embedding = embedding
        self.tied = tied
        width = embedding.size + bridge.context_size
        self.recurrent = Recurrent(cell=cell, input_size=width, size=size, layers=layers, dropout=dropout)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(size, embedding.table.num_embeddings)  # V, b
        if tied:
            if size != embedding.size:
                raise ShapeError(
                    f"tied: true needs a state as large as the embeddings, but decoder.size is {size} and "
                    f"decoder.embedding.size is {embedding.size}."
                )
            del self.output.weight
        self.switch = CopySwitch(inputs=size + width) if copying else None

    @staticmethod
    def first_shape(settings: Mapping[str, Any]) -> FirstShape:
        """A vector for each layer and memory of the cell."""
        return first_shape(settings)

    def teach(self, encoded: Encoded, target: Padded) -> Taught:
        """Scores (B, T, V) for a whole target, each step told the true token before it."""
        state, carried = self.start(encoded)
        told_BT = told_before(target.values, GO)
        embedded_BTE = self._embedded(told_BT)
        if self.bridge.follows:
            states_BTH, heard = self.recurrent.followed(embedded_BTE, state, partial(self.bridge.step, carried=carried))
        else:
            once, steps = self.bridge.step(state.hidden[:, -1], carried), embedded_BTE.shape[1]
            heard = once.mapped(lambda tensor: tensor.unsqueeze(1).expand(-1, steps, -1))
            states_BTH = self.recurrent(torch.cat([embedded_BTE, heard.vector], dim=-1), state)
        return Taught(self._scores(states_BTH, embedded_BTE, heard, carried), heard.weights)

    def start(self, encoded: Encoded) -> tuple[State, Carried]:
        """The first state, and what the bridge prepared for each source."""
        carried = self.bridge.start(encoded)
        return self.recurrent.first(carried.first), replace(carried, said=encoded.said)

    def step(self, token: Tensor, state: State, carried: Carried) -> tuple[Scored, State]:
        """One token of each row (R,), and what may follow it (R, V)."""
        context = self.bridge.step(state.hidden[:, -1], carried)
        embedded_RE = self._embedded(token)
        given_RG = self.recurrent.project(torch.cat([embedded_RE, context.vector], dim=-1))
        memory = self.recurrent.advance(given_RG, self.recurrent.opened(state))
        once = context.mapped(lambda tensor: tensor.unsqueeze(1))
        scores_RV = self._scores(memory[-1][0].unsqueeze(1), embedded_RE.unsqueeze(1), once, carried).squeeze(1)
        return Scored(torch.log_softmax(scores_RV.float(), dim=-1), context.weights), self.recurrent.closed(memory)

    def _embedded(self, told: Tensor) -> Tensor:
        """What is told of the tokens before: one that was copied from outside the vocabulary is an unknown word."""
        known = told if self.switch is None else told.masked_fill(told >= self.output.out_features, UNK)
        embedded: Tensor = self.embedding(known)
        return embedded

    def _scores(self, states: Tensor, embedded: Tensor, heard: Context, carried: Carried) -> Tensor:
        weight = self.embedding.matrix() if self.tied else self.output.weight
        scores_BTV = F.linear(self.dropout(states), weight, self.output.bias)
        if self.switch is None:
            return scores_BTV
        told_BTI = torch.cat([states, heard.vector, embedded], dim=-1)
        chosen: Tensor = self.switch(scores_BTV, told_BTI, heard.weights, carried.said)
        return chosen

    def equations(self) -> list[str]:
        """The lines of the lecture."""
        told = "[e(ŷ_{t-1}), c_t]" if self.bridge.context_size else "e(ŷ_{t-1})"
        state = "h_t" if self.cell == "lstm" else "s_t"
        depth = [f"{self.recurrent.layers} layers, each fed by the one below"] if self.recurrent.layers > 1 else []
        tied = ["V is the matrix of the embeddings e"] if self.tied else []
        said = "P(y_t | y_1..y_{t-1}, x)" if self.switch is None else "P_V(y_t)"
        copied = [] if self.switch is None else self.switch.equations()
        output = f"{said} = softmax(V {state} + b)"
        return [*[line.replace("x_t", told) for line in EQUATIONS[self.cell]], *depth, output, *tied, *copied]
