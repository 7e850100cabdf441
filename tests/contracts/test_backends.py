"""The contract of all backends: they compute what the reference computes, and learn the same.

The oracle is autograd over the reference, in 64 bits. Triton's kernels run in a process of their
own where there is no GPU (`test_triton`).

Dims: B batch, S source positions, T target positions, R rows open in search, V vocabulary.
"""

from dataclasses import replace
from inspect import signature
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sixjars.decoding import Searcher
from sixjars.flow.backend import AttentionSources, ChoiceRules
from sixjars.flow.contracts import Decoder
from sixjars.flow.values import Encoded, LinearLogits, StepOutput
from sixjars.kernels import output_loss as output_layer
from sixjars.kernels import processor, products
from sixjars.loss import coverage_loss, guided_loss, truth_loss
from sixjars.model.bridges.attention import Attention, TwoLevelAttention
from sixjars.model.decoders.sequence import SequenceDecoder
from sixjars.model.reference import REFERENCE, STEPS
from sixjars.recipe.sections import SearchSettings

from .backend_checks import (
    BACKENDS,
    INTERPRETED,
    WAYS,
    WITHIN,
    Result,
    device_of,
    in_bits,
    of_decoder,
    of_encoder,
)
from .decoder_cases import CASES as DECODERS
from .decoder_cases import LENGTHS, SEGMENT, SIZE, SUMMARY, source_for, truth_for
from .encoder_cases import CASES as ENCODERS
from .examples import words

ATTENDING = [
    f"{kind}-{cell}-{layers}-{bridge}-own"
    for kind, bridges in (
        ("sequence", ("additive", "two_level")),
        ("conditional", ("additive", "dot", "general", "two_level")),
    )
    for cell in ("rnn", "gru", "lstm")
    for layers in (1, 2)
    for bridge in bridges
]
"""Every cell, depth and attention that has a way for all steps."""
if INTERPRETED:  # a launch takes milliseconds there: one case for each kernel and its options
    ATTENDING = [
        *("sequence-gru-1-additive-own", "sequence-lstm-2-additive-own"),
        *("conditional-gru-2-additive-own", "conditional-lstm-1-two_level-own"),
    ]
OTHERS = [
    *("sequence-dot", "sequence-general", "sequence-frozen-vectors", "pointer-some-additive"),
    *(f"sequence-{cell}-{layers}-every_step-own" for cell in ("rnn", "lstm") for layers in (1, 2)),
    *("sequence-gru-1-initial-own", "sequence-gru-2-location-own", "pointer-some-lstm-stacked"),
    "label-additive",
]
if INTERPRETED:
    OTHERS = ["sequence-lstm-2-every_step-own"]
RECURRENCES = [
    *(f"text-{cell}-both-{layers}" for cell in ("rnn", "gru", "lstm") for layers in (1, 2)),
    *("text-gru-backward-1", "hierarchy-lstm-attention", "pair-gru", "points-lstm"),
]
SEVERAL = (
    "sequence-gru-2-two_level-own",
    "conditional-lstm-2-additive-own",
    "conditional-gru-1-general-own",
)
"""Attention at two levels, and attention between two cells."""
if INTERPRETED:
    RECURRENCES = ["text-gru-both-2", "text-lstm-both-1"]
    SEVERAL = SEVERAL[:0]  # type: ignore[assignment]
ALL_WAYS = pytest.mark.parametrize(("backend", "bits"), WAYS)
IN_USE = pytest.mark.parametrize("backend", BACKENDS)


@ALL_WAYS
@pytest.mark.parametrize("name", ATTENDING)
def test_attention_over_all_steps(name: str, backend: str, bits: str) -> None:
    """With dropout between the layers."""
    of_decoder(DECODERS[name], BACKENDS[backend](), bits, training=True)


@ALL_WAYS
@pytest.mark.parametrize("name", OTHERS)
def test_other_decoders(name: str, backend: str, bits: str) -> None:
    of_decoder(DECODERS[name], BACKENDS[backend](), bits)


@ALL_WAYS
@pytest.mark.parametrize("name", RECURRENCES)
def test_recurrences(name: str, backend: str, bits: str) -> None:
    of_encoder(ENCODERS[name], BACKENDS[backend](), bits)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["torch", "compiled"])
@pytest.mark.parametrize("name", DECODERS)
def test_every_decoder(name: str, backend: str) -> None:
    of_decoder(DECODERS[name], BACKENDS[backend](), "32", training=True)


