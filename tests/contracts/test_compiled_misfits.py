"""A kernel reads memory where it is told to: what does not fit is left to torch."""

from typing import Any

import pytest
import torch
from torch import Tensor

from sixjars.flow.values import Encoded
from sixjars.loss import gradient_of
from sixjars.model.bridges.attention import Attention
from sixjars.model.compiling import load_kernels
from sixjars.model.fast.compiled import KernelLibrary, compiled_step
from sixjars.model.recurrent import Recurrent


@pytest.fixture(autouse=True)
def kernels() -> None:
    why = load_kernels(build=True)
    if KernelLibrary.ready is None:
        pytest.skip(f"no compiled kernels here: {why}")


def without(monkeypatch: pytest.MonkeyPatch, compute: Any) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(KernelLibrary, "ready", None)
        return compute()


def prepared(attention: Attention, *, sources: int = 2, mask: Tensor | None = None) -> Any:
    torch.manual_seed(1)
    mask = torch.ones(sources, 3, dtype=torch.bool) if mask is None else mask
    return attention.start(Encoded(torch.randn(sources, 3, 4), mask, torch.randn(sources, 4)))


@pytest.fixture
def attention() -> Attention:
    return Attention(source_size=4, state_size=6, size=5).eval()


def test_narrower_numbers_of_autocast(
    attention: Attention, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = torch.randn(2, 6)

    def weights() -> Tensor:
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            found = attention.step(query, prepared(attention)).weights
        assert found is not None
        return found

    torch.testing.assert_close(weights(), without(monkeypatch, weights))


@torch.no_grad()
@pytest.mark.parametrize(("sources", "queries"), [(2, 5), (4, 2)])
def test_queries_of_no_source(attention: Attention, sources: int, queries: int) -> None:
    with pytest.raises(RuntimeError):
        attention.step(torch.randn(queries, 6), prepared(attention, sources=sources))


@torch.no_grad()
def test_a_mask_of_whole_numbers(attention: Attention) -> None:
    with pytest.raises(RuntimeError):
        attention.step(
            torch.randn(1, 6), prepared(attention, sources=1, mask=torch.tensor([[1, 0, 1]]))
        )


@torch.no_grad()
def test_states_of_other_rows() -> None:
    """They are broadcast by torch."""
    given, hidden = torch.randn(1, 18), torch.randn(3, 6)
    assert compiled_step("gru", given, torch.randn(3, 18), (hidden, None)) is None
    after = Recurrent(cell="gru", input_size=4, size=6).advance(given, [(hidden, None)])
    assert after[0][0].shape == (3, 6)


def test_targets_and_factors_of_other_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, truth, factor = torch.randn(4, 7), torch.tensor([1, 6, 0, 3]), torch.rand(4)
    wanted = gradient_of(logits.clone(), truth, factor, 0.1)
    for given in ((truth.int(), factor), (truth, factor.double())):

        def computed(given: tuple[Tensor, Tensor] = given) -> Any:
            try:
                return gradient_of(logits.clone(), *given, 0.1)
            except RuntimeError:  # some versions of torch take 64 bits alone
                return None

        found = computed()
        assert (found is None) == (without(monkeypatch, computed) is None)
        for one, other in zip(found or (), wanted, strict=found is not None):
            torch.testing.assert_close(one.float(), other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("truth", [[1, 7], [1, -1]])
def test_targets_that_are_none(truth: list[int]) -> None:
    with pytest.raises((RuntimeError, IndexError)):
        gradient_of(torch.randn(2, 7), torch.tensor(truth), torch.ones(2), 0.0)


def test_logits_that_are_infinite_have_a_loss_all_the_same() -> None:
    logits = torch.tensor([[0.0, -torch.inf, 1.0], [1e38, 2e38, 3e38]])
    losses, plains, _ = gradient_of(logits, torch.tensor([0, 2]), torch.ones(2), 0.0)
    torch.testing.assert_close(losses, torch.tensor([1.3132617, 0.0]))
    torch.testing.assert_close(plains, losses)
