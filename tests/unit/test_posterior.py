"""Posterior attention, compared with a source whose positions are all the same vector."""

from dataclasses import replace

import pytest
import torch

from sixjars import Attention, InitialState, SequenceDecoder, WordEmbedding
from sixjars.evaluation import posterior as module
from sixjars.evaluation.posterior import posterior, posterior_of
from sixjars.flow.values import Encoded, Padded
from sixjars.model.reference import CellName
from sixjars_runtime.special_tokens import GO

SOURCE = Encoded(
    torch.randn(2, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1)),
    torch.tensor([[True] * 4, [True, True, False, False]]),
    torch.randn(2, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2)),
)
TARGET = Padded.of([[5, 6, 2], [7, 2]])


def decoder(cell: CellName = "gru", *, conditional: bool = False) -> SequenceDecoder:
    torch.manual_seed(0)
    bridge = Attention(source_size=6, state_size=5, size=3, state_count=2 if cell == "lstm" else 1)
    words = WordEmbedding(vocabulary=9, size=4)
    return (
        SequenceDecoder(bridge=bridge, embedding=words, size=5, cell=cell, conditional=conditional)
        .double()
        .eval()
    )


def by_force(own: SequenceDecoder) -> torch.Tensor:
    """Each position in turn, repeated over the whole source: the context is that position."""
    state, prepared = own.start(SOURCE)
    token, found = torch.full((2,), GO), []
    for truth in TARGET.values.unbind(1):
        alike = []
        for place in range(4):
            memory = SOURCE.memory[:, place : place + 1].expand(-1, 4, -1)
            scored, _ = own.step(token, state, own.start(replace(SOURCE, memory=memory))[1])
            alike.append(scored.log_probabilities.exp().gather(1, truth.unsqueeze(1)))
        scored, state = own.step(token, state, prepared)
        assert scored.weights is not None
        joint = scored.weights * torch.cat(alike, dim=1)
        found.append(joint / joint.sum(1, keepdim=True))
        token = truth
    return torch.stack(found, dim=1)


@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@torch.inference_mode()
def test_it_is_the_rule_of_bayes(
    cell: CellName, conditional: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = decoder(cell, conditional=conditional)
    found, forced = posterior(own, SOURCE, TARGET), by_force(own) * TARGET.mask.unsqueeze(2)
    torch.testing.assert_close(found, forced)
    assert (found[1, :, 2:] == 0).all()
    weights = own.teach(SOURCE, TARGET).weights
    assert weights is not None
    assert not torch.allclose(found, weights)
    monkeypatch.setattr(module, "LARGEST", 1)  # one source after the other
    torch.testing.assert_close(posterior(own, SOURCE, TARGET), found)


@torch.inference_mode()
def test_a_decoder_without_attention_has_none() -> None:
    bridge = InitialState(summary_size=6, state_size=5)
    own = (
        SequenceDecoder(bridge=bridge, embedding=WordEmbedding(vocabulary=9, size=4), size=5)
        .double()
        .eval()
    )
    assert posterior_of(own, SOURCE, TARGET) is None
