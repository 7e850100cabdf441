"""What a network says of an input: what search finds, or the labels that are chosen.

Dims: V labels.
"""

import math
from functools import partial

import numpy as np
import torch

from sixjars.evaluation.search import rows_per_source, search
from sixjars.flow import Chooser, Encoded, Hypothesis, Padded, Scored, Writer
from sixjars.model.network import Network
from sixjars.recipe.jars import SearchSettings

LIKELY = 0.5
"""A label that is judged by its own is chosen from this probability on."""


def found_by(
    network: Network, encoded: Encoded, settings: SearchSettings, *, prefix: Padded | None = None
) -> list[list[Hypothesis]]:
    """What the decoder says of each row, best first: what search finds, or the labels chosen."""
    decoder = network.decoder
    if isinstance(decoder, Chooser):
        scored = decoder.choose(encoded)
        return _all_likely(scored) if decoder.several else _chosen(scored, settings.nbest)
    assert isinstance(decoder, Writer)
    settings = settings.model_copy(update={"max_length": decoder.longest(encoded, settings.max_length)})
    copies = rows_per_source(settings)
    state, carried = decoder.start(encoded)
    state, carried = state.spread(copies), carried.spread(copies)
    step = partial(decoder.step, carried=carried)
    begun = None if prefix is None else prefix.spread(copies)
    return search(step, state, settings, decoder.marks, prefix=begun, mask=carried.mask)


def _chosen(scored: Scored, nbest: int) -> list[list[Hypothesis]]:
    best = scored.log_probabilities.topk(min(nbest, scored.log_probabilities.shape[1]), dim=1)
    rows = zip(best.values.tolist(), best.indices.tolist(), _looked_at(scored), strict=True)
    return [
        [Hypothesis((label,), value, value, weights) for value, label in zip(values, labels, strict=True)]
        for values, labels, weights in rows
    ]


def _all_likely(scored: Scored) -> list[list[Hypothesis]]:
    """All labels of each row that are more likely than not, the most probable first; that one in any case."""
    looked = _looked_at(scored)
    found = []
    for at, log_V in enumerate(scored.log_probabilities.cpu()):
        order_V = log_V.argsort(descending=True)
        count = max(1, int((log_V >= math.log(LIKELY)).sum()))
        not_V = torch.log1p(-log_V.double().exp().clamp(max=1.0 - 1e-12))
        whole = float(log_V[order_V[:count]].sum() + not_V[order_V[count:]].sum())
        found.append([Hypothesis(tuple(order_V[:count].tolist()), whole, whole, looked[at])])
    return found


def _looked_at(scored: Scored) -> list[tuple[tuple[float, ...], ...]]:
    """The weights of each row, in a row of their own; nothing where there are none."""
    if scored.weights is None:
        return [()] * scored.rows
    return [(tuple(row),) for row in scored.weights.tolist()]


def drawn_anew(settings: SearchSettings, number: int) -> SearchSettings:
    """The settings for batch `number`: what is sampled there has a seed of its own, made from the one given."""
    if settings.kind != "sample":
        return settings
    seed = int(np.random.default_rng([settings.seed, number]).integers(2**63))
    return settings.model_copy(update={"seed": seed})
