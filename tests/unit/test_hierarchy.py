"""Hierarchies against loops: each part read alone, each word weighed by hand; and what looks at both levels."""

import math
from itertools import product
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sixjars.data.packing import packed
from sixjars.errors import ShapeError
from sixjars.flow.contracts import Bridge
from sixjars.flow.values import Encoded, Padded, SegmentLevel, Segments
from sixjars.model.bridges.pooling import AttentionPooling
from sixjars.model.bridges.two_level import TwoLevelAttention, softmax_in_parts
from sixjars.model.encoders.hierarchy import HierarchyEncoder
from sixjars.model.encoders.text import TextEncoder
from sixjars.model.layers import WordEmbedding
from sixjars.model.recurrent import Direction

Documents = list[list[list[int]]]
Pool = Literal["last", "attention"]
DOCUMENTS: Documents = [[[5, 6], [7], [8, 4, 10, 9, 9, 5]], [[9]], [], [[4, 10], [], [11, 5, 6]]]
"""The third has no part, the last has a part without a word."""


def padded(documents: Documents, *, one: bool = False) -> Padded:
    """Packed as batches are, or all parts in one rectangle, row by row."""
    flat = Padded.of([[word for part in document for word in part] for document in documents])
    lengths = [len(part) for document in documents for part in document]
    parts = packed(np.array(lengths, dtype=np.int64), np.array([len(document) for document in documents]))
    if one:
        longest, starts = max(lengths), [row * flat.mask.shape[1] for row in range(len(documents))]
        pack, home = torch.full((len(lengths), longest), -1), torch.full_like(parts.home, -1)
        back, number = torch.zeros_like(parts.back), 0
        for row, document in enumerate(documents):
            for place, part in enumerate(document):
                home[row, place] = number
                for at in range(len(part)):
                    pack[number, at] = starts[row]
                    back.view(-1)[starts[row]] = number * longest + at
                    starts[row] += 1
                number += 1
        parts = Segments((pack,), home, back, parts.of)
    return Padded(flat.values, flat.mask, parts)


def hierarchy(pool: Pool = "last", below: Direction = "forward", above: Direction = "forward") -> HierarchyEncoder:
    words = TextEncoder(embedding=WordEmbedding(vocabulary=12, size=3), cell="lstm", size=4, direction=below, layers=2)
    return HierarchyEncoder(words=words, size=5, direction=above, pool=pool).eval()


