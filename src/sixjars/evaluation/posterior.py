r"""Posterior attention: which source position explains each token of an output that is given.

Dims: B sources, S source positions, R = B * S rows, T target positions, V vocabulary.

The weights of a step are computed before its token is known: they say where the next token may come
from. For a pair whose output is known, the posterior says more.
"""

from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from sixjars.flow.contracts import Decoder, Generator
from sixjars.flow.values import Encoded, Padded
from sixjars.model.layers import wide

LARGEST = 1 << 24
"""Numbers that are computed at once."""


def posterior_of(decoder: Decoder, encoded: Encoded, target: Padded) -> Tensor | None:
    """The posterior attention of a decoder; nothing without one, or for a source in segments."""
    if encoded.segments is not None or not (decoder.searches and decoder.has_attention):
        return None
    return posterior(cast(Generator, decoder), encoded, target)


def posterior(generator: Generator, encoded: Encoded, target: Padded) -> Tensor:
    r"""The weights after each token of a target was seen, (B, T, S); 0 where it is padded.

    .. math:: P(a_t = j | y_1 .. y_t, x) \propto \alpha_{jt} \, P(y_t | y_1 .. y_{t-1}, c_t = h_j)

    Shankar & Sarawagi 2019 (https://openreview.net/forum?id=BkltNhC9FX) train with it; here a
    trained model is read by it. To attend to one position alone is to mask all others.
    """
    state, prepared = generator.start(encoded)
    token_B = torch.full_like(target.values[:, 0], generator.special.go)
    before = []
    weights = []
    size = 1
    for truth_B in target.values.unbind(1):
        before.append((token_B, state))
        scored, state = generator.step(token_B, state, prepared)
        assert scored.weights is not None
        weights.append(wide(scored.weights))
        token_B = truth_B
        size = scored.scores.shape[1]
    positions = encoded.mask.shape[1]
    # the scores of a source, or its copies
    each = positions * max(size, 3 * positions * encoded.memory.shape[2])
    weights_BTS = torch.stack(weights, dim=1)
    likely_BTS = torch.zeros_like(weights_BTS)
    at_once = max(1, LARGEST // max(1, each))
    alone_SS = torch.eye(positions, dtype=torch.bool, device=encoded.device)
    for block_B in torch.split(torch.arange(encoded.rows, device=encoded.device), at_once):
        alone = prepared
        left = -1
        steps = zip(before, target.values.unbind(1), strict=True)
        for at, ((token_B, earlier), truth_B) in enumerate(steps):
            rows_B = block_B[target.mask[block_B, at]]  # targets that are over take no more steps
            if len(rows_B) == 0:
                break
            if len(rows_B) != left:
                left = len(rows_B)
                alone = prepared.pick(rows_B).repeat(positions)
                alone = replace(alone, mask=alone.mask & alone_SS.repeat(left, 1))
            token_R, truth_R = (
                ids.index_select(0, rows_B).repeat_interleave(positions)
                for ids in (token_B, truth_B)
            )
            scored, _ = generator.step(token_R, earlier.pick(rows_B).repeat(positions), alone)
            like_R = scored.log_probabilities.gather(1, truth_R.unsqueeze(1))
            likely_BTS[rows_B, at] = wide(like_R).view(left, positions)
    joint_BTS = weights_BTS.clamp(min=torch.finfo(weights_BTS.dtype).tiny).log() + likely_BTS
    seen_BTS = torch.softmax(joint_BTS.masked_fill(~encoded.mask.unsqueeze(1), -torch.inf), dim=-1)
    return seen_BTS.masked_fill(~target.mask.unsqueeze(2), 0.0)
