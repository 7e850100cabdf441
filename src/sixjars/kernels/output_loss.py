"""The output layer and the cross entropy in one, in chunks of tokens.

Dims: B batch, T target positions, N batch times target positions, H state features, V vocabulary.
"""

from collections.abc import Callable
from typing import Any, Final, cast, final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sixjars.flow.values import LinearLogits
from sixjars.kernels.processor import FEWEST_ONCE
from sixjars.kernels.products import Factor, by_onednn, computed_in, product, summed_rows
from sixjars.model.layers import wide

CHUNK: Final = {"cpu": 2**23}
"""Logits in memory at once, by the kind of device; 32 MB on a CPU, about the size of its cache."""
CHUNK_ELSEWHERE: Final = 2**28
LossGradient = Callable[[Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor, Tensor]]
"""Logits (N, V), true tokens (N,), factors (N,) and smoothing, as `loss_gradient` takes them."""


def loss_gradient(
    logits: Tensor, truth: Tensor, factor: Tensor, smoothing: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The smoothed and plain loss, (N,) each, and the gradient of the logits (N, V)."""
    values = wide(logits)
    shares = torch.softmax(values, 1)
    total_N = values.amax(1) - shares.amax(1).log()  # the highest share is exp(highest - total)
    plain_N = total_N - values.gather(1, truth.unsqueeze(1)).squeeze(1)
    true_N1, loss_N = truth.unsqueeze(1), plain_N
    if smoothing:
        loss_N = torch.lerp(plain_N, total_N - values.mean(1), smoothing)
        shares.sub_(smoothing / values.shape[1])
    shares.scatter_add_(1, true_N1, torch.full_like(plain_N, smoothing - 1.0).unsqueeze(1))
    return loss_N * factor, plain_N, shares.mul_(factor.unsqueeze(1)).to(logits.dtype)


@final
class OutputLoss(torch.autograd.Function):
    r"""The output layer and the cross entropy in one, in chunks, to save memory.

        z = V_out s + b_out,   L = Σ_n f_n Σ_v p_nv (log Σ_u exp z_nu - z_nv),
        δz = f_n (softmax(z) - p)

    where p is 1 - ε at the true token and ε / V everywhere (label smoothing), and f_n the factor of
    a token. The loss is a sum, so its gradient is known up to one factor while it is computed: δz
    takes the place of z.
    """

    @staticmethod
    def forward(  # noqa: PLR0913 - the inputs of a function of autograd are its parameters
        ctx: Any,
        gradient_of: LossGradient,
        states: Tensor,
        weight: Tensor,
        bias: Tensor,
        truth: Tensor,
        factor: Tensor,
        smoothing: float,
    ) -> tuple[Tensor, Tensor]:
        """Both sums; the gradients are computed here and kept for the backward pass."""
        all_states = states
        real_N = _counted(factor)
        if real_N is not None:
            states, truth, factor = states[real_N], truth[real_N], factor[real_N]
        rows = max(CHUNK.get(states.device.type, CHUNK_ELSEWHERE) // len(weight), 1)
        loss, plain = torch.zeros_like(factor[:1]).sum(), torch.zeros_like(factor[:1]).sum()
        d_states, d_weight, d_bias = [], None, None
        learns = any(ctx.needs_input_grad)
        matrix = Factor(weight)
        with torch.autocast(states.device.type, enabled=False):
            for at in range(0, len(states), rows):
                chunk, true, factors = (each[at : at + rows] for each in (states, truth, factor))
                loss_N, plain_N, d_logits_NV = gradient_of(
                    matrix.times(chunk, bias=bias), true, factors, smoothing
                )
                loss = loss + loss_N.sum()
                plain = plain + (plain_N * (factors != 0.0)).sum()
                if learns:
                    d_states.append(product(d_logits_NV, weight.t()))
                    d_weight = _added_product(d_weight, d_logits_NV, chunk)
                    d_bias = _added(d_bias, summed_rows(d_logits_NV))
        if learns:
            d_all = torch.cat(d_states)
            if real_N is not None:
                d_all = torch.zeros_like(all_states).index_copy_(0, real_N, d_all)
            ctx.save_for_backward(d_all, d_weight, d_bias)
            ctx.dtypes = states.dtype, weight.dtype, bias.dtype
        ctx.mark_non_differentiable(plain)
        return loss, plain

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: Tensor, _: Tensor) -> Any:
        """The gradients times the gradient of the loss."""
        pairs = zip(ctx.saved_tensors, ctx.dtypes, strict=True)
        return None, *((d_loss * gradient).to(dtype) for gradient, dtype in pairs), None, None, None


def _counted(factor: Tensor) -> Tensor | None:
    """The tokens that count, on a CPU and where some do not; a GPU would wait for their number."""
    if factor.device.type != "cpu":
        return None
    real_N = factor.nonzero().squeeze(1)
    return real_N if 0 < len(real_N) < len(factor) else None


def _added_product(total: Tensor | None, d_logits: Tensor, states: Tensor) -> Tensor:
    """The total plus Σ_n δz_n s_nᵀ, (V, H); transposed by oneDNN, whose product is faster so."""
    if by_onednn(d_logits, FEWEST_ONCE):
        return product(states.t(), d_logits.t(), total=None if total is None else total.t()).t()
    if total is not None and total.dtype == d_logits.dtype:
        return total.addmm_(d_logits.t(), states)
    return _added(total, d_logits.t() @ states)


def _added(total: Tensor | None, part: Tensor) -> Tensor:
    return wide(part) if total is None else total.add_(part)


def output_loss(
    gradient_of: LossGradient, linear: LinearLogits, truth: Tensor, factor: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """As `Backend.output_loss`, the gradient of the logits by `gradient_of`."""
    dtype = computed_in(linear.states)
    states_NH = linear.states.flatten(0, 1).to(dtype)
    weight, bias = linear.weight.to(dtype), linear.bias.to(dtype)
    factor_N = factor.flatten().to(torch.promote_types(dtype, torch.float32))
    of_tokens = truth.flatten(), factor_N, smoothing
    sums = OutputLoss.apply(gradient_of, states_NH, weight, bias, *of_tokens)  # type: ignore[no-untyped-call]
    return cast("tuple[Tensor, Tensor]", sums)
