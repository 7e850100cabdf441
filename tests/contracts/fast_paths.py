"""Both paths side by side: what they make of the same inputs, and all gradients."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from sixjars.flow.contracts import Decoder
from sixjars.flow.values import Encoded
from sixjars.loss import truth_loss
from sixjars.model.recurrent import Recurrent

from .decoder_cases import source_for, truth_for

Result = dict[str, Tensor]


@contextmanager
def path(module: nn.Module, *, fast: bool) -> Iterator[None]:
    """One of the two paths, with the same random numbers."""
    stacks = [each for each in module.modules() if isinstance(each, Recurrent)]
    for each in stacks:
        each.fast = each.by_hand = fast
    torch.manual_seed(5)
    yield
    for each in stacks:
        each.fast = each.by_hand = True


def with_gradients(module: nn.Module, inputs: Result, made: Callable[[], Result]) -> Result:
    """What is made, and the gradients of a sum of all of it with random factors."""
    results = made()
    torch.manual_seed(6)
    total = sum((torch.randn_like(value) * value).sum() for value in results.values())
    assert isinstance(total, Tensor)
    wanted = {
        name: weight
        for name, weight in [*module.named_parameters(), *inputs.items()]
        if weight.requires_grad
    }
    gradients = torch.autograd.grad(
        total, list(wanted.values()), allow_unused=True, materialize_grads=True
    )
    return results | {
        f"gradient of {name}": each for name, each in zip(wanted, gradients, strict=True)
    }


def compared(
    module: nn.Module, inputs: Result, made: Callable[[], Result], *, within: float
) -> None:
    """Compare what is made, and its gradients, by the two paths."""
    with path(module, fast=False):
        slow = with_gradients(module, inputs, made)
    with path(module, fast=True):
        quick = with_gradients(module, inputs, made)
    assert slow.keys() == quick.keys()
    for name, value in slow.items():
        apart = (quick[name] - value).norm() / value.norm().clamp(min=1e-3)
        assert apart < within, f"{name}: {float(apart.detach()):.1e}"


def learnable(source: Encoded) -> tuple[Encoded, Result]:
    """The same source, from which gradients can be asked."""
    made = source.mapped(lambda tensor: tensor.detach().requires_grad_(tensor.is_floating_point()))
    above = {} if made.segments is None else {"segments": made.segments.memory}
    return made, {"memory": made.memory, "summary": made.summary, **above}


def of_decoder(decoder: Decoder, within: float, given: Encoded | None = None) -> None:
    """Compare what a decoder makes of a source, and what all that it was made of learns from it."""
    source, inputs = learnable(given or source_for())
    target = truth_for(decoder).to(source.memory.device)

    def made() -> Result:
        output = decoder.teach(source, target)
        loss = truth_loss(output, target)
        return (
            {"loss": loss} if output.weights is None else {"loss": loss, "weights": output.weights}
        )

    compared(decoder, inputs, made, within=within)
