"""The cross entropy of each token and its gradient as one Triton kernel. Imported only on CUDA.

Dims: N tokens, V vocabulary.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _gradient_kernel(logits, truth, factor, losses, plains, smoothing, V, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logits += row * V
    true, scale = tl.load(truth + row), tl.load(factor + row)
    highest, total, summed = -float("inf"), 0.0, 0.0
    for begin in range(0, V, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        z = tl.load(logits + at, at < V, -float("inf")).to(tl.float32)
        above = tl.maximum(highest, tl.max(z, axis=0))
        total = total * tl.exp(highest - above) + tl.sum(tl.exp(z - above), axis=0)
        summed += tl.sum(tl.where(at < V, z, 0.0), axis=0)
        highest = above
    whole = highest + tl.log(total)
    plain = whole - tl.load(logits + true).to(tl.float32)
    tl.store(plains + row, plain)
    tl.store(losses + row, scale * (plain + smoothing * (whole - summed / V - plain)))
    for begin in range(0, V, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        z = tl.load(logits + at, at < V, -float("inf")).to(tl.float32)
        share = tl.exp(z - whole) - smoothing / V - tl.where(at == true, 1.0 - smoothing, 0.0)
        tl.store(logits + at, share * scale, at < V)


def fused_gradient(
    logits: Tensor, truth: Tensor, factor: Tensor, smoothing: float
) -> tuple[Tensor, Tensor, Tensor]:
    """As `output_loss.loss_gradient`; the gradient is in place of the logits (N, V)."""
    losses, plains = (torch.empty_like(factor, dtype=torch.float32) for _ in range(2))
    block = min(triton.next_power_of_2(logits.shape[1]), 4096)
    _gradient_kernel[len(logits),](
        logits, truth, factor, losses, plains, smoothing, logits.shape[1], BLOCK=block
    )
    return losses, plains, logits
