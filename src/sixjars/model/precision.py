"""Matrix products of a trained network in fewer bits, or with weights that are laid out for them once.

Dims: M rows of any kind, I input features, O output features, B batch, T positions, H state features, G gate
      features, L layers.

Only products with weights change: a softmax, a state, and a score that search compares keep their 32 bits on a CPU.
"""

from functools import partial
from typing import Any, Literal, final, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.model.build import Network
from sixjars.model.compiling import load_kernels
from sixjars.model.processor import FEWEST, HAS_ONEDNN
from sixjars.model.recurrent import Recurrent
from sixjars_runtime.errors import RecipeError, unknown

Precision = Literal["32", "bf16", "int8"]
SCALES = (
    HAS_ONEDNN and hasattr(torch.ops.onednn, "qlinear_pointwise") and torch.cpu._is_vnni_supported()
)
"""Whether there is a product of bytes that scales its outputs and never overflows; otherwise they are scaled after."""


@final
class PackedWeight:
    """A weight matrix (O, I) that is only multiplied by: in place of a parameter it makes `linear` compute so.

    int8 has one scale for each output, and one for each row of the inputs. So a row does not depend on the others.
    """

    def __init__(self, weight: Tensor, precision: Precision) -> None:
        self.shape = weight.shape
        self.precision: Precision = precision
        self.weight = weight
        self.version = weight._version
        weight = weight.detach()
        if precision == "int8":
            scale_O1 = _scale(weight)
            rounded = (weight / scale_O1).round().to(torch.int8)
            self.packed = (
                torch.ops.onednn.qlinear_prepack(rounded, None)
                if SCALES
                else rounded.t().contiguous()
            )
            self.scale_O, self.zeros_O = (
                scale_O1.squeeze(1),
                torch.zeros(len(weight), dtype=torch.long),
            )
        else:
            wanted = weight.bfloat16() if precision == "bf16" else weight
            self.packed = torch.ops.mkldnn._reorder_linear_weight(wanted.contiguous(), None)

    def product(self, inputs_MI: Tensor, bias_O: Tensor | None) -> Tensor:
        """Inputs times the transposed matrix, plus the bias, (M, O)."""
        if self.precision == "int8":
            scale_M1 = _scale(inputs_MI)
            outputs_MO = self._whole((inputs_MI / scale_M1).round_().to(torch.int8)).mul_(scale_M1)
            return outputs_MO if bias_O is None else outputs_MO.add_(bias_O)
        linear = torch.ops.mkldnn._linear_pointwise.default
        if self.precision == "32":
            found: Tensor = linear(inputs_MI, self.packed, bias_O, "none", [], "")
            return found
        found = linear(inputs_MI.bfloat16(), self.packed, None, "none", [], "").float()
        return found if bias_O is None else found.add_(bias_O)

    def _whole(self, inputs_MI: Tensor) -> Tensor:
        """The product with int8 inputs, times the scale of each output."""
        if not SCALES:
            return torch._int_mm(inputs_MI, self.packed).float().mul_(self.scale_O)
        bytes_MI = inputs_MI.view(torch.uint8).bitwise_xor_(
            128
        )  # 128 more: with a sign, torch's product is not fast
        scales: Any = (self.scale_O, self.zeros_O, None, 1.0, 0, torch.float32, "none", [], "")
        found: Tensor = torch.ops.onednn.qlinear_pointwise.default(
            bytes_MI, 1.0, 128, self.packed, *scales
        )
        return found

    def __getitem__(self, place: int | tuple[slice, slice]) -> "PackedWeight | Tensor":
        """A row or some columns as they were: there is no part of what is packed. So teacher forcing still works."""
        if isinstance(place, int):
            return self.weight[place]
        return (
            self if place[1].indices(self.shape[1]) == (0, self.shape[1], 1) else self.weight[place]
        )

    @classmethod
    def __torch_function__(cls, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What torch calls in place of a function that was given such a weight."""
        if called is not F.linear:
            return NotImplemented
        inputs, weight, bias = args
        if (
            torch.is_grad_enabled() or weight.weight._version != weight.version
        ):  # it is being trained
            return F.linear(inputs, weight.weight, bias)
        if inputs.dim() == 2:
            return weight.product(inputs, bias)
        return weight.product(inputs.flatten(0, -2), bias).unflatten(0, inputs.shape[:-1])


def _scale(values: Tensor) -> Tensor:
    """What makes the largest number of each row 127, (M, 1)."""
    return (
        values.abs()
        .amax(1, keepdim=True)
        .clamp_(min=torch.finfo(values.dtype).tiny * 128)
        .div_(127)
    )


def in_precision(network: Network, precision: Precision) -> Network:
    """The same network, changed so that it predicts in that precision. What is trained or saved does not change."""
    device, where = network.device.type, "the command line"
    if precision not in get_args(Precision):
        raise RecipeError([unknown("precision", precision, get_args(Precision))], where)
    if device == "cuda" and precision == "bf16":
        network.decoder.to(torch.bfloat16)
        return network
    if device != "cpu" and precision != "32":
        wanted = "a CPU" if precision == "int8" else "a CPU or a CUDA device"
        raise RecipeError(
            [f"--precision {precision} needs {wanted}, but --device is {device}; use 32."], where
        )
    if precision == "bf16" and not has_bf16():
        raise RecipeError(
            ["--precision bf16 needs a CPU with bf16 arithmetic; use 32 or int8 on this one."],
            where,
        )
    if device == "cpu":
        load_kernels(build=False)
        _pack_all(network, precision)
    return network


def has_bf16() -> bool:
    """Whether this CPU computes with bf16."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _looped(own: Recurrent, inputs: Tensor, first: Any = None) -> tuple[Tensor]:
    """In place of torch's stack, which takes no such weights: one step after the other.

    The states of the top layer (B, T, H), from inputs (B, T, I) and the layers' first states (L, B, H).
    """
    zeros_LBH = inputs.new_zeros(own.layers, len(inputs), own.size)
    hidden, cells = (
        first if isinstance(first, tuple) else (zeros_LBH if first is None else first, zeros_LBH)
    )
    kept = cells.unbind(0) if own.cell == "lstm" else [None] * own.layers
    layers, states = list(zip(hidden.unbind(0), kept, strict=True)), []
    for given_BG in own.project(inputs).unbind(1):
        layers = own.advance(given_BG, layers)
        states.append(layers[-1][0])
    return (torch.stack(states, dim=1),)


def _pack_all(network: Network, precision: Precision) -> None:
    """The matrices of the decoder and of all recurrences, where there is a product for them."""
    for module in (
        [network.decoder, *network.encoder.modules()] if precision == "int8" or HAS_ONEDNN else ()
    ):
        if isinstance(module, Recurrent) or module is network.decoder:
            _pack(module, precision)


def _pack(module: nn.Module, precision: Precision) -> None:
    """Put packed matrices before those that are multiplied by, here and in all modules inside.

    An attribute of a module is found before its parameter of the same name, which stays: it is saved as before.
    """
    for inner in module.modules():
        if not isinstance(inner, nn.Linear | nn.RNNBase):
            continue
        matrices = {
            name: weight
            for name, weight in inner.named_parameters(recurse=False)
            if weight.dim() == 2
        }
        if any(
            weight.numel() >= FEWEST and weight.dtype == torch.float32
            for weight in matrices.values()
        ):
            vars(inner).update(
                {name: PackedWeight(weight, precision) for name, weight in matrices.items()}
            )
    for inner in module.modules():
        if isinstance(inner, Recurrent) and "weight_hh_l0" in vars(inner.stack):
            vars(inner.stack)["forward"] = partial(_looped, inner)
            inner.fast = inner.by_hand = False
