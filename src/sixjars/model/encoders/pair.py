"""Two sentences, encoded by one network and compared.

Dims: B batch, K words of the first sentence, S words of the second, D features of a word,
      M features of the memory, E embedding features, F features of a comparison, N words of either
      sentence, O numbers of their overlap.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal, final

import torch
from torch import Tensor, nn

from sixjars.flow.contracts import Encoder, ModelPlan
from sixjars.flow.values import Batch, Encoded, Padded
from sixjars.model.encoders.overlap import NUMBERS, WordOverlap
from sixjars.model.encoders.text import TextEncoder
from sixjars.model.layers import masked_softmax
from sixjars_runtime.special_tokens import SPECIAL


@final
class PairEncoder(Encoder):
    r"""h_nk = RNN(h_{n,k-1}, E_enc[x_nk]), h_T = [z_1, z_2, abs(z_1 - z_2), z_1 ⊙ z_2].

    One network encodes both sentences, n = 1 and 2, so z_1 and z_2 can be compared: Conneau et al.
    2017 (https://arxiv.org/abs/1705.02364), section 3.1, with the last states in place of a maximum
    over all.

    For a bridge with attention each word of the second sentence is compared with the first: β_jk =
    softmax_k(h_2jᵀ h_1k), a_j = Σ_k β_jk h_1k, and h_j = [h_2j, a_j, abs(h_2j - a_j), h_2j ⊙ a_j].
    Such attention by word is that of Rocktäschel et al. 2016 (https://arxiv.org/abs/1509.06664),
    section 2.4; score and comparison are as in Chen et al. 2017 (https://arxiv.org/abs/1609.06038),
    equations 11 to 14, without their second recurrence.

    With `compare: words` each word has a feature of whether the other sentence has it too (m_nk is
    1 then, else 0), like the features of word overlap in linear models; the words of the first
    sentence are compared as well, and the summary is the mean and the maximum over the comparisons
    of each sentence, passed through one layer: equations 16 to 20 of that paper. A few numbers of
    the overlap of the sentences are added (`WordOverlap`). So it learns from a few hundred pairs
    what the last states of two recurrences do not learn from thousands.

    >>> from sixjars import WordEmbedding
    >>> sentence = TextEncoder(embedding=WordEmbedding(vocabulary=10, size=3), size=5)
    >>> first, second = Padded.of([[5, 6, 7], [8]]), Padded.of([[5, 6], [7]])
    >>> encoded = PairEncoder(sentence=sentence)(first, second)
    >>> encoded.memory.shape, encoded.summary.shape
    (torch.Size([2, 2, 20]), torch.Size([2, 20]))
    """

    one_vocabulary = True
    counted = ("overlap.word_weights",)
    keeps_vectors = True  # on 1,000 pairs of SICK 0.794 in place of 0.764
    letters: ClassVar[Mapping[str, str]] = {
        "shared_word": "e_same",
        "comparison.weight": "W_cmp",
        "comparison.bias": "b_cmp",
    }

    def __init__(
        self, *, sentence: TextEncoder, compare: Literal["summaries", "words"] = "summaries"
    ) -> None:
        super().__init__()
        self.sentence = sentence
        self.output_size = 4 * sentence.output_size
        by_words = compare == "words"
        self.summary_size = 4 * (sentence.output_size if by_words else sentence.summary_size)
        self.shared_word: nn.Parameter | None = None
        self.comparison: nn.Linear | None = None
        self.overlap: WordOverlap | None = None
        if by_words:
            size = sentence.output_size
            vector_E = torch.randn(sentence.embedding.size) * sentence.embedding.size**-0.5
            self.shared_word = nn.Parameter(vector_E)  # e_same
            self.comparison = nn.Linear(4 * size, size)  # W_cmp, b_cmp
            self.overlap = WordOverlap(vocabulary=sentence.embedding.table.num_embeddings)
            self.summary_size += NUMBERS

    @classmethod
    def positions_of(cls) -> str:
        """The second sentence: its words are compared with the first."""
        return "sentence2"

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """The settings of the encoder of one text, and the comparison of words."""
        return {"sentence": TextEncoder.suggest(size, dropout, labels=labels), "compare": "words"}

    @classmethod
    def companions(cls, settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """No attention: the summary has all comparisons of words; it was a point worse."""
        return {"bridge": {"kind": "initial"}}

    def count(self, batches: Iterable[Batch]) -> None:
        """Count the training sentences that have each word, and measure how pairs overlap."""
        if self.overlap is not None:
            inputs = (batch.inputs for batch in batches)
            pairs = ((texts["sentence1"], texts["sentence2"]) for texts in inputs)
            self.overlap.count(self.sentence.embedding.matrix(), pairs)

    @classmethod
    def misfits(cls, plan: ModelPlan) -> list[str]:
        """Report sentences whose words have different numbers."""
        first, second = plan.inputs.values()
        return first.vocabulary_misfits(second)

    def forward(self, sentence1: Padded, sentence2: Padded) -> Encoded:
        """The comparisons of the second sentence's words (B, S, M), and those of both sentences."""
        first = self._encoded(sentence1, sentence2)
        second = self._encoded(sentence2, sentence1)
        memory_BSM = _aligned(second, first)
        if self.overlap is None:
            return Encoded(memory_BSM, second.mask, _compared(first.summary, second.summary))
        overlap_BO = self.overlap(self.sentence.embedding.matrix(), sentence1, sentence2)
        first_BF = self._pooled(_aligned(first, second), first.mask)
        second_BF = self._pooled(memory_BSM, second.mask)
        summary = torch.cat([first_BF, second_BF, overlap_BO], dim=-1)
        return Encoded(memory_BSM, second.mask, summary)

    def _encoded(self, sentence: Padded, other: Padded) -> Encoded:
        """The states of a sentence; with `compare: words` it has the feature of shared words."""
        if self.shared_word is None:
            return self.sentence(sentence)  # type: ignore[no-any-return]
        # Of unit length: longer vectors overfit before the overlap is learned.
        vectors_BNE = nn.functional.normalize(self.sentence.embedding(sentence.values), dim=-1)
        vectors_BNE = vectors_BNE + _shared(sentence, other).unsqueeze(-1) * self.shared_word
        states, summary = self.sentence.rnn(vectors_BNE, sentence.mask)
        return Encoded(states, sentence.mask, summary)

    def _pooled(self, comparisons: Tensor, mask: Tensor) -> Tensor:
        """The mean and the maximum over the words of relu(W_cmp h + b_cmp), (B, 2F)."""
        assert self.comparison is not None
        # relu gives at least 0, so padding is never the maximum where there is a word.
        compared_BNF = torch.relu(self.comparison(comparisons)) * mask.unsqueeze(-1)
        count_B1 = mask.sum(1, keepdim=True).clamp(min=1)
        return torch.cat([compared_BNF.sum(1) / count_B1, compared_BNF.amax(1)], dim=-1)

    def equations(self) -> list[str]:
        """The words of both sentences, the comparison of words, and that of the sentences."""
        align = [
            "β_jk = softmax_k(h_{2j}ᵀ h_{1k})",
            "a_j = Σ_k β_jk h_{1k}",
            "h_j = [h_{2j}, a_j, abs(h_{2j} - a_j), h_{2j} ⊙ a_j]",
        ]
        if self.overlap is None:
            words = self.sentence.equations(at="nk", summary="z_n")
            return [*words, *align, "h_T = [z_1, z_2, abs(z_1 - z_2), z_1 ⊙ z_2]"]
        embedding, rnn = self.sentence.embedding, self.sentence.rnn
        vector = f"E_{rnn.tag}[x_nk]"
        return [
            *embedding.equations(),
            "m_nk is 1 where the other sentence has the word x_nk too, else 0; "
            "<unk> is never the same word",
            f"x̂_nk = {vector} / sqrt({vector}ᵀ {vector})",
            *rnn.equations(reads="(x̂_nk + m_nk e_same)", state="h", at="nk", summary=""),
            *align,
            "v_j = relu(W_cmp h_j + b_cmp)",
            "γ_kj = softmax_j(h_{2j}ᵀ h_{1k})",
            "a′_k = Σ_j γ_kj h_{2j}",
            "u_k = relu(W_cmp [h_{1k}, a′_k, abs(h_{1k} - a′_k), h_{1k} ⊙ a′_k] + b_cmp)",
            *self.overlap.equations(),
            "h_T = [mean_k u_k, max_k u_k, mean_j v_j, max_j v_j, o]",
        ]


def _aligned(sentence: Encoded, other: Encoded) -> Tensor:
    """Each word with its attention to the words of the other sentence, compared, (B, N, M)."""
    scores = sentence.memory @ other.memory.transpose(1, 2)
    weights = masked_softmax(scores, other.mask.unsqueeze(1))
    return _compared(sentence.memory, weights @ other.memory * sentence.mask.unsqueeze(-1))


def _shared(sentence: Padded, other: Padded) -> Tensor:
    """Whether the other sentence has each word of a sentence, (B, N); `<unk>` is never shared."""
    ids_BN = sentence.values * sentence.mask
    pairs_BNM = ids_BN.unsqueeze(2) == (other.values * other.mask).unsqueeze(1)
    return pairs_BNM.any(2) & (ids_BN >= len(SPECIAL))


def _compared(left: Tensor, right: Tensor) -> Tensor:
    """Two vectors, their distance and their product, side by side."""
    return torch.cat([left, right, (left - right).abs(), left * right], dim=-1)
