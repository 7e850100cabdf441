"""Hierarchies: each segment as if it were alone, however segments are packed, and without words."""

import math
from itertools import product
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sixjars.data.packing import packed
from sixjars.errors import ShapeError
from sixjars.flow.values import Encoded, Padded, SegmentLevel, Segments
from sixjars.model.bridges.attention import TwoLevelAttention
from sixjars.model.bridges.pooling import AttentionPooling
from sixjars.model.encoders.text import HierarchyEncoder, TextEncoder
from sixjars.model.layers import WordEmbedding, softmax_in_segments
from sixjars.model.recurrent import Direction

pytestmark = pytest.mark.usefixtures("in_64_bits")

Documents = list[list[list[int]]]
Pool = Literal["last", "attention"]
DOCUMENTS: Documents = [[[5, 6], [7], [8, 4, 10, 9, 9, 5]], [[9]], [], [[4, 10], [], [11, 5, 6]]]
"""The third has no segment, the last has a segment without a word."""


def padded(documents: Documents, *, one: bool = False) -> Padded:
    """Packed as batches are, or all segments in one rectangle, row by row."""
    flat = Padded.of([[word for segment in document for word in segment] for document in documents])
    lengths = [len(segment) for document in documents for segment in document]
    segments = packed(
        np.array(lengths, dtype=np.int64), np.array([len(document) for document in documents])
    )
    if one:
        longest, starts = max(lengths), [row * flat.mask.shape[1] for row in range(len(documents))]
        pack = torch.full((len(lengths), longest), -1)
        index = torch.full_like(segments.segment_index, -1)
        back, number = torch.zeros_like(segments.position_index), 0
        for row, document in enumerate(documents):
            for place, segment in enumerate(document):
                index[row, place] = number
                for at in range(len(segment)):
                    pack[number, at] = starts[row]
                    back.view(-1)[starts[row]] = number * longest + at
                    starts[row] += 1
                number += 1
        segments = Segments((pack,), index, back, segments.segment_of)
    return Padded(flat.values, flat.mask, segments)


def hierarchy(
    pool: Pool = "last", below: Direction = "forward", above: Direction = "forward"
) -> HierarchyEncoder:
    words = TextEncoder(
        embedding=WordEmbedding(vocabulary=12, size=3),
        cell="lstm",
        size=4,
        direction=below,
        layers=2,
    )
    return HierarchyEncoder(words=words, size=5, direction=above, pool=pool).eval()


