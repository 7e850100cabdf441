"""The conditional decoder against its equations, written down with torch's own cells, and what it refuses.

Dims: B batch, S source positions, D source features, H state features, V vocabulary.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import sixjars
from sixjars.errors import ShapeError
from sixjars.flow.contracts import Bridge
from sixjars.flow.values import Encoded, Padded
from sixjars.model.bridges.attention import Attention
from sixjars.model.bridges.every_step import EveryStep
from sixjars.model.bridges.initial import InitialState
from sixjars.model.bridges.pooling import AttentionPooling
from sixjars.model.build import Network
from sixjars.model.conditional import ConditionalRecurrent
from sixjars.model.decoders.sequence import SequenceDecoder
from sixjars.model.encoders.text import TextEncoder
from sixjars.model.layers import WordEmbedding
from sixjars.model.precision import Precision, has_bf16, in_precision
from sixjars.model.recurrent import CellName, Recurrent, states_of
from sixjars_runtime.special_tokens import GO
from tests.recipes.using import check_weights, raw

CELLS: dict[str, Any] = {"rnn": nn.RNNCell, "gru": nn.GRUCell, "lstm": nn.LSTMCell}
TARGET = [[5, 6, 7, 2], [8, 2], [4, 4, 2]]
FEW = [
    *(
        "data.sample.size=24",
        "data.sample.valid=4",
        "data.sample.test=4",
        "learning.batch_examples=8",
    ),
    *("learning.steps=2", "evaluation.search.max_length=5"),
]


def decoder_of(
    cell: CellName, layers: int = 1, size: int = 6, dropout: float = 0.0
) -> SequenceDecoder:
    bridge = Attention(source_size=4, state_size=size, state_count=layers * states_of(cell), size=5)
    words = WordEmbedding(vocabulary=11, size=3)
    return SequenceDecoder(
        bridge=bridge,
        embedding=words,
        cell=cell,
        size=size,
        layers=layers,
        dropout=dropout,
        conditional=True,
    )


def source() -> Encoded:
    mask_BS = torch.tensor([[True] * 5, [True] * 2 + [False] * 3, [True] * 4 + [False]])
    return Encoded(torch.randn(3, 5, 4), mask_BS, torch.randn(3, 4))


def cell_of(stack: Recurrent, layer: int) -> nn.Module:
    """One of torch's cells with the weights of a layer."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    weights = {name: getattr(stack.stack, f"{name}_l{layer}") for name in names}
    made: nn.Module = CELLS[stack.cell](weights["weight_ih"].shape[1], stack.size)
    made.load_state_dict(weights)
    return made


