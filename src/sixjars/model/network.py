"""An encoder and a decoder that hears it over a bridge: one model.

Dims: B batch, S source positions, T target positions, V vocabulary.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import final

from torch import nn

from sixjars.flow import Decoder, Encoded, Encoder, Padded, Taught


@final
class Network(nn.Module):
    """The whole model; the bridge lives in the decoder that asks it.

    >>> from sixjars import InitialState, NothingEncoder, SequenceDecoder, WordEmbedding
    >>> bridge, words = InitialState(summary_size=4, state_size=6), WordEmbedding(vocabulary=9, size=5)
    >>> network = Network(NothingEncoder(size=4), SequenceDecoder(bridge=bridge, embedding=words, size=6))
    >>> network({"source": Padded.of([[], []])}, Padded.of([[5, 6, 2], [7, 2]])).scores.shape
    torch.Size([2, 3, 9])
    """

    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def encode(self, inputs: Mapping[str, Padded]) -> Encoded:
        """Annotation vectors and a summary of each example."""
        encoded: Encoded = self.encoder(**inputs)
        said = next((padded.said for padded in inputs.values() if padded.said is not None), None)
        return encoded if said is None else replace(encoded, said=said)

    def forward(self, inputs: Mapping[str, Padded], target: Padded) -> Taught:
        """Scores (B, T, V) for every token of the target."""
        return self.decoder.teach(self.encode(inputs), target)
