"""The chosen backend reaches every component, and every packed matrix is used."""

import copy
import pickle
from collections.abc import Sequence
from typing import Any, final

import pytest
import torch
from torch import Tensor, nn

import sixjars
from sixjars import Attention, Context, Encoded, Network, Prepared, SequenceDecoder, WordEmbedding
from sixjars.decoding import Searcher
from sixjars.errors import RunError
from sixjars.flow.contracts import Bridge, Generator
from sixjars.kernels import compiled, products
from sixjars.kernels.backends import HandWritten, TorchBackend, in_precision
from sixjars.kernels.products import PackedMatrix
from sixjars.model.build import build
from sixjars.model.layers import Linear, StateProjection
from sixjars.model.reference import REFERENCE
from sixjars.recipe.files import packaged
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.data.splits import splits_of
from sixjars.runs.recipes import Blueprint, read_recipe

FEW = ["data.sample.size=16", "data.sample.valid=4", "data.sample.test=4"]
SAMPLES = [name for name in packaged() if "/sample_" in name and "large" not in name]
FIRSTS = [
    next(name for name in SAMPLES if name.startswith(task))
    for task in dict.fromkeys(name.partition("/")[0] + "/" for name in SAMPLES)
]


@pytest.mark.parametrize(
    "name", [*FIRSTS, "translation/sample_conditional", "document_classification/sample_wide_deep"]
)
def test_every_component_has_the_backend_of_the_network(name: str) -> None:
    blueprint = Blueprint.of(read_recipe(name, FEW))
    backend = TorchBackend()
    facts = splits_of(blueprint).fields.facts()
    network = build(blueprint.plan, facts, fresh=False, backend=backend)
    others = [
        path
        for path, module in network.named_modules()
        if getattr(module, "backend", backend) is not backend
    ]
    assert others == []
    decoder = network.decoder.named_modules()
    assert [path for path, module in decoder if type(module) is nn.Linear] == []


@final
class OwnBridge(Bridge):
    """A bridge as somebody wrote it who knows of no backends."""

    has_attention = True
    follows_state = True

    def __init__(self, *, source_size: int, state_size: int) -> None:
        super().__init__()
        self.context_size = source_size
        self.first = StateProjection(source_size, state_size, 1, "linear")

    def start(self, encoded: Encoded) -> Prepared:
        first = self.first(encoded.summary)
        return Prepared(first, encoded.summary, encoded.memory, encoded.mask)

    def step(self, query: Tensor, prepared: Prepared) -> Context:
        return Context(prepared.memory.mean(1), prepared.mask / prepared.mask.sum(1, keepdim=True))


def test_a_decoder_of_an_own_bridge_keeps_the_backend() -> None:
    changes = [*FEW, "model.bridge={kind: OwnBridge}"]
    outside = sixjars.recipe.allowed_code.AllowedCode((), (OwnBridge,))
    blueprint = Blueprint.of(read_recipe("translation/sample_attention", changes, outside), outside)
    backend = TorchBackend()
    network = build(blueprint.plan, splits_of(blueprint).fields.facts(), backend=backend)
    assert isinstance(network.decoder, SequenceDecoder)
    assert network.decoder.backend is backend
    assert network.decoder.rnn.backend is backend


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> Network:
    """A small network whose matrices are all packed."""
    monkeypatch.setattr(products, "FEWEST", 0)
    backend = TorchBackend()
    words = WordEmbedding(vocabulary=9, size=5)
    source = sixjars.TextEncoder(embedding=words, size=4, backend=backend)
    bridge = Attention(source_size=4, state_size=6, size=5, backend=backend)
    target = WordEmbedding(vocabulary=9, size=5)
    decoder = SequenceDecoder(bridge=bridge, embedding=target, size=6, backend=backend)
    return in_precision(Network(source, decoder, backend=backend).eval(), "32")


