"""The compiled kernels compute what torch does: odd sizes, padding, no rows, gaps between rows."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from sixjars.flow.backend import AttentionSources
from sixjars.flow.values import LinearLogits
from sixjars.kernels import compiled
from sixjars.kernels.backends import CompiledBackend
from sixjars.kernels.compiled import COMPILED, CompiledAdditive, CompiledGRU, KernelLibrary
from sixjars.kernels.output_loss import loss_gradient
from sixjars.kernels.steps import CELLS, AdditiveAttention, BatchAttention, Cell
from sixjars.model.reference import STEPS

from . import backend_checks
from .backend_checks import of_decoder
from .decoder_cases import CASES as DECODERS

WITHIN = 1e-5
GATES = {"gru": 3, "lstm": 4}
SHAPES = [(5, 7), (1, 1), (0, 4), (2, 3, 33), (2, 0, 5), (1, 4, 130)]
"""Of states, (B, H) or (K, B, H)."""


@pytest.fixture
def kernels() -> KernelLibrary:
    return backend_checks.compiled().kernels


def near(found: Tensor, expected: Tensor) -> None:
    assert found.shape == expected.shape
    assert torch.isfinite(found).all()
    assert (found - expected).norm() <= WITHIN * expected.norm() + 1e-7


def gapped(*shape: int) -> Tensor:
    """A tensor whose rows have a gap between them."""
    return torch.randn(*shape[:-1], shape[-1] + 3)[..., : shape[-1]]


def step_of(
    cell: Cell,
    shape: tuple[int, ...],
    gates: int,
    summands: int,
    make: Callable[..., Tensor],
) -> list[Tensor]:
    """One step and back with random numbers, the same whatever the cell is."""
    torch.manual_seed(1)
    wide, outer = (*shape[:-1], gates * shape[-1]), shape[:-2]
    given = tuple(make(*wide) for _ in range(summands))
    recurrent = (make(*wide), torch.randn(*outer, wide[-1]))[:summands]
    hidden, memory, after = make(*shape), make(*shape), torch.empty(shape)
    kept, saved = cell.forward(given, recurrent, hidden, memory, after)
    d_given, d_recurrent = torch.zeros(wide), torch.zeros(*wide[:-1], wide[-1] + 2)[..., : wide[-1]]
    d_after = tuple(make(*shape) for _ in range(summands))
    back = cell.backward(
        d_after, make(*shape) if summands > 1 else None, saved, d_given, d_recurrent
    )
    return [one for one in (after, kept, d_given, d_recurrent, *back) if one is not None]


@pytest.mark.parametrize("make", [torch.randn, gapped])
@pytest.mark.parametrize("summands", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", GATES)
def test_cells(
    name: str,
    shape: tuple[int, ...],
    summands: int,
    make: Callable[..., Tensor],
    kernels: KernelLibrary,
) -> None:
    ours, theirs = (
        step_of(cell, shape, GATES[name], summands, make)
        for cell in (COMPILED[name](kernels), CELLS[name])
    )
    for found, expected in zip(ours, theirs, strict=True):
        near(found, expected)


@pytest.mark.parametrize("count", [3, 4])
@pytest.mark.parametrize("name", GATES)
def test_more_summands_of_a_gradient(name: str, count: int, kernels: KernelLibrary) -> None:
    wide, found = 5 * GATES[name], []
    given, recurrent, hidden, memory = (torch.randn(4, size) for size in (wide, wide, 5, 5))
    d_after = [torch.randn(4, 5) for _ in range(count)]
    for parts in (tuple(d_after), (sum(d_after, torch.zeros(())),)):
        cell, room = COMPILED[name](kernels), (torch.zeros(4, wide), torch.zeros(4, wide))
        saved = cell.forward((given,), (recurrent,), hidden, memory, torch.empty(4, 5))[1]
        back = cell.backward(parts, None, saved, *room)
        found.append([*room, *(one for one in back if one is not None)])
    for one, other in zip(*found, strict=True):
        near(one, other)


def attention_of(
    kind: Callable[[AttentionSources, int], BatchAttention],
    sizes: tuple[int, int, int, int],
    largest: float,
) -> list[Tensor]:
    """Three steps and back; the last row has nothing to attend to, others have padding."""
    torch.manual_seed(2)
    rows, positions, size, width = sizes
    keys, memory = largest * torch.randn(rows, positions, size), torch.randn(rows, positions, width)
    mask = torch.arange(positions) < torch.arange(rows).flip(0).mul(2).unsqueeze(1)
    sources = AttentionSources(
        keys, memory.transpose(0, 1).contiguous().transpose(0, 1), mask, torch.randn(size)
    )
    attending, queries = kind(sources, 3), gapped(3, rows, size)
    d_queries = torch.zeros(3, rows, size + 5)[..., :size]
    for at in range(3):
        attending.forward(at, queries[at])
    attending.d_contexts.copy_(torch.randn(3, rows, width))
    extra = torch.randn(3, rows, positions)
    for at in reversed(range(3)):
        attending.backward(at, queries, extra[at] if at else None, d_queries[at])
    d_keys, d_score = attending.key_gradients(queries)
    assert d_score is not None
    return [
        attending.contexts,
        attending.weights,
        d_queries,
        d_keys,
        d_score,
        attending.memory_gradient(),
    ]


@pytest.mark.parametrize("largest", [1.0, 30.0])
@pytest.mark.parametrize(
    "sizes", [(4, 6, 5, 7), (1, 1, 1, 1), (3, 0, 4, 5), (0, 3, 4, 5), (9, 21, 130, 33)]
)
def test_attention(
    sizes: tuple[int, int, int, int], largest: float, kernels: KernelLibrary
) -> None:
    """Also with keys so large that powers of them would not be exact."""
    ours = attention_of(
        lambda sources, count: CompiledAdditive(sources, count, kernels), sizes, largest
    )
    for found, expected in zip(ours, attention_of(AdditiveAttention, sizes, largest), strict=True):
        near(found, expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("shape", [(6, 7), (1, 1), (5, 4001), (3, 64)])
def test_cross_entropy(shape: tuple[int, int], smoothing: float, kernels: KernelLibrary) -> None:
    logits = 5 * torch.randn(shape)
    truth = torch.randint(shape[1], shape[:1])
    factor = torch.rand(shape[0])
    results = compiled.loss_gradient(logits.clone(), truth, factor, smoothing, kernels)
    for found, expected in zip(
        results, loss_gradient(logits, truth, factor, smoothing), strict=True
    ):
        near(found, expected)


def test_tokens_that_are_not_in_the_vocabulary_are_refused(kernels: KernelLibrary) -> None:
    backend = CompiledBackend(kernels)
    for token in (-1, 5):
        with pytest.raises(RuntimeError, match="index"):
            backend.loss_gradient(torch.randn(2, 5), torch.tensor([0, token]), torch.ones(2), 0.0)
    nothing = torch.randn(0, 5), torch.zeros(0).long(), torch.ones(0), 0.0
    assert [len(part) for part in backend.loss_gradient(*nothing)] == [0] * 3


def test_what_is_not_a_number_stays_so(kernels: KernelLibrary) -> None:
    for wrong in (float("nan"), float("inf")):
        logits = torch.tensor([[0.0, wrong, 1.0], [0.0, 1.0, 2.0]])
        truth = torch.tensor([0, 1])
        loss_N, plain_N, _ = compiled.loss_gradient(logits, truth, torch.ones(2), 0.1, kernels)
        assert not torch.isfinite(loss_N[0])
        assert not torch.isfinite(plain_N[0])
        assert torch.isfinite(loss_N[1])
    for name, gates in GATES.items():
        after, given = torch.empty(1, 2), torch.zeros(1, 2 * gates)
        given[:] = float("nan")
        COMPILED[name](kernels).forward(
            (given,), (given,), torch.zeros(1, 2), torch.zeros(1, 2), after
        )
        assert torch.isnan(after).all()


def test_large_numbers(kernels: KernelLibrary) -> None:
    """Gates that are closed or open to the last bit."""
    given = torch.tensor([[-1e4, -100.0, -30.0, 30.0, 100.0, 1e4] * 4])
    for name, gates in GATES.items():
        ends = []
        for cell in (COMPILED[name](kernels), CELLS[name]):
            after, own = torch.empty(1, 6), given[:, : 6 * gates]
            cell.forward(
                (own,), (torch.zeros_like(own),), torch.ones(1, 6), torch.ones(1, 6), after
            )
            ends.append(after)
        torch.testing.assert_close(*ends)


@pytest.mark.parametrize("rows", [0, 1, 9])
@pytest.mark.parametrize("cell", GATES)
def test_steps_in_use(cell: str, rows: int, kernels: KernelLibrary) -> None:
    wide = GATES[cell] * 5
    given = gapped(rows, wide)
    recurrent = gapped(rows, wide)
    hidden = gapped(rows, 5)
    memory = gapped(rows, 5)
    before = hidden, memory if cell == "lstm" else None
    made = compiled.step(cell, given, recurrent, before, kernels)
    expected = STEPS[cell](given, recurrent, before)
    assert made is not None
    near(made[0], expected[0])
    assert (made[1] is None) is (expected[1] is None)
    if made[1] is not None and expected[1] is not None:
        near(made[1], expected[1])


@pytest.mark.parametrize("cell", GATES)
def test_whole_decoders(cell: str, kernels: KernelLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    name = next(one for one in DECODERS if f"-{cell}" in one and "additive" in one)
    used = set[str]()
    run = kernels.run

    def noted(kernel: str, *fields: object) -> None:
        used.add(kernel)
        run(kernel, *fields)

    monkeypatch.setattr(kernels, "run", noted)
    of_decoder(DECODERS[name], CompiledBackend(kernels), "32")
    assert used >= {"attend", "attend_back", cell, f"{cell}_back"}


def test_kernels_are_for_32_bits_on_a_cpu(kernels: KernelLibrary) -> None:
    backend = CompiledBackend(kernels)
    for like in (torch.zeros(1), nn.Parameter(torch.zeros(1))):
        assert type(backend.cell_for("gru", like)) is CompiledGRU
    for like in (torch.zeros(1).double(), torch.zeros(1, device="meta")):
        assert backend.cell_for("gru", like) is CELLS["gru"]
    assert backend.cell_for("rnn", torch.zeros(1)) is CELLS["rnn"]


def test_a_result_does_not_depend_on_the_number_of_threads(kernels: KernelLibrary) -> None:
    states, weight, bias = torch.randn(64, 25, 8), torch.randn(300, 8), torch.randn(300)
    truth, factor, found = torch.randint(300, (64, 25)), torch.ones(64, 25), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(
                [
                    *attention_of(
                        lambda sources, count: CompiledAdditive(sources, count, kernels),
                        (64, 9, 40, 8),
                        1.0,
                    )[:5],
                    *step_of(COMPILED["gru"](kernels), (64, 80), 3, 2, torch.randn),
                    *step_of(COMPILED["lstm"](kernels), (64, 80), 4, 2, torch.randn),
                    compiled.loss_gradient(
                        torch.ones(64, 300).cumsum(1), truth[:, 0], factor[:, 0], 0.1, kernels
                    )[2],
                ]
            )
    finally:
        torch.set_num_threads(1)
    output_loss = CompiledBackend(kernels).output_loss
    assert output_loss(LinearLogits(states, weight, bias), truth, factor, 0.0)[0].isfinite()
    for others in found[1:]:
        assert all(torch.equal(one, other) for one, other in zip(found[0], others, strict=True))
