"""Every decoder with every bridge.

Sizes: a memory of 5 features, a summary of 3, a level above of 4, a state of 5 and embeddings of 5 (of 4 where nothing
is tied), so that all bridges fit.
"""

from collections.abc import Callable, Mapping
from inspect import signature
from itertools import product
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from sixjars.flow.contracts import Bridge, Decoder, Generator
from sixjars.flow.special import STOP
from sixjars.flow.values import DecoderOutput, Encoded, Padded
from sixjars.model.bridges import ATTENTIONS, BRIDGES
from sixjars.model.bridges.pooling import AttentionPooling
from sixjars.model.bridges.two_level import TwoLevelAttention
from sixjars.model.decoders.label import LabelDecoder
from sixjars.model.decoders.pointer import PointerDecoder
from sixjars.model.decoders.sequence import SequenceDecoder
from sixjars.model.recurrent import CellName
from sixjars.tasks import LOOKING

from .promises import TARGETS, encoded, stretched, words

SIZE, SUMMARY, ABOVE, CLASSES = 5, 3, 4, 6
LENGTHS = (4, 2, 3)
"""Of the sources: where there is one position only, a pointer has nothing to decide."""
ORDERS = ([6, 4, 7, 5, 2], [5, 4, 2], [4, 6, 5, 2])
SOME = ([6, 4, 7, 2], [5, 2], [4, 6, 2])
"""What a pointer may say of such sources: every position once, or some."""
Visits = Literal["all", "some"]
HEARING: dict[str, type[Bridge]] = {
    **{name: kind for name, kind in BRIDGES.items() if name != "attention"},
    **ATTENTIONS,
    "pooling_parts": AttentionPooling,
}
TWO_LEVELS = ("two_level", "pooling_parts")
"""Those that ask the level above."""
Make = Callable[[], Decoder]


def _bridge(hears: str, kind: type[Decoder], settings: Mapping[str, Any]) -> Bridge:
    shape = kind.state_shape(settings)
    sizes = {
        "source_size": SIZE,
        "summary_size": SUMMARY,
        "segment_size": ABOVE if hears in TWO_LEVELS else 0,
        "state_size": shape.state_size,
        "copies": shape.copies,
    }
    wanted = signature(HEARING[hears]).parameters
    return HEARING[hears](**{name: size for name, size in sizes.items() if name in wanted})


def _sequence(cell: CellName, layers: int, hears: str, *, tied: bool, frozen: bool = False) -> Callable[[], Generator]:
    def make() -> Generator:
        bridge = _bridge(hears, SequenceDecoder, {"cell": cell, "size": SIZE, "layers": layers})
        embedding = words(size=SIZE if tied else SIZE - 1, frozen=frozen)
        return SequenceDecoder(
            bridge=bridge, embedding=embedding, cell=cell, size=SIZE, layers=layers, dropout=0.2, tied=tied
        )

    return make


def _pointer(cell: CellName, layers: int, hears: str, visits: Visits) -> Callable[[], Generator]:
    def make() -> Generator:
        bridge = _bridge(hears, PointerDecoder, {"cell": cell, "size": SIZE, "layers": layers})
        sizes = {"source_size": SIZE, "size": SIZE, "layers": layers, "attention": SIZE + 1}
        return PointerDecoder(bridge=bridge, cell=cell, dropout=0.2, visits=visits, **sizes)

    return make


def _label(hears: str) -> Callable[[], Decoder]:
    def make() -> Decoder:
        bridge = _bridge(hears, LabelDecoder, {"size": SIZE})
        return LabelDecoder(bridge=bridge, classes=CLASSES, size=SIZE, dropout=0.2)

    return make


EVERY_SEQUENCE = {
    f"sequence-{cell}-{layers}-{hears}{'-tied' if tied else ''}": _sequence(cell, layers, hears, tied=tied)
    for cell, layers, hears, tied in product(get_args(CellName), (1, 2), HEARING, (False, True))
    if hears not in TWO_LEVELS
}
POINTERS = {
    f"pointer-{visits}-{hears}": _pointer("gru", 1, hears, visits)
    for visits, hears in product(get_args(Visits), HEARING)
}

WRITERS: dict[str, Callable[[], Generator]] = {
    "sequence-frozen-vectors": _sequence("gru", 1, "additive", tied=False, frozen=True),
    "sequence-frozen-vectors-tied": _sequence("gru", 1, "additive", tied=True, frozen=True),
    **EVERY_SEQUENCE,
    "sequence-two-level": _sequence("gru", 1, "two_level", tied=False),
    "sequence-two-level-stacked-tied": _sequence("lstm", 2, "two_level", tied=True),
    "sequence-pooling-parts": _sequence("rnn", 2, "pooling_parts", tied=False),
    **POINTERS,
    "pointer-rnn-stacked": _pointer("rnn", 2, "every_step", "some"),
    "pointer-lstm-stacked": _pointer("lstm", 2, "initial", "all"),
    "pointer-lstm-stacked-follows": _pointer("lstm", 2, "additive", "some"),
}
CHOOSERS: dict[str, Callable[[], Decoder]] = {f"label-{hears}": _label(hears) for hears in HEARING}
CASES: dict[str, Make] = {**WRITERS, **CHOOSERS}


def heard(lengths: tuple[int, ...] = LENGTHS) -> Encoded:
    """What an encoder says to all of them."""
    return encoded(SIZE, lengths, summary=SUMMARY, above=ABOVE)


def truth_for(decoder: Decoder) -> Padded:
    """What they should say: texts or orders of different lengths with junk behind them, or one label each."""
    if isinstance(decoder, PointerDecoder):
        return stretched(Padded.of(list(ORDERS if decoder.stop is None else SOME)), 0)
    return Padded.of([[3], [0], [5]]) if isinstance(decoder, Decoder) else stretched(Padded.of(list(TARGETS)), 0)


def looks(decoder: Decoder) -> bool:
    """Whether its bridge, or a pointer itself, weighs the positions of the memory."""
    return isinstance(decoder, PointerDecoder) or isinstance(
        decoder.bridge, tuple({*ATTENTIONS.values(), *(BRIDGES[kind] for kind in LOOKING)})
    )


def hears_summary(decoder: Decoder) -> bool:
    """Pooling makes a summary of its own."""
    return not isinstance(decoder.bridge, AttentionPooling)


def asks_above(decoder: Decoder) -> bool:
    """Whether its bridge weighs the parts of a level above."""
    return bool(getattr(decoder.bridge, "segment_size", isinstance(decoder.bridge, TwoLevelAttention)))


def mixes(decoder: Decoder) -> bool:
    """Whether the memory itself is heard: pooling hears the level above where there is one."""
    pools_parts = asks_above(decoder) and not decoder.bridge.follows
    return isinstance(decoder, PointerDecoder) or (looks(decoder) and not pools_parts)


def weight_on_source(decoder: Decoder, taught: DecoderOutput) -> Tensor:
    """How much weight lies on real positions at every step: all of it, or what a pointer does not give to `<stop>`."""
    share_BT = taught.scores.softmax(-1)[..., STOP]
    return 1 - share_BT if isinstance(decoder, PointerDecoder) else torch.ones_like(share_BT)
