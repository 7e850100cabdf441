"""The contract of every encoder. A new encoder adds its lines to CASES in `encoder_cases.py`."""

from itertools import islice
from pathlib import Path
from typing import final

import pytest
import torch
from torch import Tensor, nn

from sixjars.flow.contracts import Encoder
from sixjars.flow.values import Encoded, Padded, Segments
from sixjars.model.encoders import ENCODERS
from sixjars.model.encoders.nothing import NothingEncoder

from .checks import exported, gradients, held, nameless, reloaded, unlearned, weighed
from .encoder_cases import CASES, EXPORTED, HIERARCHIES, RARE, TEXTS, VIDEOS, Case, Inputs
from .examples import ROWS, only, picked, stretched, without
from .packing import JUNK
from .pairwise import params

pytestmark = pytest.mark.usefixtures("in_64_bits")


@pytest.fixture(params=params(CASES, RARE))
def case(request: pytest.FixtureRequest, in_64_bits: None) -> Case:
    return CASES[request.param]


@pytest.fixture
def encoder(case: Case) -> Encoder:
    return case.make().eval()


@pytest.fixture
def inputs(case: Case) -> Inputs:
    return case.inputs()


def chosen(inputs: Inputs, *rows: int) -> Inputs:
    return {name: picked(given, rows) for name, given in inputs.items()}


def longer(inputs: Inputs) -> Inputs:
    return {name: stretched(given, 4) for name, given in inputs.items()}


def test_every_encoder_has_a_case() -> None:
    covered = {type(case.make()) for case in CASES.values()}
    assert covered == set(ENCODERS.values())
    assert len(TEXTS) == 18
    assert len(VIDEOS) == 27


def test_sizes_are_as_announced(encoder: Encoder, case: Case, inputs: Inputs) -> None:
    encoded: Encoded = encoder(**inputs)
    if isinstance(case.positions, str):
        real = inputs[case.positions].mask
    else:
        real = torch.ones(3, case.positions, dtype=torch.bool)
    assert torch.equal(encoded.mask, real)
    assert encoded.memory.shape == (*real.shape, encoder.output_size)
    assert encoded.summary.shape == (3, encoder.summary_size)
    assert encoder.attendable == (real.shape[1] > 0)
    assert (encoded.segments is not None) == (encoder.segment_size > 0)
    if encoded.layout.kind == "grid":
        assert encoded.layout.shape[0] * encoded.layout.shape[1] == real.shape[1]


def test_padding_has_no_influence(encoder: Encoder, inputs: Inputs) -> None:
    short, long = encoder(**inputs), encoder(**longer(inputs))
    positions = short.memory.shape[1]
    torch.testing.assert_close(long.memory[:, :positions], short.memory)
    torch.testing.assert_close(long.summary, short.summary)
    assert not long.memory[~long.mask].any()
    assert not short.memory[~short.mask].any()


def test_padding_has_no_influence_on_gradients(encoder: Encoder, inputs: Inputs) -> None:
    short = encoder(**inputs)
    before = gradients(encoder, weighed(short.memory[short.mask], short.summary))
    long = encoder(**longer(inputs))
    everything = weighed(long.memory[long.mask], long.summary) + long.memory[~long.mask].sum()
    after = gradients(encoder, everything)
    for name, gradient in before.items():
        torch.testing.assert_close(after[name], gradient)


def test_rows_have_no_influence_on_each_other(encoder: Encoder, inputs: Inputs) -> None:
    together = encoder(**inputs)
    for row in range(3):
        own = encoder(**{name: only(given, row) for name, given in inputs.items()})
        torch.testing.assert_close(together.summary[row], own.summary[0])
        torch.testing.assert_close(together.memory[row][together.mask[row]], own.memory[0])


@pytest.mark.parametrize("case", HIERARCHIES.values(), ids=list(HIERARCHIES))
def test_the_upper_level_keeps_the_same_contract(encoder: Encoder, inputs: Inputs) -> None:
    """Sizes, padding, rows: the vector of a segment depends on its own row alone."""
    encoded, long = encoder(**inputs).segments, encoder(**longer(inputs)).segments
    assert encoded.memory.shape == (*encoded.mask.shape, encoder.segment_size)
    assert encoded.mask.tolist() == [[True, True, True], [True, False, False], [True, True, False]]
    assert not long.memory[~long.mask].any()
    torch.testing.assert_close(long.memory[:, :3], encoded.memory)
    for row, count in enumerate(encoded.mask.sum(1).tolist()):
        own = encoder(**{name: only(given, row) for name, given in inputs.items()})
        torch.testing.assert_close(own.segments.memory[0], encoded.memory[row, :count])
        length = own.mask.shape[1]
        assert torch.equal(own.segments.segment_of[0], encoded.segment_of[row, :length])
        if encoded.weights is not None:
            torch.testing.assert_close(own.segments.weights[0], encoded.weights[row, :length])
            assert not long.weights[row, length:].any()


def test_every_weight_learns(encoder: Encoder, case: Case, inputs: Inputs) -> None:
    encoded = encoder.train()(**inputs)
    slopes = gradients(encoder, weighed(encoded.memory, encoded.summary))
    assert slopes
    assert unlearned(slopes) == [name for name in slopes if name.startswith(case.unused)]


