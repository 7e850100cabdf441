"""Bridges: how a decoder is conditioned on its encoder. This table is the whole registry."""

from sixjars.flow.contracts import Bridge
from sixjars.model.bridges.attention import Attention
from sixjars.model.bridges.every_step import EveryStep
from sixjars.model.bridges.initial import InitialState
from sixjars.model.bridges.pooling import AttentionPooling
from sixjars.model.bridges.two_level import TwoLevelAttention

BRIDGES: dict[str, type[Bridge]] = {
    "initial": InitialState,
    "every_step": EveryStep,
    "attention": Attention,
    "pooling": AttentionPooling,
    "two_level": TwoLevelAttention,
}