RECURRENT = [name for name in ENCODERS if "backend" in signature(ENCODERS[name].make).parameters]


@pytest.mark.slow
@pytest.mark.usefixtures("in_64_bits")
@pytest.mark.parametrize("name", RECURRENT)
def test_every_encoder(name: str) -> None:
    of_encoder(ENCODERS[name], BACKENDS["torch"](), "64")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in RECURRENT if not name.startswith(("image", "video"))]
)
def test_every_encoder_by_kernels(name: str) -> None:
    """Without convolutions, some of whose gradients are 0 but for the rounding of 32 bits."""
    of_encoder(ENCODERS[name], BACKENDS["compiled"](), "32")


def without_positions(row: int) -> Encoded:
    """A source of which one row has nothing to attend to, but junk in its padding."""
    source = source_for()
    level = source.segments
    assert level is not None
    empty_B1 = (torch.arange(len(LENGTHS)) == row).unsqueeze(1)
    level = replace(level, mask=level.mask & ~empty_B1)
    return replace(source, mask=source.mask & ~empty_B1, segments=level)


@ALL_WAYS
@pytest.mark.parametrize("name", ["sequence-gru-1-additive-own", *SEVERAL])
def test_a_row_with_nothing_to_attend_to(name: str, backend: str, bits: str) -> None:
    of_decoder(DECODERS[name], BACKENDS[backend](), bits, source=without_positions(1))


@pytest.mark.parametrize("backend", ["torch", "compiled", "triton"])
@pytest.mark.parametrize("name", ["sequence-gru-1-additive-own", *SEVERAL])
def test_large_keys(name: str, backend: str) -> None:
    """Of which no power can be computed."""
    source = source_for()
    level = source.segments
    assert level is not None
    level = replace(level, memory=30 * level.memory)
    source = replace(source, memory=30 * source.memory, segments=level)
    # Scores of hundreds leave fewer digits behind the point.
    of_decoder(DECODERS[name], BACKENDS[backend](), "32", source=source, within=1e-3)


def copying(kind: str, *, conditional: bool) -> Any:
    """A decoder that copies: its gate reads the contexts, its output the weights."""
    sizes: dict[str, Any] = {"source_size": SIZE, "summary_size": SUMMARY, "state_size": SIZE}
    sizes |= {"state_count": 4, "size": 3}
    settings: dict[str, Any] = {"cell": "lstm", "size": SIZE, "layers": 2, "dropout": 0.2}
    settings |= {"copying": True, "conditional": conditional}

    def make(backend: Any = REFERENCE) -> SequenceDecoder:
        if kind == "attention":
            bridge: Any = Attention(**sizes, backend=backend)
        else:
            bridge = TwoLevelAttention(segment_size=SEGMENT, **sizes, backend=backend)
        return SequenceDecoder(bridge=bridge, embedding=words(size=4), **settings)

    return make


@pytest.mark.parametrize("backend", ["torch", "compiled", "triton"])
@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize("kind", ["attention", "two_level"])
def test_copying_coverage_and_guided_attention(
    kind: str, backend: str, *, conditional: bool
) -> None:
    """All that reads contexts and weights beside the cell."""
    make = copying(kind, conditional=conditional)
    vocabulary = make().output.out_features
    ids = [[4, vocabulary + 1, 6, 4], [9, 5, 0, 0], [11, 2, vocabulary, 0]]
    source = replace(source_for(), copy_ids=torch.tensor(ids))

    def compute(decoder: Decoder, source: Encoded) -> Result:
        target = truth_for(decoder).to(source.device)
        output = decoder.teach(source, target)
        assert output.weights is not None
        random_BTS = torch.randn(output.weights.shape, generator=torch.Generator().manual_seed(7))
        truth_BTS = torch.softmax(random_BTS, dim=-1).to(output.weights)
        guided = guided_loss(output.weights, truth_BTS * source.mask.unsqueeze(1))
        covered = coverage_loss(output.weights, target.mask)
        return {"loss": truth_loss(output, target), "guided": guided, "coverage": covered}

    of_decoder(make, BACKENDS[backend](), "32", training=True, source=source, compute=compute)


@pytest.mark.parametrize("name", ["sequence-gru-2-additive-own", *SEVERAL])
@pytest.mark.parametrize("backend", ["torch", "compiled", "triton"])
def test_a_loss_of_the_weights_alone(name: str, backend: str) -> None:
    """No gradient comes through the states then."""

    def compute(decoder: Decoder, source: Encoded) -> Result:
        weights = decoder.teach(source, truth_for(decoder).to(source.device)).weights
        assert weights is not None
        return {"weights": weights}

    of_decoder(DECODERS[name], BACKENDS[backend](), "32", compute=compute)


