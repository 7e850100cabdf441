"""A kernel reads memory where its record says: what does not fit is left to torch."""

from typing import Any

import pytest
import torch
from torch import Tensor

from sixjars.flow.values import Encoded
from sixjars.kernels import compiled
from sixjars.kernels.backends import CompiledBackend, HandWritten, TorchBackend
from sixjars.model.bridges.attention import Attention
from sixjars.model.recurrent import Recurrent

from . import backend_checks


@pytest.fixture
def backend() -> CompiledBackend:
    return backend_checks.compiled()


def prepared(attention: Attention, *, sources: int = 2, mask: Tensor | None = None) -> Any:
    torch.manual_seed(1)
    mask = torch.ones(sources, 3, dtype=torch.bool) if mask is None else mask
    return attention.start(Encoded(torch.randn(sources, 3, 4), mask, torch.randn(sources, 4)))


def attention_by(backend: HandWritten) -> Attention:
    torch.manual_seed(0)
    return Attention(source_size=4, state_size=6, size=5, backend=backend).eval()


def test_narrower_numbers_of_autocast(backend: CompiledBackend) -> None:
    query, weights = torch.randn(2, 6), []
    for each in (backend, TorchBackend()):
        attention = attention_by(each)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            weights.append(attention.step(query, prepared(attention)).weights)
    torch.testing.assert_close(*weights)


@torch.no_grad()
@pytest.mark.parametrize(("sources", "queries"), [(2, 5), (4, 2)])
def test_queries_of_no_source(sources: int, queries: int, backend: CompiledBackend) -> None:
    attention = attention_by(backend)
    with pytest.raises(RuntimeError):
        attention.step(torch.randn(queries, 6), prepared(attention, sources=sources))


@torch.no_grad()
def test_a_mask_of_whole_numbers(backend: CompiledBackend) -> None:
    attention = attention_by(backend)
    mask = torch.tensor([[1, 0, 1]])
    with pytest.raises(RuntimeError):
        attention.step(torch.randn(1, 6), prepared(attention, sources=1, mask=mask))


@torch.no_grad()
def test_states_of_other_rows(backend: CompiledBackend) -> None:
    """They are broadcast by torch."""
    given, hidden = torch.randn(1, 18), torch.randn(3, 6)
    recurrent = torch.randn(3, 18)
    assert compiled.step("gru", given, recurrent, (hidden, None), backend.kernels) is None
    cells = Recurrent(cell="gru", input_size=4, size=6, backend=backend)
    assert cells.advance(given, [(hidden, None)])[0][0].shape == (3, 6)


def test_targets_and_factors_of_other_bits(backend: CompiledBackend) -> None:
    logits, truth, factor = torch.randn(4, 7), torch.tensor([1, 6, 0, 3]), torch.rand(4)
    expected = backend.loss_gradient(logits.clone(), truth, factor, 0.1)
    for inputs in ((truth.int(), factor), (truth, factor.double())):
        results: list[Any] = []
        for each in (backend, TorchBackend()):
            try:
                results.append(each.loss_gradient(logits.clone(), *inputs, 0.1))
            except RuntimeError:  # some versions of torch take 64 bits alone
                results.append(None)
        assert (results[0] is None) == (results[1] is None)
        for part, right in zip(results[0] or (), expected, strict=results[0] is not None):
            torch.testing.assert_close(part.float(), right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("truth", [[1, 7], [1, -1]])
def test_targets_that_are_none(truth: list[int], backend: CompiledBackend) -> None:
    with pytest.raises((RuntimeError, IndexError)):
        backend.loss_gradient(torch.randn(2, 7), torch.tensor(truth), torch.ones(2), 0.0)


def test_logits_that_are_infinite_have_a_loss_all_the_same(backend: CompiledBackend) -> None:
    logits = torch.tensor([[0.0, -torch.inf, 1.0], [1e38, 2e38, 3e38]])
    truth = torch.tensor([0, 2])
    losses, plains, _ = backend.loss_gradient(logits, truth, torch.ones(2), 0.0)
    torch.testing.assert_close(losses, torch.tensor([1.3132617, 0.0]))
    torch.testing.assert_close(plains, losses)
