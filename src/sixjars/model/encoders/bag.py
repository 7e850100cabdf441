"""Bags of words and pairs of words: TF-IDF evidence, and word vectors to attend to.

Dims: B batch, S source positions, M words and pairs at them, E embedding features, D features of
      the memory, N features of the evidence.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Final, final

import torch
from pydantic import Field
from torch import Tensor, nn

from sixjars.flow.contracts import Encoder
from sixjars.flow.limits import Share, Size
from sixjars.flow.values import Encoded, Padded
from sixjars.model.encoders.text import TextEncoder
from sixjars.model.frequencies import inverse_frequency, occurrences, texts_with, weighing_column
from sixjars.model.layers import WordEmbedding
from sixjars_runtime.special_tokens import SPECIAL

SCALE: Final = 20.0
"""The factor of the evidence. Its vector has length 1, as TF-IDF vectors do, so with Adam's small
steps the logits of a linear layer above would grow too slowly; 60 overfits (movie reviews: 0.816 in
place of 0.830)."""
EVIDENCE: Final = 16
"""The default size of the evidence: a linear classifier of rank 16."""
LABEL_DROPOUT: Final = 0.5
"""Dropout before the label: as good as 0.3 or better by up to half a point on four corpora. Dropout
on the word vectors gained nothing more, and drawing it was half of the time of training."""
FACTORS: Final = (1_000_003, 10_007)
"""The factors of the two words in the hash of a pair. Products stay below 2^53 for vocabularies up
to 2^32, so that JavaScript, whose numbers are 64-bit floats, computes the same."""


@final
class NgramVectors(nn.Module):
    r"""z = λ Σ_j (w_j V[x_j] + w′_j V′[q_j]) / sqrt(Σ_j (τ_j w_j² + τ′_j w′_j²)).

    q_j is the pair x_j, x_{j+1}. There is a vector for each word and each pair of words, as in
    fastText (Joulin et al. 2017, https://aclanthology.org/E17-2068) but for the weights and the
    norm, which are those of TF-IDF: a linear layer above is a linear classifier of TF-IDF vectors,
    whose rank is the size of z. A word that stands τ times in a text counts 1 + log τ times
    (Manning, Raghavan & Schütze 2008, section 6.4.1): a review that says 'movie' ten times is no
    more about movies than others. On 1,600 movie reviews a linear classifier gains 3.5 points of
    accuracy by it. Pairs share `buckets` vectors by their hash (Weinberger et al. 2009,
    https://arxiv.org/abs/0902.2206).

    `dropout` leaves out words and pairs in training, which is the adaptive regularization of Wager,
    Wang & Liang 2013 (https://arxiv.org/abs/1307.1493): frequent words alone may not decide.

    Words and pairs have tables of their own, so that a vocabulary may grow in fine-tuning and every
    pair keeps its row.

    >>> ngrams = NgramVectors(vocabulary=10, size=2, buckets=8)
    >>> texts = Padded.of([[5, 6, 7], [8]])
    >>> ngrams.count([texts])
    >>> ngrams(texts.values, texts.mask).shape
    torch.Size([2, 2])
    """

    given: ClassVar[tuple[str, ...]] = ("vocabulary",)
    letters: ClassVar[Mapping[str, str]] = {
        "words.weight": "E_gram1",
        "pairs.weight": "E_gram2",
        "word_weights": "E_idf1",
        "pair_weights": "E_idf2",
    }

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
        self.buckets = buckets
        self.words = nn.Embedding(vocabulary, size)  # E_gram1
        self.pairs = nn.Embedding(1 + buckets, size)  # E_gram2; pair 0 is none
        for table in (self.words, self.pairs):
            nn.init.normal_(table.weight, std=0.01)  # nearly no evidence at first
        self.word_weights: Tensor
        self.pair_weights: Tensor
        word_weights = weighing_column(torch.ones(vocabulary), len(SPECIAL))
        pair_weights = weighing_column(torch.ones(1 + buckets), 1)
        self.register_buffer("word_weights", word_weights)  # E_idf1
        self.register_buffer("pair_weights", pair_weights)  # E_idf2
        self.dropout = nn.Dropout(dropout)

    def features(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The word and the pair at each position, (B, S) each; 0, whose weight is 0, for none."""
        words_BS = ids * mask
        next_BS = nn.functional.pad(words_BS[:, 1:], (0, 1))
        first, second = FACTORS
        hashed_BS = 1 + (words_BS * first + next_BS * second) % self.buckets
        # A pair with an unknown word or across the end of a sentence is no pair.
        whole_BS = (words_BS >= len(SPECIAL)) & (next_BS >= len(SPECIAL))
        return words_BS, hashed_BS * whole_BS

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The evidence (B, N) of token ids (B, S)."""
        words_BS, pairs_BS = self.features(ids, mask)
        columns = self.word_weights[words_BS], self.pair_weights[pairs_BS]
        weights_BM = torch.cat(columns, dim=1).squeeze(-1)
        counts_BM = torch.cat([occurrences(words_BS), occurrences(pairs_BS)], dim=1).float()
        # Dropout scales what it keeps, but the norm undoes that: it only selects.
        weights_BM = self.dropout(weights_BM * (1 + counts_BM.log()) / counts_BM)
        length_B1 = (counts_BM * weights_BM.square()).sum(1, keepdim=True).clamp(min=1e-12).sqrt()
        vectors_BMN = torch.cat([self.words(words_BS), self.pairs(pairs_BS)], dim=1)
        return torch.bmm((SCALE * weights_BM / length_B1).unsqueeze(1), vectors_BMN).squeeze(1)

    @torch.no_grad()
    def count(self, texts: Iterable[Padded]) -> None:
        """Set the weights to log((1 + n) / (1 + n_g)) + 1, where n_g of n training texts have g.

        As in scikit-learn's TfidfVectorizer; a weight is 0 where no text has the word or pair.
        """
        word_counts = torch.zeros(len(self.word_weights), dtype=torch.float64)
        pair_counts = torch.zeros(len(self.pair_weights), dtype=torch.float64)
        total = 0
        for text in texts:
            words_BS, pairs_BS = self.features(text.values, text.mask)
            word_counts += texts_with(words_BS, len(word_counts))
            pair_counts += texts_with(pairs_BS, len(pair_counts))
            total += text.rows
        word_weights = inverse_frequency(word_counts, total)
        pair_weights = inverse_frequency(pair_counts, total)
        self.word_weights.copy_(weighing_column(word_weights, len(SPECIAL)))
        self.pair_weights.copy_(weighing_column(pair_weights, 1))
        # Rows without a weight are never learned: zeros take no room in a compressed page.
        self.words.weight[self.word_weights.squeeze(1) == 0] = 0.0
        self.pairs.weight[self.pair_weights.squeeze(1) == 0] = 0.0

    def equations(self, result: str = "z") -> list[str]:
        """The weights of the words and pairs, and their sum."""
        first, second = FACTORS
        return [
            "τ_j is at how many positions the word x_j stands in the text, τ′_j the pair q_j",
            "w_j = E_idf1[x_j] (1 + log(τ_j)) / τ_j: E_idf1 of a word is "
            "log((1 + n) / (1 + m)) + 1 where m of n training texts have it, 0 where none has",
            f"q_j = 1 + ({first} x_j + {second} x_{{j+1}}) mod {self.buckets}, "
            "or 0 where one of both is <unk> or beyond the end: the pair's hash",
            "w′_j = E_idf2[q_j] (1 + log(τ′_j)) / τ′_j: E_idf2 likewise, of pairs",
            f"{result} = {SCALE:g} Σ_j (w_j E_gram1[x_j] + w′_j E_gram2[q_j]) "
            "/ sqrt(Σ_j (τ_j w_j w_j + τ′_j w′_j w′_j))",
        ]


@final
class BagEncoder(Encoder):
    """h_j = E_enc[x_j]; h_T = z, the evidence of all words and pairs of words.

    Without any recurrence, so it is trained in seconds. With the bridge `pooling` and
    `join_summary: true`, a label is chosen by attention over the words and by the evidence
    together, as in wide and deep learning (Cheng et al. 2016, https://arxiv.org/abs/1606.07792).

    >>> words = WordEmbedding(vocabulary=10, size=3)
    >>> encoder = BagEncoder(embedding=words, ngrams=NgramVectors(vocabulary=10, size=2, buckets=8))
    >>> encoder(Padded.of([[5, 6, 7], [8]])).summary.shape
    torch.Size([2, 2])
    """

    counted = ("ngrams.word_weights", "ngrams.pair_weights")

    recurs = False

    def __init__(self, *, embedding: WordEmbedding, ngrams: NgramVectors) -> None:
        super().__init__()
        self.embedding = embedding
        self.ngrams = ngrams
        self.output_size = embedding.size
        self.summary_size = ngrams.size

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """Word vectors of that size, and the usual evidence."""
        return {"embedding": {"size": size}, "ngrams": {"size": EVIDENCE}}

    @classmethod
    def companions(cls, settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Attention over the words beside the evidence; a layer before the label overfits."""
        size = settings["embedding"]["size"] + settings["ngrams"]["size"]
        bridge = {"kind": "pooling", "start": "copy", "join_summary": True}
        return {"bridge": bridge, "decoder": {"size": size, "dropout": LABEL_DROPOUT}}

    def count(self, inputs: Iterable[Mapping[str, Padded]]) -> None:
        """Count the training texts that have each word and each pair."""
        self.ngrams.count(batch["source"] for batch in inputs)

    def forward(self, source: Padded) -> Encoded:
        """The vector of each word (B, S, E) and the evidence (B, N) of token ids (B, S)."""
        memory_BSE = self.embedding(source.values) * source.mask.unsqueeze(-1)
        return Encoded(memory_BSE, source.mask, self.ngrams(source.values, source.mask))

    def equations(self) -> list[str]:
        """The vectors of the words, and the evidence."""
        return [*self.embedding.equations(), "h_j = E_enc[x_j]", *self.ngrams.equations("h_T")]


@final
class WideDeepEncoder(Encoder):
    """h_j = RNN(h_{j-1}, E_enc[x_j]); h_T = [h_rnn, z]: a recurrence, and the evidence of words.

    Wide and deep learning: Cheng et al. 2016 (https://arxiv.org/abs/1606.07792). With the bridge
    `pooling` and `join_summary: true` a label is chosen by attention over the states and by the
    evidence.

    >>> deep = TextEncoder(embedding=WordEmbedding(vocabulary=10, size=3), size=4)
    >>> encoder = WideDeepEncoder(deep=deep, ngrams=NgramVectors(vocabulary=10, size=2, buckets=8))
    >>> encoder(Padded.of([[5, 6, 7], [8]])).summary.shape
    torch.Size([2, 6])
    """

    counted = ("ngrams.word_weights", "ngrams.pair_weights")

    def __init__(self, *, deep: TextEncoder, ngrams: NgramVectors) -> None:
        super().__init__()
        self.deep = deep
        self.ngrams = ngrams
        self.output_size = deep.output_size
        self.summary_size = deep.summary_size + ngrams.size

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """The settings of the encoder of a text."""
        return {"deep": TextEncoder.suggest(size, dropout, labels=labels)}

    def count(self, inputs: Iterable[Mapping[str, Padded]]) -> None:
        """Count the training texts that have each word and each pair."""
        self.ngrams.count(batch["source"] for batch in inputs)

    def forward(self, source: Padded) -> Encoded:
        """The annotations (B, S, D) of token ids (B, S), and the summary with the evidence."""
        encoded = self.deep(source)
        evidence_BN = self.ngrams(source.values, source.mask)
        summary = torch.cat([encoded.summary, evidence_BN], dim=-1)
        return Encoded(encoded.memory, source.mask, summary)

    def equations(self) -> list[str]:
        """The recurrence, the evidence, and both."""
        deep = self.deep.equations(summary="h_rnn")
        return [*deep, *self.ngrams.equations(), "h_T = [h_rnn, z]"]
