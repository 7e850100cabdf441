"""A text in parts: the words of each part are read alone, then the vectors of the parts are read.

Dims: B batch, S source positions, P parts of a row, N parts of a rectangle, L the longest of them, M all parts,
      Q all places of all rectangles, D features of a word, U features of a part, F any features, A attention features.
"""

import re
from collections.abc import Mapping
from typing import Literal, final

import torch
from torch import Tensor, nn

from sixjars.errors import ShapeError
from sixjars.flow import Above, Encoded, Encoder, Padded, Parts
from sixjars.model.cells import LETTERS, CellName
from sixjars.model.encoders.text import TextEncoder
from sixjars.model.layers import masked_softmax
from sixjars.model.reading import Direction, Reading
from sixjars.recipe.ranges import Positive, Share

_BELOW = {"{t-1}": "{i,j-1}", "t": "ij", "j": "ij", "T": "iT", "S": "iT", "1": "i1"}
_ABOVE = {"{t-1}": "{i-1}", "t": "i", "j": "i", "T": "K", "S": "K", "1": "1"}
"""What the places of one reading are called where there are two: word j of part i, and part i of K."""


@final
class WordAttention(nn.Module):
    r"""u_ij = tanh(W_w h_ij + b_w), α_ij = softmax_j(u_ijᵀ u_w), s_i = Σ_j α_ij h_ij.

    Yang et al. 2016 (https://aclanthology.org/N16-1174/), equations 5 to 7.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.key = nn.Linear(size, size)  # W_w, b_w
        self.question = nn.Linear(size, 1, bias=False)  # u_w

    def forward(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """From the words of parts (N, L, D) a vector for each part (N, D) and the weight of each word (N, L)."""
        weights_NL = masked_softmax(self.question(torch.tanh(self.key(states))).squeeze(-1), mask)
        return torch.bmm(weights_NL.unsqueeze(1), states).squeeze(1), weights_NL


@final
class HierarchyEncoder(Encoder):
    r"""Words: h_ij = RNN(h_{i,j-1}, e(x_ij)). Parts, such as sentences or turns: g_i = RNN(g_{i-1}, s_i).

    The vector of a part is the last state of its words, s_i = h_iT (`pool: last`), or a mixture of all of them asked
    for with a vector that is learned, s_i = Σ_j α_ij h_ij (`pool: attention`). The latter with the bridge `pooling`,
    which does the same with the g_i, is the hierarchical attention network of Yang et al. 2016
    (https://aclanthology.org/N16-1174/).

    `words` says how the words of a part are read, the other parameters how the parts are. The annotations are those of
    the words, the summary is the last state of the parts, and the level above has a vector for each part.

    >>> from sixjars import WordEmbedding
    >>> words = TextEncoder(embedding=WordEmbedding(vocabulary=10, size=3), size=4)
    >>> encoder = HierarchyEncoder(words=words, size=5)
    >>> document = Padded.of([[5, 6, 7]])
    >>> pack, home, back = torch.tensor([[0, 1], [2, -1]]), torch.tensor([[0, 1]]), torch.tensor([[0, 1, 2]])
    >>> parts = Parts((pack,), home, back, of=torch.tensor([[0, 0, 1]]))
    >>> read = encoder(Padded(document.values, document.mask, parts))
    >>> read.memory.shape, read.above.memory.shape, read.summary.shape
    (torch.Size([1, 3, 4]), torch.Size([1, 2, 5]), torch.Size([1, 5]))
    """

    letters = {
        **LETTERS,
        "table.weight": "e",
        "look.key.weight": "W_w",
        "look.key.bias": "b_w",
        "look.question.weight": "u_w",
    }

    def __init__(
        self,
        *,
        words: TextEncoder,
        cell: CellName = "gru",
        size: Positive = 128,
        layers: Positive = 1,
        direction: Direction = "forward",
        dropout: Share = 0.0,
        pool: Literal["last", "attention"] = "last",
    ) -> None:
        super().__init__()
        self.words = words
        self.look = WordAttention(words.output_size) if pool == "attention" else None
        self.reading = Reading(
            input_size=words.output_size, cell=cell, size=size, layers=layers, direction=direction, dropout=dropout
        )
        self.output_size = words.output_size
        self.summary_size = self.above_size = self.reading.output_size

    def forward(self, source: Padded) -> Encoded:
        """Token ids (B, S) to annotations (B, S, D), a vector for each part (B, P, U) and a summary (B, U)."""
        parts = source.parts
        if parts is None:
            raise ShapeError(
                "encoder: hierarchy needs a source in parts, but this one has none. Set data.source.parts to "
                "sentences, lines or turns, or use encoder: text."
            )
        states_QD, vectors_MD, weights_Q = self._read(source.values, parts)
        memory_BSD = _found(states_QD, parts.back, source.mask)
        within_BS = None if weights_Q is None else _found(weights_Q, parts.back, source.mask)
        real_BP = parts.home >= 0
        above_BPU, summary_BU = self.reading(_found(vectors_MD, parts.home, real_BP), real_BP)
        above = Above(above_BPU, real_BP, parts.of, within_BS)
        return Encoded(memory_BSD, source.mask, summary_BU, above=above)

    def _read(self, ids: Tensor, parts: Parts) -> tuple[Tensor, Tensor, Tensor | None]:
        """Every rectangle in turn, laid end to end: the states of all places, of parts the vectors, the weights."""
        known = nn.functional.pad(ids.flatten(), (1, 0))  # -1, where a part is shorter, is the word in front
        states, vectors, weights = [], [], []
        for pack_NL in parts.packs:
            real_NL = pack_NL >= 0
            ids_NL = known[pack_NL + 1]
            states_NLD, vectors_ND = self.words.reading(self.words.embedding(ids_NL), real_NL)
            if self.look is not None:
                vectors_ND, weights_NL = self.look(states_NLD, real_NL)
                weights.append(weights_NL.flatten())
            states.append(states_NLD.flatten(0, 1))
            vectors.append(vectors_ND)
        return torch.cat(states), torch.cat(vectors), torch.cat(weights) if weights else None

    def equations(self) -> list[str]:
        """The lines of the lecture: the words of part i, its vector, and the parts."""
        below = self.words.reading.equations(told="e(x_t)", unit="word")
        above = self.reading.equations(told="x_t", unit="part", state="g")
        if self.reading.cell == "lstm":  # its hidden memory is called s, as the vectors of parts are
            above = [line.replace("s_", "c_").replace("s̃_", "c̃_") for line in above]
        vectors = ["s_i = h_iT"]
        if self.look is not None:
            vectors = ["u_ij = tanh(W_w h_ij + b_w),  α_ij = softmax_j(u_ijᵀ u_w)", "s_i = Σ_j α_ij h_ij"]
        read = [_placed(line.replace("x_t", "s_t"), _ABOVE) for line in above]
        return [*[_placed(line, _BELOW) for line in below], *vectors, *read, "h_T = g_K"]


def _found(flat: Tensor, places: Tensor, real: Tensor) -> Tensor:
    """What stands at each of the places (B, P) of a flat tensor, (M) or (M, F); zeros where none is real."""
    found = flat.index_select(0, places.clamp(min=0).flatten()).view(*places.shape, *flat.shape[1:])
    return found * real.view(*real.shape, *(1 for _ in flat.shape[1:]))


def _placed(line: str, names: Mapping[str, str]) -> str:
    return re.sub(r"_(\{t-1\}|[tjTS1])(?![a-z])", lambda place: f"_{names[place[1]]}", line)
