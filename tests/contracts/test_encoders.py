"""What every encoder promises. A new encoder adds one line to CASES."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import final, get_args

import pytest
import torch
from torch import Tensor, nn

from sixjars.flow import Encoded, Encoder, Padded
from sixjars.model.cells import CellName
from sixjars.model.encoders import ENCODERS
from sixjars.model.encoders.nothing import NothingEncoder
from sixjars.model.encoders.text import Direction, TextEncoder

from .promises import JUNK, ROWS, exported, gradients, nameless, reloaded, stretched, unlearned, weighed, words


def _text(cell: CellName, direction: Direction, layers: int) -> Callable[[], Encoder]:
    return lambda: TextEncoder(embedding=words(), cell=cell, size=3, layers=layers, direction=direction, dropout=0.2)


EVERY_TEXT = {
    f"text-{cell}-{direction}-{layers}": _text(cell, direction, layers)
    for cell, direction, layers in product(get_args(CellName), get_args(Direction), (1, 2))
}

CASES: dict[str, Callable[[], Encoder]] = {
    "none": lambda: NothingEncoder(size=6),
    "text-frozen-vectors": lambda: TextEncoder(embedding=words(frozen=True), size=3, direction="both"),
    **EVERY_TEXT,
}


@pytest.fixture(params=CASES)
def make(request: pytest.FixtureRequest) -> Callable[[], Encoder]:
    return CASES[request.param]


@pytest.fixture
def encoder(make: Callable[[], Encoder]) -> Encoder:
    return make().eval()


@pytest.fixture
def source() -> Padded:
    return stretched(Padded.of(list(ROWS)), 0)


def test_every_encoder_has_a_case() -> None:
    covered = {type(make()) for make in CASES.values()}
    assert covered == set(ENCODERS.values())
    assert len(EVERY_TEXT) == 18


def test_sizes_are_as_announced(encoder: Encoder, source: Padded) -> None:
    said: Encoded = encoder(source)
    positions = source.mask.shape[1] if encoder.attendable else 0
    assert said.memory.shape == (3, positions, encoder.output_size)
    assert said.summary.shape == (3, encoder.output_size)
    assert torch.equal(said.mask, source.mask[:, :positions])


def test_padding_is_invisible(encoder: Encoder, source: Padded) -> None:
    short, long = encoder(source), encoder(stretched(source, 4))
    positions = short.memory.shape[1]
    torch.testing.assert_close(long.memory[:, :positions], short.memory)
    torch.testing.assert_close(long.summary, short.summary)
    assert not long.memory[~long.mask].any()
    assert not short.memory[~short.mask].any()


def test_padding_is_invisible_to_gradients(encoder: Encoder, source: Padded) -> None:
    short = encoder(source)
    before = gradients(encoder, weighed(short.memory[short.mask], short.summary))
    long = encoder(stretched(source, 4))
    everything = weighed(long.memory[long.mask], long.summary) + long.memory[~long.mask].sum()
    after = gradients(encoder, everything)
    for name, gradient in before.items():
        torch.testing.assert_close(after[name], gradient)


def test_rows_do_not_see_each_other(encoder: Encoder, source: Padded) -> None:
    together = encoder(source)
    for row, ids in enumerate(ROWS):
        own = encoder(Padded.of([ids]))
        torch.testing.assert_close(together.summary[row], own.summary[0])
        torch.testing.assert_close(together.memory[row][together.mask[row]], own.memory[0])


def test_every_weight_learns(encoder: Encoder, source: Padded) -> None:
    said = encoder.train()(source)
    found = gradients(encoder, weighed(said.memory, said.summary))
    assert found
    assert not unlearned(found)


def test_every_weight_learns_through_the_summary_alone(encoder: Encoder, source: Padded) -> None:
    assert not unlearned(gradients(encoder, weighed(encoder(source).summary)))


def test_saving_keeps_every_bit(encoder: Encoder, make: Callable[[], Encoder], source: Padded, tmp_path: Path) -> None:
    before, after = encoder(source), reloaded(encoder, make, tmp_path)(source)
    assert torch.equal(before.memory, after.memory)
    assert torch.equal(before.summary, after.summary)


def test_a_row_of_padding_gives_zeros(encoder: Encoder) -> None:
    source = stretched(Padded.of([[5, 6, 4], []]), 1)
    said = encoder(source)
    assert not said.memory[1].any()
    if encoder.attendable:
        assert not said.summary[1].any()
    else:
        assert torch.equal(said.summary[1], said.summary[0])  # there is no source at all: every row is alike
    found = gradients(encoder, weighed(said.memory, said.summary))
    assert all(gradient.isfinite().all() for gradient in found.values())


def test_deterministic_when_not_training(encoder: Encoder, source: Padded) -> None:
    one, two = encoder(source), encoder(source)
    assert torch.equal(one.memory, two.memory)
    assert torch.equal(one.summary, two.summary)


def test_picking_and_spreading_keep_their_meaning(encoder: Encoder, source: Padded) -> None:
    rows = torch.tensor([2, 0, 2, 1])
    picked, chosen = encoder(source).pick(rows), encoder(source.pick(rows))
    spread, repeated = encoder(source).spread(2), encoder(source.pick(torch.tensor([0, 0, 1, 1, 2, 2])))
    for one, two in ((picked, chosen), (spread, repeated)):
        torch.testing.assert_close(one.memory, two.memory)
        torch.testing.assert_close(one.summary, two.summary)
        assert torch.equal(one.mask, two.mask)


def test_every_weight_has_a_letter_and_the_part_its_equations(encoder: Encoder) -> None:
    assert not nameless(encoder)
    assert encoder.equations()
    assert all(encoder.equations())


@final
class Flat(nn.Module):
    """An encoder between plain tensors, as exporters want it."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        said: Encoded = self.encoder(Padded(*inputs))
        return said.memory, said.summary


@pytest.mark.filterwarnings("ignore:The tensor attributes.*_flat_weights:UserWarning")  # of torch's own RNNs
def test_exports_for_any_number_of_rows(encoder: Encoder, source: Padded) -> None:
    program = exported(Flat(encoder), (source.values, source.mask))
    many = stretched(Padded.of([[4, 4, 9, 10], [11, 5], [8], [6, 9, 5], [10]]), 0)
    for given in (many, many.pick(torch.tensor([3]))):
        wanted = Flat(encoder)(given.values, given.mask)
        for got, want in zip(program(given.values, given.mask), wanted, strict=True):
            torch.testing.assert_close(got, want)


def test_junk_is_a_word_that_some_row_really_has() -> None:
    assert JUNK in ROWS[0]