def alone(encoder: HierarchyEncoder, segment: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    """One segment: the states of its words, its vector, and the weights of its words."""
    if not segment:
        nothing = torch.zeros(encoder.output_size)
        return nothing[None][:0], nothing, nothing[:0]
    real = torch.ones(1, len(segment), dtype=torch.bool)
    states, last = encoder.words.rnn(encoder.words.embedding(torch.tensor([segment])), real)
    if encoder.pool is None:
        return states[0], last[0], torch.zeros(len(segment))
    query = encoder.pool.query.weight[0]
    scores = [
        torch.tanh(encoder.pool.key.weight @ state + encoder.pool.key.bias) @ query
        for state in states[0]
    ]
    raised = [math.exp(float(score)) for score in scores]
    weights = torch.tensor([one / sum(raised) for one in raised])
    return (
        states[0],
        sum((w * state for w, state in zip(weights, states[0], strict=True)), torch.zeros(())),
        weights,
    )


@pytest.mark.parametrize(
    ("pool", "below", "above"),
    [
        *product(("last", "attention"), ("forward", "both"), ("both",)),
        ("last", "backward", "backward"),
    ],
)
@torch.no_grad()
def test_a_hierarchy_equals_each_segment_encoded_alone(
    pool: Pool, below: Direction, above: Direction
) -> None:
    encoder, source = hierarchy(pool, below, above), padded(DOCUMENTS)
    found: Encoded = encoder(source)
    assert source.segments is not None
    assert len(source.segments.packs) > 1
    assert found.segments is not None
    assert (found.segments.weights is None) == (pool == "last")
    for row, document in enumerate(DOCUMENTS):
        states, vectors, weights = zip(
            *(alone(encoder, segment) for segment in [*document, []]), strict=True
        )
        length, count = sum(map(len, document)), len(document)
        torch.testing.assert_close(found.memory[row, :length], torch.cat(states))
        assert not found.memory[row, length:].any()
        assert found.segments.mask[row].tolist() == [number < count for number in range(3)]
        if found.segments.weights is not None:
            torch.testing.assert_close(found.segments.weights[row, :length], torch.cat(weights))
        if not count:
            assert not found.summary[row].any()
            assert not found.segments.memory[row].any()
            continue
        upper, last = encoder.rnn(
            torch.stack(vectors[:-1])[None], torch.ones(1, count, dtype=torch.bool)
        )
        torch.testing.assert_close(found.segments.memory[row, :count], upper[0])
        torch.testing.assert_close(found.summary[row], last[0])


@pytest.mark.parametrize("pool", ["last", "attention"])
def test_how_segments_are_packed_has_no_influence(pool: Pool) -> None:
    encoder = hierarchy(pool, "both")
    outputs = []
    for one in (False, True):
        found = encoder(padded(DOCUMENTS, one=one))
        encoder.zero_grad()
        (found.memory.square().sum() + found.summary.sum()).backward()
        learned = [
            weight.grad.clone() for weight in encoder.parameters() if weight.grad is not None
        ]
        level = (
            [found.segments.memory]
            if pool == "last"
            else [found.segments.memory, found.segments.weights]
        )
        outputs.append([found.memory, found.summary, *level, *learned])
    for several, together in zip(*outputs, strict=True):
        torch.testing.assert_close(several, together)


@pytest.mark.parametrize("pool", ["last", "attention"])
@pytest.mark.parametrize("documents", [[[], []], [[[]], []], [[[], []], [[], [5]]]])
def test_documents_without_words_are_encoded_as_zeros(documents: Documents, pool: Pool) -> None:
    """Not a word in a whole batch, or in all but one segment of it: for both levels."""
    encoder = hierarchy(pool, "both")
    bridges: list[Any] = [
        TwoLevelAttention(source_size=8, segment_size=5, state_size=6),
        AttentionPooling(source_size=8, segment_size=5, state_size=6),
    ]
    found = encoder(padded(documents))
    assert not found.memory[0].any()
    for bridge in bridges:
        prepared = bridge.start(found)
        context = bridge.step(torch.randn(2, 6), prepared)
        assert context.weights.sum(1).tolist() == [0.0, float(documents[1] == [[], [5]])]
        (prepared.first_state.sum() + context.vector.sum()).backward(retain_graph=True)
    for module in (encoder, *bridges):
        assert all(
            weight.grad is None or weight.grad.isfinite().all() for weight in module.parameters()
        )


def test_a_source_without_segments_is_refused() -> None:
    with pytest.raises(ShapeError) as error:
        hierarchy()(Padded.of([[5, 6]]))
    assert str(error.value) == (
        "encoder: hierarchy needs a source in segments, but this one has none. Set "
        "data.source.segments to "
        "sentences, lines or turns, or use encoder: text."
    )


def test_an_encoder_of_one_level_is_refused() -> None:
    with pytest.raises(ShapeError) as error:
        TwoLevelAttention(source_size=4, segment_size=0, state_size=3)
    assert str(error.value) == (
        "bridge: two_level attends to the segments of a text and to the words in them, but this "
        "encoder has only one "
        "level. Use encoder: hierarchy, or bridge: attention."
    )


def test_scores_of_any_size_give_a_softmax_in_each_segment() -> None:
    """Neither high nor low scores overflow; the gradient is that of a softmax in each segment."""
    of = torch.tensor([[0, 0, 1, 1, 2, 0]])
    mask = torch.tensor([[True, True, True, True, True, False]])
    level = SegmentLevel(torch.zeros(1, 4, 2), torch.ones(1, 4, dtype=torch.bool), of)
    scores = torch.tensor([[900.0, 901.0, -900.0, -903.0, 3e300, 3e300]], requires_grad=True)
    shared = softmax_in_segments(scores, mask, level)
    loops = torch.cat(
        [torch.softmax(scores[:, 2 * i : 2 * i + 2 - (i == 2)], 1) for i in range(3)], 1
    )
    torch.testing.assert_close(shared, nn.functional.pad(loops, (0, 1)))
    worth = torch.tensor([1.0, -2.0, 3.0, 0.5, 7.0])
    slopes = [torch.autograd.grad((one[:, :5] * worth).sum(), scores)[0] for one in (shared, loops)]
    torch.testing.assert_close(*slopes)
