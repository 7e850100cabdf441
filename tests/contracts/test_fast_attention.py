"""The fast path of every cell and depth with attention at two levels, or between two cells, and
what else reads it.

Dims: B batch, S source positions, T target positions.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from sixjars.flow.contracts import Decoder
from sixjars.flow.values import Encoded
from sixjars.loss import coverage_loss, guided_loss, truth_loss
from sixjars.model import recurrent
from sixjars.model.bridges.attention import Attention, TwoLevelAttention
from sixjars.model.decoders.sequence import SequenceDecoder
from sixjars.model.fast.unrolled import unrolled

from .decoder_cases import CASES, LENGTHS, SEGMENT, SIZE, SUMMARY, source_for, truth_for
from .examples import words
from .fast_paths import Result, compared, learnable, of_decoder

ATTENDING = [
    f"{kind}-{cell}-{layers}-{bridge}-own"
    for kind, bridges in (
        ("sequence", ("two_level",)),
        ("conditional", ("additive", "dot", "general", "two_level")),
    )
    for cell in ("rnn", "gru", "lstm")
    for layers in (1, 2)
    for bridge in bridges
]
"""Cells and layers: two levels without a middle cell; with it, two levels and all scores."""
ON_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def copying(kind: str, *, conditional: bool) -> SequenceDecoder:
    """A decoder that copies: its gate reads the contexts, its output the weights."""
    sizes: dict[str, Any] = {"source_size": SIZE, "summary_size": SUMMARY, "state_size": SIZE}
    sizes |= {"state_count": 4, "size": 3}
    bridge = (
        Attention(**sizes)
        if kind == "attention"
        else TwoLevelAttention(segment_size=SEGMENT, **sizes)
    )
    how: dict[str, Any] = {
        "cell": "lstm",
        "size": SIZE,
        "layers": 2,
        "dropout": 0.2,
        "copying": True,
    }
    return SequenceDecoder(bridge=bridge, embedding=words(size=4), conditional=conditional, **how)


def with_nothing(row: int) -> Encoded:
    """A source of which one row has nothing to attend to, but junk in its padding."""
    source = source_for()
    level = source.segments
    assert level is not None
    empty_B1 = (torch.arange(len(LENGTHS)) == row).unsqueeze(1)
    return replace(
        source, mask=source.mask & ~empty_B1, segments=replace(level, mask=level.mask & ~empty_B1)
    )


@pytest.mark.usefixtures("in_64_bits")
@pytest.mark.parametrize("name", ATTENDING)
def test_the_paths_are_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With dropout between the layers; and the fast one is taken."""
    taken = []

    def noted(*given: Any) -> tuple[Tensor, Tensor, Tensor]:
        taken.append(name)
        return unrolled(*given)

    monkeypatch.setattr(recurrent, "unrolled", noted)
    of_decoder(CASES[name]().train(), within=1e-10)
    assert taken == [name]


@pytest.mark.parametrize(
    "name", [name for name in ATTENDING if "additive" in name or "two_level" in name]
)
def test_the_paths_are_alike_in_32_bits(name: str) -> None:
    torch.manual_seed(2)
    of_decoder(CASES[name]().eval(), within=1e-4)


@pytest.mark.usefixtures("in_64_bits")
@pytest.mark.parametrize("name", ATTENDING)
def test_a_row_with_nothing_to_attend_to(name: str) -> None:
    of_decoder(CASES[name]().eval(), within=1e-10, given=with_nothing(1))


@pytest.mark.usefixtures("in_64_bits")
@pytest.mark.parametrize("name", [name for name in ATTENDING if "gru-2" in name])
def test_large_keys(name: str) -> None:
    """Of which no power can be computed."""
    source = source_for()
    level = source.segments
    assert level is not None
    of_decoder(
        CASES[name]().eval(),
        within=1e-8,
        given=replace(
            source, memory=400 * source.memory, segments=replace(level, memory=400 * level.memory)
        ),
    )


@pytest.mark.usefixtures("in_64_bits")
@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize("kind", ["attention", "two_level"])
def test_copying_coverage_and_guided_attention(kind: str, *, conditional: bool) -> None:
    """All that reads contexts and weights beside the cell."""
    decoder = copying(kind, conditional=conditional).train()
    source, inputs = learnable(source_for())
    target, vocabulary = truth_for(decoder), decoder.output.out_features
    source = replace(
        source,
        copy_ids=torch.tensor([[4, vocabulary + 1, 6, 4], [9, 5, 0, 0], [11, 2, vocabulary, 0]]),
    )

    def made() -> Result:
        output = decoder.teach(source, target)
        assert output.weights is not None
        truth_BTS = torch.softmax(
            torch.randn(output.weights.shape), dim=-1
        ) * source.mask.unsqueeze(1)
        attended = (
            guided_loss(output.weights, truth_BTS),
            coverage_loss(output.weights, target.mask),
        )
        return {"loss": truth_loss(output, target), "guided": attended[0], "coverage": attended[1]}

    compared(decoder, inputs, made, within=1e-10)


def on_cuda(decoder: Decoder, source: Encoded) -> tuple[Decoder, Encoded]:
    return decoder.to("cuda"), source.to("cuda")


@ON_CUDA
@pytest.mark.parametrize("name", ATTENDING)
def test_the_paths_are_alike_on_cuda(name: str) -> None:
    """Kernels of cells and of additive attention, with dropout between the layers."""
    torch.manual_seed(2)
    decoder, source = on_cuda(CASES[name]().train(), source_for())
    of_decoder(decoder, within=1e-4, given=source)


@ON_CUDA
@pytest.mark.parametrize(
    "name", [name for name in ATTENDING if "additive" in name or "two_level" in name]
)
def test_a_row_with_nothing_to_attend_to_on_cuda(name: str) -> None:
    torch.manual_seed(2)
    decoder, source = on_cuda(CASES[name]().eval(), with_nothing(1))
    of_decoder(decoder, within=1e-4, given=source)


@ON_CUDA
@pytest.mark.parametrize(
    "name", [name for name in ATTENDING if "gru-2" in name or "lstm-2" in name]
)
def test_a_recorded_step_and_its_gradients(name: str) -> None:
    """A graph refuses what the host would wait for; launched again, it gives the same."""
    torch.manual_seed(2)
    decoder, given = on_cuda(CASES[name]().eval(), source_for())
    source, inputs = learnable(given)
    target = truth_for(decoder).to("cuda")
    learned = [
        *inputs.values(),
        *(weight for weight in decoder.parameters() if weight.requires_grad),
    ]

    def gradients() -> list[Tensor]:
        loss = truth_loss(decoder.teach(source, target), target).sum()
        return list(torch.autograd.grad(loss, learned, allow_unused=True, materialize_grads=True))

    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        expected = [gradient.clone() for gradient in gradients()]
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = gradients()
    graph.replay()
    torch.cuda.synchronize()
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
