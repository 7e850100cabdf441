"""Encoders by graphs. A CPU has none, so here what would be recorded is called again."""

from collections.abc import Callable
from threading import Lock
from typing import Any

import pytest
import torch

from sixjars import InitialState, SequenceDecoder, TextEncoder, WordEmbedding
from sixjars.errors import LearningError
from sixjars.evaluation import encoding
from sixjars.evaluation.encoding import GRAPHS, encoded_captured
from sixjars.flow.values import Encoded, Padded
from sixjars.model.build import Network

ON_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
LONG, SHORT = Padded.of([[5, 6, 7], [8]]), Padded.of([[6, 4], [7, 8]])


class Again:
    """Stands for a graph: it computes the same again, with the tensors that it was made with."""

    made = 0

    def __init__(self, function: Callable[[], Encoded], pool: object) -> None:
        type(self).made += 1
        function()
        self.replay = function


class Unrecordable:
    made = 0

    def __init__(self, function: Callable[[], Encoded], pool: object) -> None:
        type(self).made += 1
        raise LearningError("a read")


def network() -> Network:
    torch.manual_seed(0)
    encoder = TextEncoder(embedding=WordEmbedding(vocabulary=9, size=5), size=4, direction="both")
    bridge = InitialState(summary_size=encoder.summary_size, state_size=6)
    decoder = SequenceDecoder(bridge=bridge, embedding=WordEmbedding(vocabulary=9, size=5), size=6)
    return Network(encoder, decoder).eval()


@pytest.fixture(params=[Again, Unrecordable])
def graph(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(encoding, "KernelGraph", request.param)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", object)
    request.param.made = 0
    return request.param


def same(found: Encoded, true: Encoded) -> None:
    for one, other in zip(found.tensors(), true.tensors(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


@torch.inference_mode()
def test_it_is_recorded_when_its_shape_comes_again(graph: Any) -> None:
    model, kept = network(), []
    for text, made in [
        (LONG, 0),
        (SHORT, 0),
        (replaced(LONG, 4), 1),
        (replaced(LONG, 3), 1),
        (SHORT, 2),
        (LONG, 2),
    ]:
        kept.append((encoded_captured(model, {"source": text}), model.encode({"source": text})))
        assert graph.made == made
    for found, true in kept:  # none is overwritten by those that come later
        same(found, true)


def replaced(text: Padded, token: int) -> Padded:
    """Another text of the same shape."""
    return Padded(text.values.masked_fill(text.mask, token), text.mask)


@torch.inference_mode()
def test_weights_elsewhere_are_another_graph(graph: Any) -> None:
    model = network()
    for _ in range(2):
        encoded_captured(model, {"source": LONG})
    model.load_state_dict(
        {name: weight + 1 for name, weight in model.state_dict().items()}, assign=True
    )
    same(encoded_captured(model, {"source": LONG}), model.encode({"source": LONG}))
    assert graph.made == 1


@torch.inference_mode()
def test_another_thread_does_not_wait(graph: Any) -> None:
    model = network()
    encoded_captured(model, {"source": LONG})
    held: Lock = GRAPHS[model].lock
    with held:
        same(encoded_captured(model, {"source": LONG}), model.encode({"source": LONG}))
    assert graph.made == 0


@ON_CUDA
@torch.inference_mode()
def test_graphs_encode_the_same() -> None:
    model = network().cuda()
    for at in range(8):
        source = {"source": replaced((LONG, SHORT)[at % 2], 3 + at % 4).to("cuda")}
        same(encoded_captured(model, source), model.encode(source))
        for weight in model.parameters():
            weight.mul_(1.01)  # in place, as training does
    assert all(recorded is not None for recorded in GRAPHS[model].recorded.values())
