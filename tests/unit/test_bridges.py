"""What single bridges promise besides the contract of all, which checks their equations."""

from collections.abc import Callable
from functools import partial

import pytest
import torch

from sixjars.errors import ShapeError
from sixjars.flow.contracts import Bridge
from sixjars.flow.values import Encoded
from sixjars.kernels import steps
from sixjars.kernels.backends import TorchBackend
from sixjars.model.bridges.attention import Attention
from sixjars.model.bridges.every_step import EveryStep
from sixjars.model.bridges.initial import InitialState
from sixjars.model.bridges.pooling import AttentionPooling

pytestmark = pytest.mark.usefixtures("in_64_bits")

LENGTHS = (4, 1, 3)
GENERAL = partial(Attention, score="general")


def source(size: int) -> Encoded:
    mask = torch.arange(4) < torch.tensor(LENGTHS)[:, None]
    return Encoded(torch.randn(3, 4, size), mask, torch.randn(3, size))


@pytest.mark.parametrize("at_once", [1, 1 << 20])
@pytest.mark.parametrize("scale", [1.0, 20.0, 1000.0])
def test_attention_from_powers_is_the_same(
    at_once: int, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without gradients the additive score is of e^{2k}, also where a tanh is 1 or -1."""
    monkeypatch.setattr(steps, "AT_ONCE", at_once)
    torch.manual_seed(0)
    bridge = Attention(source_size=4, state_size=6, size=5, backend=TorchBackend())
    query = scale * torch.randn(6, 6)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    encoded = Encoded(torch.randn(2, 3, 4), mask, torch.randn(2, 4))
    wanted = bridge.step(query, bridge.start(encoded))
    with torch.inference_mode():
        prepared = bridge.start(encoded)
        found = bridge.step(query, prepared)
    assert prepared.key_powers is not None
    torch.testing.assert_close(found.weights, wanted.weights)
    torch.testing.assert_close(found.vector, wanted.vector)


def test_initial_state_gives_no_context() -> None:
    read = source(5)
    bridge = InitialState(summary_size=5, state_size=5, state_count=2, start="copy")
    prepared = bridge.start(read)
    assert torch.equal(prepared.first_state, torch.cat([read.summary, read.summary], 1))
    assert bridge.step(torch.randn(3, 5), prepared).vector.shape == (3, 0)
    assert (bridge.context_size, bridge.follows_state) == (0, False)


def test_every_step_repeats_the_summary() -> None:
    bridge, read = EveryStep(summary_size=5, state_size=3), source(5)
    prepared = bridge.start(read)
    for query in torch.randn(2, 3, 3):
        assert torch.equal(bridge.step(query, prepared).vector, read.summary)
    assert bridge.context_size == 5


def test_dot_needs_equal_sizes() -> None:
    with pytest.raises(ShapeError) as error:
        Attention(source_size=6, state_size=4, score="dot")
    assert str(error.value) == (
        "score: dot needs equal hidden sizes of decoder and encoder, but they are 4 and 6. "
        "Make them equal, or use score: general."
    )


@pytest.mark.parametrize("make", [InitialState, EveryStep, partial(GENERAL, source_size=4)])
def test_a_copy_of_a_summary_that_does_not_fit(make: Callable[..., Bridge]) -> None:
    told = r"^start: copy needs a summary of the decoder's hidden size, .* have 6 and 4 numbers\."
    with pytest.raises(ShapeError, match=told):
        make(summary_size=6, state_size=4, start="copy")


@pytest.mark.parametrize("kind", [Attention, GENERAL, AttentionPooling])
def test_a_summary_has_the_size_of_the_memory_unless_given(kind: Callable[..., Bridge]) -> None:
    told = r"^start: copy needs a summary of the decoder's hidden size, .* have 6 and 4 numbers\."
    with pytest.raises(ShapeError, match=told):
        kind(source_size=6, state_size=4, start="copy")


@pytest.mark.parametrize("kind", [Attention, GENERAL])
def test_attention_starts_from_a_summary_of_another_size(kind: Callable[..., Bridge]) -> None:
    """A question is the query, the cells of an image are the keys."""
    read = Encoded(torch.randn(3, 4, 6), torch.ones(3, 4, dtype=torch.bool), torch.randn(3, 2))
    bridge = kind(source_size=6, summary_size=2, state_size=2, start="copy")
    prepared = bridge.start(read)
    assert torch.equal(prepared.first_state, read.summary)
    assert bridge.step(prepared.first_state, prepared).vector.shape == (3, 6)


def test_pooling_makes_every_initial_state_and_asks_nothing_later() -> None:
    bridge = AttentionPooling(source_size=5, state_size=5, size=3, state_count=2, start="copy")
    prepared = bridge.start(source(5))
    assert torch.equal(*prepared.first_state.chunk(2, dim=1))
    first, second = (bridge.step(query, prepared) for query in torch.randn(2, 3, 5))
    assert first.vector.shape == (3, 0)
    assert first.weights is not None
    assert second.weights is not None
    assert torch.equal(first.weights, second.weights)


def test_pooling_ignores_the_summary() -> None:
    bridge, read = AttentionPooling(source_size=5, state_size=3), source(5)
    other = Encoded(read.memory, read.mask, torch.randn(3, 9))
    assert torch.equal(bridge.start(other).first_state, bridge.start(read).first_state)


def test_large_keys_against_large_queries_are_not_raised() -> None:
    """Each alone is beyond what can be raised to a power, and their sum is not."""
    bridge = Attention(source_size=1, state_size=1, size=1)
    with torch.no_grad():
        for weight in bridge.score.parameters():
            weight.fill_(1.0)
        memory, mask = torch.tensor([[[60.0], [45.0]]]), torch.ones(1, 2, dtype=torch.bool)
        encoded = Encoded(memory, mask, torch.zeros(1, 1))
        found = bridge.step(torch.tensor([[-45.0]]), bridge.start(encoded)).weights
    torch.testing.assert_close(found, torch.tensor([[1.0, 0.0]]).softmax(1))
