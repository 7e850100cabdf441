"""What every encoder promises. A new encoder adds its lines to CASES in `encoder_cases.py`."""

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

from .encoder_cases import CASES, EVERY_TEXT, EVERY_VIDEO, HIERARCHIES, Case, Inputs
from .packing import JUNK
from .promises import (
    ROWS,
    exported,
    gradients,
    held,
    nameless,
    only,
    picked,
    reloaded,
    stretched,
    unlearned,
    weighed,
    without,
)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
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
    assert len(EVERY_TEXT) == 18
    assert len(EVERY_VIDEO) == 27


def test_sizes_are_as_announced(encoder: Encoder, case: Case, inputs: Inputs) -> None:
    said: Encoded = encoder(**inputs)
    if isinstance(case.looks_at, str):
        real = inputs[case.looks_at].mask
    else:
        real = torch.ones(3, case.looks_at, dtype=torch.bool)
    assert torch.equal(said.mask, real)
    assert said.memory.shape == (*real.shape, encoder.output_size)
    assert said.summary.shape == (3, encoder.summary_size)
    assert encoder.attendable == (real.shape[1] > 0)
    assert (said.above is not None) == (encoder.segment_size > 0)
    if said.layout.kind == "grid":
        assert said.layout.shape[0] * said.layout.shape[1] == real.shape[1]


def test_padding_is_invisible(encoder: Encoder, inputs: Inputs) -> None:
    short, long = encoder(**inputs), encoder(**longer(inputs))
    positions = short.memory.shape[1]
    torch.testing.assert_close(long.memory[:, :positions], short.memory)
    torch.testing.assert_close(long.summary, short.summary)
    assert not long.memory[~long.mask].any()
    assert not short.memory[~short.mask].any()


def test_padding_is_invisible_to_gradients(encoder: Encoder, inputs: Inputs) -> None:
    short = encoder(**inputs)
    before = gradients(encoder, weighed(short.memory[short.mask], short.summary))
    long = encoder(**longer(inputs))
    everything = weighed(long.memory[long.mask], long.summary) + long.memory[~long.mask].sum()
    after = gradients(encoder, everything)
    for name, gradient in before.items():
        torch.testing.assert_close(after[name], gradient, rtol=1e-5, atol=1e-5)


def test_rows_do_not_see_each_other(encoder: Encoder, inputs: Inputs) -> None:
    together = encoder(**inputs)
    for row in range(3):
        own = encoder(**{name: only(given, row) for name, given in inputs.items()})
        torch.testing.assert_close(together.summary[row], own.summary[0])
        torch.testing.assert_close(together.memory[row][together.mask[row]], own.memory[0])


@pytest.mark.parametrize("case", HIERARCHIES.values(), ids=list(HIERARCHIES))
def test_the_level_above_keeps_the_same_promises(encoder: Encoder, inputs: Inputs) -> None:
    """Sizes, padding, rows: what is said of a part depends on its own row alone."""
    said, long = encoder(**inputs).above, encoder(**longer(inputs)).above
    assert said.memory.shape == (*said.mask.shape, encoder.segment_size)
    assert said.mask.tolist() == [[True, True, True], [True, False, False], [True, True, False]]
    assert not long.memory[~long.mask].any()
    torch.testing.assert_close(long.memory[:, :3], said.memory)
    for row, parts in enumerate(said.mask.sum(1).tolist()):
        own = encoder(**{name: only(given, row) for name, given in inputs.items()})
        torch.testing.assert_close(own.above.memory[0], said.memory[row, :parts])
        length = own.mask.shape[1]
        assert torch.equal(own.above.of[0], said.of[row, :length])
        if said.within is not None:
            torch.testing.assert_close(own.above.within[0], said.within[row, :length])
            assert not long.within[row, length:].any()


def test_every_weight_learns(encoder: Encoder, case: Case, inputs: Inputs) -> None:
    said = encoder.train()(**inputs)
    found = gradients(encoder, weighed(said.memory, said.summary))
    assert found
    assert unlearned(found) == [name for name in found if name.startswith(case.unheard)]


def test_every_weight_learns_through_the_summary_alone(encoder: Encoder, case: Case, inputs: Inputs) -> None:
    silent = unlearned(gradients(encoder, weighed(encoder(**inputs).summary)))
    assert all(name.startswith(case.unheard) for name in silent) == case.summarises