@pytest.mark.parametrize("name", ["sequence-gru-2-additive-own", *SEVERAL])
def test_a_second_backward_pass_gives_the_same(name: str) -> None:
    decoder = DECODERS[name](BACKENDS["torch"]()).eval()
    loss = truth_loss(decoder.teach(source_for(), truth_for(decoder)), truth_for(decoder)).sum()
    weights = [weight for weight in decoder.parameters() if weight.requires_grad]
    first = torch.autograd.grad(loss, weights, retain_graph=True, allow_unused=True)
    second = torch.autograd.grad(loss, weights, allow_unused=True)
    pairs = zip(first, second, strict=True)
    assert all(torch.equal(one, other) for one, other in pairs if one is not None)


@pytest.mark.parametrize("name", ["sequence-gru-2-additive-own", *SEVERAL])
def test_nothing_is_kept_for_a_backward_pass_that_does_not_come(name: str) -> None:
    decoder = DECODERS[name](BACKENDS["torch"]()).eval()
    with torch.no_grad():
        output = decoder.teach(source_for(), truth_for(decoder))
        assert output.logits.grad_fn is None
    assert output.weights is not None
    assert output.weights.grad_fn is None


@pytest.mark.parametrize("name", ["sequence-gru-2-additive-own", "sequence-dot", *SEVERAL])
def test_packed_matrices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only large ones are packed, which no case here has; and only in 32 bits."""
    if not processor.HAS_ONEDNN:
        pytest.skip("torch has no oneDNN here")
    for place in (products, output_layer):
        monkeypatch.setattr(place, "FEWEST_ONCE", 1)
    monkeypatch.setattr(products, "FEWEST_STEPS", 1)
    of_decoder(DECODERS[name], BACKENDS["torch"](), "32")


def test_packed_matrices_of_both_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "FEWEST_ONCE", 1)
    monkeypatch.setattr(products, "FEWEST_STEPS", 1)
    of_encoder(ENCODERS["text-gru-both-2"], BACKENDS["torch"](), "32")


@ALL_WAYS
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("chunk", [1, 30, 1000])
def test_the_output_loss(
    smoothing: float, chunk: int, backend: str, bits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the cross entropy of torch in 64 bits, the gradients too."""
    computes = BACKENDS[backend]()
    device = device_of(computes)
    monkeypatch.setitem(output_layer.CHUNK, device, chunk)
    truth = torch.tensor([[1, 6, 0], [3, 3, 2]])
    factor = torch.tensor([[1.0, 0.5, 0.0], [2.0, 1.0, 1.0]])
    values = torch.randn(2, 3, 4), torch.randn(7, 4), torch.randn(7)

    def leaves(dtype: torch.dtype, device: str) -> list[Tensor]:
        return [each.to(device, dtype, copy=True).requires_grad_() for each in values]

    exact = leaves(torch.float64, "cpu")
    logits_NV = nn.functional.linear(*exact).flatten(0, 1)
    options: dict[str, Any] = {"reduction": "none"}
    each_N = nn.functional.cross_entropy(
        logits_NV, truth.flatten(), label_smoothing=smoothing, **options
    )
    plain_N = nn.functional.cross_entropy(logits_NV, truth.flatten(), **options)
    total = (each_N * factor.flatten()).sum()
    plain = (plain_N * (factor.flatten() > 0)).sum()
    own = leaves(torch.float64 if bits == "64" else torch.float32, device)
    with in_bits(bits, device):
        sums = computes.output_loss(
            LinearLogits(own[0], own[1], own[2]), truth.to(device), factor.to(device), smoothing
        )
    gradients = torch.autograd.grad(sums[0] * 3.0, own)
    expected = [total, plain, *torch.autograd.grad(total * 3.0, exact)]
    for result, right in zip([*sums, *gradients], expected, strict=True):
        apart = (result.cpu().double() - right).norm() / right.norm()
        assert apart < WITHIN[bits]


