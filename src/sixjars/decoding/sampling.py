"""Sampling: which tokens may be drawn, by random numbers of seed, step and token alone.

Dims: B sources, N rows of each, R = B * N rows open in search, V vocabulary, K tokens that may be
      drawn.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from sixjars.decoding.scores import NEVER


def row_seeds(seed: int, sources: Sequence[int], rows: int) -> Tensor:
    """A seed for each row, (R,), from that of the search, of its source, and its own place.

    Hashed at every level: seeds combined by addition or XOR alone would make seed 1 of source 0 the
    same as seed 0 of source 1, or give a row the draws of its neighbour, a step later.
    """
    source_B = hashed(hashed(torch.tensor(seed)) ^ torch.tensor(sources, dtype=torch.int64))
    return hashed(source_B.unsqueeze(1) ^ torch.arange(rows)).flatten()


def hashed(numbers: Tensor) -> Tensor:
    """64-bit hashes by splitmix64 (Steele, Lea & Flood 2014, doi 10.1145/2660193.2660195).

    A random number that is a hash of seed, step and token needs no generator, so it depends neither
    on what else is drawn in a batch, nor on the device.
    """
    mixed = numbers + _wrapped(0x9E3779B97F4A7C15)
    mixed = (mixed ^ _shifted(mixed, 30)) * _wrapped(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ _shifted(mixed, 27)) * _wrapped(0x94D049BB133111EB)
    return mixed ^ _shifted(mixed, 31)


def _wrapped(number: int) -> int:
    """An unsigned 64-bit number as torch has it."""
    return number - (1 << 64) if number >> 63 else number


def _shifted(numbers: Tensor, by: int) -> Tensor:
    """An unsigned shift to the right: torch's own copies the sign."""
    return (numbers >> by) & ((1 << (64 - by)) - 1)


def likely(scores: Tensor, *, top_k: int, top_p: float) -> tuple[Tensor, Tensor]:
    """The scores of the tokens that may be drawn, -inf for others, and the tokens, (R, K) each.

    The `top_k` best may (0: all). Of these, with their probabilities made to sum to 1, the fewest
    whose sum is at least `top_p` (Holtzman et al. 2020, https://arxiv.org/abs/1904.09751).

    >>> scores, tokens = likely(torch.tensor([[0.2, 0.5, 0.3]]).log(), top_k=0, top_p=0.6)
    >>> scores.exp(), tokens
    (tensor([[0.5000, 0.3000, 0.0000]]), tensor([[1, 2, 0]]))
    """
    scores_RK, tokens_RK = scores.topk(min(top_k or scores.shape[1], scores.shape[1]), dim=1)
    if top_p < 1.0:
        shares_RK = scores_RK.softmax(dim=1)
        before_RK = shares_RK.cumsum(dim=1) - shares_RK
        scores_RK = scores_RK.masked_fill(before_RK >= top_p, NEVER)
    return scores_RK, tokens_RK


def draw(scores: Tensor, seeds: Tensor, step: int | Tensor, tokens: Tensor | None = None) -> Tensor:
    r"""A token for each row, (R,), drawn from softmax(scores) with the seed of the row.

    `tokens`, (R, K), are those of the scores, where these are not of the whole vocabulary.

    .. math:: \arg\max_v (s_v - \log E_v), \quad E_v = -\log U_v \sim \mathrm{Exponential}(1)

    is such a draw (the Gumbel-max trick: Maddison, Tarlow & Minka 2014,
    https://arxiv.org/abs/1411.0030). It needs no sum, so a row may have everything forbidden.
    """
    all_V = torch.arange(scores.shape[1], device=scores.device)
    bits_RV = hashed(hashed(seeds + step).unsqueeze(1) ^ (all_V if tokens is None else tokens))
    uniform_RV = (_shifted(bits_RV, 12).double() + 0.5) * 2.0**-52  # exact, and neither 0 nor 1
    place_R = (scores.double() - (-uniform_RV.log()).log()).argmax(dim=1)
    return place_R if tokens is None else tokens.gather(1, place_R.unsqueeze(1)).squeeze(1)