def alone(encoder: HierarchyEncoder, part: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    """One part: the states of its words, its vector, and how it weighs them."""
    if not part:
        nothing = torch.zeros(encoder.output_size)
        return nothing[None][:0], nothing, nothing[:0]
    real = torch.ones(1, len(part), dtype=torch.bool)
    states, last = encoder.words.reading(encoder.words.embedding(torch.tensor([part])), real)
    if encoder.look is None:
        return states[0], last[0], torch.zeros(len(part))
    asked = encoder.look.question.weight[0]
    scores = [torch.tanh(encoder.look.key.weight @ state + encoder.look.key.bias) @ asked for state in states[0]]
    raised = [math.exp(float(score)) for score in scores]
    weights = torch.tensor([one / sum(raised) for one in raised])
    return states[0], sum((w * state for w, state in zip(weights, states[0], strict=True)), torch.zeros(())), weights


@pytest.mark.parametrize(
    ("pool", "below", "above"),
    [*product(("last", "attention"), ("forward", "both"), ("both",)), ("last", "backward", "backward")],
)
@torch.no_grad()
def test_a_hierarchy_equals_reading_each_part_alone(pool: Pool, below: Direction, above: Direction) -> None:
    encoder, source = hierarchy(pool, below, above), padded(DOCUMENTS)
    said: Encoded = encoder(source)
    assert source.parts is not None
    assert len(source.parts.packs) > 1
    assert said.above is not None
    assert (said.above.within is None) == (pool == "last")
    for row, document in enumerate(DOCUMENTS):
        states, vectors, weights = zip(*(alone(encoder, part) for part in [*document, []]), strict=True)
        length, parts = sum(map(len, document)), len(document)
        torch.testing.assert_close(said.memory[row, :length], torch.cat(states))
        assert not said.memory[row, length:].any()
        assert said.above.mask[row].tolist() == [number < parts for number in range(3)]
        if said.above.within is not None:
            torch.testing.assert_close(said.above.within[row, :length], torch.cat(weights))
        if not parts:
            assert not said.summary[row].any()
            assert not said.above.memory[row].any()
            continue
        upper, last = encoder.reading(torch.stack(vectors[:-1])[None], torch.ones(1, parts, dtype=torch.bool))
        torch.testing.assert_close(said.above.memory[row, :parts], upper[0])
        torch.testing.assert_close(said.summary[row], last[0])


@pytest.mark.parametrize("pool", ["last", "attention"])
def test_how_parts_are_packed_is_not_seen(pool: Pool) -> None:
    encoder = hierarchy(pool, "both")
    found = []
    for one in (False, True):
        said = encoder(padded(DOCUMENTS, one=one))
        encoder.zero_grad()
        (said.memory.square().sum() + said.summary.sum()).backward()
        learned = [weight.grad.clone() for weight in encoder.parameters() if weight.grad is not None]
        level = [said.above.memory] if pool == "last" else [said.above.memory, said.above.within]
        found.append([said.memory, said.summary, *level, *learned])
    for several, together in zip(*found, strict=True):
        torch.testing.assert_close(several, together)


@pytest.mark.parametrize("pool", ["last", "attention"])
@pytest.mark.parametrize("documents", [[[], []], [[[]], []], [[[], []], [[], [5]]]])
def test_documents_without_words_are_read_as_zeros(documents: Documents, pool: Pool) -> None:
    """Not a word in a whole batch, or in all but one part of it: for both levels, and for what looks at them."""
    encoder = hierarchy(pool, "both")
    bridges: list[Any] = [
        TwoLevelAttention(source_size=8, segment_size=5, state_size=6),
        AttentionPooling(source_size=8, segment_size=5, state_size=6),
    ]
    said = encoder(padded(documents))
    assert not said.memory[0].any()
    for bridge in bridges:
        prepared = bridge.start(said)
        context = bridge.step(torch.randn(2, 6), prepared)
        assert context.weights.sum(1).tolist() == [0.0, float(documents[1] == [[], [5]])]
        (prepared.first.sum() + context.vector.sum()).backward(retain_graph=True)
    for part in (encoder, *bridges):
        assert all(weight.grad is None or weight.grad.isfinite().all() for weight in part.parameters())


def test_a_source_without_parts_is_refused() -> None:
    with pytest.raises(ShapeError) as error:
        hierarchy()(Padded.of([[5, 6]]))
    assert str(error.value) == (
        "encoder: hierarchy needs a source in parts, but this one has none. Set data.source.parts to sentences, lines "
        "or turns, or use encoder: text."
    )


def test_an_encoder_of_one_level_is_refused() -> None:
    with pytest.raises(ShapeError) as error:
        TwoLevelAttention(source_size=4, segment_size=0, state_size=3)
    assert str(error.value) == (
        "bridge: two_level looks at the parts of a text and at the words in them, but this encoder has only one level. "
        "Use encoder: hierarchy, or bridge: attention."
    )


def raised(query: Tensor, vector: Tensor, score: Any) -> float:
    """exp(Vᵀ tanh(U s + W x))."""
    hidden = torch.tanh(score.query.weight @ query + score.key.weight @ vector)
    return math.exp(float(score.score.weight[0] @ hidden))


@torch.no_grad()
def test_two_levels_equal_nested_loops() -> None:
    """β over the parts that have words, α over the words of each; the products add up to 1."""
    bridge, said = (
        TwoLevelAttention(source_size=4, segment_size=5, state_size=6, size=3),
        hierarchy()(padded(DOCUMENTS)),
    )
    for weight in bridge.parameters():
        weight.copy_(2 * torch.randn_like(weight))
    query = torch.randn(4, 6)
    context = bridge.step(query, bridge.start(said))
    assert said.above is not None
    assert context.weights is not None
    for row, document in enumerate(DOCUMENTS):
        shares = {
            i: raised(query[row], said.above.memory[row, i], bridge.parts) for i, part in enumerate(document) if part
        }
        wanted: list[float] = []
        for i, part in enumerate(document):
            below = [raised(query[row], said.memory[row, len(wanted) + j], bridge.words) for j in range(len(part))]
            wanted += [shares[i] / sum(shares.values()) * one / sum(below) for one in below]
        assert sum(wanted) == pytest.approx(1.0 if document else 0.0)
        assert context.weights[row].tolist() == pytest.approx(wanted + [0.0] * (9 - len(wanted)), abs=1e-6)
        mixed = sum((w * h for w, h in zip(wanted, said.memory[row], strict=False)), torch.zeros(4))
        torch.testing.assert_close(context.vector[row], mixed)


@pytest.mark.parametrize("pool", ["last", "attention"])
@torch.no_grad()
def test_pooling_over_parts_equals_nested_loops(pool: Pool) -> None:
    """With attention below it is the hierarchical attention network: s = Σ_i α_i g_i, a word weighs α_i α_ij."""
    bridge = AttentionPooling(source_size=4, segment_size=5, state_size=5, size=3, start="copy")
    encoder = hierarchy(pool)
    said: Encoded = encoder(padded(DOCUMENTS))
    prepared = bridge.start(said)
    weights = bridge.step(torch.randn(4, 5), prepared).weights
    assert said.above is not None
    assert weights is not None
    for row, document in enumerate(DOCUMENTS):
        keys = torch.tanh(said.above.memory[row] @ bridge.key.weight.T + bridge.key.bias) @ bridge.question.weight[0]
        shares = [math.exp(float(keys[i])) if part else 0.0 for i, part in enumerate(document)]
        shares = [share / sum(shares) for share in shares]
        mixed = sum((share * g for share, g in zip(shares, said.above.memory[row], strict=False)), torch.zeros(5))
        torch.testing.assert_close(prepared.first[row], mixed)
        wanted: list[float] = []
        for share, part in zip(shares, document, strict=True):
            within = alone(encoder, part)[2].tolist() if pool == "attention" else [1 / len(part) for _ in part]
            wanted += [share * one for one in within]
        assert weights[row].tolist() == pytest.approx(wanted + [0.0] * (9 - len(wanted)), abs=1e-6)


def test_scores_of_any_height_are_shared_in_parts() -> None:
    """Neither high nor low scores overflow, padding least of all; the gradient is that of a softmax for each part."""
    of, mask = torch.tensor([[0, 0, 1, 1, 2, 0]]), torch.tensor([[True, True, True, True, True, False]])
    above = SegmentLevel(torch.zeros(1, 4, 2), torch.ones(1, 4, dtype=torch.bool), of)
    scores = torch.tensor([[900.0, 901.0, -900.0, -903.0, 3e38, 3e38]], requires_grad=True)
    shared = softmax_in_parts(scores, mask, above)
    loops = torch.cat([torch.softmax(scores[:, 2 * i : 2 * i + 2 - (i == 2)], 1) for i in range(3)], 1)
    torch.testing.assert_close(shared, nn.functional.pad(loops, (0, 1)))
    worth = torch.tensor([1.0, -2.0, 3.0, 0.5, 7.0])
    found = [torch.autograd.grad((one[:, :5] * worth).sum(), scores)[0] for one in (shared, loops)]
    torch.testing.assert_close(*found)


def test_a_hierarchy_tells_both_levels_apart() -> None:
    words = TextEncoder(embedding=WordEmbedding(vocabulary=9, size=3), cell="rnn", size=4)
    encoder = HierarchyEncoder(words=words, cell="lstm", size=5, direction="both", pool="attention")
    assert encoder.equations() == [
        "h_ij = tanh(U e(x_ij) + W h_{i,j-1} + b)",
        "h_iT is the state after the last word",
        "u_ij = tanh(W_w h_ij + b_w),  α_ij = softmax_j(u_ijᵀ u_w)",
        "s_i = Σ_j α_ij h_ij",
        "o_i, i_i, f_i = σ(U_· s_i + W_· g_{i-1} + b_·)",
        "c̃_i = tanh(U s_i + W g_{i-1} + b)",
        "c_i = f_i ⊙ c_{i-1} + i_i ⊙ c̃_i,  g_i = o_i ⊙ tanh(c_i)",
        "g_i = [g→_i, g←_i],  g_K = [g→_K, g←_1]",
        "h_T = g_K",
    ]
    assert HierarchyEncoder(words=words, cell="rnn").equations()[2:] == [
        "s_i = h_iT",
        "g_i = tanh(U s_i + W g_{i-1} + b)",
        "g_K is the state after the last part",
        "h_T = g_K",
    ]
    above: Bridge = AttentionPooling(source_size=4, segment_size=5, state_size=5, start="copy")
    assert above.equations() == [
        "u_i = tanh(W_att g_i + b_att),  α_i = softmax_i(u_iᵀ u)",
        "h_T = Σ_i α_i g_i",
        "s_0 = h_T",
    ]
