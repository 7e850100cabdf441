"""Products with weight matrices: by the library that is fastest here, or packed for prediction.

Dims: N or M rows of any kind, I input features, O output features, F any features, K matrices side
      by side.

Packed for prediction, only products with weights change: a softmax, a state, and a score that
search compares keep their 32 bits on a CPU.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final, Literal, cast, final, get_args

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812 - its name everywhere
from torch.utils.weak import WeakIdKeyDictionary

from sixjars.kernels.processor import FEWEST, FEWEST_ONCE, FEWEST_STEPS, HAS_ONEDNN
from sixjars.model.layers import Linear
from sixjars_runtime.errors import RecipeError, unknown

Precision = Literal["32", "bf16", "int8"]
SCALES = (
    HAS_ONEDNN and hasattr(torch.ops.onednn, "qlinear_pointwise") and torch.cpu._is_vnni_supported()
)
"""Whether torch has a product of bytes that scales its outputs and never overflows."""


def computed_in(values: Tensor) -> torch.dtype:
    """The type in which products of these values are computed: autocast may have another."""
    kind = values.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else values.dtype


def by_onednn(weight: Tensor, fewest: int) -> bool:
    """Whether oneDNN multiplies by this matrix, which needs at least `fewest` numbers."""
    if not isinstance(weight, Tensor) or weight.dtype != torch.float32:
        return False
    return HAS_ONEDNN and weight.device.type == "cpu" and weight.numel() >= fewest


def product(
    rows: Tensor, weight: Tensor, bias: Tensor | None = None, *, total: Tensor | None = None
) -> Tensor:
    """Rows (N, I) times Wᵀ, (O, I), plus b, (O,), plus `total`, (N, O). It has no backward pass."""
    if not rows.numel():  # oneDNN refuses them
        zeros = rows.new_zeros(*rows.shape[:-1], weight.shape[0])
        return sum((each for each in (bias, total) if each is not None), zeros)
    if not (weight.is_mkldnn or by_onednn(weight, FEWEST_ONCE)):
        outputs = F.linear(rows, weight, bias)
        return outputs if total is None else outputs.add_(total)
    if not (weight.is_mkldnn or weight.is_contiguous() or weight.t().is_contiguous()):
        weight = weight.contiguous()  # with gaps between rows it takes a thousand times as long
    multiply = torch.ops.mkldnn._linear_pointwise
    if total is not None:
        return cast("Tensor", multiply.binary(rows, total, weight, bias, "add"))
    return cast("Tensor", multiply.default(rows, weight, bias, "none", [], ""))


def outer_products(left: Tensor, right: Tensor) -> Tensor:
    """Σ_n left_n right_nᵀ, (N, O) and (N, I) -> (O, I): the gradient of a matrix.

    oneDNN transposes the smaller factor.
    """
    by_torch = left.device.type == "cpu" and not by_onednn(left, FEWEST_ONCE)
    if by_torch or left.shape[1] < right.shape[1]:
        return product(left.t(), right.t())
    return product(right.t(), left.t()).t()


def summed_rows(values: Tensor) -> Tensor:
    """The sum over all rows, (N, F) -> (F,) or (K, N, F) -> (K, F), as a product in one pass."""
    ones = values.new_ones(*values.shape[:-2], 1, values.shape[-2])
    return (ones @ values).squeeze(-2)


@final
class OneDnnLinear(torch.autograd.Function):
    """x Wᵀ + b, forwards and back by `product`; use `linear`."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """(N, I) -> (N, O)."""
        ctx.save_for_backward(rows, weight)
        return product(rows, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_output: Tensor) -> Any:
        """The gradients that are needed."""
        rows, weight = ctx.saved_tensors
        to_rows, to_weight, to_bias = ctx.needs_input_grad
        d_rows = product(d_output, weight.t()) if to_rows else None
        d_weight = outer_products(d_output, rows) if to_weight else None
        return d_rows, d_weight, summed_rows(d_output) if to_bias else None


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Inputs (…, I) times Wᵀ, plus b, (…, O), with a gradient; by oneDNN where it is faster."""
    learns = torch.is_grad_enabled() and computed_in(inputs) == torch.float32
    if torch.compiler.is_compiling() or not (learns and by_onednn(weight, FEWEST_ONCE)):
        return F.linear(inputs, weight, bias)
    outputs: Tensor = OneDnnLinear.apply(inputs.reshape(-1, weight.shape[1]), weight, bias)  # type: ignore[no-untyped-call]
    return outputs.view(*inputs.shape[:-1], len(weight))


