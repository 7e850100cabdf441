"""Bridges: how a decoder hears its encoder. These tables are the whole registry."""

from sixjars.flow import Bridge
from sixjars.model.bridges.attention import AdditiveAttention, DotAttention, GeneralAttention
from sixjars.model.bridges.every_step import EveryStep
from sixjars.model.bridges.initial import InitialState
from sixjars.model.bridges.pooling import AttentionPooling
from sixjars.model.bridges.two_level import TwoLevelAttention

BRIDGES: dict[str, type[Bridge]] = {
    "initial": InitialState,
    "every_step": EveryStep,
    "attention": AdditiveAttention,
    "pooling": AttentionPooling,
    "two_level": TwoLevelAttention,
}

ATTENTIONS: dict[str, type[Bridge]] = {
    "additive": AdditiveAttention,
    "dot": DotAttention,
    "general": GeneralAttention,
}
"""`kind: attention` chooses among these by its key `score`."""
