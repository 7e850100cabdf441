"""Prediction with matrices in fewer bits, or in a layout that suits the processor.

Dims: M rows of any kind, I input features, O output features, B batch, T positions, H state
      features, G gate features, L layers.

Only products with weights change: a softmax, a state, and a score that search compares keep their
32 bits on a CPU.
"""

from functools import partial
from typing import Any, Literal, cast, final, get_args

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
"""Whether torch has a product of bytes that scales its outputs and never overflows."""


@final
class PackedWeight:
    """A weight matrix (O, I) in another form, by which `linear` multiplies.

    int8 has one scale for each output, and one for each row of the inputs: rows are independent.
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
            if SCALES:
                self.packed = torch.ops.onednn.qlinear_prepack(rounded, None)
            else:
                self.packed = rounded.t().contiguous()
            self.scale_O = scale_O1.squeeze(1)
            self.zeros_O = torch.zeros(len(weight), dtype=torch.long)
        else:
            matrix = weight.bfloat16() if precision == "bf16" else weight
            self.packed = torch.ops.mkldnn._reorder_linear_weight(matrix.contiguous(), None)

    def product(self, inputs_MI: Tensor, bias_O: Tensor | None) -> Tensor:
        """Inputs times the transposed matrix, plus the bias, (M, O)."""
        if self.precision == "int8":
            scale_M1 = _scale(inputs_MI)
            bytes_MI = (inputs_MI / scale_M1).round_().to(torch.int8)
            outputs_MO = self._whole(bytes_MI).mul_(scale_M1)
        else:
            linear = torch.ops.mkldnn._linear_pointwise.default
            if self.precision == "32":
                return cast("Tensor", linear(inputs_MI, self.packed, bias_O, "none", [], ""))
            outputs = linear(inputs_MI.bfloat16(), self.packed, None, "none", [], "")
            outputs_MO = cast("Tensor", outputs).float()
        return outputs_MO if bias_O is None else outputs_MO.add_(bias_O)

    def _whole(self, inputs_MI: Tensor) -> Tensor:
        """The product with int8 inputs, times the scale of each output."""
        if not SCALES:
            return torch._int_mm(inputs_MI, self.packed).float().mul_(self.scale_O)
        # Unsigned, 128 more: torch's product of signed inputs is not fast.
        bytes_MI = inputs_MI.view(torch.uint8).bitwise_xor_(128)
        scales: Any = (self.scale_O, self.zeros_O, None, 1.0, 0, torch.float32, "none", [], "")
        multiply = torch.ops.onednn.qlinear_pointwise.default
        outputs_MO: Tensor = multiply(bytes_MI, 1.0, 128, self.packed, *scales)
        return outputs_MO

    def __getitem__(self, place: int | tuple[slice, slice]) -> "PackedWeight | Tensor":
        """A row or some columns of the original, for teacher forcing; a packed matrix has none."""
        if isinstance(place, int):
            return self.weight[place]
        is_whole = place[1].indices(self.shape[1]) == (0, self.shape[1], 1)
        return self if is_whole else self.weight[place]

    @classmethod
    def __torch_function__(cls, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute `F.linear` with this weight, for torch; refuse every other function."""
        if called is not F.linear:
            return NotImplemented
        inputs, weight, bias = args
        is_trained = torch.is_grad_enabled() or weight.weight._version != weight.version
        if is_trained:
            return F.linear(inputs, weight.weight, bias)
        if inputs.dim() == 2:
            return weight.product(inputs, bias)
        return weight.product(inputs.flatten(0, -2), bias).unflatten(0, inputs.shape[:-1])


def _scale(values: Tensor) -> Tensor:
    """The factor that makes the largest number of each row 127, (M, 1)."""
    least = torch.finfo(values.dtype).tiny * 128
    return values.abs().amax(1, keepdim=True).clamp_(min=least).div_(127)


def in_precision(network: Network, precision: Precision) -> Network:
    """The network itself, which now predicts in that precision, but trains and saves as before."""
    device, where = network.device.type, "the command line"
    if precision not in get_args(Precision):
        raise RecipeError([unknown("precision", precision, get_args(Precision))], where)
    if device == "cuda" and precision == "bf16":
        network.decoder.to(torch.bfloat16)
        return network
    if device != "cpu" and precision != "32":
        needed = "a CPU" if precision == "int8" else "a CPU or a CUDA device"
        fault = f"--precision {precision} needs {needed}, but --device is {device}; use 32."
        raise RecipeError([fault], where)
    if precision == "bf16" and not has_bf16():
        fault = "--precision bf16 needs a CPU with bf16 arithmetic; use 32 or int8 on this one."
        raise RecipeError([fault], where)
    if device == "cpu":
        load_kernels(build=False)
        _pack_all(network, precision)
    return network


def has_bf16() -> bool:
    """Whether this CPU computes with bf16."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _looped(cells: Recurrent, inputs: Tensor, first: Any = None) -> tuple[Tensor]:
    """Replaces torch's stack, which does not take packed weights, by a loop over the steps.

    Returns the states of the top layer (B, T, H), from inputs (B, T, I) and initial states
    (L, B, H).
    """
    zeros_LBH = inputs.new_zeros(cells.layers, len(inputs), cells.size)
    if not isinstance(first, tuple):
        first = zeros_LBH if first is None else first, zeros_LBH
    hidden, memory = first
    kept = memory.unbind(0) if cells.cell == "lstm" else [None] * cells.layers
    layers, states = list(zip(hidden.unbind(0), kept, strict=True)), []
    for given_BG in cells.project(inputs).unbind(1):
        layers = cells.advance(given_BG, layers)
        states.append(layers[-1][0])
    return (torch.stack(states, dim=1),)


def _pack_all(network: Network, precision: Precision) -> None:
    """Pack the matrices of the decoder and of all recurrences, where a product takes them."""
    if precision != "int8" and not HAS_ONEDNN:
        return
    for module in [network.decoder, *network.encoder.modules()]:
        if isinstance(module, Recurrent) or module is network.decoder:
            _pack(module, precision)


def _pack(module: nn.Module, precision: Precision) -> None:
    """Put packed matrices before the parameters, here and in all modules inside.

    An attribute of a module is found before its parameter of the same name, which stays: it is
    saved as before.
    """
    for inner in module.modules():
        if not isinstance(inner, nn.Linear | nn.RNNBase):
            continue
        parameters = inner.named_parameters(recurse=False)
        matrices = {name: weight for name, weight in parameters if weight.dim() == 2}
        large = [weight for weight in matrices.values() if weight.numel() >= FEWEST]
        if any(weight.dtype == torch.float32 for weight in large):
            packed = {name: PackedWeight(weight, precision) for name, weight in matrices.items()}
            vars(inner).update(packed)
    for inner in module.modules():
        if isinstance(inner, Recurrent) and "weight_hh_l0" in vars(inner.stack):
            vars(inner.stack)["forward"] = partial(_looped, inner)
            inner.fast = inner.by_hand = False
