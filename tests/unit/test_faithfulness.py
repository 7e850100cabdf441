"""Attention against erasing and gradients: plain loops, and models of known importances."""

from collections.abc import Mapping
from itertools import combinations
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import sixjars
from sixjars import (
    Attention,
    Decoder,
    DecoderOutput,
    Encoded,
    Encoder,
    InitialState,
    Network,
    Padded,
    PointerDecoder,
    PointsEncoder,
    SequenceDecoder,
    StateShape,
    TextEncoder,
    WordEmbedding,
)
from sixjars.data.batches import ArrayColumn, Batches, FieldValues, IdColumn
from sixjars.evaluation.agreement import (
    AttentionAgreement,
    ExampleAgreement,
    MeanEstimate,
    agreement,
    kendall_tau,
)
from sixjars.evaluation.faithfulness import ForcedCopies
from sixjars.runs.evaluate import scored_dataset
from sixjars.runs.folder.run_folder import open_run
from sixjars_runtime.special_tokens import GO, STOP, UNK


def ids_column(rows: list[list[int]]) -> IdColumn:
    flat = np.array([one for row in rows for one in row], dtype=np.int32)
    return IdColumn((flat, np.cumsum([0, *map(len, rows)])))


def batches_of(sources: list[list[int]], name: str = "source") -> Batches:
    columns: dict[str, FieldValues] = {name: ids_column(sources)}
    return Batches(columns, ids_column([[5] for _ in sources]))


def plain_tau(one: list[float], other: list[float]) -> float:
    """Pair by pair."""
    same = ones = others = 0
    for i, j in combinations(range(len(one)), 2):
        a, b = np.sign(one[i] - one[j]), np.sign(other[i] - other[j])
        same, ones, others = same + a * b, ones + a * a, others + b * b
    return float(same / sqrt(ones * others))


def test_kendall_tau_counts_pairs() -> None:
    random = np.random.default_rng(1)
    one, other = random.integers(0, 5, (2, 20, 7)) / 4  # many ties
    found = kendall_tau(torch.from_numpy(one), torch.from_numpy(other))
    wanted = [plain_tau(a, b) for a, b in zip(one.tolist(), other.tolist(), strict=True)]
    assert found.tolist() == pytest.approx(wanted)


def test_what_has_no_order_has_no_correlation() -> None:
    uniform, order = torch.full((1, 3), 1 / 3), torch.tensor([[0.1, 0.2, 0.7]])
    assert kendall_tau(uniform, order).isnan().all()
    assert agreement(uniform, order, np.random.default_rng(0)) is None
    weights, importance = torch.cat([uniform, order]), torch.cat([order, order])
    both = agreement(weights, importance, np.random.default_rng(0))
    assert both is not None
    assert both == ExampleAgreement(tau=1.0, random=both.random, first=1.0, chance=1 / 3, steps=1)


def test_the_interval_of_a_mean() -> None:
    values = np.random.default_rng(3).normal(0.4, 0.2, 400).tolist()
    found = MeanEstimate.of(values)
    half = 1.96 * float(np.std(values)) / sqrt(len(values))
    assert found.mean == pytest.approx(float(np.mean(values)))
    assert [found.mean - found.low, found.high - found.mean] == pytest.approx([half, half], rel=0.1)


def network() -> Network:
    torch.manual_seed(0)
    encoder = TextEncoder(embedding=WordEmbedding(vocabulary=12, size=5), size=4, direction="both")
    bridge = Attention(source_size=8, state_size=6, size=7)
    decoder = SequenceDecoder(bridge=bridge, embedding=WordEmbedding(vocabulary=12, size=3), size=6)
    with torch.no_grad():
        for weight in (*encoder.parameters(), *decoder.parameters()):
            weight.mul_(2.5)  # else everything depends on next to nothing
    return Network(encoder, decoder).eval()


def stepped(model: Network, encoded: Encoded, output: list[int]) -> Tensor:
    """The log probability of each token, one step of search after the other."""
    decoder = model.decoder
    assert isinstance(decoder, SequenceDecoder | PointerDecoder)
    state: Any
    (state, prepared), found = decoder.start(encoded), []
    for before, token in zip([GO, *output], output, strict=False):
        step, state = decoder.step(torch.tensor([before]), state, prepared)
        found.append(step.log_probabilities[0, token])
    return torch.stack(found)


SOURCE, OUTPUT = [5, 9, 7, 5, 11, 8], [6, 10, 4, STOP]


