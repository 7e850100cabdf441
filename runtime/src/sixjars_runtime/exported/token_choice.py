"""The tokens that a step of search may choose: rules, the best of them, and draws among them.

All of it is as in the toolkit's search, in numpy, so that both choose the same tokens.

Dims: B sources, R rows open in search, V vocabulary, K tokens that may be drawn, C tokens that are
      wanted, t tokens output so far, G n-grams among them (or chunks of the vocabulary), n their
      length, P tokens of a prefix, X tokens compared.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sixjars_runtime.exported.search_options import SearchOptions
from sixjars_runtime.special_tokens import SpecialTokens

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Bits = NDArray[np.uint64]
NEVER: Final = np.float32(-np.inf)
CHUNK: Final = 32
"""Scores of a row that are compared together."""
FREE: Final = -1
"""In a prefix: from here on the row goes on as it likes."""


def allowed(
    scores_RV: Floats,
    output_Rt: Ints,
    prefix_RP: Ints,
    steps: int,
    settings: SearchOptions,
    special: SpecialTokens,
) -> Floats:
    """Set the log probabilities of tokens that may not be output next to -inf, in place.

    A row first outputs its prefix, whatever the rules say; from then on they hold. The output so
    far, (R, t), is read only for repeated n-grams.
    """
    if steps >= prefix_RP.shape[1]:
        return _ruled(scores_RV, output_Rt, steps, settings, special)
    rows = (prefix_RP[:, steps] != FREE).nonzero()[0]
    forced = prefix_RP[rows, steps]
    kept = scores_RV[rows, forced]
    _ruled(scores_RV, output_Rt, steps, settings, special)
    scores_RV[rows] = NEVER
    scores_RV[rows, forced] = kept
    return scores_RV


def _ruled(
    scores_RV: Floats, output_Rt: Ints, steps: int, settings: SearchOptions, special: SpecialTokens
) -> Floats:
    scores_RV[:, special.never(settings.unknown)] = NEVER
    length = settings.no_repeat_ngram
    if 0 < length <= output_Rt.shape[1]:
        ngrams_RGn = np.lib.stride_tricks.sliding_window_view(output_Rt, length, axis=1)
        latest_R1n = output_Rt[:, None, output_Rt.shape[1] - length + 1 :]
        rows, places = (ngrams_RGn[..., :-1] == latest_R1n).all(-1).nonzero()
        scores_RV[rows, ngrams_RGn[rows, places, -1]] = NEVER
    if steps < settings.min_length:  # last, because it must know what the others leave
        stop_R = scores_RV[:, special.stop].copy()
        scores_RV[:, special.stop] = NEVER
        scores_RV[:, special.stop] = np.where(scores_RV.max(1) > NEVER, NEVER, stop_R)
    return scores_RV


def highest(values: Floats, count: int) -> tuple[Floats, Ints]:
    """Return the highest `count` of each row and their places; of equal ones the leftmost."""
    if count == 1:
        places = values.argmax(1)[:, None]
    else:
        places = np.argsort(-values, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(values, places, 1), places


def best_tokens(scores_RV: Floats, count: int) -> tuple[Floats, Ints]:
    """Return the highest `count` scores of each row and their tokens, both (R, C).

    A long row is compared in chunks: the best tokens are in the chunks with the highest maxima.
    """
    rows, size = scores_RV.shape
    chunks = size // CHUNK
    if count == 1 or chunks < 2 * count:
        return highest(scores_RV, count)
    whole = CHUNK * chunks
    most_RG = scores_RV[:, :whole].reshape(rows, chunks, CHUNK).max(2)
    # In order, so that of equal tokens the first is found.
    chunk_RC = np.sort(highest(most_RG, count)[1], axis=1)
    token_RX = (chunk_RC[:, :, None] * CHUNK + np.arange(CHUNK)).reshape(rows, -1)
    rest_RX = np.broadcast_to(np.arange(whole, size), (rows, size - whole))
    token_RX = np.concatenate([token_RX, rest_RX], axis=1)
    values, places = highest(np.take_along_axis(scores_RV, token_RX, 1), count)
    return values, np.take_along_axis(token_RX, places, 1)


def drawn(scores_RV: Floats, seeds: Bits, step: int, settings: SearchOptions) -> Ints:
    """Draw a token for each row, (R,), by its seed, as the settings of sampling say.

    The Gumbel-max trick: Maddison, Tarlow & Minka 2014, https://arxiv.org/abs/1411.0030.
    """
    scores_RK = scores_RV / np.float32(settings.temperature)
    tokens_RK = np.arange(scores_RK.shape[1])[None]
    if settings.top_k or settings.top_p < 1.0:
        scores_RK, tokens_RK = likely(scores_RK, settings.top_k, settings.top_p)
    bits_RK = hashed(hashed(seeds + np.uint64(step))[:, None] ^ tokens_RK.astype(np.uint64))
    # Exact, and neither 0 nor 1.
    uniform_RK = ((bits_RK >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    place_R = (scores_RK.astype(np.float64) - np.log(-np.log(uniform_RK))).argmax(1)
    every_RK = np.broadcast_to(tokens_RK, scores_RK.shape)
    return np.take_along_axis(every_RK, place_R[:, None], 1)[:, 0]


def likely(scores_RV: Floats, top_k: int, top_p: float) -> tuple[Floats, Ints]:
    """Return the tokens that may be drawn and their scores, both (R, K), -inf for all others."""
    size = scores_RV.shape[1]
    scores_RK, tokens_RK = highest(scores_RV, min(top_k or size, size))
    if top_p < 1.0:
        shares_RK = np.exp(scores_RK - scores_RK[:, :1])
        shares_RK /= shares_RK.sum(1, keepdims=True)
        before_RK = shares_RK.cumsum(1) - shares_RK
        scores_RK = np.where(before_RK >= top_p, NEVER, scores_RK)
    return scores_RK, tokens_RK


def row_seeds(seed: int, sources: Sequence[int], rows: int) -> Bits:
    """Return a seed for each row, (R,), from those of the sources; no two rows share one."""
    numbers = np.array(sources, dtype=np.uint64)
    source_B = hashed(hashed(np.array([seed], dtype=np.uint64)) ^ numbers)
    return hashed(source_B[:, None] ^ np.arange(rows, dtype=np.uint64)).ravel()


def hashed(numbers: Bits) -> Bits:
    """Mix 64-bit numbers: splitmix64, Steele, Lea & Flood 2014, doi 10.1145/2660193.2660195."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
