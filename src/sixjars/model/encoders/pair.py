"""Two sentences, encoded by one network and compared.

Dims: B batch, K words of the first sentence, S words of the second, D features of a word, M features of the memory.
"""

from typing import Any, final

import torch

from sixjars.flow.contracts import Encoder, ModelPlan
from sixjars.flow.values import Encoded, Padded
from sixjars.model.encoders.text import TextEncoder
from sixjars.model.layers import masked_softmax


@final
class PairEncoder(Encoder):
    r"""h_nk = RNN(h_{n,k-1}, E_enc[x_nk]) for both sentences, n = 1 and 2; h_T = [z_1, z_2, abs(z_1 - z_2), z_1 ⊙ z_2].

    One network encodes both sentences, so z_1 and z_2 can be compared: Conneau et al. 2017
    (https://arxiv.org/abs/1705.02364), section 3.1, with the last states in place of a maximum over all.

    For a bridge with attention each word of the second sentence is compared with the first: β_jk = softmax_k(h_2jᵀ
    h_1k), a_j = Σ_k β_jk h_1k, and h_j = [h_2j, a_j, abs(h_2j - a_j), h_2j ⊙ a_j]. Such attention by word is that of
    Rocktäschel et al. 2016 (https://arxiv.org/abs/1509.06664), section 2.4; score and comparison are as in Chen et al.
    2017 (https://arxiv.org/abs/1609.06038), equations 11 to 14, without their second recurrence.

    >>> from sixjars import WordEmbedding
    >>> sentence = TextEncoder(embedding=WordEmbedding(vocabulary=10, size=3), size=5)
    >>> encoded = PairEncoder(sentence=sentence)(Padded.of([[5, 6, 7], [8]]), Padded.of([[5, 6], [7]]))
    >>> encoded.memory.shape, encoded.summary.shape
    (torch.Size([2, 2, 20]), torch.Size([2, 20]))
    """

    one_vocabulary = True

    def __init__(self, *, sentence: TextEncoder) -> None:
        super().__init__()
        self.sentence = sentence
        self.output_size = 4 * sentence.output_size
        self.summary_size = 4 * sentence.summary_size

    @classmethod
    def positions_of(cls) -> str:
        """The second sentence: its words are compared with the first."""
        return "sentence2"

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """As the encoder of one text."""
        return {"sentence": TextEncoder.suggest(size, dropout, labels=labels)}

    @classmethod
    def misfits(cls, plan: ModelPlan) -> list[str]:
        """The words of both must have the same numbers."""
        first, second = plan.inputs.values()
        return first.vocabulary_misfits(second)

    def forward(self, sentence1: Padded, sentence2: Padded) -> Encoded:
        """Token ids (B, K) and (B, S) to comparisons of the second's words (B, S, M) and of both sentences (B, M)."""
        first, second = self.sentence(sentence1), self.sentence(sentence2)
        scores_BSK = second.memory @ first.memory.transpose(1, 2)
        weights_BSK = masked_softmax(scores_BSK, first.mask.unsqueeze(1))
        aligned_BSD = weights_BSK @ first.memory * second.mask.unsqueeze(-1)
        memory_BSM = _compared(second.memory, aligned_BSD)
        return Encoded(memory_BSM, second.mask, _compared(first.summary, second.summary))

    def equations(self) -> list[str]:
        """The words of both sentences, the comparison of words, and that of the sentences."""
        return [
            *self.sentence.equations(at="nk", summary="z_n"),
            "β_jk = softmax_k(h_{2j}ᵀ h_{1k})",
            "a_j = Σ_k β_jk h_{1k}",
            "h_j = [h_{2j}, a_j, abs(h_{2j} - a_j), h_{2j} ⊙ a_j]",
            "h_T = [z_1, z_2, abs(z_1 - z_2), z_1 ⊙ z_2]",
        ]


def _compared(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Both, their distance and their product, side by side."""
    return torch.cat([one, other, (one - other).abs(), one * other], dim=-1)