def beside(tensors: Sequence[Tensor]) -> Tensor:
    """As `torch.stack`; one tensor alone is not copied."""
    return torch.stack(tuple(tensors)) if len(tensors) > 1 else tensors[0].unsqueeze(0)


LARGEST: Final = 42.0
"""The limit of what is raised to a power: e^84 is still a float. Where no key is beyond half of it,
tanh of its sum with a query that is beyond it is 1 to the last bit."""


def powers(values: Tensor) -> Tensor:
    """e^{2x} of each number x."""
    return values.clamp(-LARGEST, LARGEST).mul_(2).exp_()


def key_powers(keys: Tensor) -> Tensor | None:
    """The powers of keys k, or None where they would not be exact enough.

    On a CPU they make tanh(q + k) = 1 - 2 / (1 + e^2q e^2k) of many queries q fast.

    >>> keys, query = torch.tensor([0.5, -20.0]), torch.tensor([1.0])
    >>> torch.allclose(1 - 2 / (1 + powers(query) * key_powers(keys)), torch.tanh(query + keys))
    True
    """
    fits = keys.device.type == "cpu" and keys.dtype.itemsize >= 4 and keys.numel() > 0
    return powers(keys) if fits and bool(keys.abs().amax() <= LARGEST / 2) else None


@final
class Factor:
    """W, (O, I) or (K, O, I), by which rows are multiplied at every step, and back by Wᵀ.

    A product reorders its matrix for the processor first; on a CPU a large one is reordered once,
    for all steps.
    """

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight
        self.matrices = weight.view(-1, *weight.shape[-2:])
        self.packs = by_onednn(self.matrices[0], FEWEST_STEPS)

    @cached_property
    def _packed(self) -> list[Any]:
        return [torch.ops.mkldnn._reorder_linear_weight(matrix, None) for matrix in self.matrices]

    @cached_property
    def _turned(self) -> list[Any]:
        turned = (matrix.t() for matrix in self.matrices)
        return [torch.ops.mkldnn._reorder_linear_weight(matrix, None) for matrix in turned]

    def times(
        self, rows: Tensor, *, bias: Tensor | None = None, out: Tensor | None = None
    ) -> Tensor:
        """Rows times Wᵀ, plus b, (…, I) -> (…, O), into `out` if given."""
        if self.packs:
            return _by_matrices(rows, self._packed, bias, out)
        if bias is not None:
            return torch.addmm(bias, rows, self.weight.t())
        multiply = torch.mm if self.weight.dim() == 2 else torch.bmm
        return multiply(rows, self.weight.mT, out=out)

    def back(self, rows: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Rows times W, (…, O) -> (…, I), into `out` if given."""
        if self.packs:
            return _by_matrices(rows, self._turned, None, out)
        multiply = torch.mm if self.weight.dim() == 2 else torch.bmm
        return multiply(rows, self.weight, out=out)

    def plus(self, given: Tensor, rows: Tensor) -> tuple[Tensor, ...]:
        """Given (B, O) and rows times Wᵀ, as one sum or as two for the kernel that reads them."""
        if self.packs:
            return (product(rows, self._packed[0], total=given),)
        return given, self.times(rows)


def _by_matrices(
    rows: Tensor, matrices: list[Any], bias: Tensor | None, out: Tensor | None
) -> Tensor:
    if len(matrices) == 1:
        outputs = product(rows, matrices[0], None if bias is None else bias.view(-1))
        return outputs if out is None else out.copy_(outputs)
    biases = [None] * len(matrices) if bias is None else bias
    return torch.stack([product(*of) for of in zip(rows, matrices, biases, strict=True)], out=out)


@final
class PackedMatrix:
    """A weight matrix (O, I) in another form, by which inputs are multiplied.

    int8 has one scale for each output, and one for each row of the inputs: rows are independent.
    """

    def __init__(self, weight: Tensor, precision: str) -> None:
        self.precision = precision
        self.version = weight._version
        """That of the weight: one that has learned since is no longer this matrix."""
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

    def product(self, inputs: Tensor, bias: Tensor | None) -> Tensor:
        """Inputs (…, I) times the transposed matrix, plus the bias, (…, O)."""
        if inputs.dim() != 2:
            outputs_MO = self.product(inputs.flatten(0, -2), bias)
            return outputs_MO.view(*inputs.shape[:-1], outputs_MO.shape[1])
        if self.precision == "int8":
            scale_M1 = _scale(inputs)
            bytes_MI = (inputs / scale_M1).round_().to(torch.int8)
            outputs_MO = self._whole(bytes_MI).mul_(scale_M1)
        else:
            multiply = torch.ops.mkldnn._linear_pointwise.default
            if self.precision == "32":
                return cast("Tensor", multiply(inputs, self.packed, bias, "none", [], ""))
            outputs = multiply(inputs.bfloat16(), self.packed, None, "none", [], "")
            outputs_MO = cast("Tensor", outputs).float()
        return outputs_MO if bias is None else outputs_MO.add_(bias)

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


def _scale(values: Tensor) -> Tensor:
    """The factor that makes the largest number of each row 127, (M, 1)."""
    least = torch.finfo(values.dtype).tiny * 128
    return values.abs().amax(1, keepdim=True).clamp_(min=least).div_(127)


@final
class Products:
    """The products of a backend with weights; those of a network may be packed for prediction."""

    def __init__(self) -> None:
        self.packed: Any = WeakIdKeyDictionary()
        """A `PackedMatrix` for each weight that has one; it goes with the weight."""

    def pack(self, modules: Iterable[nn.Module], precision: str) -> None:
        """Pack the matrices of linear layers and recurrent stacks, where a product takes them.

        Small matrices beside a large one of the same stack are packed too. The weights themselves
        stay as they are: they are trained and saved as before.
        """
        if precision != "int8" and not HAS_ONEDNN:
            return
        for module in modules:
            if isinstance(module, Linear | nn.RNNBase):  # others do not ask for a packed form
                matrices = [each for each in module.parameters(recurse=False) if each.dim() == 2]
                large = [each for each in matrices if each.numel() >= FEWEST]
                if any(each.dtype == torch.float32 for each in large):
                    for weight in matrices:
                        self.packed[weight] = PackedMatrix(weight, precision)

    def packed_form(self, weight: Tensor) -> PackedMatrix | None:
        """The packed form of a weight; None without one, and where it learns or has learned."""
        if torch.compiler.is_compiling() or not self.packed or torch.is_grad_enabled():
            return None
        matrix: PackedMatrix | None = self.packed.get(weight)
        return matrix if matrix is not None and matrix.version == weight._version else None

    def linear(self, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """X Wᵀ + b."""
        matrix = self.packed_form(weight)
        return F.linear(inputs, weight, bias) if matrix is None else matrix.product(inputs, bias)


def has_bf16() -> bool:
    """Whether this CPU computes with bf16."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def check_precision(device: str, precision: Precision) -> None:
    """Refuse a precision of prediction that there is not, or not on such a device."""
    where = "the command line"
    if precision not in get_args(Precision):
        raise RecipeError([unknown("precision", precision, get_args(Precision))], where)
    if device != "cpu" and precision != "32" and (device, precision) != ("cuda", "bf16"):
        needed = "a CPU" if precision == "int8" else "a CPU or a CUDA device"
        fault = f"--precision {precision} needs {needed}, but --device is {device}; use 32."
        raise RecipeError([fault], where)
    if device == "cpu" and precision == "bf16" and not has_bf16():
        fault = "--precision bf16 needs a CPU with bf16 arithmetic; use 32 or int8 on this one."
        raise RecipeError([fault], where)
