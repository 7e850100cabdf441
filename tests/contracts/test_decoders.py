"""What every decoder promises. A new decoder adds its lines to CASES.

Sizes: a source of 5 features, a state of 5 and embeddings of 5 (of 4 where nothing is tied), so that all bridges fit.
"""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import final, get_args

import pytest
import torch
from torch import Tensor, nn

from sixjars.data.text import GO
from sixjars.flow import Bridge, Carried, Decoder, Encoded, Padded, Scored, State, Taught
from sixjars.loss.tokens import token_loss
from sixjars.model.bridges import ATTENTIONS, BRIDGES
from sixjars.model.cells import CellName
from sixjars.model.decoders import DECODERS
from sixjars.model.decoders.sequence import SequenceDecoder

from .promises import (
    TARGETS,
    alone,
    encoded,
    exported,
    gradients,
    nameless,
    reloaded,
    stretched,
    stretched_source,
    unlearned,
    words,
)

SIZE = 5
HEARING: dict[str, type[Bridge]] = {
    **{name: kind for name, kind in BRIDGES.items() if name != "attention"},
    **ATTENTIONS,
}


def _sequence(cell: CellName, layers: int, hears: str, *, tied: bool, frozen: bool = False) -> Callable[[], Decoder]:
    def make() -> Decoder:
        shape = SequenceDecoder.first_shape(cell, SIZE, layers)
        bridge = HEARING[hears](source_size=SIZE, state_size=shape.state_size, copies=shape.copies)
        embedding = words(size=SIZE if tied else SIZE - 1, frozen=frozen)
        return SequenceDecoder(
            bridge=bridge, embedding=embedding, cell=cell, size=SIZE, layers=layers, dropout=0.2, tied=tied
        )

    return make


EVERY_SEQUENCE = {
    f"sequence-{cell}-{layers}-{hears}{'-tied' if tied else ''}": _sequence(cell, layers, hears, tied=tied)
    for cell, layers, hears, tied in product(get_args(CellName), (1, 2), HEARING, (False, True))
}

CASES: dict[str, Callable[[], Decoder]] = {
    "sequence-frozen-vectors": _sequence("gru", 1, "additive", tied=False, frozen=True),
    "sequence-frozen-vectors-tied": _sequence("gru", 1, "additive", tied=True, frozen=True),
    **EVERY_SEQUENCE,
}


@pytest.fixture(params=CASES)
def make(request: pytest.FixtureRequest) -> Callable[[], Decoder]:
    return CASES[request.param]


@pytest.fixture
def decoder(make: Callable[[], Decoder]) -> Decoder:
    return make().eval()


@pytest.fixture
def source() -> Encoded:
    return encoded(SIZE)


@pytest.fixture
def target() -> Padded:
    return stretched(Padded.of(list(TARGETS)), 0)


def loss(decoder: Decoder, source: Encoded, target: Padded) -> Tensor:
    return token_loss(decoder.teach(source, target).scores, target).sum()


def walked(decoder: Decoder, source: Encoded, target: Padded) -> Taught:
    """The target fed token by token, as search would: log probabilities and weights of every step."""
    state, carried = decoder.start(source)
    token, said = torch.full((len(target.values),), GO), []
    for following in target.values.unbind(1):
        scored, state = decoder.step(token, state, carried)
        said.append(scored)
        token = following
    weights = [scored.weights for scored in said if scored.weights is not None]
    scores_BTV = torch.stack([scored.log_probabilities for scored in said], 1)
    return Taught(scores_BTV, torch.stack(weights, 1) if weights else None)


def attends(decoder: Decoder) -> bool:
    bridge = decoder.get_submodule("bridge")
    assert isinstance(bridge, Bridge)
    return bridge.follows


def test_every_decoder_has_a_case_with_every_bridge() -> None:
    made = [make() for make in CASES.values()]
    assert {type(decoder) for decoder in made} == set(DECODERS.values())
    assert {type(decoder.get_submodule("bridge")) for decoder in made} == {*BRIDGES.values(), *ATTENTIONS.values()}
    assert len(EVERY_SEQUENCE) == 3 * 2 * 5 * 2


