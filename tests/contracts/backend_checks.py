"""The same component computed twice: by the reference in 64 bits, and by another backend.

Everything is compared: outputs, losses, and the gradients of all weights and inputs.
"""

import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from sixjars.flow.backend import Backend
from sixjars.flow.contracts import Decoder
from sixjars.flow.values import Encoded, Padded
from sixjars.kernels.backends import CompiledBackend, TorchBackend, TritonBackend
from sixjars.kernels.compiling import load_kernels
from sixjars.loss import truth_loss
from sixjars.model.reference import REFERENCE

from .decoder_cases import source_for, truth_for
from .encoder_cases import Case

Result = dict[str, Tensor]
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
"""Whether Triton's kernels run on tensors of the CPU, in a process that was started for that."""
WITHIN = {"64": 1e-10, "32": 1e-4, "bf16": 0.08}
"""How far apart results may be, as a share of their norm. A number of bf16 has 8 bits; the largest
distance of these cases is 0.062, of the gradient of a pointer's h_go."""


def compiled() -> CompiledBackend:
    """The C kernels, compiled first if need be."""
    library = load_kernels(build=True)
    if isinstance(library, str):
        pytest.skip(f"no compiled kernels here: {library}")
    return CompiledBackend(library)


def triton() -> TritonBackend:
    """The Triton kernels, on CUDA or in the interpreter."""
    if not (torch.cuda.is_available() or INTERPRETED):
        pytest.skip("needs a CUDA device, or Triton's interpreter")
    return TritonBackend()


BACKENDS: dict[str, Callable[[], Backend]] = {
    "reference": lambda: REFERENCE,
    "torch": TorchBackend,
    "compiled": compiled,
    "triton": triton,
}
"""Every backend; a new one needs a row here."""
PRECISIONS = {
    "reference": ("32",),
    "torch": ("64", "32", "bf16"),
    "compiled": ("32", "bf16"),
    "triton": ("32", "bf16"),
}
"""The precisions in which each is compared."""
WAYS = [(name, bits) for name in BACKENDS for bits in PRECISIONS[name]]


def device_of(backend: Backend) -> str:
    """The device that a backend computes on in these tests."""
    on_cuda = isinstance(backend, TritonBackend) and not INTERPRETED
    return "cuda" if on_cuda else "cpu"


def with_gradients(module: nn.Module, inputs: Result, compute: Callable[[], Result]) -> Result:
    """What is computed, and the gradients of a sum of all of it with random factors."""
    torch.manual_seed(5)
    results = compute()
    torch.manual_seed(6)
    factors = {name: torch.randn(each.shape).to(each) for name, each in results.items()}
    total = sum((factors[name] * each).sum() for name, each in results.items())
    assert isinstance(total, Tensor)
    leaves = {
        name: each
        for name, each in [*module.named_parameters(), *inputs.items()]
        if each.requires_grad
    }
    gradients = torch.autograd.grad(
        total, list(leaves.values()), allow_unused=True, materialize_grads=True
    )
    named = zip(leaves, gradients, strict=True)
    return results | {f"gradient of {name}": gradient for name, gradient in named}


def assert_near(results: Result, expected: Result, within: float) -> None:
    """Compare by name; a distance is a share of the norm."""
    assert results.keys() == expected.keys()
    for name, each in expected.items():
        right = each.detach().cpu().double()
        apart = (results[name].detach().cpu().double() - right).norm() / right.norm().clamp(
            min=1e-3
        )
        assert apart < within, f"{name}: {float(apart):.1e}"


def in_bits(bits: str, device: str) -> "torch.autocast | nullcontext[None]":
    """The context in which a backend computes with so many bits."""
    return torch.autocast(device, torch.bfloat16) if bits == "bf16" else nullcontext()


def learnable(source: Encoded) -> tuple[Encoded, Result]:
    """The same source, of which gradients can be asked."""
    source = source.mapped(
        lambda tensor: tensor.detach().requires_grad_(tensor.is_floating_point())
    )
    upper = {} if source.segments is None else {"segments": source.segments.memory}
    return source, {"memory": source.memory, "summary": source.summary, **upper}


def of_decoder(
    make: Callable[..., Decoder],
    backend: Backend,
    bits: str,
    *,
    training: bool = False,
    source: Encoded | None = None,
    compute: Callable[[Decoder, Encoded], Result] | None = None,
    within: float | None = None,
) -> None:
    """Compare what a decoder computes of a source, and what all that it depends on learns.

    Dropout draws other numbers on CUDA, and others again in 64 bits: with it the reference is
    computed there in 32 bits.
    """
    source = source_for() if source is None else source
    reference, decoder = make().train(training), make(backend).train(training)
    decoder.load_state_dict(reference.state_dict())
    device, compute = device_of(backend), compute or taught
    dtype = torch.float64 if bits == "64" else torch.float32

    def results(decoder: Decoder, dtype: torch.dtype, device: str) -> Result:
        decoder.to(device=device, dtype=dtype)
        own = source.mapped(lambda each: each.to(dtype) if each.is_floating_point() else each)
        own, inputs = learnable(own.to(device))
        return with_gradients(decoder, inputs, lambda: compute(decoder, own))

    if training and device == "cuda":
        expected = results(reference, torch.float32, device)
    else:
        expected = results(reference, torch.float64, "cpu")
    with in_bits(bits, device):
        assert_near(results(decoder, dtype, device), expected, within or WITHIN[bits])


def taught(decoder: Decoder, source: Encoded) -> Result:
    """The loss of a target by teacher forcing, and the weights of attention."""
    target = truth_for(decoder).to(source.device)
    output = decoder.teach(source, target)
    weights = {} if output.weights is None else {"weights": output.weights}
    return {"loss": truth_loss(output, target), **weights}


def of_encoder(case: Case, backend: Backend, bits: str) -> None:
    """Compare what an encoder computes of its inputs, and what it learns."""
    torch.manual_seed(3)
    reference, encoder = case.make(), case.make(backend)
    encoder.load_state_dict(reference.state_dict())
    device = device_of(backend)
    dtype = torch.float64 if bits == "64" else torch.float32
    inputs = case.inputs()

    def results(encoder: nn.Module, dtype: torch.dtype, device: str) -> Result:
        encoder.train(device_of(backend) == "cpu").to(device=device, dtype=dtype)

        def compute() -> Result:
            encoded: Encoded = encoder(
                **{name: _as(each, dtype, device) for name, each in inputs.items()}
            )
            return {"memory": encoded.memory, "summary": encoded.summary}

        return with_gradients(encoder, {}, compute)

    expected = results(reference, torch.float64, "cpu")
    with in_bits(bits, device):
        assert_near(results(encoder, dtype, device), expected, WITHIN[bits])


def _as(padded: Padded, dtype: torch.dtype, device: str) -> Padded:
    values = padded.values
    is_number = values.is_floating_point()
    return replace(padded, values=values.to(dtype) if is_number else values).to(device)
