"""The conditional decoder: what attention knows, dropout, precisions, and what it refuses.

The contract of all decoders checks its equations. Dims: B batch, S source positions.
"""

from pathlib import Path
from typing import Any

import pytest
import torch

import sixjars
from sixjars.errors import ShapeError
from sixjars.flow.backend import Backend
from sixjars.flow.contracts import Bridge
from sixjars.flow.values import Encoded, Padded
from sixjars.kernels.backends import TorchBackend, in_precision
from sixjars.kernels.products import Precision, has_bf16
from sixjars.model.bridges.attention import Attention
from sixjars.model.bridges.every_step import EveryStep
from sixjars.model.bridges.initial import InitialState
from sixjars.model.bridges.pooling import AttentionPooling
from sixjars.model.build import Network
from sixjars.model.decoders.sequence import SequenceDecoder
from sixjars.model.encoders.text import TextEncoder
from sixjars.model.layers import WordEmbedding
from sixjars.model.reference import REFERENCE, CellName, states_of
from tests.recipes.using import check_weights, raw

TARGET = [[5, 6, 7, 2], [8, 2], [4, 4, 2]]
FEW = [
    *("data.sample.size=24", "data.sample.valid=4", "data.sample.test=4"),
    *("learning.batch_examples=8", "learning.steps=2", "evaluation.search.max_length=5"),
]


def decoder_of(
    cell: CellName,
    layers: int = 1,
    size: int = 6,
    dropout: float = 0.0,
    backend: Backend = REFERENCE,
) -> SequenceDecoder:
    sizes: dict[str, Any] = {"source_size": 4, "state_size": size}
    sizes["state_count"] = layers * states_of(cell)
    bridge = Attention(size=5, backend=backend, **sizes)
    words = WordEmbedding(vocabulary=11, size=3)
    stack: dict[str, Any] = {"cell": cell, "size": size, "layers": layers, "dropout": dropout}
    return SequenceDecoder(bridge=bridge, embedding=words, conditional=True, **stack)


def source() -> Encoded:
    mask_BS = torch.tensor([[True] * 5, [True] * 2 + [False] * 3, [True] * 4 + [False]])
    return Encoded(torch.randn(3, 5, 4), mask_BS, torch.randn(3, 4))


def test_attention_knows_the_word_just_written(in_64_bits: None) -> None:
    """Another first word changes the weights of the second step; not those of a plain decoder."""
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
    backend = TorchBackend()
    network = Network(encoder, decoder_of(cell, size=128, backend=backend), backend=backend).eval()
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
