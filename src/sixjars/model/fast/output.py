r"""The output layer and the cross entropy in one, in chunks: the logits of all tokens are never in memory at once.

Dims: N tokens of a batch, H state features, V vocabulary.

    z = V_out s + b_out,   L = Σ_n f_n Σ_v p_nv (log Σ_u exp z_nu - z_nv),   δz = f_n (softmax(z) - p)

where p is 1 - ε at the true token and ε / V everywhere (label smoothing; ε may be 0), and f_n the factor of a token.
The loss is a sum, so its gradient is known up to one factor while it is computed: δz takes the place of z.
"""

from typing import Any, cast, final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sixjars.flow.values import LinearLogits
from sixjars.model.fast.recurrence import summed_rows
from sixjars.model.layers import computed_in, wide

CHUNK = {"cpu": 2**21}
"""Logits that are in memory at once, by the kind of device: what a CPU's cache may hold."""
CHUNK_ELSEWHERE = 2**28


def gradient_of(logits: Tensor, truth: Tensor, factor: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    """The loss of each token, (N,), smoothed and plain; and the gradient of the logits, in their place."""
    if logits.is_cuda:
        from sixjars.model.fast.output_kernels import fused_gradient

        return fused_gradient(logits, truth, factor, smoothing)
    values = wide(logits)
    total_N = values.logsumexp(1)
    plain_N = total_N - values.gather(1, truth.unsqueeze(1)).squeeze(1)
    loss_N = plain_N
    if smoothing:
        loss_N = torch.lerp(plain_N, total_N - values.mean(1), smoothing)
    values.sub_(total_N.unsqueeze(1)).exp_()
    if smoothing:
        values.sub_(smoothing / values.shape[1])
    values.scatter_add_(1, truth.unsqueeze(1), torch.full_like(plain_N, smoothing - 1.0).unsqueeze(1))
    return loss_N * factor, plain_N, values.mul_(factor.unsqueeze(1)).to(logits.dtype)


@final
class OutputLoss(torch.autograd.Function):
    """The summed loss of all tokens, and the plain one without smoothing and factors; use `output_loss`."""

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, truth: Tensor, factor: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        """Both sums, and (kept for the backward pass) all gradients."""
        rows = max(CHUNK.get(states.device.type, CHUNK_ELSEWHERE) // len(weight), 1)
        loss, plain = torch.zeros_like(factor[:1]).sum(), torch.zeros_like(factor[:1]).sum()
        d_states, d_weight, d_bias = [], None, None
        learns = any(ctx.needs_input_grad)
        with torch.autocast(states.device.type, enabled=False):
            for at in range(0, len(states), rows):
                part, own, factors = (tensor[at : at + rows] for tensor in (states, truth, factor))
                loss_N, plain_N, d_logits_NV = gradient_of(torch.addmm(bias, part, weight.t()), own, factors, smoothing)
                loss, plain = loss + loss_N.sum(), plain + (plain_N * (factors != 0.0)).sum()
                if learns:
                    d_states.append(d_logits_NV @ weight)
                    d_weight = _added(d_weight, d_logits_NV.t() @ part)
                    d_bias = _added(d_bias, summed_rows(d_logits_NV))
        if learns:
            ctx.save_for_backward(torch.cat(d_states), d_weight, d_bias)
            ctx.dtypes = states.dtype, weight.dtype, bias.dtype
        ctx.mark_non_differentiable(plain)
        return loss, plain

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: Tensor, _: Tensor) -> Any:
        """The gradients times what the sum is multiplied by."""
        scaled = ((d_loss * one).to(dtype) for one, dtype in zip(ctx.saved_tensors, ctx.dtypes, strict=True))
        return *scaled, None, None, None


def _added(total: Tensor | None, part: Tensor) -> Tensor:
    return wide(part) if total is None else total.add_(part)


def output_loss(linear: LinearLogits, truth: Tensor, factor: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Σ of factor times loss over all tokens, and Σ of the plain -log P where the factor is not 0.

    `truth` (B, T) are the true tokens, `factor` (B, T) is 0 where padded.
    """
    dtype = computed_in(linear.states)
    states_NH, weight, bias = linear.states.flatten(0, 1).to(dtype), linear.weight.to(dtype), linear.bias.to(dtype)
    factor_N = factor.flatten().to(torch.promote_types(dtype, torch.float32))
    made = OutputLoss.apply(states_NH, weight, bias, truth.flatten(), factor_N, smoothing)  # type: ignore[no-untyped-call]
    return cast("tuple[Tensor, Tensor]", made)
