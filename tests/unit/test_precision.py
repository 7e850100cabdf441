"""Products in fewer bits against those in 32, and what a trained run answers with them."""

from pathlib import Path
from random import Random

import pytest
import torch
from torch.nn import functional as F  # noqa: N812 - its name everywhere

import sixjars
from sixjars import (
    Attention,
    InitialState,
    NothingEncoder,
    SequenceDecoder,
    TextEncoder,
    WordEmbedding,
)
from sixjars.errors import RecipeError
from sixjars.flow.values import Padded, State
from sixjars.kernels import products
from sixjars.kernels.backends import HandWritten, TorchBackend, in_precision
from sixjars.kernels.products import PackedMatrix, Precision, has_bf16
from sixjars.model.build import Network
from sixjars.model.layers import Linear
from sixjars.model.recurrent import Recurrent
from sixjars.model.reference import CellName
from sixjars.samples.transliteration import transliteration

FAR: dict[Precision, float] = {"32": 1e-6, "bf16": 5e-3, "int8": 1e-2}
"""How far products may be from those in 32 bits, as a share of their size."""
WORDS = [str(transliteration.draw(Random(number), 6)["roman"]) for number in range(40)]


def few_bits() -> list[Precision]:
    return ["32", "bf16", "int8"] if has_bf16() else ["32", "int8"]


@pytest.fixture(autouse=True)
def also_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices of any size are packed."""
    monkeypatch.setattr(products, "FEWEST", 0)


@pytest.mark.parametrize("bits", few_bits())
@pytest.mark.parametrize("shape", [(1, 64), (7, 64), (2, 3, 64)])
def test_products_are_near(bits: Precision, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    inputs, weight, bias = torch.randn(shape), torch.randn(48, 64), torch.randn(48)
    packed = PackedMatrix(weight, bits)
    for added in (bias, None):
        wanted = F.linear(inputs, weight, added)
        found = packed.product(inputs, added)
        assert found.dtype == torch.float32
        assert (found - wanted).norm() / wanted.norm() < FAR[bits]


@pytest.mark.parametrize("scales", {products.SCALES, False})
def test_a_row_does_not_depend_on_the_others(scales: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "SCALES", scales)
    torch.manual_seed(0)
    packed, inputs = PackedMatrix(torch.randn(32, 16), "int8"), torch.randn(5, 16)
    inputs[3] *= 1000
    inputs[4] = 0
    alone = torch.cat([packed.product(inputs[row : row + 1], None) for row in range(5)])
    assert torch.equal(packed.product(inputs, None), alone)
    assert not alone[4].any()


def test_outputs_may_be_scaled_by_the_product_or_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    inputs, weight, bias = torch.randn(7, 64), torch.randn(48, 64), torch.randn(48)
    own_way = PackedMatrix(weight, "int8").product(inputs, bias)
    monkeypatch.setattr(products, "SCALES", False)
    torch.testing.assert_close(PackedMatrix(weight, "int8").product(inputs, bias), own_way)


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_recurrence_over_packed_weights(cell: CellName, layers: int) -> None:
    torch.manual_seed(0)
    backend = TorchBackend()
    stack = Recurrent(cell=cell, input_size=6, size=8, layers=layers, backend=backend).eval()
    inputs = torch.randn(3, 5, 6)
    cells = torch.randn(3, layers, 8) if cell == "lstm" else None
    first = State(torch.randn(3, layers, 8), cells)
    with torch.inference_mode():
        wanted = [stack(inputs), stack(inputs, first)]
        backend.pack(stack.modules(), "32")
        found = [stack(inputs), stack(inputs, first)]
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)


def test_it_can_be_saved_and_trained_as_before() -> None:
    torch.manual_seed(0)
    backend = TorchBackend()
    attention = Attention(source_size=4, state_size=6, size=5, backend=backend)
    words = WordEmbedding(vocabulary=9, size=5)
    decoder = SequenceDecoder(bridge=attention, embedding=words, size=6)
    source_words = WordEmbedding(vocabulary=9, size=5)
    encoder = TextEncoder(embedding=source_words, size=4, backend=backend)
    model = Network(encoder, decoder, backend=backend).eval()
    given = {"source": Padded.of([[5, 6, 7], [8, 4]])}, Padded.of([[5, 6, 2], [7, 2]])
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    with torch.inference_mode():
        wanted = model(*given).logits
        packed = in_precision(model, "32")
        assert backend.products.packed
        torch.testing.assert_close(packed(*given).logits, wanted)
    after = packed.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(weight, before[name]) for name, weight in after.items())
    loss = packed(*given).logits.logsumexp(-1).sum()
    loss.backward()
    assert all(weight.grad is not None for weight in packed.parameters())
    with torch.no_grad():
        for weight in packed.parameters():
            weight.mul_(2)
        assert not torch.allclose(packed(*given).logits, wanted)


@torch.no_grad()
def test_a_weight_that_has_learned_since_is_not_the_packed_one() -> None:
    backend = TorchBackend()
    layer, inputs = Linear(8, 6, backend=backend), torch.randn(3, 8)
    backend.pack([layer], "int8")
    packed = layer(inputs)
    assert not torch.equal(packed, F.linear(inputs, layer.weight, layer.bias))
    layer.weight.mul_(2)
    assert torch.equal(layer(inputs), F.linear(inputs, layer.weight, layer.bias))


def test_a_trained_run_answers_the_same(learned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as large:
        large.setattr(products, "FEWEST", 10**9)
        plain = sixjars.load(learned)
        wanted = {kind: plain.predict(WORDS, search=kind) for kind in ("greedy", "beam")}
    for bits in few_bits():
        predictor = sixjars.load(learned, precision=bits)
        backend = predictor.network.backend
        assert isinstance(backend, HandWritten)
        assert backend.products.packed
        for kind, others in wanted.items():
            found = predictor.predict(WORDS, search=kind)
            same = sum(one.text == other.text for one, other in zip(found, others, strict=True))
            assert same >= len(WORDS) - (0 if bits == "32" else 4), (bits, kind)


def network() -> Network:
    bridge, words = InitialState(summary_size=4, state_size=6), WordEmbedding(vocabulary=9, size=5)
    return Network(NothingEncoder(size=4), SequenceDecoder(bridge=bridge, embedding=words, size=6))


@pytest.mark.parametrize(
    ("bits", "wanted"), [("int8", "a CPU"), ("bf16", "a CPU or a CUDA device")]
)
def test_where_it_cannot_be(bits: Precision, wanted: str) -> None:
    with pytest.raises(RecipeError) as caught:
        in_precision(network().to("meta"), bits)
    told = f"the command line: --precision {bits} needs {wanted}, but --device is meta; use 32."
    assert str(caught.value) == told


def test_a_cpu_without_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "has_bf16", lambda: False)
    with pytest.raises(RecipeError) as caught:
        in_precision(network(), "bf16")
    assert str(caught.value) == (
        "the command line: --precision bf16 needs a CPU with bf16 arithmetic; use 32 or int8 on "
        "this one."
    )


def test_another_word() -> None:
    with pytest.raises(RecipeError, match=r"precision 'int4' is unknown"):
        in_precision(network(), "int4")  # type: ignore[arg-type]
