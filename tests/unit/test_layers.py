"""Small layers against plain loops; pretrained vectors that stay; a tied output layer."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from sixjars.errors import ShapeError
from sixjars.flow.values import Encoded, Padded
from sixjars.kernels import products
from sixjars.kernels.products import key_powers, powers
from sixjars.model.bridges.initial import InitialState
from sixjars.model.decoders.sequence import SequenceDecoder
from sixjars.model.layers import (
    StateProjection,
    WordEmbedding,
    last_real,
    masked_softmax,
    reordered,
    reversal,
)

pytestmark = pytest.mark.usefixtures("in_64_bits")

RAGGED = torch.arange(4) < torch.tensor([4, 1, 3, 0])[:, None]


@pytest.mark.parametrize(("dtype", "within"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("largest", [(1.0, 1.0), (10.0, 20.0), (5.0, 300.0), (5.0, 1e4)])
def test_powers_make_a_tanh(
    largest: tuple[float, float], dtype: torch.dtype, within: float
) -> None:
    keys, queries = largest[0] * torch.rand(2, 3, 5), largest[1] * torch.randn(4, 2, 5)
    keys, queries = keys.to(dtype), queries.to(dtype)
    for sign in (1.0, -1.0):
        raised = key_powers(sign * keys)
        assert raised is not None
        for query in [*queries, -sign * keys[:, 0]]:
            found = 1 - 2 / (1 + raised * powers(query).unsqueeze(1))
            torch.testing.assert_close(
                found, torch.tanh(sign * keys + query.unsqueeze(1)), atol=within, rtol=within
            )


@pytest.mark.parametrize(
    "keys", [torch.full((1, 2, 3), 30.0), torch.ones(1, 2, 3).bfloat16(), torch.ones(1, 0, 3)]
)
def test_keys_that_are_large_or_of_few_bits_or_none_have_no_powers(keys: Tensor) -> None:
    assert key_powers(keys) is None


def as_they_are(matrix: Tensor) -> Tensor:
    return matrix


def turned(matrix: Tensor) -> Tensor:
    return matrix.t().contiguous().t()


def with_gaps(matrix: Tensor) -> Tensor:
    return torch.cat([matrix, matrix], dim=1)[:, : matrix.shape[1]]


@pytest.mark.parametrize("laid", [as_they_are, turned, with_gaps])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_products_by_onednn_are_those_of_torch(
    count: int, laid: Callable[[Tensor], Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the order of the numbers in memory; for gradients see contracts/test_fast.py."""
    monkeypatch.setattr(products, "FEWEST_ONCE", 1)
    torch.set_default_dtype(torch.float32)
    rows = laid(torch.randn(count, 5))
    weight = laid(torch.randn(6, 5))
    bias = torch.randn(6)
    total = torch.randn(count, 6)
    torch.testing.assert_close(products.product(rows, weight, bias), rows @ weight.t() + bias)
    torch.testing.assert_close(
        products.product(rows, weight, total=total), rows @ weight.t() + total
    )
    nothing = torch.zeros(count, 0), torch.zeros(6, 0)
    torch.testing.assert_close(products.product(*nothing, bias, total=total), total + bias)
    for left, right in [(rows, total), (total, rows)]:
        torch.testing.assert_close(products.outer_products(left, right), left.t() @ right)


@pytest.mark.parametrize("shape", [(7, 5), (2, 7, 5), (2, 0, 5)])
@pytest.mark.parametrize("learned", [(True, True, True), (False, True, True), (True, False, False)])
def test_a_linear_layer_is_that_of_torch(
    learned: tuple[bool, ...], shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "FEWEST_ONCE", 1)
    torch.set_default_dtype(torch.float32)
    given = [
        torch.randn(size).requires_grad_(learns)
        for size, learns in zip([shape, (6, 5), (6,)], learned, strict=True)
    ]
    wanted = [one for one in given if one.requires_grad]
    made, expected = products.linear(*given), torch.nn.functional.linear(*given)
    torch.testing.assert_close(made, expected)
    ours, theirs = (torch.autograd.grad(one.square().sum(), wanted) for one in (made, expected))
    torch.testing.assert_close(ours, theirs)