@pytest.mark.parametrize("at_once", [1, 4, 99])
def test_erasures_are_those_of_a_plain_loop(at_once: int) -> None:
    model = network()
    copies = ForcedCopies(model, batches_of([[7], SOURCE]), 1, OUTPUT, tokens=True)
    copies.at_once = at_once
    with torch.no_grad():
        whole = stepped(model, model.encode({"source": Padded.of([SOURCE])}), OUTPUT)
        for place in range(len(SOURCE)):
            ids = [UNK if at == place else one for at, one in enumerate(SOURCE)]
            encoded = model.encode({"source": Padded.of([ids])})
            encoded.mask[0, place] = False
            wanted = whole - stepped(model, encoded, OUTPUT)
            assert torch.allclose(copies.falls()[:, place].float(), wanted, atol=1e-5)
    assert copies.falls().abs().max() > 0.01


@pytest.mark.parametrize("at_once", [1, 3, 99])
def test_gradients_are_those_of_a_plain_loop(at_once: int) -> None:
    model = network()
    copies = ForcedCopies(model, batches_of([[7], SOURCE]), 1, OUTPUT, tokens=True)
    copies.at_once = at_once
    found, encoder = copies.gradients(), model.encoder
    assert isinstance(encoder, TextEncoder)
    for step in range(len(OUTPUT)):
        vectors = encoder.embedding(torch.tensor([SOURCE])).detach().requires_grad_()
        mask = torch.ones(1, len(SOURCE), dtype=torch.bool)
        memory, summary = encoder.rnn(vectors, mask)
        stepped(model, Encoded(memory, mask, summary), OUTPUT)[step].backward()  # type: ignore[no-untyped-call]
        assert vectors.grad is not None
        norms = vectors.grad[0].norm(dim=-1)
        assert torch.allclose(found[step].float(), norms, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "recipe",
    [f"document_classification/sample_{way}attention" for way in ("", "flat_")]
    + ["sentence_pair/sample_attention"],
)
def test_gradients_of_segments_and_of_a_second_sentence(recipe: str, tmp_path: Path) -> None:
    """The gradient at a word that stands there once is that of its row of the embeddings."""
    few = ["data.sample.size=32", "data.sample.valid=4", "data.sample.test=4", "learning.steps=1"]
    sixjars.train(recipe, few, out=tmp_path / "run", device="cpu")
    dataset = scored_dataset(open_run(tmp_path / "run"))
    model, batches = sixjars.load(tmp_path / "run", device="cpu").network, dataset.batches()
    copies = ForcedCopies(model, batches, 2, [1], tokens=True)
    found, batch = copies.gradients(), batches.collate(torch.tensor([2]))
    [words] = [one for one in model.encoder.modules() if isinstance(one, WordEmbedding)]
    words.table.weight.requires_grad_()
    log = torch.log_softmax(model(batch.inputs, batch.target).logits[0, 0], dim=-1)[1]
    [gradient] = torch.autograd.grad(log, [words.table.weight])
    every = torch.cat([one.values[0] for one in batch.inputs.values()]).tolist()
    own = batch.inputs[model.encoder.positions_of()].values[0].tolist()
    single = [place for place, word in enumerate(own) if every.count(word) == 1]
    assert copies.tokens
    assert single
    for place in single:
        assert float(found[0, place]) == pytest.approx(float(gradient[own[place]].norm()), rel=1e-3)


def test_points_are_erased_in_the_memory() -> None:
    torch.manual_seed(0)
    encoder = PointsEncoder(dimensions=2, size=4, embedding=3)
    bridge = InitialState(summary_size=4, state_size=6)
    decoder = PointerDecoder(bridge=bridge, source_size=4, size=6)
    model, points = Network(encoder, decoder).eval(), torch.rand(5, 2)
    column = ArrayColumn(lambda _: points.numpy(), np.array([5]))
    batches = Batches({"points": column}, ids_column([[5]]))
    order = [6, 4, 8, 7, 5, STOP]
    copies = ForcedCopies(model, batches, 0, order, tokens=False)
    falls = copies.falls()
    with torch.no_grad():
        whole = stepped(model, copies.encoded, order)
        for place in range(5):
            mask = copies.encoded.mask.clone()
            mask[0, place] = False
            encoded = Encoded(copies.encoded.memory, mask, copies.encoded.summary)
            wanted = whole - stepped(model, encoded, order)
            able = torch.isfinite(wanted)
            assert torch.allclose(falls[:, place].float()[able], wanted[able], atol=1e-5)
            assert (falls[:, place][~able] > 1000).all()  # what is erased cannot be pointed at
    assert copies.gradients().shape == (6, 5)


