"""Random numbers for sampling that depend on seed, step and token alone, as in the toolkit.

Dims: B sources, N rows of each, R = B * N rows open in search, V vocabulary, K tokens that may be
drawn.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sixjars_runtime.exported.search.scores import NEVER, Floats, Ints, highest

Bits = NDArray[np.uint64]


def row_seeds(seed: int, sources: Sequence[int], rows: int) -> Bits:
    """Return a seed for each row, (R,), from those of the sources; no two rows share one."""
    source_B = hashed(
        hashed(np.array([seed], dtype=np.uint64)) ^ np.array(sources, dtype=np.uint64)
    )
    return hashed(source_B[:, None] ^ np.arange(rows, dtype=np.uint64)).ravel()


def hashed(numbers: Bits) -> Bits:
    """Mix 64-bit numbers well: splitmix64.

    Steele, Lea & Flood 2014, doi 10.1145/2660193.2660195.
    """
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def likely(scores: Floats, *, top_k: int, top_p: float) -> tuple[Floats, Ints]:
    """Return the tokens that may be drawn and their scores, both (R, K), -inf for all others."""
    scores_RK, tokens_RK = highest(scores, min(top_k or scores.shape[1], scores.shape[1]))
    if top_p < 1.0:
        shares_RK = np.exp(scores_RK - scores_RK[:, :1])
        shares_RK /= shares_RK.sum(1, keepdims=True)
        before_RK = shares_RK.cumsum(1) - shares_RK
        scores_RK = np.where(before_RK >= top_p, NEVER, scores_RK)
    return scores_RK, tokens_RK


def draw(scores: Floats, seeds: Bits, step: int, tokens: Ints | None = None) -> Ints:
    """Draw a token for each row, (R,), with the probabilities softmax(scores) by its seed.

    The Gumbel-max trick: Maddison, Tarlow & Minka 2014, https://arxiv.org/abs/1411.0030.
    """
    numbers = (
        np.arange(scores.shape[1], dtype=np.uint64) if tokens is None else tokens.astype(np.uint64)
    )
    bits_RV = hashed(hashed(seeds + np.uint64(step))[:, None] ^ numbers)
    uniform_RV = (
        (bits_RV >> np.uint64(12)).astype(np.float64) + 0.5
    ) * 2.0**-52  # exact, and neither 0 nor 1
    place_R = (scores.astype(np.float64) - np.log(-np.log(uniform_RV))).argmax(1)
    return place_R if tokens is None else np.take_along_axis(tokens, place_R[:, None], 1)[:, 0]