def test_masked_softmax_is_a_softmax_of_the_real_places() -> None:
    scores = 30 * torch.randn(4, 4)
    weights = masked_softmax(scores, RAGGED)
    for row in range(4):
        real = [place for place in range(4) if RAGGED[row, place]]
        highest = max((float(scores[row, place]) for place in real), default=0.0)
        total = sum(math.exp(float(scores[row, place]) - highest) for place in real)
        for place in range(4):
            wanted = math.exp(float(scores[row, place]) - highest) / total if place in real else 0.0
            assert float(weights[row, place]) == pytest.approx(wanted, abs=1e-12)
            assert place in real or float(weights[row, place]) == 0.0


@pytest.mark.parametrize("huge", [1e30, -1e30])
def test_masked_softmax_bears_extreme_scores(huge: float) -> None:
    scores = torch.full((4, 4), huge, requires_grad=True)
    weights = masked_softmax(scores, RAGGED)
    weights.square().sum().backward()  # type: ignore[no-untyped-call]
    torch.testing.assert_close(weights.sum(1), torch.tensor([1.0, 1.0, 1.0, 0.0]))
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_masked_softmax_in_half_precision(dtype: torch.dtype) -> None:
    weights = masked_softmax(torch.zeros(4, 4, dtype=dtype), RAGGED)
    assert weights.dtype == dtype
    assert weights.tolist()[:2] == [[0.25] * 4, [1.0, 0.0, 0.0, 0.0]]
    assert weights.tolist()[3] == [0.0] * 4


def test_reversal_turns_each_row_within_its_length() -> None:
    values = torch.randn(4, 4, 2)
    turned = reordered(values, reversal(RAGGED))
    for row, length in enumerate([4, 1, 3, 0]):
        assert turned[row, :length].tolist() == values[row, :length].tolist()[::-1]
        assert torch.equal(turned[row, length:], values[row, length:])
    assert torch.equal(reordered(turned, reversal(RAGGED)), values)


def test_last_real_of_each_row() -> None:
    values = torch.randn(4, 4, 2)
    found = last_real(values, RAGGED)
    assert torch.equal(
        found, torch.stack([values[0, 3], values[1, 0], values[2, 2], torch.zeros(2)])
    )


VECTORS = (torch.tensor([1, 3]), torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64))


OPTIMIZERS = pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.AdamW])


def trained(words: WordEmbedding, ids: Tensor, kind: type[torch.optim.Adam]) -> None:
    """Many strong updates, with weight decay on everything that has a gradient."""
    optimizer = kind(words.parameters(), lr=0.1, weight_decay=0.3)
    for _ in range(20):
        optimizer.zero_grad()
        (words(ids) - 7.0).square().sum().backward()
        optimizer.step()


@OPTIMIZERS
def test_frozen_vectors_do_not_move_and_the_others_do(optimizer: type[torch.optim.Adam]) -> None:
    words, ids = WordEmbedding(vocabulary=5, size=2, frozen=True, vectors=VECTORS), torch.arange(5)
    before = words(ids).detach().clone()
    assert before[[1, 3]].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    trained(words, ids, optimizer)
    after = words(ids).detach()
    assert torch.equal(after[[1, 3]], before[[1, 3]])
    assert torch.equal(words.matrix()[[1, 3]], before[[1, 3]])
    assert (after[[0, 2, 4]] != before[[0, 2, 4]]).all()


@OPTIMIZERS
def test_other_pretrained_vectors_begin_there_and_move(optimizer: type[torch.optim.Adam]) -> None:
    words, ids = WordEmbedding(vocabulary=5, size=2, vectors=VECTORS), torch.arange(5)
    assert words(ids)[[1, 3]].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    trained(words, ids, optimizer)
    assert (words(ids)[[1, 3]] != VECTORS[1]).all()


