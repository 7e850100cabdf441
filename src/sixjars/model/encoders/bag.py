"""Bags of words and pairs of words: TF-IDF evidence, and word vectors to attend to.

Dims: B batch, S source positions, M words and pairs at them, E embedding features, D features of
      the memory, N features of the evidence, V words of the vocabulary, F features to count.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal, final

import torch
from pydantic import Field, StrictBool
from torch import Tensor, nn

from sixjars.flow.contracts import Encoder, ModelPlan
from sixjars.flow.limits import Share, Size
from sixjars.flow.values import Batch, Encoded, Padded
from sixjars.model.encoders.text import TextEncoder
from sixjars.model.frequencies import SMOOTHING, FeatureCounts, occurrences, weighing_column
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
MEASURED: Final = 8
"""Batches by all of whose texts the length of a mean vector is measured; of more batches, whose
texts are of one length each, some texts of each are taken."""
MEASURED_OF_EACH: Final = 16
"""The texts of each batch then, for 25,000 texts 1,600."""
VECTOR_SCALE: Final = 20.0
"""The factor of the attended vectors of a starter recipe, as large as that of the evidence. Word
vectors then decide where rows are few, before rare words are learned by heart. With weights by
labels and ε below, 200 news gained 5 points of accuracy, 1,000 news 3, 20,000 reviews 1.5 (a seed
or two each); 1,300 reviews none."""
EPSILON: Final = 1e-4
"""Adam's ε of a starter recipe. With 1e-8 a word of one text learns as fast as frequent ones, and
texts are learned by heart: 20,000 movie reviews 0.910 in place of 0.902, topics of 3,000 stories
0.839 in place of 0.798, news equal. With 1e-3 large sets are learned too slowly."""
MEASURED_AT_ONCE: Final = 16
"""Texts whose vectors are there at a time: those of 256 long texts would have half a gigabyte."""
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

    With `weigh_by: labels` the weights w also grow with how much a word tells about the labels of
    the training set (Wang & Manning 2012, https://aclanthology.org/P12-2018): the linear classifier
    of 4,800 news gains 2 points of accuracy by it, that of 1,000 news 2.6.

    Words and pairs have tables of their own, so that a vocabulary may grow in fine-tuning and every
    pair keeps its row.

    >>> ngrams = NgramVectors(vocabulary=10, size=2, buckets=8)
    >>> texts = Padded.of([[5, 6, 7], [8]])
    >>> _ = ngrams.count([(texts, Padded.of([[0], [1]]))])
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
        weigh_by: Literal["frequency", "labels"] = "frequency",
    ) -> None:
        super().__init__()
        self.size = size
        self.by_labels = weigh_by == "labels"
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
    def count(self, examples: Iterable[tuple[Padded, Padded]]) -> FeatureCounts:
        """Set the weights from the token ids and the labels of the training set.

        They are log((1 + n) / (1 + n_g)) + 1, where n_g of n texts have the word or pair g, as in
        scikit-learn's TfidfVectorizer, and 0 where none has it; with `weigh_by: labels` times the
        log ratio of `FeatureCounts.label_ratio`. Returns how many texts have each word.
        """
        words = FeatureCounts(len(self.word_weights))
        pairs = FeatureCounts(len(self.pair_weights))
        for text, target in examples:
            labels = target if self.by_labels else None
            words_BS, pairs_BS = self.features(text.values, text.mask)
            words.add(words_BS, labels)
            pairs.add(pairs_BS, labels)
        self.word_weights.copy_(weighing_column(self._weights(words), len(SPECIAL)))
        self.pair_weights.copy_(weighing_column(self._weights(pairs), 1))
        # Rows without a weight are never learned: zeros take no room in a compressed page.
        self.words.weight[self.word_weights.squeeze(1) == 0] = 0.0
        self.pairs.weight[self.pair_weights.squeeze(1) == 0] = 0.0
        return words

    def _weights(self, counts: FeatureCounts) -> Tensor:
        weights_F = counts.inverse_frequency()
        return weights_F * counts.label_ratio() if self.by_labels else weights_F

    def equations(self, result: str = "z") -> list[str]:
        """The weights of the words and pairs, and their sum."""
        first, second = FACTORS
        ratio = ""
        if self.by_labels:
            a = f"{SMOOTHING:g}"
            ratio = (
                ", times the greatest log(p / q) over the labels ℓ of texts that have it, or 0: "
                f"p = (m_ℓ + {a} n_ℓ / n) / (n_ℓ + {a}) where m_ℓ of the n_ℓ texts of label ℓ "
                "have it, q likewise of all other texts"
            )
        return [
            "τ_j is at how many positions the word x_j stands in the text, τ′_j the pair q_j",
            "w_j = E_idf1[x_j] (1 + log(τ_j)) / τ_j: E_idf1 of a word is "
            f"log((1 + n) / (1 + m)) + 1 where m of n training texts have it, 0 where none has{ratio}",
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

    `standardize: true` is for pretrained vectors: E_enc[x] begins as w_x (E[x] - μ) / σ, where w_x
    is the inverse document frequency of a word, μ the mean of w_x E[x] over the training set, and σ
    makes the mean vector of a text as long as 1 on average. So the mean over the words is at first
    the sentence embedding of Arora, Liang & Ma 2017 (https://openreview.net/forum?id=SyK00v5xx),
    with the mean in place of the first principal component.

    >>> words = WordEmbedding(vocabulary=10, size=3)
    >>> encoder = BagEncoder(embedding=words, ngrams=NgramVectors(vocabulary=10, size=2, buckets=8))
    >>> encoder(Padded.of([[5, 6, 7], [8]])).summary.shape
    torch.Size([2, 2])
    """

    counted = ("ngrams.word_weights", "ngrams.pair_weights")

    recurs = False
    for_vectors = {"standardize": True}

    def __init__(
        self, *, embedding: WordEmbedding, ngrams: NgramVectors, standardize: StrictBool = False
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.ngrams = ngrams
        self.standardizes = standardize
        self.output_size = embedding.size
        self.summary_size = ngrams.size

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """Word vectors of that size, and the usual evidence."""
        weighing = {"weigh_by": "labels"} if labels else {}
        return {"embedding": {"size": size}, "ngrams": {"size": EVIDENCE, **weighing}}

    @classmethod
    def companions(cls, settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Attention over the words beside the evidence; a layer before the label overfits."""
        size = settings["embedding"]["size"] + settings["ngrams"]["size"]
        bridge: dict[str, Any] = {"kind": "pooling", "start": "copy", "join_summary": True}
        companions = {"bridge": bridge, "decoder": {"size": size, "dropout": LABEL_DROPOUT}}
        if settings.get("standardize"):
            bridge["scale"] = VECTOR_SCALE
            # Vectors that learn were no better, cost an update of the whole table, and leave those
            # of words that training does not have where they were.
            companions["learning"] = {"freeze": ["encoder.embedding"], "epsilon": EPSILON}
        return companions

    def count(self, batches: Iterable[Batch]) -> None:
        """Count the training texts that have each word and pair; standardize the word vectors."""
        first: list[Padded] = []
        some: list[Padded] = []

        def examples() -> Iterator[tuple[Padded, Padded]]:
            for batch in batches:
                text = batch.inputs["source"]
                text = Padded(text.values, text.mask)  # without its segments, for rows to be picked
                first.extend([text] if len(first) <= MEASURED else [])
                step = -(-text.rows // MEASURED_OF_EACH)
                some.append(text.pick(torch.arange(0, text.rows, step)))
                yield text, batch.target

        words = self.ngrams.count(examples())
        if self.standardizes:
            self._standardize(words, first if len(first) <= MEASURED else some)

    @torch.no_grad()
    def _standardize(self, words: FeatureCounts, texts: Sequence[Padded]) -> None:
        """Weigh, centre and scale the word vectors.

        Those of special tokens become 0, and those of words that have no pretrained vector: they
        would be noise that never learns.
        """
        table_VE = self.embedding.table.weight
        weights_V1 = weighing_column(words.weights_of_all().float(), len(SPECIAL))
        shares_V1 = weights_V1 * words.texts_F.float().unsqueeze(1)
        centre_E = (shares_V1 * table_VE).sum(0) / shares_V1.sum().clamp(min=1e-6)
        table_VE.sub_(centre_E).mul_(weights_V1)
        if self.embedding.pretrained_rows is not None:
            is_known_V = torch.zeros(len(table_VE), dtype=torch.bool)
            is_known_V[self.embedding.pretrained_rows] = True
            table_VE[~is_known_V] = 0.0
        parts = (
            Padded(text.values[at : at + MEASURED_AT_ONCE], text.mask[at : at + MEASURED_AT_ONCE])
            for text in texts
            for at in range(0, text.rows, MEASURED_AT_ONCE)
        )
        squares = torch.cat([self._mean_vectors(part).square().sum(1) for part in parts])
        table_VE.div_(squares.mean().sqrt().clamp(min=1e-6))

    def _mean_vectors(self, text: Padded) -> Tensor:
        """The mean over the words of each row, (B, E)."""
        vectors_BSE = self.embedding.matrix()[text.values] * text.mask.unsqueeze(-1)
        return vectors_BSE.sum(1) / text.mask.sum(1, keepdim=True).clamp(min=1)

    @classmethod
    def misfits(cls, plan: ModelPlan) -> list[str]:
        """Report weights by labels where the output has none, and vectors that are not there."""
        faults = _without_labels(plan)
        settings = plan.settings["encoder"]
        if settings.get("standardize") and not plan.inputs["source"].has_vectors:
            faults.append(
                "model.encoder.standardize: true is for pretrained vectors, but "
                "data.source.vectors names none; take model.encoder.standardize=false "
                "model.bridge.scale=1 learning.freeze=[] learning.epsilon=1e-8."
            )
        if settings.get("standardize") and settings["embedding"].get("frozen"):
            faults.append(
                "model.encoder.embedding.frozen: true keeps vectors that standardize would "
                "change; take model.encoder.embedding.frozen=false "
                "learning.freeze=encoder.embedding."
            )
        return faults

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

    def count(self, batches: Iterable[Batch]) -> None:
        """Count the training texts that have each word and each pair."""
        self.ngrams.count((batch.inputs["source"], batch.target) for batch in batches)

    @classmethod
    def misfits(cls, plan: ModelPlan) -> list[str]:
        """Report weights by labels where the output has none."""
        return _without_labels(plan)

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


def _without_labels(plan: ModelPlan) -> list[str]:
    """A sentence where words are to be weighed by labels, and the output has none."""
    weighing = plan.settings["encoder"].get("ngrams", {}).get("weigh_by")
    if weighing != "labels" or not plan.decoder.searches:
        return []
    return [
        "model.encoder.ngrams.weigh_by: labels needs an output that is a label; "
        "frequency fits any output."
    ]