def outputs_of(network: Network) -> Any:
    encoded = network.encode({"source": sixjars.Padded.of([[5, 6, 7], [8, 4]])})
    return network.decoder.answer(encoded, Searcher(SearchSettings(max_length=4)))


@torch.inference_mode()
def test_every_packed_matrix_is_used(packed: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    used = set()
    product = PackedMatrix.product

    def noted(self: PackedMatrix, *arguments: Any) -> Tensor:
        used.add(id(self))
        return product(self, *arguments)

    monkeypatch.setattr(PackedMatrix, "product", noted)
    outputs_of(packed)
    assert isinstance(packed.backend, HandWritten)
    forms = packed.backend.products.packed
    names = {name for name, each in packed.named_parameters() if id(forms.get(each)) not in used}
    packs = {name for name, each in packed.named_parameters() if each in forms}
    # The additive score of attention is computed by powers, with V_att as it is.
    assert packs & names == {"decoder.bridge.score.score.weight"}
    assert len(packs) > 6


def test_a_plain_layer_is_not_packed() -> None:
    backend = TorchBackend()
    layers = [nn.Linear(256, 256), Linear(256, 256, backend=backend)]
    backend.pack(layers, "32")
    assert len(backend.products.packed) == 1


def test_a_packed_network_is_not_copied(packed: Network) -> None:
    with pytest.raises(RunError) as error:
        copy.deepcopy(packed)
    told = "a network that is packed for prediction cannot be copied; load the run again."
    assert str(error.value) == told


@pytest.mark.parametrize("backend", [REFERENCE, TorchBackend()])
def test_a_network_can_be_copied_and_pickled(backend: Any) -> None:
    layer = Linear(3, 2, backend=backend)
    assert copy.deepcopy(layer).backend is backend
    again = pickle.loads(pickle.dumps(layer))  # noqa: S301 - of this test
    assert type(again.backend) is type(backend)
    assert (again.backend is REFERENCE) == (backend is REFERENCE)
    inputs = torch.randn(4, 3)
    torch.testing.assert_close(again(inputs), layer(inputs))


@pytest.mark.parametrize("backend", [REFERENCE, TorchBackend(), None])
def test_a_step_of_search_is_one_step_of_the_model(
    backend: Any, packed: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the backend has no choice of its own, in a graph: the number of steps is a tensor."""
    from sixjars import decoding

    decoder, steps = packed.decoder, 0
    assert isinstance(decoder, Generator)
    step = decoder.step

    def counted(*arguments: Any) -> Any:
        nonlocal steps
        steps += 1
        return step(*arguments)

    monkeypatch.setattr(decoder, "step", counted)

    class OnCuda(Tensor):
        is_cuda = True

    def walked(problem: Any, running: Any, advance: Any) -> Sequence[Any]:
        advance(problem, running, torch.zeros(()).long().as_subclass(OnCuda))
        return []

    monkeypatch.setattr(decoding, "walked", walked)
    source = packed.encode({"source": sixjars.Padded.of([[5, 6]])})
    with pytest.raises(IndexError):  # nothing was searched
        decoder.answer(source, Searcher(SearchSettings(max_length=4), backend=backend))
    assert steps == 1


@torch.no_grad()
@pytest.mark.parametrize("place", ["jit.is_tracing", "compiler.is_compiling"])
def test_a_kernel_is_not_traced(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes into memory behind torch's back, so a trace would have what was there before."""
    assert compiled.predicts(torch.zeros(1))
    monkeypatch.setattr(f"torch.{place}", lambda: True)
    assert not compiled.predicts(torch.zeros(1))


@pytest.mark.parametrize("backend", [TorchBackend(), TorchBackend(unrolls_stacks=False)])
def test_what_is_unrolled(backend: Any) -> None:
    inputs = torch.zeros(1)
    assert backend.unrolls(inputs)
    with torch.no_grad():
        assert not backend.unrolls(inputs)
