"""Recurrent networks in a form that can be exported for any length: torch's exporter has one for GRU and LSTM alone."""

import torch
from torch import nn

SURE = 200.0
"""σ(SURE) is 1 and σ(-SURE) is 0, to the last bit."""


def exportable(module: nn.Module) -> None:
    """Replace every plain recurrent network inside by a GRU that computes the same."""
    for owner in list(module.modules()):
        for name, inner in list(owner.named_children()):
            if isinstance(inner, nn.RNN) and inner.nonlinearity == "tanh":
                setattr(owner, name, as_gru(inner))
                owner.by_hand = False  # type: ignore[assignment] # of our own networks: let torch's stack compute it, whatever its kind


def as_gru(rnn: nn.RNN) -> nn.GRU:
    """h_t = tanh(U x_t + W h_{t-1} + b) as a GRU whose reset gate is always 1 and whose update gate is always 0.

    >>> rnn = nn.RNN(3, 4, num_layers=2, bidirectional=True)
    >>> inputs = torch.randn(5, 2, 3)
    >>> torch.allclose(rnn(inputs)[0], as_gru(rnn)(inputs)[0], atol=1e-6)
    True
    """
    sizes = rnn.input_size, rnn.hidden_size, rnn.num_layers
    gru = nn.GRU(*sizes, batch_first=rnn.batch_first, dropout=rnn.dropout, bidirectional=rnn.bidirectional)
    own = dict(rnn.named_parameters())
    with torch.no_grad():
        for name, weight in gru.named_parameters():
            reset, update, new = weight.zero_().chunk(3)
            if name in own:
                new.copy_(own[name])
            if name.startswith("bias_ih"):
                reset.fill_(SURE)
                update.fill_(-SURE)
    return gru.train(rnn.training)