@IN_USE
@pytest.mark.parametrize("rows", [1, 9])
@pytest.mark.parametrize("cell", STEPS)
def test_a_step_of_prediction(cell: str, rows: int, backend: str) -> None:
    computes, gates = BACKENDS[backend](), {"rnn": 1, "gru": 3, "lstm": 4}[cell]
    device = device_of(computes)
    given, recurrent = torch.randn(rows, 5 * gates), torch.randn(rows, 5 * gates)
    hidden, memory = torch.randn(rows, 5), torch.randn(rows, 5) if cell == "lstm" else None
    expected = STEPS[cell](given, recurrent, (hidden, memory))
    with torch.no_grad():
        before = hidden.to(device), None if memory is None else memory.to(device)
        after = computes.cell(cell, given.to(device), recurrent.to(device), before)
    for result, right in zip(after, expected, strict=True):
        assert (result is None) is (right is None)
        if result is not None and right is not None:
            torch.testing.assert_close(result.cpu(), right, rtol=1e-5, atol=1e-6)


@IN_USE
@pytest.mark.parametrize("sources", [3, 1])
def test_attention_of_prediction(sources: int, backend: str) -> None:
    """Six rows, two or six of each source."""
    computes = BACKENDS[backend]()
    device = device_of(computes)
    attention = Attention(source_size=7, state_size=6, size=4, backend=computes).to(device)
    plain = Attention(source_size=7, state_size=6, size=4)
    plain.load_state_dict(attention.state_dict())
    mask = torch.rand(sources, 5) > 0.3
    mask[:, 0] = True
    source, query = (
        Encoded(torch.randn(sources, 5, 7), mask, torch.randn(sources, 7)),
        torch.randn(6, 6),
    )
    with torch.no_grad():
        expected = plain.step(query, plain.start(source))
        result = attention.step(query.to(device), attention.start(source.to(device)))
    torch.testing.assert_close(result.vector.cpu(), expected.vector, rtol=1e-5, atol=1e-6)
    assert expected.weights is not None
    assert result.weights is not None
    torch.testing.assert_close(result.weights.cpu(), expected.weights, rtol=1e-5, atol=1e-6)


@IN_USE
@pytest.mark.parametrize("shape", [(6, 7), (1, 1), (5, 4001)])
def test_log_probabilities(shape: tuple[int, int], backend: str) -> None:
    computes = BACKENDS[backend]()
    logits = 5 * torch.randn(shape)
    logits[:, 1:2] = -torch.inf
    expected = torch.log_softmax(logits.double(), dim=-1).float()
    with torch.no_grad():
        result = computes.log_probabilities(logits.to(device_of(computes), copy=True)).cpu()
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("are_logits", [True, False])
@pytest.mark.parametrize("steps", [0, 2, 5])
def test_a_choice_of_greedy_search(steps: int, *, are_logits: bool) -> None:
    """By a kernel, against the rules written out token by token; ties go to the first."""
    computes = BACKENDS["triton"]()
    device = device_of(computes)
    scores = torch.randn(6, 37)
    scores[0, 3] = scores[0, 9] = 5.0
    scores[1, 2] = 9.0  # <stop>, which may not come yet
    scores[2, :] = -torch.inf
    scores[2, 2] = 1.0
    if not are_logits:
        scores = torch.log_softmax(scores, dim=-1)
    opened, totals = torch.tensor([True, True, True, True, False, True]), -torch.rand(6)
    rules = ChoiceRules(torch.tensor([0, 1], device=device), stop=2, fewest=2, longest=5)
    choice = computes.choose(
        StepOutput(scores.to(device), are_logits=are_logits),
        rules,
        opened.to(device),
        totals.to(device),
        torch.tensor(steps, device=device),
    )
    assert choice is not None
    tokens, gained, still, new_totals = (each.cpu() for each in choice)
    log = torch.log_softmax(scores, dim=-1) if are_logits else scores
    for row in range(6):
        allowed = [token for token in range(2, 37) if log[row, token] > -torch.inf]
        others = [token for token in allowed if token != 2]
        if steps < 2 and others:
            allowed = others
        best = max(allowed, key=lambda token: (float(log[row, token]), -token))
        goes = bool(opened[row]) and steps < 5
        assert int(tokens[row]) == best
        torch.testing.assert_close(gained[row], log[row, best], rtol=1e-5, atol=1e-5)
        assert bool(still[row]) is (goes and best != 2)
        expected = totals[row] + (log[row, best] if goes else 0.0)
        torch.testing.assert_close(new_totals[row], expected, rtol=1e-5, atol=1e-5)


