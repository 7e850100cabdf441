"""Words (or characters, or subwords) encoded by a recurrent network.

Dims: B batch, S source positions, D source features.
"""

from typing import Any, final

from sixjars.flow.contracts import Encoder
from sixjars.flow.limits import Layers, Share, Size
from sixjars.flow.values import Encoded, Padded
from sixjars.model.directional import Direction, DirectionalRNN
from sixjars.model.layers import WordEmbedding
from sixjars.model.recurrent import CellName


@final
class TextEncoder(Encoder):
    r"""h_j = RNN(h_{j-1}, E_enc[x_j]), in one or both directions, in one or several layers.

    `direction="backward"` reads the source in reverse order (A B C → X Y is trained as C B A → X Y), as Sutskever,
    Vinyals & Le 2014 (https://arxiv.org/abs/1409.3215, section 3.3) do; the annotations still stand at the places of
    their words. With `both`, h_j = [h→_j, h←_j] and the summary joins the last state of each direction.

    >>> words = WordEmbedding(vocabulary=10, size=3)
    >>> TextEncoder(embedding=words, size=4, direction="both")(Padded.of([[5, 6, 7], [8]])).memory.shape
    torch.Size([2, 3, 8])
    """

    def __init__(
        self,
        *,
        embedding: WordEmbedding,
        cell: CellName = "gru",
        size: Size = 128,
        layers: Layers = 1,
        direction: Direction = "forward",
        dropout: Share = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.rnn = DirectionalRNN(embedding.size, cell, size, layers, direction, dropout)
        self.output_size = self.summary_size = self.rnn.output_size

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """Half the size in each direction; for labels, of which a few words decide, dropout also on the words."""
        half = size // 2
        embedding = {"size": half, **({"dropout": dropout} if labels else {})}
        return {"cell": "gru", "size": half, "direction": "both", "dropout": dropout, "embedding": embedding}

    def forward(self, source: Padded) -> Encoded:
        """Token ids (B, S) to annotations (B, S, D) and a summary (B, D)."""
        memory_BSD, summary_BD = self.rnn(self.embedding(source.values), source.mask)
        return Encoded(memory_BSD, source.mask, summary_BD)

    def equations(self, *, state: str = "h", at: str = "j", summary: str = "h_T") -> list[str]:
        """The recurrence over the words, with the letter of its states, their index, and the letter of the summary."""
        reads = f"E_{self.rnn.tag}[x_{at}]"
        return [*self.embedding.equations(), *self.rnn.equations(reads=reads, state=state, at=at, summary=summary)]
