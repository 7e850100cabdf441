"""Bridges: how a decoder is conditioned on its encoder. This table is the whole registry."""

from sixjars.flow.contracts import Bridge
from sixjars.model.bridges.attention import Attention, TwoLevelAttention
from sixjars.model.bridges.every_step import EveryStep
from sixjars.model.bridges.initial import InitialState
from sixjars.model.bridges.location import LocationAttention
from sixjars.model.bridges.pooling import AttentionPooling

BRIDGES: dict[str, type[Bridge]] = {
    "initial": InitialState,
    "every_step": EveryStep,
    "attention": Attention,
    "pooling": AttentionPooling,
    "two_level": TwoLevelAttention,
    "location": LocationAttention,
}