class Values(Encoder):
    """Every token has one value, the memory; there is no recurrence."""

    output_size = summary_size = 1

    def __init__(self, values: list[float]) -> None:
        super().__init__()
        self.embedding = WordEmbedding(vocabulary=len(values), size=1, vectors=_rows(values))

    def forward(self, source: Padded) -> Encoded:
        memory = self.embedding(source.values) * source.mask.unsqueeze(-1)
        return Encoded(memory, source.mask, memory.sum(1))


def _rows(values: list[float]) -> tuple[Tensor, Tensor]:
    return torch.arange(len(values)), torch.tensor(values).unsqueeze(1)


class Explained(Decoder):
    """P(y = 1) = σ(Σ_j v_j²), attention α_j = v_j / Σ v: by importance, or its opposite."""

    produces = "classes"
    searches = False

    def __init__(self, power: int) -> None:
        super().__init__()
        self.power = power

    @staticmethod
    def state_shape(settings: Mapping[str, Any]) -> StateShape:
        return StateShape(1, 1)

    def teach(self, encoded: Encoded, target: Padded) -> DecoderOutput:
        values = encoded.memory.squeeze(-1) * encoded.mask
        weights = (values + 1e-9) ** self.power * encoded.mask
        score = (values**2).sum(1)
        logits = torch.stack([torch.zeros_like(score), score], dim=1).unsqueeze(1)
        return DecoderOutput(logits, (weights / weights.sum(1, keepdim=True)).unsqueeze(1))

    def answer(self, encoded: Encoded, search: Any, prefix: Padded | None = None) -> Any:
        return []

    def loss_equation(self) -> str:
        return ""


def measured(power: int) -> list[AttentionAgreement]:
    """Of 60 examples of nine different tokens each."""
    model = Network(Values([0.0] * 4 + [0.03 * at for at in range(1, 21)]), Explained(power)).eval()
    random = np.random.default_rng(0)
    rows = [random.permutation(np.arange(4, 24))[:9].tolist() for _ in range(60)]
    batches = batches_of(rows)
    found: dict[str, list[ExampleAgreement]] = {"a": [], "b": []}
    for row in range(len(rows)):
        copies = ForcedCopies(model, batches, row, [1], tokens=True)
        for name, importance in zip(found, (copies.falls(), copies.gradients()), strict=True):
            measure = agreement(copies.weights_TS, importance, random)
            found[name] += [measure] if measure else []
    return [AttentionAgreement(name, tuple(some)) for name, some in found.items()]


def test_attention_that_is_the_importance_agrees_wholly_and_random_weights_do_not() -> None:
    for one in measured(power=1):
        assert [one.tau.mean, one.first.mean] == pytest.approx([1, 1])
        assert one.random.low < 0 < one.random.high
        assert abs(one.random.mean) < 0.1
        assert one.chance == pytest.approx(1 / 9)
        assert "to a large part, more than random weights do" in one.sentence


def test_attention_on_what_matters_least_is_told() -> None:
    for one in measured(power=-1):
        assert [one.tau.mean, one.first.mean] == pytest.approx([-1, 0])
        assert "order the input in opposite ways;" in one.sentence


@pytest.mark.parametrize(
    ("tau", "first", "wanted"),
    [
        (0.0, 0.5, "alike no more than random weights do; but"),
        (0.0, 0.1, "alike no more than random weights do; and"),
        (0.2, 0.5, "alike weakly, more than random weights do; and"),
        (0.4, 0.5, "alike in part, more than random weights do; and"),
    ],
)
def test_the_meaning_of_a_correlation(tau: float, first: float, wanted: str) -> None:
    random = np.random.default_rng(0).normal(0, 0.1, (2, 200))
    examples = tuple(
        ExampleAgreement(tau + a, b, first, 0.25, 1)
        for a, b in (random - random.mean(1, keepdims=True)).T
    )
    end = f" the largest weight is on the most important position at {first:.0%} of the steps (uniform weights: 25%)."
    sentence = AttentionAgreement("erasing", examples).sentence
    assert sentence == f"Weights and erasing order the input {wanted}{end}"


def test_few_examples_say_nothing_of_random_weights() -> None:
    found = AttentionAgreement("erasing", (ExampleAgreement(0.9, 0.0, 0.5, 0.25, 1),) * 5).sentence
    told = "Fewer than 6 examples do not say whether weights and erasing order the input alike; and"
    assert found.startswith(told)
    more = AttentionAgreement("erasing", (ExampleAgreement(0.9, 0.0, 0.5, 0.25, 1),) * 6).sentence
    assert "more than random weights do" in more