def test_saving_keeps_every_bit(encoder: Encoder, case: Case, inputs: Inputs, tmp_path: Path) -> None:
    before, after = encoder(**inputs), reloaded(encoder, case.make, tmp_path)(**inputs)
    assert torch.equal(before.memory, after.memory)
    assert torch.equal(before.summary, after.summary)


def test_a_row_of_padding_gives_zeros(encoder: Encoder, inputs: Inputs) -> None:
    """A text without a word, a film without a frame; a picture always is there."""
    read = {name: given for name, given in inputs.items() if name != "image"}
    said = encoder(**inputs | {name: without(given, 1) for name, given in read.items()})
    if isinstance(encoder, NothingEncoder):
        assert torch.equal(said.summary[1], said.summary[0])  # there is no source at all: every row is alike
    elif read:
        of_it = encoder.summary_size if len(inputs) == 1 else 6  # what a question says comes before the picture
        assert not said.summary[1, :of_it].any()
        assert said.summary[0].any()
    assert torch.equal(said.memory[1].any(-1), said.mask[1])
    found = gradients(encoder, weighed(said.memory, said.summary))
    assert all(gradient.isfinite().all() for gradient in found.values())


def test_deterministic_when_not_training(encoder: Encoder, inputs: Inputs) -> None:
    one, two = encoder(**inputs), encoder(**inputs)
    assert torch.equal(one.memory, two.memory)
    assert torch.equal(one.summary, two.summary)


def test_nothing_is_kept_between_calls(encoder: Encoder, case: Case, inputs: Inputs) -> None:
    before, first = held(encoder), encoder(**inputs)
    encoder(**chosen(case.inputs(), 2, 1))
    assert held(encoder) == before
    assert torch.equal(encoder(**inputs).summary, first.summary)


def test_picking_and_spreading_keep_their_meaning(encoder: Encoder, inputs: Inputs) -> None:
    mixed, repeated = encoder(**chosen(inputs, 2, 0, 2, 1)), encoder(**chosen(inputs, 0, 0, 1, 1, 2, 2))
    said = encoder(**inputs)
    for one, two in ((said.pick(torch.tensor([2, 0, 2, 1])), mixed), (said.repeat(2), repeated)):
        torch.testing.assert_close(one.memory, two.memory)
        torch.testing.assert_close(one.summary, two.summary)
        assert torch.equal(one.mask, two.mask)
        assert one.layout == two.layout


def test_every_weight_has_a_letter_and_the_part_its_equations(encoder: Encoder) -> None:
    assert not nameless(encoder)
    assert encoder.equations()
    assert all(encoder.equations())


def plain(given: Padded) -> tuple[Tensor, ...]:
    """What is given as tensors, those of its parts behind the others."""
    parts = given.parts
    level = () if parts is None else (parts.home, parts.back, parts.of, *parts.packs)
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
        said: Encoded = self.encoder(**{name: padded(*islice(rest, count)) for name, count in self.counts.items()})
        above = () if said.above is None else (said.above.memory, said.above.within)
        return tuple(tensor for tensor in (said.memory, said.summary, *above) if tensor is not None)


@pytest.mark.filterwarnings("ignore:The tensor attributes.*_flat_weights:UserWarning")  # of torch's own RNNs
def test_exports_for_any_number_of_rows(encoder: Encoder, case: Case, inputs: Inputs) -> None:
    def flattened(inputs: Inputs) -> tuple[Tensor, ...]:
        return tuple(tensor for given in inputs.values() for tensor in plain(given))

    flat = Flat(encoder, inputs)
    counted = [f"parts_{at - 5}" if at >= 5 else "rows" for given in inputs.values() for at in range(len(plain(given)))]
    program = exported(flat, flattened(inputs), counted=counted)
    others = case.inputs()
    for given in (chosen(others, 2, 0, 1, 1, 2), chosen(others, 1)):
        for got, want in zip(program(*flattened(given)), flat(*flattened(given)), strict=True):
            torch.testing.assert_close(got, want)


def test_junk_is_a_word_that_some_row_really_has() -> None:
    assert JUNK in ROWS[0]