@pytest.mark.parametrize("frozen", [True, False])
def test_the_matrix_is_all_vectors(frozen: bool) -> None:
    words = WordEmbedding(vocabulary=5, size=2, frozen=frozen, vectors=VECTORS)
    assert torch.equal(words.matrix(), words(torch.arange(5)))
    assert words(torch.tensor([[0, 1], [4, 3]])).shape == (2, 2, 2)


def test_dropout_is_for_training_only() -> None:
    words = WordEmbedding(vocabulary=5, size=200, dropout=0.5)
    assert (words(torch.tensor([1])) == 0).any()
    assert (words.eval()(torch.tensor([1])) != 0).all()


def test_vectors_of_another_size_are_refused() -> None:
    with pytest.raises(ShapeError) as error:
        WordEmbedding(vocabulary=5, size=3, vectors=VECTORS)
    assert str(error.value) == "embedding.size is 3, but the word vectors have 2 numbers."


def test_initial_state_by_copy_and_by_projection() -> None:
    summary = torch.randn(2, 3)
    copied = StateProjection(summary_size=3, state_size=3, state_count=2, start="copy")
    assert torch.equal(copied(summary), torch.cat([summary, summary], dim=1))
    assert copied.equations() == ["d_0 = [h_T, h_T]"]
    made = StateProjection(summary_size=3, state_size=5, state_count=2, start="linear")
    assert made.project is not None
    weight, bias = made.project.weight.tolist(), made.project.bias.tolist()
    for row in range(2):
        for unit in range(10):
            total = bias[unit] + sum(
                w * x for w, x in zip(weight[unit], summary[row].tolist(), strict=True)
            )
            assert float(made(summary).detach()[row, unit]) == pytest.approx(
                math.tanh(total), abs=1e-12
            )
    assert made.equations() == ["d_0 = tanh(W_0 h_T + b_0)"]


def test_copying_needs_equal_sizes() -> None:
    with pytest.raises(ShapeError) as error:
        StateProjection(summary_size=6, state_size=4, state_count=1, start="copy")
    assert str(error.value) == (
        "start: copy needs a summary of the decoder's hidden size, but they have 6 and 4 numbers. "
        "Make them equal, or use start: linear."
    )


@pytest.mark.parametrize("frozen", [True, False])
def test_a_tied_output_multiplies_by_the_embeddings(frozen: bool) -> None:
    words = WordEmbedding(vocabulary=5, size=2, frozen=frozen, vectors=VECTORS)
    bridge = InitialState(summary_size=2, state_size=2)
    decoder = SequenceDecoder(bridge=bridge, embedding=words, cell="rnn", size=2, tied=True).eval()
    assert [name for name, _ in decoder.named_parameters() if name.startswith("output")] == [
        "output.bias"
    ]
    source = Encoded(torch.zeros(1, 1, 2), torch.ones(1, 1, dtype=torch.bool), torch.randn(1, 2))
    logits = decoder.teach(source, Padded.of([[4, 3]])).logits
    state = decoder.step(torch.tensor([1]), *decoder.start(source))[1].hidden[0, 0]
    wanted = (
        torch.stack([state @ words(torch.tensor(word)) for word in range(5)]) + decoder.output.bias
    )
    torch.testing.assert_close(logits[0, 0], wanted)


def test_tying_needs_equal_sizes() -> None:
    bridge = InitialState(summary_size=4, state_size=4)
    with pytest.raises(ShapeError) as error:
        SequenceDecoder(
            bridge=bridge, embedding=WordEmbedding(vocabulary=9, size=3), size=4, tied=True
        )
    assert str(error.value) == (
        "tied: true needs embeddings of the hidden size, but decoder.size is 4 and "
        "decoder.embedding.size is 3. "
        "Make them equal, or use tied: false."
    )