def test_teaching_equals_stepping(decoder: Decoder, source: Encoded, target: Padded) -> None:
    taught, stepped = decoder.teach(source, target), walked(decoder, source, target)
    torch.testing.assert_close(taught.scores.log_softmax(-1), stepped.scores, atol=1e-5, rtol=0)
    assert (taught.weights is None) == (stepped.weights is None)
    if taught.weights is not None:
        torch.testing.assert_close(taught.weights, stepped.weights, atol=1e-5, rtol=0)


def test_padding_of_the_source_is_invisible(decoder: Decoder, source: Encoded, target: Padded) -> None:
    longer = stretched_source(source, 3)
    taught, again = decoder.teach(source, target), decoder.teach(longer, target)
    torch.testing.assert_close(again.scores, taught.scores)
    if taught.weights is not None:
        assert again.weights is not None
        torch.testing.assert_close(again.weights[..., :4], taught.weights)
    before, after = (gradients(decoder, loss(decoder, one, target)) for one in (source, longer))
    for name, gradient in before.items():
        torch.testing.assert_close(after[name], gradient)
    if attends(decoder):
        assert longer.memory.grad is not None
        assert not longer.memory.grad[~longer.mask].any()


def test_padding_of_the_target_is_invisible(decoder: Decoder, source: Encoded, target: Padded) -> None:
    longer = stretched(target, 3)
    taught, again = decoder.teach(source, target), decoder.teach(source, longer)
    torch.testing.assert_close(again.scores[longer.mask], taught.scores[target.mask])
    before, after = (gradients(decoder, loss(decoder, source, one)) for one in (target, longer))
    for name, gradient in before.items():
        torch.testing.assert_close(after[name], gradient)


def test_the_future_is_invisible(decoder: Decoder, source: Encoded, target: Padded) -> None:
    changed = target.values.clone()
    changed[:, 2:] = 10
    told, again = decoder.teach(source, target).scores, decoder.teach(source, Padded(changed, target.mask)).scores
    torch.testing.assert_close(again[:, :3], told[:, :3])  # the third score was told the second token, not the third
    assert not torch.allclose(again[:, 3], told[:, 3])


def test_rows_do_not_see_each_other(decoder: Decoder, source: Encoded, target: Padded) -> None:
    together = decoder.teach(source, target)
    for row, ids in enumerate(TARGETS):
        own = decoder.teach(alone(source, row), Padded.of([ids]))
        torch.testing.assert_close(own.scores[0], together.scores[row, : len(ids)])


def test_every_weight_learns_and_so_does_the_encoder(decoder: Decoder, source: Encoded, target: Padded) -> None:
    found = gradients(decoder.train(), loss(decoder, source, target))
    assert found
    assert not unlearned(found)
    assert source.summary.grad is not None
    assert source.summary.grad.any(dim=1).all()
    assert (source.memory.grad is not None) == attends(decoder)
    if source.memory.grad is not None:
        assert source.memory.grad[source.mask].any(dim=1).all()


def test_saving_keeps_every_bit(
    decoder: Decoder, make: Callable[[], Decoder], source: Encoded, target: Padded, tmp_path: Path
) -> None:
    before, after = decoder.teach(source, target), reloaded(decoder, make, tmp_path).teach(source, target)
    assert torch.equal(after.scores, before.scores)


def test_weights_are_a_distribution_over_real_positions(decoder: Decoder, source: Encoded, target: Padded) -> None:
    weights = decoder.teach(source, target).weights
    assert (weights is not None) == attends(decoder)
    if weights is not None:
        nowhere_BTS = (~source.mask).unsqueeze(1).expand_as(weights)
        assert (weights >= 0).all()
        assert not weights[nowhere_BTS].any()
        torch.testing.assert_close(weights.sum(-1), torch.ones(3, 5))


def test_a_row_of_padding_harms_nobody(decoder: Decoder, target: Padded) -> None:
    source = encoded(SIZE, lengths=(3, 0, 2))
    taught = decoder.teach(source, target)
    assert taught.scores.isfinite().all()
    if attends(decoder):
        assert taught.weights is not None
        assert not taught.weights[1].any()
    assert all(gradient.isfinite().all() for gradient in gradients(decoder, loss(decoder, source, target)).values())