def after(cell: nn.Module, reads_H: Tensor, before: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The hidden state of one row, and its memory cell if it has one."""
    found = cell(reads_H, before if len(before) == 2 else before[0])
    return found if isinstance(found, tuple) else (found,)


def plain(
    decoder: SequenceDecoder, encoded: Encoded, row: int, target: list[int]
) -> tuple[Tensor, Tensor]:
    """Logits (T, V) and weights (T, S) of one row: the equations, one line each, with no padding and no batch."""
    assert isinstance(decoder.rnn, ConditionalRecurrent)
    bridge, rnn = decoder.bridge, decoder.rnn
    assert isinstance(bridge, Attention)
    middle, *stacked = (
        cell_of(rnn.middle, 0),
        *(cell_of(rnn.last, layer) for layer in range(rnn.layers)),
    )
    memory_SD = encoded.memory[row][encoded.mask[row]]
    assert bridge.first.project is not None
    vectors = (
        torch.tanh(bridge.first.project(encoded.summary[row]))
        .view(-1, rnn.layers, rnn.last.size)
        .unbind(1)
    )
    states = [tuple(each.unbind(0)) for each in vectors]
    logits, weights = [], []
    for token in [GO, *target[:-1]]:
        middle_state = after(middle, decoder.embedding.table.weight[token], states[0])
        mixed_SA = (
            memory_SD @ bridge.score.key.weight.T + bridge.score.query.weight @ middle_state[0]
        )
        weights_S = torch.softmax(torch.tanh(mixed_SA) @ bridge.score.score.weight[0], dim=0)
        states[0] = after(stacked[0], weights_S @ memory_SD, middle_state)
        for layer in range(1, rnn.layers):
            states[layer] = after(stacked[layer], states[layer - 1][0], states[layer])
        logits.append(decoder.output(states[-1][0]))
        weights.append(weights_S)
    return torch.stack(logits), torch.stack(weights)


@pytest.mark.usefixtures("in_64_bits")
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_it_computes_its_equations(cell: CellName, layers: int) -> None:
    decoder, encoded = decoder_of(cell, layers).eval(), source()
    output = decoder.teach(encoded, Padded.of(TARGET))
    assert output.weights is not None
    for row, target in enumerate(TARGET):
        logits_TV, weights_TS = plain(decoder, encoded, row, target)
        torch.testing.assert_close(output.logits[row, : len(target)], logits_TV, atol=1e-12, rtol=0)
        found_TS = output.weights[row, : len(target), : weights_TS.shape[1]]
        torch.testing.assert_close(found_TS, weights_TS, atol=1e-12, rtol=0)


def test_attention_knows_the_word_just_written(in_64_bits: None) -> None:
    """Another first word changes the weights of the second step; those of a plain decoder it does not change."""
    encoded, (one, other) = source(), (Padded.of([[word, 9, 2]] * 3) for word in (5, 6))
    bridge = Attention(source_size=4, state_size=6, size=5)
    plain_decoder = SequenceDecoder(
        bridge=bridge, embedding=WordEmbedding(vocabulary=11, size=3), size=6
    )
    for decoder, knows in ((decoder_of("gru"), True), (plain_decoder, False)):
        before, again = (decoder.eval().teach(encoded, target).weights for target in (one, other))
        assert before is not None
        assert again is not None
        assert torch.equal(before[:, 0], again[:, 0])
        assert torch.equal(before[:, 1], again[:, 1]) != knows


def test_dropout_is_between_the_layers(in_64_bits: None) -> None:
    """And nowhere between the two cells of a step."""
    encoded, target = source(), Padded.of(TARGET)
    for layers, differs in ((1, False), (2, True)):
        decoder = decoder_of("gru", layers, dropout=0.5).train()
        decoder.dropout.p = 0.0
        one, other = (decoder.teach(encoded, target).logits for _ in range(2))
        assert torch.equal(one, other) != differs


@pytest.mark.parametrize(
    "bridge",
    [
        InitialState(summary_size=4, state_size=6),
        EveryStep(summary_size=4, state_size=6),
        AttentionPooling(source_size=4, state_size=6),
    ],
)
def test_a_bridge_that_does_not_attend_is_refused(bridge: Bridge) -> None:
    words = WordEmbedding(vocabulary=11, size=3)
    with pytest.raises(ShapeError) as error:
        SequenceDecoder(bridge=bridge, embedding=words, size=6, conditional=True)
    needs = "conditional: true needs a bridge of kind attention, location or two_level"
    assert str(error.value) == f"{needs}, but it is {type(bridge).__name__}."


@pytest.mark.parametrize("precision", ["32", "int8", "bf16"])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_it_predicts_in_other_precisions(cell: CellName, precision: Precision) -> None:
    """Matrices large enough to be packed; what is compared are log probabilities of about -2.4."""
    if precision == "bf16" and not has_bf16():
        pytest.skip("this CPU has no bf16")
    torch.manual_seed(0)
    encoder = TextEncoder(embedding=WordEmbedding(vocabulary=11, size=3), size=4)
    network = Network(encoder, decoder_of(cell, size=128)).eval()
    decoder, encoded, token = network.decoder, source(), torch.tensor([5, 6, 7])
    assert isinstance(decoder, SequenceDecoder)
    with torch.no_grad():
        wanted, wanted_state = decoder.step(token, *decoder.start(encoded))
        in_precision(network, precision)
        got, state = decoder.step(token, *decoder.start(encoded))
    bound = {"32": 1e-5, "int8": 0.02, "bf16": 0.02}[precision]
    torch.testing.assert_close(got.log_probabilities, wanted.log_probabilities, atol=bound, rtol=0)
    torch.testing.assert_close(state.hidden, wanted_state.hidden, atol=bound, rtol=0)


@pytest.mark.parametrize(
    "recipe",
    ["translation/sample_guided", "summarization/sample_copy", "image_captioning/sample_attention"],
)
def test_it_trains_and_predicts_wherever_something_is_attended_to(
    recipe: str, tmp_path: Path
) -> None:
    """Guided attention; copying from two levels, with coverage; the cells of an image."""
    run = sixjars.train(
        recipe, [*FEW, "model.decoder.conditional=true"], out=tmp_path / "run", device="cpu"
    )
    predictor = sixjars.load(run.folder)
    given = raw(predictor, tmp_path)
    for search in ("greedy", "sample", "beam"):
        [prediction] = predictor.predict([given], search=search)
        assert prediction.error is None
        check_weights(prediction, predictor)
