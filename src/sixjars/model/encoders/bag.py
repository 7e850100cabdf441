"""Words and pairs of words without their order: what a linear classifier knows, and vectors to attend to.

Dims: B batch, S source positions, M words and pairs of a text (2 S), E embedding features, D features of the memory,
      N features of the evidence.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Final, final

import torch
from pydantic import Field
from torch import Tensor, nn

from sixjars.flow.contracts import Encoder
from sixjars.flow.limits import Share, Size
from sixjars.flow.special import SPECIAL
from sixjars.flow.values import Encoded, Padded
from sixjars.model.encoders.text import TextEncoder
from sixjars.model.layers import WordEmbedding

SCALE: Final = 20.0
"""Of the evidence. Its features have length 1 in all, as TF-IDF vectors do, so with Adam's small steps the logits of a
linear layer above would grow too slowly: 20 was best of 3, 10 and 20 by the loss on held-out rows of four corpora."""
EVIDENCE: Final = 16
"""Numbers of the evidence where nobody says otherwise: a linear classifier of rank 16."""
MORE_DROPOUT: Final = 0.5
"""Of the word vectors and of what the label is chosen from: as good as 0.3 or better by up to half a point on four
corpora."""
FACTORS: Final = (1_000_003, 10_007)
"""Of the two words of a pair in its hash. Products stay below 2^53 for vocabularies up to 2^32, so that JavaScript,
whose numbers are 64-bit floats, computes the same."""


@final
class NgramVectors(nn.Module):
    r"""z = λ Σ_j (w_{x_j} V[x_j] + w_{q_j} V[q_j]) / sqrt(Σ_j (w_{x_j}² + w_{q_j}²)), with q_j the pair x_j, x_{j+1}.

    A vector for each word and each pair of words, weighted by inverse document frequency, as in fastText (Joulin et
    al. 2017, https://aclanthology.org/E17-2068) but for the weights and the norm, which are those of TF-IDF: a linear
    layer above is a linear classifier of TF-IDF vectors, of as high a rank as z has numbers. Pairs share `buckets`
    vectors by their hash (Weinberger et al. 2009, https://arxiv.org/abs/0902.2206).

    `dropout` leaves out words and pairs in training, which is the adaptive regularization of Wager, Wang & Liang 2013
    (https://arxiv.org/abs/1307.1493): frequent words may not do all the work.
    """

    given: ClassVar[tuple[str, ...]] = ("vocabulary",)
    letters: ClassVar[Mapping[str, str]] = {"table.weight": "E_ngram", "weights": "E_idf"}

    def __init__(
        self,
        *,
        vocabulary: int,
        size: Size = EVIDENCE,
        buckets: Annotated[int, Field(ge=1, le=2**28)] = 2**18,
        dropout: Share = 0.5,
    ) -> None:
        super().__init__()
        self.size = size
        self.vocabulary = vocabulary
        self.buckets = buckets
        self.table = nn.Embedding(vocabulary + buckets, size)  # E_ngram
        nn.init.normal_(self.table.weight, std=0.01)  # nearly no evidence before something is learned
        weights = torch.ones(vocabulary + buckets, 1)
        weights[: len(SPECIAL)] = 0.0
        self.weights: Tensor
        self.register_buffer("weights", weights)  # E_idf
        self.dropout = nn.Dropout(dropout)

    def features(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The numbers of the word and of the pair at each position, (B, S, 2); 0, which weighs nothing, for none."""
        words_BS = ids * mask
        next_BS = nn.functional.pad(words_BS[:, 1:], (0, 1))
        first, second = FACTORS
        hashed_BS = (words_BS * first + next_BS * second) % self.buckets + self.vocabulary
        # A pair with an unknown word or across the end of a sentence is no pair.
        whole_BS = (words_BS >= len(SPECIAL)) & (next_BS >= len(SPECIAL))
        return torch.stack([words_BS, hashed_BS * whole_BS], dim=-1)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Token ids (B, S) to evidence (B, N)."""
        features_BM = self.features(ids, mask).flatten(1)
        # Dropout scales what it keeps, which the norm takes back: it only chooses.
        weights_BM = self.dropout(self.weights[features_BM].squeeze(-1))
        length_B1 = weights_BM.square().sum(1, keepdim=True).clamp(min=1e-12).sqrt()
        vectors_BMN = self.table(features_BM)
        return torch.bmm((SCALE * weights_BM / length_B1).unsqueeze(1), vectors_BMN).squeeze(1)

    @torch.no_grad()
    def count(self, texts: Iterable[Padded]) -> None:
        """Weights log((1 + n) / (1 + n_g)) + 1 of what n_g of n training texts have; 0 of what none has.

        As in scikit-learn's TfidfVectorizer: what training never saw says nothing.
        """
        counts = torch.zeros(len(self.weights), dtype=torch.float64)
        total = 0
        for text in texts:
            features = self.features(text.values, text.mask).flatten(1)
            ordered = features.sort(dim=1).values
            is_first = torch.ones_like(ordered, dtype=torch.bool)
            is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]  # a text counts once for each
            counts += torch.bincount(ordered[is_first], minlength=len(counts))
            total += text.rows
        weights = torch.where(counts > 0, ((1 + total) / (1 + counts)).log() + 1, 0.0)
        weights[: len(SPECIAL)] = 0.0
        self.weights.copy_(weights.unsqueeze(1))

    def equations(self, result: str = "z") -> list[str]:
        """The weights of the words and pairs, and their sum."""
        return [
            "w_j = E_idf[x_j]",
            "ŵ_j = E_idf[q_j]: q_j is the pair x_j, x_{j+1}, by its hash",
            f"{result} = {SCALE:g} Σ_j (w_j E_ngram[x_j] + ŵ_j E_ngram[q_j]) / sqrt(Σ_j (w_j w_j + ŵ_j ŵ_j))",
        ]


@final
class BagEncoder(Encoder):
    """h_j = E_enc[x_j]; h_T = z, the evidence of all words and pairs of words.

    Without any recurrence, so it is trained in seconds. With the bridge `pooling` and `join_summary: true`, a label is
    chosen by attention over the words and by the evidence together, as in wide and deep learning (Cheng et al. 2016,
    https://arxiv.org/abs/1606.07792).

    >>> words = WordEmbedding(vocabulary=10, size=3)
    >>> encoder = BagEncoder(embedding=words, ngrams=NgramVectors(vocabulary=10, size=2, buckets=8))
    >>> encoder(Padded.of([[5, 6, 7], [8]])).summary.shape
    torch.Size([2, 2])
    """

    def __init__(self, *, embedding: WordEmbedding, ngrams: NgramVectors) -> None:
        super().__init__()
        self.embedding = embedding
        self.ngrams = ngrams
        self.output_size = embedding.size
        self.summary_size = ngrams.size

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """Word vectors of that size, and the usual evidence; without a recurrence, more dropout than others take."""
        return {"embedding": {"size": size, "dropout": MORE_DROPOUT}, "ngrams": {"size": EVIDENCE}}

    @classmethod
    def companions(cls, settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Attention over the words and the evidence, straight to the label: a layer between them only overfits."""
        size = settings["embedding"]["size"] + settings["ngrams"]["size"]
        bridge = {"kind": "pooling", "start": "copy", "join_summary": True}
        return {"bridge": bridge, "decoder": {"size": size, "dropout": MORE_DROPOUT}}

    def count(self, inputs: Iterable[Mapping[str, Padded]]) -> None:
        """How many training texts have each word and each pair."""
        self.ngrams.count(batch["source"] for batch in inputs)

    def forward(self, source: Padded) -> Encoded:
        """Token ids (B, S) to the vector of each word (B, S, E) and the evidence (B, N)."""
        memory_BSE = self.embedding(source.values) * source.mask.unsqueeze(-1)
        return Encoded(memory_BSE, source.mask, self.ngrams(source.values, source.mask))

    def equations(self) -> list[str]:
        """The vectors of the words, and the evidence."""
        return [*self.embedding.equations(), "h_j = E_enc[x_j]", *self.ngrams.equations("h_T")]


@final
class WideDeepEncoder(Encoder):
    """h_j = RNN(h_{j-1}, E_enc[x_j]); h_T = [h_S, z]: a recurrence with the evidence of words and pairs beside it.

    Wide and deep learning: Cheng et al. 2016 (https://arxiv.org/abs/1606.07792). The bridge `pooling` with
    `join_summary: true` hands attention over the states and the evidence to the label.

    >>> deep = TextEncoder(embedding=WordEmbedding(vocabulary=10, size=3), size=4)
    >>> encoder = WideDeepEncoder(deep=deep, ngrams=NgramVectors(vocabulary=10, size=2, buckets=8))
    >>> encoder(Padded.of([[5, 6, 7], [8]])).summary.shape
    torch.Size([2, 6])
    """

    def __init__(self, *, deep: TextEncoder, ngrams: NgramVectors) -> None:
        super().__init__()
        self.deep = deep
        self.ngrams = ngrams
        self.output_size = deep.output_size
        self.summary_size = deep.summary_size + ngrams.size

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """As the encoder of a text."""
        return {"deep": TextEncoder.suggest(size, dropout, labels=labels)}

    def count(self, inputs: Iterable[Mapping[str, Padded]]) -> None:
        """How many training texts have each word and each pair."""
        self.ngrams.count(batch["source"] for batch in inputs)

    def forward(self, source: Padded) -> Encoded:
        """Token ids (B, S) to annotations (B, S, D) and the summary with the evidence."""
        encoded = self.deep(source)
        evidence_BN = self.ngrams(source.values, source.mask)
        return Encoded(encoded.memory, source.mask, torch.cat([encoded.summary, evidence_BN], dim=-1))

    def equations(self) -> list[str]:
        """The recurrence, the evidence, and both."""
        deep = self.deep.equations(summary="h_S")
        return [*deep, *self.ngrams.equations(), "h_T = [h_S, z]"]
