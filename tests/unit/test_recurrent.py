"""Recurrent networks against torch's own cells and its packed bidirectional stacks."""

from collections.abc import Callable
from typing import get_args

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from sixjars.flow.values import Encoded, Padded, State
from sixjars.model.encoders.text import TextEncoder
from sixjars.model.layers import WordEmbedding
from sixjars.model.recurrent import Direction, Recurrent
from sixjars.model.reference import CellName, states_of

pytestmark = pytest.mark.usefixtures("in_64_bits")

CELLS: tuple[CellName, ...] = get_args(CellName)
FUSED: dict[CellName, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
SINGLE: dict[CellName, Callable[..., nn.RNNCellBase]] = {
    "rnn": nn.RNNCell,
    "gru": nn.GRUCell,
    "lstm": nn.LSTMCell,
}
KINDS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
ROWS = [[5, 6, 7, 8, 9], [9], [4, 10, 11], [7, 7, 7, 7]]


def begun(cell: CellName, layers: int = 2) -> tuple[Recurrent, State]:
    recurrent = Recurrent(cell=cell, input_size=3, size=4, layers=layers)
    return recurrent, recurrent.first(torch.randn(2, 4 * layers * states_of(cell)))


@pytest.mark.parametrize("cell", CELLS)
def test_steps_equal_torch_cells(cell: CellName) -> None:
    recurrent, state = begun(cell)
    singles = [SINGLE[cell](3 if layer == 0 else 4, 4) for layer in range(2)]
    for layer, single in enumerate(singles):
        single.load_state_dict(
            {kind: getattr(recurrent.stack, f"{kind}_l{layer}") for kind in KINDS}
        )
    memory = recurrent.opened(state)
    hidden = list(state.hidden.unbind(1))
    cells = [] if state.cell is None else list(state.cell.unbind(1))
    for given in torch.randn(6, 2, 3):
        below, memory = given, recurrent.advance(recurrent.project(given), memory)
        for layer, single in enumerate(singles):
            if cells:
                hidden[layer], cells[layer] = single(below, (hidden[layer], cells[layer]))
            else:
                hidden[layer] = single(below, hidden[layer])
            below = hidden[layer]
    after = recurrent.closed(memory)
    torch.testing.assert_close(after.hidden, torch.stack(hidden, 1))
    assert (after.cell is None) == (cell != "lstm")
    if after.cell is not None:
        torch.testing.assert_close(after.cell, torch.stack(cells, 1))


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("layers", [1, 2])
def test_a_whole_sequence_equals_single_steps(cell: CellName, layers: int) -> None:
    recurrent, state = begun(cell, layers)
    inputs = torch.randn(2, 6, 3)
    memory, states = recurrent.opened(state), []
    for given in recurrent.project(inputs).unbind(1):
        memory = recurrent.advance(given, memory)
        states.append(memory[-1][0])
    torch.testing.assert_close(recurrent(inputs, state), torch.stack(states, 1))


@pytest.mark.parametrize("cell", CELLS)
def test_a_32_bit_state_goes_on_in_16_bits(cell: CellName) -> None:
    torch.set_default_dtype(torch.float32)
    recurrent, state = begun(cell)
    given = torch.randn(2, 3)
    wanted = recurrent.closed(recurrent.advance(recurrent.project(given), recurrent.opened(state)))
    with torch.autocast("cpu", torch.bfloat16):
        found = recurrent.closed(
            recurrent.advance(recurrent.project(given), recurrent.opened(state))
        )
    # 8 bits of a number: sums of seven terms below 1 are right to about seven times 2^-8
    torch.testing.assert_close(found.hidden.float(), wanted.hidden, atol=0.03, rtol=0.03)


@pytest.mark.parametrize("cell", CELLS)
def test_dropout_is_between_the_layers_and_in_training_alone(cell: CellName) -> None:
    recurrent = Recurrent(cell=cell, input_size=3, size=40, layers=2, dropout=0.25)
    state, given = recurrent.first(torch.randn(2, 80 * states_of(cell))), torch.randn(2, 3)

    def stepped(*, training: bool) -> tuple[Tensor, Tensor, Tensor]:
        """The lower and the upper state after one step, and the upper one of the fused network."""
        recurrent.train(training)
        below, above = recurrent.advance(recurrent.project(given), recurrent.opened(state))
        return below[0], above[0], recurrent(given.unsqueeze(1), state)[:, 0]

    plain, first, second = stepped(training=False), stepped(training=True), stepped(training=True)
    torch.testing.assert_close(plain[1], plain[2])
    assert torch.equal(first[0], plain[0])
    for one, other in ((first, plain), (second, plain), (first, second)):
        assert not torch.equal(one[1], other[1])
        assert not torch.equal(one[2], other[2])


def test_an_input_can_be_projected_in_two_parts() -> None:
    recurrent, _ = begun("gru")
    inputs = torch.randn(2, 3)
    parts = recurrent.project(inputs[:, :1]) + recurrent.project(inputs[:, 1:], begin=1)
    torch.testing.assert_close(parts, recurrent.project(inputs))


def test_the_initial_state_has_hidden_vectors_first_and_then_memory_cells() -> None:
    recurrent = Recurrent(cell="lstm", input_size=3, size=2, layers=3)
    state = recurrent.first(torch.arange(12.0).view(1, 12))
    assert state.hidden.tolist() == [[[0, 1], [2, 3], [4, 5]]]
    assert state.cell is not None
    assert state.cell.tolist() == [[[6, 7], [8, 9], [10, 11]]]
    assert [states_of(cell) for cell in CELLS] == [1, 1, 2]


def reference(encoder: TextEncoder, cell: CellName, layers: int, *, both: bool) -> nn.RNNBase:
    """Torch's own stack with the encoder's weights."""
    stack = FUSED[cell](5, 3, layers, batch_first=True, bidirectional=both)
    weights: dict[str, Tensor] = {}
    for layer, directions in enumerate(encoder.rnn.layers):
        assert isinstance(directions, nn.ModuleDict)
        for name, cells in directions.items():
            ending = f"_l{layer}" + ("_reverse" if both and name == "right_to_left" else "")
            weights |= {kind + ending: cells.get_parameter(f"stack.{kind}_l0") for kind in KINDS}
    stack.load_state_dict(weights)
    return stack


def made(cell: CellName, layers: int, direction: Direction) -> TextEncoder:
    words = WordEmbedding(vocabulary=12, size=5)
    return TextEncoder(embedding=words, cell=cell, size=3, layers=layers, direction=direction)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("direction", ["forward", "both"])
def test_text_encoder_equals_a_packed_stack(
    cell: CellName, layers: int, direction: Direction
) -> None:
    encoder, source = made(cell, layers, direction), Padded.of(ROWS)
    stack = reference(encoder, cell, layers, both=direction == "both")
    lengths = source.mask.sum(1)
    packed = pack_padded_sequence(
        encoder.embedding(source.values), lengths, batch_first=True, enforce_sorted=False
    )
    outputs, last = stack(packed)
    memory = pad_packed_sequence(outputs, batch_first=True)[0]
    hidden: Tensor = last[0] if cell == "lstm" else last
    summary = torch.cat([hidden[-2], hidden[-1]], dim=-1) if direction == "both" else hidden[-1]
    found: Encoded = encoder(source)
    torch.testing.assert_close(found.memory, memory)
    torch.testing.assert_close(found.summary, summary)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("layers", [1, 2])
def test_backward_reading_equals_a_stack_over_reversed_rows(cell: CellName, layers: int) -> None:
    encoder = made(cell, layers, "backward")
    stack, found = reference(encoder, cell, layers, both=False), encoder(Padded.of(ROWS))
    for row, ids in enumerate(ROWS):
        outputs = stack(encoder.embedding(torch.tensor([ids[::-1]])))[0][0]
        torch.testing.assert_close(found.memory[row, : len(ids)], outputs.flip(0))
        torch.testing.assert_close(found.summary[row], outputs[-1])


def test_there_is_dropout_between_layers() -> None:
    words = WordEmbedding(vocabulary=12, size=5)
    encoder = TextEncoder(embedding=words, size=3, layers=2, dropout=0.5)
    assert not torch.equal(encoder(Padded.of(ROWS)).summary, encoder(Padded.of(ROWS)).summary)
    encoder.eval()
    assert torch.equal(encoder(Padded.of(ROWS)).summary, encoder(Padded.of(ROWS)).summary)