def test_every_weight_learns_through_the_summary_alone(
    encoder: Encoder, case: Case, inputs: Inputs
) -> None:
    without_gradient = unlearned(gradients(encoder, weighed(encoder(**inputs).summary)))
    assert all(name.startswith(case.unused) for name in without_gradient) == case.summarises


def test_saving_keeps_every_bit(
    encoder: Encoder, case: Case, inputs: Inputs, tmp_path: Path
) -> None:
    before, after = encoder(**inputs), reloaded(encoder, case.make, tmp_path)(**inputs)
    assert torch.equal(before.memory, after.memory)
    assert torch.equal(before.summary, after.summary)


def test_a_row_of_padding_gives_zeros(encoder: Encoder, inputs: Inputs) -> None:
    """A text without a word, a video without a frame; an image is always there."""
    read = {name: given for name, given in inputs.items() if name != "image"}
    encoded = encoder(**inputs | {name: without(given, 1) for name, given in read.items()})
    if isinstance(encoder, NothingEncoder):
        # there is no source at all: every row is alike
        assert torch.equal(encoded.summary[1], encoded.summary[0])
    elif read:
        # the question comes before the image
        of_it = encoder.summary_size if len(inputs) == 1 else 6
        assert not encoded.summary[1, :of_it].any()
        assert encoded.summary[0].any()
    assert torch.equal(encoded.memory[1].any(-1), encoded.mask[1])
    slopes = gradients(encoder, weighed(encoded.memory, encoded.summary))
    assert all(slope.isfinite().all() for slope in slopes.values())


def test_deterministic_when_not_training(encoder: Encoder, inputs: Inputs) -> None:
    one, two = encoder(**inputs), encoder(**inputs)
    assert torch.equal(one.memory, two.memory)
    assert torch.equal(one.summary, two.summary)


def test_nothing_is_kept_between_calls(encoder: Encoder, case: Case, inputs: Inputs) -> None:
    before, first = held(encoder), encoder(**inputs)
    encoder(**chosen(case.inputs(), 2, 1))
    assert held(encoder) == before
    assert torch.equal(encoder(**inputs).summary, first.summary)


def test_picked_and_repeated_rows_are_the_same_rows(encoder: Encoder, inputs: Inputs) -> None:
    mixed = encoder(**chosen(inputs, 2, 0, 2, 1))
    repeated = encoder(**chosen(inputs, 0, 0, 1, 1, 2, 2))
    encoded = encoder(**inputs)
    for one, two in (
        (encoded.pick(torch.tensor([2, 0, 2, 1])), mixed),
        (encoded.repeat(2), repeated),
    ):
        torch.testing.assert_close(one.memory, two.memory)
        torch.testing.assert_close(one.summary, two.summary)
        assert torch.equal(one.mask, two.mask)
        assert one.layout == two.layout


def test_every_weight_has_a_letter_and_the_encoder_its_equations(encoder: Encoder) -> None:
    assert not nameless(encoder)
    assert encoder.equations()
    assert all(encoder.equations())


def plain(given: Padded) -> tuple[Tensor, ...]:
    """An input as tensors, those of its segments behind the others."""
    segments = given.segments
    if segments is None:
        return given.values, given.mask
    level = (segments.segment_index, segments.position_index, segments.segment_of, *segments.packs)
    return (given.values, given.mask, *level)


def padded(values: Tensor, mask: Tensor, *level: Tensor) -> Padded:
    """Back from `plain`."""
    return Padded(values, mask, Segments(level[3:], *level[:3]) if level else None)


@final
class Flat(nn.Module):
    """An encoder between plain tensors, as exporters want it."""

    def __init__(self, encoder: Encoder, inputs: Inputs) -> None:
        super().__init__()
        self.encoder = encoder
        self.counts = {name: len(plain(given)) for name, given in inputs.items()}

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        rest = iter(inputs)
        encoded: Encoded = self.encoder(
            **{name: padded(*islice(rest, count)) for name, count in self.counts.items()}
        )
        level = (
            () if encoded.segments is None else (encoded.segments.memory, encoded.segments.weights)
        )
        return tuple(
            tensor for tensor in (encoded.memory, encoded.summary, *level) if tensor is not None
        )


@pytest.mark.parametrize("case", params(CASES, set(CASES) - set(EXPORTED)), indirect=True)
# of torch's own RNNs
@pytest.mark.filterwarnings("ignore:The tensor attributes.*_flat_weights:UserWarning")
def test_exports_for_any_number_of_rows(encoder: Encoder, case: Case, inputs: Inputs) -> None:
    def flattened(inputs: Inputs) -> tuple[Tensor, ...]:
        return tuple(tensor for given in inputs.values() for tensor in plain(given))

    flat = Flat(encoder, inputs)
    counted = [
        f"segments_{at - 5}" if at >= 5 else "rows"
        for given in inputs.values()
        for at in range(len(plain(given)))
    ]
    program = exported(flat, flattened(inputs), counted=counted)
    others = case.inputs()
    for given in (chosen(others, 2, 0, 1, 1, 2), chosen(others, 1)):
        for got, want in zip(program(*flattened(given)), flat(*flattened(given)), strict=True):
            torch.testing.assert_close(got, want)


def test_junk_is_a_word_that_some_row_has() -> None:
    assert JUNK in ROWS[0]
