"""The overlap of two sentences: a few numbers that are useful before anything is learned.

Dims: B batch, K words of the first sentence, S words of the second, N words of either, E embedding
      features, O = 9 numbers, R pairs of training.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, final

import torch
from torch import Tensor, nn

from sixjars.flow.values import Padded
from sixjars.model.frequencies import FeatureCounts, weighing_column
from sixjars_runtime.special_tokens import SPECIAL

NUMBERS: Final = 9
"""O, the number of numbers."""
WORDS_OF_A_UNIT: Final = 10
"""Lengths are divided by about the length of a sentence: the other numbers are at most 1."""
SCALE: Final = 3.0
"""The factor of the numbers, so that they are learned before the comparisons of words: 0.790 in
place of 0.776 on 1,000 pairs of SICK."""
LEAST_SPREAD: Final = 1e-3
"""The least divisor, for a number that is the same in all of the training set."""


@final
@dataclass(frozen=True)
class _Words:
    """The words of one sentence, prepared to be compared."""

    ids: Tensor
    """Token ids, 0 for padding, (B, N)."""
    mask: Tensor
    weights: Tensor
    """0 for padding, for `<unk>`, and for words that no training sentence has, (B, N)."""
    units: Tensor
    """Vectors of length 1, (B, N, E)."""

    @classmethod
    def of(cls, vectors: Tensor, word_weights: Tensor, sentence: Padded) -> "_Words":
        ids_BN = sentence.values * sentence.mask
        units_BNE = nn.functional.normalize(vectors[ids_BN], dim=-1)
        return cls(ids_BN, sentence.mask, word_weights[ids_BN].squeeze(-1), units_BNE)

    @property
    def counts(self) -> Tensor:
        """Whether a word has a weight, (B, N)."""
        return self.weights > 0

    def sum(self) -> Tensor:
        """The weighted sum of the vectors, (B, E)."""
        return (self.weights.unsqueeze(1) @ self.units).squeeze(1)

    def mean_of(self, values: Tensor) -> Tensor:
        """The weighted mean of a value of each word, (B,); 0 where no word has a weight."""
        return (self.weights * values).sum(1) / self.weights.sum(1).clamp(min=1e-6)


@final
class WordOverlap(nn.Module):
    r"""o: the similarity of two sentences by the cosines of their words, weighted by IDF.

    The numbers are the cosine of both weighted means; and for each sentence the mean and the least
    cosine of its words with the nearest word of the other, the share of it that the other has too,
    and its length. Classifiers of entailment and paraphrase were made of such numbers before
    networks (Corley & Mihalcea 2005, https://aclanthology.org/W05-1203); with pretrained vectors a
    few hundred pairs suffice to use them. They are standardized by the training set.

    >>> overlap = WordOverlap(vocabulary=9)
    >>> overlap(torch.eye(9), Padded.of([[5, 6, 7], [8]]), Padded.of([[5, 6], [7]])).shape
    torch.Size([2, 9])
    """

    letters: ClassVar[Mapping[str, str]] = {"word_weights": "E_idf", "mean": "μ_o", "spread": "σ_o"}

    def __init__(self, *, vocabulary: int) -> None:
        super().__init__()
        self.word_weights: Tensor
        self.mean: Tensor
        self.spread: Tensor
        word_weights = weighing_column(torch.ones(vocabulary), len(SPECIAL))
        self.register_buffer("word_weights", word_weights)  # E_idf
        self.register_buffer("mean", torch.zeros(NUMBERS))  # μ_o
        self.register_buffer("spread", torch.ones(NUMBERS))  # σ_o

    def forward(self, vectors: Tensor, first: Padded, second: Padded) -> Tensor:
        """The numbers (B, O) by the vectors of all words (V, E), which do not learn by it."""
        return SCALE * (self.measured(vectors, first, second) - self.mean) / self.spread

    def measured(self, vectors: Tensor, first: Padded, second: Padded) -> Tensor:
        """The numbers before they are standardized, (B, O)."""
        left = _Words.of(vectors.detach(), self.word_weights, first)
        right = _Words.of(vectors.detach(), self.word_weights, second)
        cosines_BKS = left.units @ right.units.transpose(1, 2)
        cosines_BKS = cosines_BKS.masked_fill(~right.counts.unsqueeze(1), -1.0)
        cosines_BKS = cosines_BKS.masked_fill(~left.counts.unsqueeze(2), -1.0)
        is_same_BKS = left.ids.unsqueeze(2) == right.ids.unsqueeze(1)
        numbers = [nn.functional.cosine_similarity(left.sum(), right.sum(), dim=-1)]
        for words, nearest_BN, is_shared_BN in (
            (left, cosines_BKS.amax(2), is_same_BKS.any(2)),
            (right, cosines_BKS.amax(1), is_same_BKS.any(1)),
        ):
            numbers += [
                words.mean_of(nearest_BN),
                nearest_BN.masked_fill(~words.counts, 1.0).amin(1),
                words.mean_of(is_shared_BN),
                words.mask.sum(1) / WORDS_OF_A_UNIT,
            ]
        return torch.stack(numbers, dim=1)

    def equations(self) -> list[str]:
        """The nine numbers; x̂_nk is the vector of a word divided by its length, m_nk whether both sentences have it."""
        return [
            "w_nk = E_idf[x_nk] / Σ_k E_idf[x_nk], or 0 where no word of the sentence counts: E_idf of a word is "
            "log((1 + L) / (1 + M)) + 1 where M of L training sentences have it, 0 where none has",
            "q_n = Σ_k w_nk x̂_nk",
            "ρ_kj = x̂_{1k}ᵀ x̂_{2j}, or -1 where w_{1k} or w_{2j} is 0",
            "o_1 = q_1ᵀ q_2 / sqrt((q_1ᵀ q_1) (q_2ᵀ q_2)), or 0 where q_1 or q_2 is 0",
            *(
                line
                for number, n, word, other, count in ((2, 1, "k", "j", "K"), (6, 2, "j", "k", "S"))
                for line in (
                    f"o_{number} = Σ_{word} w_{{{n}{word}}} max_{other} ρ_kj",
                    f"o_{number + 1} = min_{word} max_{other} ρ_kj, over words whose w is above 0; 1 where none is",
                    f"o_{number + 2} = Σ_{word} w_{{{n}{word}}} m_{{{n}{word}}}",
                    f"o_{number + 3} = {count} / {WORDS_OF_A_UNIT}",
                )
            ),
            f"o = {SCALE:g} ([{', '.join(f'o_{number}' for number in range(1, NUMBERS + 1))}] - μ_o) / σ_o: "
            "μ_o and σ_o are mean and spread over the training pairs",
        ]

    @torch.no_grad()
    def count(self, vectors: Tensor, pairs: Iterable[tuple[Padded, Padded]]) -> None:
        """Set the weights of words, log((1 + n) / (1 + n_x)) + 1, and mean and spread."""
        pairs = list(pairs)
        counts = FeatureCounts(len(self.word_weights))
        for sentence in (sentence for pair in pairs for sentence in pair):
            counts.add(sentence.values * sentence.mask)
        self.word_weights.copy_(weighing_column(counts.inverse_frequency(), len(SPECIAL)))
        numbers_RO = torch.cat([self.measured(vectors, first, second) for first, second in pairs])
        self.mean.copy_(numbers_RO.mean(0))
        self.spread.copy_(numbers_RO.std(0, correction=0).clamp(min=LEAST_SPREAD))