def test_two_sources_never_mix(decoder: Decoder, source: Encoded, target: Padded) -> None:
    token = torch.tensor([5, 9, 4])
    wanted = decoder.step(token, *decoder.start(source))[0].log_probabilities
    state, carried = decoder.start(source)
    decoder.step(token, *decoder.start(encoded(SIZE, lengths=(2, 4, 4))))
    assert torch.equal(decoder.step(token, state, carried)[0].log_probabilities, wanted)


@pytest.mark.parametrize("change", ["pick", "spread"])
def test_picking_and_spreading_keep_their_meaning(decoder: Decoder, source: Encoded, change: str) -> None:
    rows = torch.tensor([2, 0, 2, 1]) if change == "pick" else torch.tensor([0, 0, 1, 1, 2, 2])
    token = torch.tensor([5, 9, 4])
    state, carried = decoder.start(source)
    state = decoder.step(torch.full((3,), GO), state, carried)[1]
    moved = (state.pick(rows), carried.pick(rows)) if change == "pick" else (state.spread(2), carried.spread(2))
    wanted, wanted_state = decoder.step(token, state, carried)
    got, got_state = decoder.step(token[rows], *moved)
    torch.testing.assert_close(got.log_probabilities, wanted.log_probabilities[rows])
    torch.testing.assert_close(got_state.hidden, wanted_state.hidden[rows])
    if wanted_state.cell is not None:
        torch.testing.assert_close(got_state.cell, wanted_state.cell[rows])


def test_scores_of_a_step_are_log_probabilities(decoder: Decoder, source: Encoded) -> None:
    scored: Scored = decoder.step(torch.tensor([5, 9, 4]), *decoder.start(source))[0]
    torch.testing.assert_close(scored.log_probabilities.exp().sum(1), torch.ones(3))


def test_deterministic_when_not_training(decoder: Decoder, source: Encoded, target: Padded) -> None:
    assert torch.equal(decoder.teach(source, target).scores, decoder.teach(source, target).scores)
    assert torch.equal(walked(decoder, source, target).scores, walked(decoder, source, target).scores)


def test_every_weight_has_a_letter_and_the_part_its_equations(decoder: Decoder) -> None:
    assert not nameless(decoder)
    assert decoder.equations()


@final
class FlatStep(nn.Module):
    """One step of a decoder between plain tensors, as exporters want it; `None` fields are left out."""

    def __init__(self, decoder: Decoder, state: State, carried: Carried) -> None:
        super().__init__()
        self.decoder = decoder
        self.held = [name for name in ("hidden", "cell") if getattr(state, name) is not None]
        self.kept = [
            name for name in ("first", "summary", "memory", "mask", "keys") if getattr(carried, name) is not None
        ]

    def flat(self, token: Tensor, state: State, carried: Carried) -> tuple[Tensor, ...]:
        fields = [getattr(state, name) for name in self.held] + [getattr(carried, name) for name in self.kept]
        return (token, *(field.detach() for field in fields))

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        token, rest = inputs[0], inputs[1:]
        state = State(**dict(zip(self.held, rest, strict=False)))
        carried = Carried(**dict(zip(self.kept, rest[len(self.held) :], strict=True)))
        scored, after = self.decoder.step(token, state, carried)
        outputs = (scored.log_probabilities, scored.weights, after.hidden, after.cell)
        return tuple(output for output in outputs if output is not None)


def test_step_exports_for_any_number_of_rows(decoder: Decoder, source: Encoded) -> None:
    state, carried = decoder.start(source)
    flat = FlatStep(decoder, state, carried)
    program = exported(flat, flat.flat(torch.tensor([5, 9, 4]), state, carried))
    for rows in (torch.tensor([0, 2, 1, 1, 0, 2]), torch.tensor([2])):
        given = flat.flat(4 + rows, state.pick(rows), carried.pick(rows))
        for got, wanted in zip(program(*given), flat(*given), strict=True):
            torch.testing.assert_close(got, wanted)