@IN_USE
@pytest.mark.parametrize("name", ["sequence-gru-2-additive-own", "conditional-lstm-2-additive-own"])
def test_a_search(name: str, backend: str) -> None:
    """The outputs of search do not depend on the backend."""
    computes = BACKENDS[backend]()
    device = device_of(computes)
    decoder, plain = DECODERS[name](computes).eval().to(device), DECODERS[name]().eval()
    plain.load_state_dict(decoder.state_dict())
    source = source_for()
    for kind in ("greedy", "beam"):
        settings = SearchSettings(kind=kind, width=3, max_length=6)
        expected = plain.answer(source, Searcher(settings))
        results = decoder.answer(source.to(device), Searcher(settings, backend=computes))
        assert [best.tokens for [best, *_] in results] == [best.tokens for [best, *_] in expected]


@pytest.mark.skipif(not torch.cuda.is_available() or INTERPRETED, reason="needs a CUDA device")
@pytest.mark.parametrize(
    "name", [name for name in ATTENDING if "gru-2" in name or "lstm-2" in name]
)
def test_a_recorded_step_and_its_gradients(name: str) -> None:
    """A graph refuses what the host would wait for; launched again, it gives the same."""
    decoder = DECODERS[name](BACKENDS["triton"]()).eval().to("cuda")
    source = (
        source_for()
        .to("cuda")
        .mapped(lambda each: each.detach().requires_grad_(each.is_floating_point()))
    )
    target = truth_for(decoder).to("cuda")
    leaves = [source.memory, source.summary, *decoder.parameters()]
    leaves = [each for each in leaves if each.requires_grad]

    def gradients() -> list[Tensor]:
        loss = truth_loss(decoder.teach(source, target), target).sum()
        return list(torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True))

    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        expected = [gradient.clone() for gradient in gradients()]
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        recorded = gradients()
    graph.replay()
    torch.cuda.synchronize()
    for result, right in zip(recorded, expected, strict=True):
        torch.testing.assert_close(result, right, atol=1e-5, rtol=1e-4)


def test_attention_in_16_bits_is_as_exact_as_they_are() -> None:
    """Also where V_att is far from 0 on average: what no softmax sees must not cost digits."""
    torch.manual_seed(4)
    numbers = (
        torch.randn(3, 7, 256),
        torch.randn(3, 7, 5),
        0.3 + 0.1 * torch.randn(256),
        torch.randn(3, 256),
    )
    keys, memory, score, query = (tensor.bfloat16() for tensor in numbers)
    weights = []
    for dtype in (torch.bfloat16, torch.float64):
        mask = torch.ones(3, 7, dtype=torch.bool)
        sources = AttentionSources(keys.to(dtype), memory.to(dtype), mask, score.to(dtype))
        attending = BACKENDS["torch"]().attention_for(sources, 1)  # type: ignore[attr-defined]
        attending.forward(0, query.to(dtype))
        weights.append(attending.weights[0])
    apart = (weights[0] - weights[1]).abs().sum(1).mean()
    assert apart < 0.015  # 0.002 to 0.006 with six seeds; with ΣV_att among the scores 0.05 to 0.09


@pytest.mark.parametrize("shape", [(6, 5), (1, 6, 5), (2, 6, 5)])
@pytest.mark.parametrize("fewest", [1, 1000])
def test_rows_times_a_matrix_and_back(
    shape: tuple[int, ...], fewest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "FEWEST_STEPS", fewest)
    weight = torch.randn(shape)
    factor = products.Factor(weight)
    rows = torch.randn(*shape[:-2], 3, 5)
    others = torch.randn(*shape[:-2], 3, 6)
    assert factor.packs is (fewest == 1)
    room = torch.empty_like(others)
    torch.testing.assert_close(factor.times(rows), rows @ weight.mT)
    torch.testing.assert_close(factor.times(rows, out=room), room)
    torch.testing.assert_close(room, rows @ weight.mT)
    torch.testing.assert_close(factor.back(others), others @ weight)
    if weight.dim() == 2:
        torch.testing.assert_close(sum(factor.plus(others, rows)), rows @ weight.mT + others)
    if weight.dim() == 2 or factor.packs:
        bias = torch.randn(*shape[:-1])
        expected = rows @ weight.mT + bias.unsqueeze(-2)
        torch.testing.assert_close(factor.times(rows, bias=bias), expected)


def test_no_rows_times_packed_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "FEWEST_STEPS", 1)
    for shape in [(6, 5), (2, 6, 5)]:
        factor = products.Factor(torch.randn(shape))
        assert factor.times(torch.zeros(*shape[:-2], 0, 5)).shape == (*shape[:-2], 0, 6)
        assert factor.back(torch.zeros(*shape[:-2], 0, 6)).shape == (*shape[:-2], 0, 5)
